"""Shares: exponentials over their sum, in place of the variables in the exponents.

Buyers who choose by a multinomial logit take product i with the probability

    q_i = v_i / (1 + Σ v),  v_i = exp(a_i − b_i p_i),  and nothing with  q_0 = 1/(1 + Σ v)

Revenue p_i q_i is not concave in the prices. In the shares it is: v_i = q_i/q_0, so that
p_i = (a_i − log q_i + log q_0)/b_i, and p_i q_i = (a_i q_i − q_i log(q_i/q_0))/b_i, an affine function
minus a relative entropy, whatever the b_i are. A bound p_i <= h is the linear row
q_i >= exp(a_i − b_i h) q_0, as all bounds on v_i are; so is every row that is affine in v after it is
multiplied by q_0. The set of the shares is {q > 0, q_0 > 0, q_0 + Σ q = 1}.

A sigmoid is the same quotient with one product. Without the 1 the quotient is softmax(θ), and the sum of
the exponentials is free: r = 1/Σ v is a variable of its own, which falls out where only shares occur.
Bounds l_i <= v_i <= h_i are l_i r <= q_i <= h_i r then, and there is such an r where l_j q_i <= h_i q_j
for each pair of shares: these rows have no r, so that policies of decision processes may have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import function_of
from hcmodel.facts.polynomials import ONE, Sums, stacked
from hcmodel.facts.symbols import Symbols, is_exponential
from hcmodel.maps.algebra.cancelling import cancelled
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.replacing import Replacing, cleared
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.log_rows import without_logs
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.maps.monotone import Function, functions_of, text_of
from hcmodel.records import dataclass, replace

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
_Limit = tuple[Sums, float, float]
"""A share, and the bounds of its exponential."""

# Shares of one sum up to which each pair of them gets a row.
MOST_PAIRED = 30


class Shares(Map):
    """q = v/(1 + Σ v); see the module."""

    name = "shares"
    summary = "q = exp(a − b p) / (1 + Σ exp(a − b p)), softmax among them; back: p by logarithms"
    literature = "Hanson, Martin 1996; Song, Xue 2007; Li, Huh 2011"
    example = """
    # The revenue of two products whose buyers choose by a multinomial logit.
    param appeal[2] = [1, 2]
    param slope[2]  = [0.5, 0.8]
    var price[2] in [0, 20]

    let weight = exp(appeal - slope*price)

    maximize sum(price*weight) / (1 + sum(weight))
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        model = cancelled(model)
        found = _quotients(model)
        if isinstance(found, Obstacle):
            yield found
        elif found:
            yield _substituted(model, found)


@dataclass(frozen=True, eq=False)
class _Quotient:
    """1/(1 + Σ v) or 1/Σ v: its base, and the functions v by the symbols of their entries."""

    base: Sums
    symbol: int
    functions: dict[int, Function]

    @property
    def outside(self) -> bool:
        """Whether there is the 1."""
        return bool((self.base.key == ONE).any())


def _quotients(model: Expanded) -> list[_Quotient] | Obstacle:
    """The sums of exponentials that something is divided by, each of entries of its own."""
    symbols = model.symbols
    known: dict[int | None, tuple[int, Function]] = {
        function.symbol: (entry, function)
        for entry, functions in functions_of(model).functions.items()
        for function in functions
    }
    quotients: list[_Quotient] = []
    used: set[int] = set()
    for symbol in model.used().tolist():
        base, power = symbols.power(symbol)
        if power != -1 or not _is_sum(symbols, base):
            continue
        moving = base.key != ONE
        own: dict[int, Function] = {}
        # the base is normalised: the 1 is 1 where there is one
        for term, weight in zip(base.key[moving] - 1, base.weight[moving], strict=True):
            if int(term) not in known:
                return Obstacle("shares", "an exponent depends on more than one entry")
            entry, function = known[int(term)]
            if entry in own:
                return Obstacle("shares", "an entry stands in two exponentials of one sum")
            own[entry] = replace(function, scale=float(weight))
        if used & set(own):
            return Obstacle("shares", "an entry stands in two different sums of exponentials")
        used |= set(own)
        quotients.append(_Quotient(base, symbol, own))
    return quotients


