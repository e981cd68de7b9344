"""Monotone maps: u = φ(x), entry by entry, in place of x.

A price p acts through the demand u = exp(−b p) that it leaves, and revenue p·exp(−b p) is not
concave in p. In u it is: p = −log(u)/b, and −u·log(u)/b is an entropy. In the same way

    φ(w x + c)  →  u,      x  →  (φ⁻¹(u) − c)/w      everywhere else

for any function φ of one number that is strictly monotone on the range of its argument and whose
inverse is known: exponentials, powers, logarithms, sigmoids. An interval of x is an interval of u, with
its ends exchanged where φ decreases, so that bounds stay bounds and nothing is lost. Entries of x that
occur in no such function stay as they are.

The proof decides whether this helps: φ(x) becomes linear, but φ⁻¹(u) takes the place of every other
x, and has to be convex or concave as the model needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.algebra import Inverse
from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.expansion import expanded_with
from hcmodel.facts.polynomials import ONE, Sums, stacked
from hcmodel.facts.symbols import Opaque, Symbols, is_logarithm
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.log_rows import without_logs
from hcmodel.maps.map import (
    Map,
    Obstacle,
    Points,
    Step,
    described,
    fresh_name,
    symbol_sums,
)
from hcmodel.records import dataclass
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]

# Numbers of the entries up to which a text lists them.
LISTED = 4
Numbers = NDArray[np.int64]


class Monotone(Map):
    """u = φ(x); see the module."""

    name = "monotone"
    summary = "u = φ(x) for a strictly monotone φ, entry by entry; back: x = φ⁻¹(u)"
    literature = "Talluri, van Ryzin 2004 (demand in place of prices); Avriel 1988"
    example = """
    # The profit of a price under exponential demand.
    var price in [0, 10]

    maximize (price - 1)*exp(-0.5*price)
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        found = functions_of(model)
        for problem in found.problems:
            yield Obstacle("monotone", problem)
        seen: set[Hashable] = set()
        for kind in (*found.kinds(), *found.families()):
            chosen = found.chosen(kind)
            groups = [list(chosen)]
            if len(chosen) > 1:
                groups += [[variable] for variable in chosen]
            for group in groups:
                key = frozenset((v, tuple(chosen[v].items())) for v in group)
                if key not in seen:
                    seen.add(key)
                    yield _Monotone.of(model, {v: chosen[v] for v in group})


@dataclass(frozen=True, eq=False)
class Function:
    """φ(w x + c) of one entry x: the symbol that it is, w, c, and the inverse of φ.

    The new variable is `scale` times it. A natural power is a product and no symbol; where the power is
    even x may have both signs, and the root of one sign that reaches all of its values is taken.
    """

    symbol: int | None
    weight: float
    shift: float
    inverse: Inverse
    kind: Hashable
    evaluate: Callable[[FloatArray], FloatArray]
    family: Hashable = None
    """The function whatever its other arguments are, such as exponents."""
    scale: float = 1.0
    folds: bool = False
    """Whether x and −x have the same u."""

    def forward(self, x: Any) -> FloatArray:
        """u, from x."""
        return self.scale * self.evaluate(np.asarray(self.weight * x + self.shift))

    def image(self, low: float, high: float) -> tuple[float, float]:
        """The range of u for an interval of x; NaN where the function is not defined."""
        ends = np.array([low, high])
        if self.symbol is None and low < 0 < high:
            ends = np.array([0.0, max(-low, high)])
        values = self.forward(ends)
        return float(values.min()), float(values.max())

    def back(self, u: float) -> float:
        """x, from u; the largest number that there is where x is infinite."""
        value = u / self.scale
        with np.errstate(all="ignore"):
            argument = float(self.inverse(np, value))
            if not np.isfinite(argument):
                near = [np.nextafter(value, end) for end in (-np.inf, np.inf)]
                inside = [float(self.inverse(np, each)) for each in near]
                argument = next((each for each in inside if np.isfinite(each)), argument)
        return (argument - self.shift) / self.weight