def _is_sum(symbols: Symbols, base: Sums) -> bool:
    """Whether it is a sum of several exponentials, or of one and a constant."""
    if base.shape or base.key.size < 2 or base.degrees.max() > 1 or (base.weight <= 0).any():
        return False
    functions = [symbols.function(int(term) - 1) for term in base.key[base.key != ONE]]
    return all(each is not None and is_exponential(each.atom) for each in functions)


def _substituted(model: Expanded, quotients: Sequence[_Quotient]) -> Step:
    symbols, coding = model.symbols, model.symbols.coding
    owner = {entry: place for place, each in enumerate(quotients) for entry in each.functions}
    rests: list[Variable] = []
    for each in quotients:
        rests.append(_rest(fresh_name(model, "r"), each))
        symbols.of_variable(rests[-1])
    sizes = [int(symbols.of_variable(rest)) for rest in rests]
    pairs: list[tuple[Variable, Variable]] = []
    for variable in model.variables:
        if any(int(entry) in owner for entry in np.ravel(symbols.of_variable(variable))):
            pairs.append((variable, _share(model, variable, owner, quotients)))
            symbols.of_variable(pairs[-1][1])
    changes: dict[int, Sums] = {}
    rows: list[Row] = []
    limits: list[list[_Limit]] = [[] for _ in quotients]
    totals: list[list[int]] = [[] for _ in quotients]
    for old, new in pairs:
        ends = [np.ravel(np.broadcast_to(end, old.shape)) for end in old.set.interval]
        numbers = zip(
            np.ravel(symbols.of_variable(old)), np.ravel(symbols.of_variable(new)), strict=True
        )
        for place, (entry, share) in enumerate((int(a), int(b)) for a, b in numbers):
            q = symbol_sums(symbols, np.array(share))
            if entry not in owner:
                changes[entry] = q
                continue
            size = sizes[owner[entry]]
            totals[owner[entry]].append(share)
            function = quotients[owner[entry]].functions[entry]
            over = symbol_sums(symbols, np.array(symbols.of_power(_one(symbols, size), -1.0)))
            symbols.undoing.update(over.symbols_used().tolist())
            value = q.times(over).scaled(1.0 / function.scale)
            assert function.symbol is not None
            changes[function.symbol] = value
            changes[entry] = _solved(symbols, value, function)
            symbols.undoing.update(changes[entry].symbols_used().tolist())
            bounds = function.forward(np.array([each[place] for each in ends]))
            limits[owner[entry]].append((q, float(bounds.min()), float(bounds.max())))
    for quotient, size, total in zip(quotients, sizes, totals, strict=True):
        r = _one(symbols, size)
        changes[quotient.symbol] = r
        logarithm = int(symbols.of_function(ATOMS["log"], {}, (quotient.base,), ()))
        changes[logarithm] = -function_of(symbols, ATOMS["log"], {}, [r], ())
        own = symbol_sums(symbols, np.array(total)).grouped(np.zeros(len(total), dtype=np.intp), ())
        every = own + r if quotient.outside else own
        rows.append(Row(every - Sums.constant(1.0, coding), "==", None))
    after = rewritten(
        model,
        Replacing(symbols, changes),
        gone=[old for old, _ in pairs],
        new=[share for _, share in pairs],
        rows=rows,
    )
    for size in sizes:
        after = replace(after, rows=tuple(cleared(row, size, symbols) for row in after.rows))
    after = without_logs(after)
    bounded = _limit_rows(after, quotients, sizes, limits)
    return _Shares(pairs, quotients, rests, replace(after, rows=(*after.rows, *bounded)))


def _limit_rows(
    after: Expanded,
    quotients: Sequence[_Quotient],
    sizes: Sequence[int],
    limits: Sequence[Sequence[_Limit]],
) -> list[Row]:
    """The bounds of the exponentials, without r = 1/Σ v where nothing else has it."""
    symbols, used = after.symbols, set(after.used().tolist())
    found: list[Sums] = []
    for quotient, size, own in zip(quotients, sizes, limits, strict=True):
        alone = not quotient.outside and size not in used and len(own) <= MOST_PAIRED
        for share, low, high in own:
            found += (
                _pairs(share, high, own)
                if alone
                else _bounds(share, _one(symbols, size), low, high)
            )
    return [Row(stacked(found, symbols.coding), "<=", None)] if found else []