@dataclass
class Functions:
    """The functions of each entry, by its symbol; and what kept others from being taken."""

    symbols: Symbols
    variables: Sequence[Variable]
    functions: dict[int, list[Function]]
    problems: list[str]

    def kinds(self) -> list[Hashable]:
        """The kinds of functions, those of most entries first."""
        counts: dict[Hashable, int] = {}
        for functions in self.functions.values():
            for kind in {each.kind for each in functions}:
                counts[kind] = counts.get(kind, 0) + 1
        return sorted(counts, key=lambda kind: -counts[kind])

    def families(self) -> list[Hashable]:
        """The functions that entries have in different kinds, such as powers: one kind for each entry."""
        kinds: dict[Hashable, set[Hashable]] = {}
        for functions in self.functions.values():
            for each in functions:
                kinds.setdefault(each.family, set()).add(each.kind)
        return [family for family, members in kinds.items() if len(members) > 1]

    def chosen(self, kind: Hashable) -> dict[Variable, dict[int, Function]]:
        """For each variable its entries with a function of a kind or family; the flattest one counts.

        Of exp(−p) and exp(−2 p) the first one, so that the second is a square.
        """
        result: dict[Variable, dict[int, Function]] = {}
        for variable in self.variables:
            own: dict[int, Function] = {}
            for symbol in np.ravel(self.symbols.of_variable(variable)).tolist():
                every = self.functions.get(symbol, ())
                alike = [each for each in every if kind in (each.kind, each.family)]
                if alike:
                    own[symbol] = min(alike, key=lambda each: abs(each.weight))
            if own:
                result[variable] = own
        return result


def functions_of(model: Expanded) -> Functions:
    """All functions of single entries of variables that are boxes."""
    symbols = model.symbols
    variables = [v for v in model.variables if v.set.is_box and v not in model.closed]
    own = {int(s) for each in variables for s in np.ravel(symbols.of_variable(each))}
    found = Functions(symbols, variables, {}, [])
    multiplied = _multiplied_logarithms(model)
    for symbol in model.used().tolist():
        function = symbols.function(symbol)
        if function is None or not function.atom.is_invertible or symbol in symbols.undoing:
            continue
        entry = _entry(function, own)
        if entry is None:
            continue
        place, x = entry
        facts = [symbols.argument(each) for each in function.arguments]
        inverse = function.atom.inverse(facts, function.params)
        if inverse is None:
            text = f"{described(symbols, symbol)} is not monotone on the range of"
            found.problems.append(f"{text} {described(symbols, x)}")
            continue
        argument = function.arguments[place]
        if is_logarithm(function.atom) and not argument.value.any() and symbol not in multiplied:
            continue  # the proof has logarithms of its own
        others = tuple(each.content() for i, each in enumerate(function.arguments) if i != place)
        sign = facts[place].sign
        kind = function.atom, tuple(sorted(function.params.items())), place, others, sign
        weight = float(argument.weight[argument.key != ONE][0])
        evaluate, family = _numeric(function, place), (*kind[:3], sign)
        made = Function(symbol, weight, float(argument.value), inverse, kind, evaluate, family)
        found.functions.setdefault(x, []).append(made)
    for x, power in _natural_powers(model, own).items():
        made_of = _power(symbols, x, power)
        if made_of is not None:
            found.functions.setdefault(x, []).append(made_of)
    return found


def _multiplied_logarithms(model: Expanded) -> set[int]:
    """Logarithms of entries that something else is multiplied with, as in k·log θ.

    Such a product is convex in no coordinates of the proof; u = log θ and k·u may be (`perspective`).
    """
    symbols = model.symbols
    entries: dict[int, int] = {}  # by the digits of the logarithms, those of the entries
    for symbol in model.used().tolist():
        inner = symbols.logarithm(symbol)
        if inner is not None and inner.key.size == 1 and inner.degrees[0] == 1:
            entries[symbol + 1] = int(inner.key[0])
    found: set[int] = set()
    if not entries:
        return found
    for sums in model.everywhere():
        digits = sums.digits[sums.degrees > 1]
        for row in digits[np.isin(digits, list(entries)).any(axis=1)].tolist():
            logs = [digit for digit in row if digit in entries]
            others = {digit for digit in row if digit and digit not in entries}
            found.update(each - 1 for each in logs if others - {entries[each]})
    return found