def _one(symbols: Symbols, symbol: int) -> Sums:
    return symbol_sums(symbols, np.array(symbol))


def _rest(name: str, quotient: _Quotient) -> Variable:
    """What is left of the shares; without the 1, how large the sum is."""
    return Variable(name=name, pos=True, bounds=(0.0, 1.0) if quotient.outside else None)


def _share(
    model: Expanded,
    variable: Variable,
    owner: dict[int, int],
    quotients: Sequence[_Quotient],
) -> Variable:
    """The shares of the entries of a variable; distributions where each line is one quotient."""
    name, symbols = fresh_name(model, "q"), model.symbols
    entries = np.ravel(symbols.of_variable(variable))
    if variable.shape:
        lines = entries.reshape(-1, variable.shape[-1])
        owners = [{owner.get(int(entry), -1) for entry in line} for line in lines]
        if all(len(each) == 1 and -1 not in each for each in owners):
            whole = [quotients[each.pop()] for each in owners]
            if all(
                not quotient.outside and set(quotient.functions) == set(line.tolist())
                for quotient, line in zip(whole, lines, strict=True)
            ):
                return Variable(variable.shape, name=name, simplex=True)
    low, high = (
        np.array(np.broadcast_to(end, variable.shape), dtype=float).reshape(-1)
        for end in variable.set.interval
    )
    inside = np.array([int(entry) in owner for entry in entries])
    low[inside], high[inside] = 0.0, 1.0
    bounds = low.reshape(variable.shape), high.reshape(variable.shape)
    return Variable(variable.shape, name=name, bounds=bounds, pos=bool(inside.all()))


def _solved(symbols: Symbols, value: Sums, function: Function) -> Sums:
    """The entry in the exponent, from the value of the exponential."""
    logarithm = function_of(symbols, ATOMS["log"], {}, [value], ())
    return (logarithm - Sums.constant(function.shift, symbols.coding)).scaled(1.0 / function.weight)


def _bounds(share: Sums, rest: Sums, low: float, high: float) -> Iterator[Sums]:
    """l r <= q <= h r, for the bounds of v, as sums that are not positive."""
    if low > 0:
        yield -excess(share, rest, low)
    if np.isfinite(high):
        yield excess(share, rest, high)


def excess(share: Sums, rest: Sums, bound: float) -> Sums:
    """What the share has above the bound times the rest, over the larger of both numbers.

    Such numbers are exponentials: a price of 50 may have one of 1e31.
    """
    size = max(bound, 1.0)
    return share.scaled(1.0 / size) - rest.scaled(bound / size)


def _pairs(share: Sums, high: float, limits: Sequence[_Limit]) -> Iterator[Sums]:
    """l_j q_i <= h_i q_j for one i and all other j, divided by the larger of both numbers."""
    if not np.isfinite(high):
        return
    for other, low, _ in limits:
        if other is not share and low > 0:
            size = max(low, high)
            yield share.scaled(low / size) - other.scaled(high / size)


class _Shares(Step):
    """The exponents in place of the shares."""

    name = "shares"

    def __init__(
        self,
        pairs: Sequence[tuple[Variable, Variable]],
        quotients: Sequence[_Quotient],
        rests: Sequence[Variable],
        after: Expanded,
    ) -> None:
        self.gone = tuple(old for old, _ in pairs)
        self._shares = tuple(new for _, new in pairs)
        self._quotients, self._rests = tuple(quotients), tuple(rests)
        used = set(after.used().tolist())
        kept = tuple(r for r in rests if int(after.symbols.of_variable(r)) in used)
        self.new = (*self._shares, *kept)
        self.after = replace(after, variables=(*after.variables, *kept))
        self._ends = {
            int(symbol): (float(low), float(high))
            for old in self.gone
            for symbol, low, high in zip(
                np.ravel(after.symbols.of_variable(old)),
                *(np.ravel(np.broadcast_to(end, old.shape)) for end in old.set.interval),
                strict=True,
            )
        }
        self.texts = self._written(pairs)

    def _written(self, pairs: Sequence[tuple[Variable, Variable]]) -> dict[Variable, str]:
        """The shares and what is left of them in the terms of what stood in the exponents."""
        symbols = self.after.symbols
        found: dict[Variable, str] = {}
        sums: dict[int, list[str]] = {place: [] for place in range(len(self._quotients))}
        for old, new in pairs:
            own = set(np.ravel(symbols.of_variable(old)).tolist())
            text = ""
            for place, quotient in enumerate(self._quotients):
                functions = {
                    symbol: replace(each, shift=each.shift + float(np.log(each.scale)))
                    for symbol, each in quotient.functions.items()
                    if symbol in own
                }
                if functions:
                    text = text_of(symbols, old.name, functions)
                    sums[place].append(f"sum({text})" if len(functions) > 1 else text)
            first = next(i for i, q in enumerate(self._quotients) if own & set(q.functions))
            one = ["1"] if self._quotients[first].outside else []
            found[new] = f"{text} / {_total([*one, *sums[first]])}"
        for place, rest in enumerate(self._rests):
            if not self._quotients[place].outside:  # else it is what the shares leave
                found[rest] = f"1 / {_total(sums[place])}"
        return found

    def forward(self, point: Points) -> None:
        symbols = self.after.symbols
        values = self._entries(point, self.gone)
        found: dict[int, float] = dict(values)
        for quotient, rest in zip(self._quotients, self._rests, strict=True):
            sizes = {s: float(f.forward(values[s])) for s, f in quotient.functions.items()}
            total = sum(sizes.values()) + quotient.outside
            point[rest] = np.asarray(1.0 / total)
            found.update({symbol: size / total for symbol, size in sizes.items()})
        for old, new in zip(self.gone, self._shares, strict=True):
            numbers = np.ravel(symbols.of_variable(old)).tolist()
            point[new] = np.array([found[each] for each in numbers]).reshape(new.shape)

    def back(self, point: Points) -> None:
        symbols = self.after.symbols
        shares = self._entries(point, self._shares, self.gone)
        for quotient, rest in zip(self._quotients, self._rests, strict=True):
            size = float(point[rest]) if rest in point else self._size(quotient, shares)
            for symbol, function in quotient.functions.items():
                with np.errstate(all="ignore"):
                    shares[symbol] = function.back(shares[symbol] / size)
        for old in self.gone:
            numbers = np.ravel(symbols.of_variable(old)).tolist()
            values = np.array([shares[each] for each in numbers]).reshape(old.shape)
            ends = (np.broadcast_to(end, old.shape) for end in (old.lower, old.upper))
            point[old] = np.clip(values, *ends)

    def _size(self, quotient: _Quotient, shares: Mapping[int, float]) -> float:
        """An r for which the bounds of the exponentials hold: of all such, one in the middle."""
        least, most = 0.0, np.inf
        for symbol, function in quotient.functions.items():
            low, high = function.image(*self._ends[symbol])
            with np.errstate(all="ignore"):
                least = max(least, shares[symbol] / high)
                most = min(most, float(np.divide(shares[symbol], low))) if low > 0 else most
        if least > 0 and most > 0:
            return float(np.sqrt(least * most)) if np.isfinite(most) else least
        return most if np.isfinite(most) and most > 0 else least or 1.0

    def _entries(
        self, point: Points, variables: Sequence[Variable], names: Sequence[Variable] = ()
    ) -> dict[int, float]:
        """The values of entries by the symbols of the old ones."""
        found: dict[int, float] = {}
        for variable, named in zip(variables, names or variables, strict=True):
            numbers = np.ravel(self.after.symbols.of_variable(named)).tolist()
            found.update(zip(numbers, np.ravel(point[variable]).tolist(), strict=True))
        return found


def _total(terms: Sequence[str]) -> str:
    return terms[0] if len(terms) == 1 else f"({' + '.join(terms)})"