def _natural_powers(model: Expanded, own: set[int]) -> dict[int, int]:
    """The entries that occur in powers only: the greatest common divisor of these, from 2.

    The logarithm of an entry is a part of that of any power.
    """
    found: dict[int, int] = {}
    arrays = model.arrays
    for function in model.functions():
        first = function.arguments[0]
        if not (is_logarithm(function.atom) and first.key.size == 1 and first.degrees[0] == 1):
            arrays.extend(function.arguments)
    for sums in arrays:
        check_time()
        digits = sums.digits
        rows, columns = np.nonzero(digits)
        if not rows.size:
            continue
        terms = int(rows.max()) + 1
        pairs, counts = np.unique(digits[rows, columns] * terms + rows, return_counts=True)
        used, starts = np.unique(pairs // terms, return_index=True)
        divisors = np.gcd.reduceat(counts, starts)
        for digit, divisor in zip(used.tolist(), divisors.tolist(), strict=True):
            found[digit - 1] = int(np.gcd(divisor, found.get(digit - 1, 0)))
    return {symbol: power for symbol, power in found.items() if power > 1 and symbol in own}


def _power(symbols: Symbols, entry: int, power: int) -> Function | None:
    """xᵏ for x >= 0, or an even k."""
    low, high = symbols.lower_of(entry), symbols.upper_of(entry)
    if low < 0 and power % 2:
        return None
    sign = 1.0 if high >= -low else -1.0
    return Function(
        None,
        sign,
        0.0,
        lambda xp, result: result ** (1.0 / power),
        ("power", power),
        lambda argument: np.asarray(argument**power),
        "power",
        folds=low < 0 < high,
    )


def _entry(function: Opaque, own: set[int]) -> tuple[int, int] | None:
    """The argument that is affine in one entry of a variable, and that entry; None for others."""
    moving = [i for i, each in enumerate(function.arguments) if not each.is_constant]
    if len(moving) != 1:
        return None
    argument = function.arguments[moving[0]]
    keys = argument.key[argument.key != ONE]
    if keys.size != 1 or int(keys[0]) - 1 not in own:
        return None
    return moving[0], int(keys[0]) - 1


def _numeric(function: Opaque, place: int) -> Callable[[FloatArray], FloatArray]:
    """The function of the argument that moves, by numpy."""
    values = [each.value for each in function.arguments]

    def evaluate(argument: FloatArray) -> FloatArray:
        arguments = [argument if i == place else each for i, each in enumerate(values)]
        with np.errstate(all="ignore"):
            return np.asarray(function.atom.function(np, *arguments, **function.params))

    return evaluate


class _Namespace:
    """The functions that inverses are written with, as functions of expressions."""

    def __getattr__(self, name: str) -> Callable[[Expression], Expression]:
        return _COMPOSED[name] if name in _COMPOSED else ATOMS[name]


_COMPOSED: dict[str, Callable[[Expression], Expression]] = {
    "log1p": lambda a: ATOMS["log"](1.0 + a),
    "expm1": lambda a: ATOMS["exp"](a) - 1.0,
    "arctanh": lambda a: 0.5 * (ATOMS["log"](1.0 + a) - ATOMS["log"](1.0 - a)),
}
NAMESPACE = _Namespace()


class _Monotone(Step):
    """u in place of x."""

    name = "monotone"

    def __init__(
        self,
        pairs: Sequence[tuple[Variable, Variable]],
        functions: dict[int, Function],
        texts: dict[Variable, str],
    ) -> None:
        self.gone = tuple(old for old, _ in pairs)
        self.new = tuple(new for _, new in pairs)
        self.texts = texts
        self._functions = functions
        self.injective = not any(each.folds for each in functions.values())

    @staticmethod
    def of(model: Expanded, chosen: dict[Variable, dict[int, Function]]) -> Step | Obstacle:
        symbols = model.symbols
        pairs: list[tuple[Variable, Variable]] = []
        changes: dict[int, Sums] = {}
        every: dict[int, Function] = {}
        values: dict[int, Sums] = {}  # of the functions
        texts: dict[Variable, str] = {}
        for variable, functions in chosen.items():
            new = _image(symbols, variable, functions, fresh_name(model, "u"))
            if new is None:
                return Obstacle("monotone", f"{variable.name} has no range that can be mapped")
            pairs.append((variable, new))
            texts[new] = text_of(symbols, variable.name, functions)
            for old, symbol in zip(
                np.ravel(symbols.of_variable(variable)).tolist(),
                np.ravel(symbols.of_variable(new)).tolist(),
                strict=True,
            ):
                u = symbol_sums(symbols, np.array(symbol))
                if old in functions:
                    values[old] = u.scaled(1.0 / functions[old].scale)
                else:
                    changes[old] = u
            every.update(functions)
        changes |= _solved(symbols, values, every)
        for old, function in every.items():
            symbols.undoing.update(changes[old].symbols_used().tolist())
            if function.symbol is not None:
                changes[function.symbol] = values[old]
        step = _Monotone(pairs, every, texts)
        after = rewritten(model, Replacing(symbols, changes), gone=step.gone, new=step.new)
        step.after = without_logs(after)
        return step

    def forward(self, point: Points) -> None:
        for old, new in zip(self.gone, self.new, strict=True):
            values = np.array(point[old], dtype=float).reshape(-1)
            numbers = np.ravel(self.after.symbols.of_variable(old))
            for place, symbol in enumerate(numbers.tolist()):
                function = self._functions.get(symbol)
                if function is not None:
                    values[place] = function.forward(values[place])
            point[new] = values.reshape(new.shape)

    def back(self, point: Points) -> None:
        for old, new in zip(self.gone, self.new, strict=True):
            values = np.array(point[new], dtype=float).reshape(-1)
            numbers = np.ravel(self.after.symbols.of_variable(old))
            for place, symbol in enumerate(numbers.tolist()):
                function = self._functions.get(symbol)
                if function is not None:
                    values[place] = function.back(values[place])
            ends = (np.broadcast_to(end, old.shape) for end in (old.lower, old.upper))
            point[old] = np.clip(values.reshape(old.shape), *ends)


def _image(
    symbols: Symbols, variable: Variable, functions: dict[int, Function], name: str
) -> Variable | None:
    """The new variable: its bounds are the values of φ at those of the old one."""
    low, high = (
        np.array(np.broadcast_to(end, variable.shape), dtype=float).reshape(-1)
        for end in variable.set.interval
    )
    positive = np.zeros(variable.size, dtype=bool)
    for place, symbol in enumerate(np.ravel(symbols.of_variable(variable)).tolist()):
        function = functions.get(symbol)
        if function is None:
            positive[place] = variable.pos or low[place] > 0
            continue
        low[place], high[place] = function.image(low[place], high[place])
        if np.isnan(low[place]) or np.isnan(high[place]):
            return None
        known = -np.inf if function.symbol is None else symbols.lower_of(function.symbol)
        positive[place] = max(known, low[place]) > 0
    bounds = (
        np.where(np.isfinite(low), low, -np.inf).reshape(variable.shape),
        np.where(np.isfinite(high), high, np.inf).reshape(variable.shape),
    )
    try:
        return Variable(variable.shape, name=name, bounds=bounds, pos=bool(positive.all()))
    except ModelError:
        return None


def text_of(symbols: Symbols, name: str, functions: Mapping[int, Function]) -> str:
    """φ(w x + c) as people write it; letters for many numbers that differ between the entries."""
    first = next(iter(functions.values()))
    if first.symbol is None:
        return f"{name}^{round(1.0 / np.log2(float(first.inverse(np, 2.0))))}"
    source, _ = symbols.source(first.symbol)
    assert isinstance(source, Opaque)

    def number(values: Sequence[float], letter: str) -> str:
        if len(set(values)) == 1:
            return f"{values[0]:.6g}"
        listed = ", ".join(f"{value:.6g}" for value in values)
        return f"[{listed}]" if len(values) <= LISTED else letter

    weight = number([each.weight for each in functions.values()], "w")
    shift = number([each.shift for each in functions.values()], "c")
    inner = {"1": name, "-1": f"-{name}"}.get(weight, f"{weight}*{name}")
    inner += "" if shift == "0" else f" + {shift}"
    columns = zip(*(_others(symbols, each) for each in functions.values()), strict=True)
    others = [number(list(column), "k") for column in columns]
    return f"{source.atom.name}({', '.join([inner, *others])})"


def _others(symbols: Symbols, function: Function) -> list[float]:
    """The constant arguments of a function, such as exponents."""
    assert function.symbol is not None
    source, _ = symbols.source(function.symbol)
    assert isinstance(source, Opaque)
    return [float(each.value) for each in source.arguments if each.is_constant]


def _solved(
    symbols: Symbols, values: Mapping[int, Sums], functions: Mapping[int, Function]
) -> dict[int, Sums]:
    """(φ⁻¹(value) − c)/w for each entry, functions of one kind together."""
    kinds: dict[Hashable, list[int]] = {}
    for entry, function in functions.items():
        kinds.setdefault(function.kind, []).append(entry)
    found: dict[int, Sums] = {}
    for entries in kinds.values():
        u = Variable(len(entries), name="u", nonneg=True)  # stands for the values
        text: Any = functions[entries[0]].inverse(NAMESPACE, u)
        meaning = {u: stacked([values[entry] for entry in entries], symbols.coding)}
        for entry, sums in zip(
            entries, expanded_with(symbols, text, meaning).entries(), strict=True
        ):
            shift = Sums.constant(functions[entry].shift, symbols.coding)
            found[entry] = (sums - shift).scaled(1.0 / functions[entry].weight)
    return found
