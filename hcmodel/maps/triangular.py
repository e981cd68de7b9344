"""Triangular maps: u_k = x_k − φ_k(x₁ … x_{k−1}) in place of x_k.

Rosenbrock's function has x₂ in x₂ − x₁² alone, and a chain of such residuals has x_k in
x_k − φ_k(x₁ … x_{k−1}) and in the φ of later ones. With each residual as a variable nothing of φ is left:

    x_k  →  u_k + φ_k(x₁ … x_{k−1})

The last variable of a chain is linear wherever it occurs, always next to the same nonlinear terms −φ.
Once it is replaced by u, the one before it is the last. The way back is by recursion, from the first
one. An interval of x_k is not an interval of u_k. Bounds on x_k become rows l <= u_k + φ_k <= h if the
proof still holds. Otherwise only the bounds that they imply on u_k are kept, and the point that is found
is tested against them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row, replaced
from hcmodel.maps.algebra.gather import gathered
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]
Marks = NDArray[np.bool_]

# Chains that are longer are not worked off: each link takes a pass over the model.
LONGEST = 50


class Triangular(Map):
    """u_k = x_k − φ_k(x₁ … x_{k−1}); see the module."""

    name = "triangular"
    summary = "u_k = x_k − φ_k(x_1 … x_{k−1}); back: by recursion"
    literature = "Rosenbrock 1960; Gürbüzbalaban, Overton 2012"
    example = """
    # Rosenbrock's function, plus 1.
    var x[2]

    minimize 1 + (1 - x[1])^2 + 100*(x[2] - x[1]^2)^2
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        passes: list[dict[int, Sums]] = []
        # squares that were multiplied out show what was squared
        arrays = [gathered(each, model.symbols) for each in model.arrays]
        current = replaced(model, arrays)
        while len(passes) < LONGEST:
            found = _last_ones(current, {entry for each in passes for entry in each})
            if not found:
                break
            passes.append(found)
            current = _cut(current, found)
        if passes:
            yield from _Triangular.steps(model, current, passes)


def _choices(model: Expanded, passes: list[dict[int, Sums]]) -> list[tuple[bool, bool]]:
    """Whether lower and upper bounds are kept as rows: one kind of them first, then none.

    Both would be convex for affine φ only. Along a chain they are powers of powers, and not kept.
    """
    if len(passes) > 1:
        return [(False, False)]
    entries = [symbol for each in passes for symbol in each]
    low = any(np.isfinite(model.symbols.lower_of(each)) for each in entries)
    high = any(np.isfinite(model.symbols.upper_of(each)) for each in entries)
    return list(dict.fromkeys([(False, high), (low, False), (False, False)]))


@dataclass
class _Uses:
    """How an entry occurs so far: the least terms that stand beside it, divided by its weight."""

    beside: Sums | None = None
    linear: bool = True


def _last_ones(model: Expanded, done: set[int]) -> dict[int, Sums]:
    """The entries that are linear everywhere, always beside the same nonlinear terms: these, negated."""
    symbols = model.symbols
    own = {
        int(symbol)
        for variable in model.variables
        if variable.set.is_box
        for symbol in np.ravel(symbols.of_variable(variable))
    } - done
    # an entry whose residual is a term of the objective itself has its optimum at a bound
    own -= set((model.objective.symbols_used()).tolist())
    functions = _marked(model, [each.numbers for each in model.functions()])
    arrays = [(sums, _is_curved(sums, functions)) for sums in model.everywhere()]
    for sums, curved in arrays:
        own -= _not_beside(sums, curved)
    if not own:
        return {}
    uses = {symbol: _Uses() for symbol in own}
    wanted = _marked(model, [np.array(list(own))])
    for sums, curved in arrays:
        _note(sums, curved, wanted, uses)
    found: dict[int, Sums] = {}
    taken: set[int] = set()
    for symbol, use in uses.items():
        if not use.linear or use.beside is None or not use.beside.key.size:
            continue
        inside = _variables_in(model, use.beside)
        if symbol in inside or inside & done or inside & set(found) or symbol in taken:
            continue  # in a later pass, if at all
        found[symbol] = -use.beside
        taken |= inside
    return found


def _not_beside(sums: Sums, curved: Marks) -> set[int]:
    """The symbols in products, and those in entries that are affine."""
    affine = np.ones(sums.size, dtype=bool)
    affine[sums.entry[curved]] = False
    degrees = sums.degrees
    products = sums.digits[degrees > 1].reshape(-1) - 1
    alone = sums.key[(degrees == 1) & affine[sums.entry]] - 1
    return set(products.tolist()) | set(alone.tolist())


def _note(sums: Sums, curved: Marks, wanted: Marks, uses: dict[int, _Uses]) -> None:
    """Enter what stands beside each of the entries `wanted` in an array of sums."""
    linear = (sums.degrees == 1) & wanted[sums.digits[:, 0]]
    ends = np.searchsorted(sums.entry, np.arange(sums.size + 1))
    for term in np.flatnonzero(linear).tolist():
        use = uses[int(sums.key[term]) - 1]
        if not use.linear:
            continue
        entry = sums.entry[term]
        here = np.arange(ends[entry], ends[entry + 1])
        here = here[curved[here]]
        beside = Sums(
            (),
            np.zeros(here.size, dtype=np.intp),
            sums.key[here],
            sums.weight[here] / sums.weight[term],
            sums.coding,
        )
        if use.beside is None:
            use.beside = beside
        elif not _within(use.beside, beside):
            use.linear = _within(beside, use.beside)
            use.beside = beside


def _within(one: Sums, two: Sums) -> bool:
    """Whether all terms of one are terms of two."""
    places = np.searchsorted(two.key, one.key)
    places = np.minimum(places, max(two.key.size - 1, 0))
    if one.key.size > two.key.size or (two.key[places] != one.key).any():
        return False
    same = np.abs(one.weight - two.weight[places]) <= PRODUCT_ROUNDING * np.abs(one.weight)
    return bool(same.all())


def _marked(model: Expanded, numbers: Iterable[Numbers]) -> Marks:
    """Which digits stand for some symbols."""
    marks = np.zeros(model.symbols.count + 1, dtype=bool)
    for each in numbers:
        marks[each.reshape(-1) + 1] = True
    return marks


def _is_curved(sums: Sums, functions: Marks) -> Marks:
    """The terms that are not an entry of a variable times a number, and not constant."""
    return np.asarray((sums.degrees > 1) | functions[sums.digits[:, 0]])


def _variables_in(model: Expanded, sums: Sums) -> set[int]:
    """The entries of variables in sums, those inside of functions among them."""
    found: set[int] = set()
    pending = [sums]
    while pending:
        used = pending.pop().symbols_used()
        found |= set(used.tolist())
        for function in model.symbols.functions(used):
            pending.extend(function.arguments)
    return found


def _cut(model: Expanded, found: dict[int, Sums]) -> Expanded:
    """The model with x_k − φ_k replaced by x_k, which then stands for u_k."""
    changes = {symbol: _one(model, symbol) + inner for symbol, inner in found.items()}
    return rewritten(model, Replacing(model.symbols, changes), gone=(), new=())


def _one(model: Expanded, symbol: int) -> Sums:
    return symbol_sums(model.symbols, np.array(symbol))


class _Triangular(Step):
    """x in place of u."""

    name = "triangular"

    def __init__(
        self,
        pairs: list[tuple[Variable, Variable]],
        passes: list[dict[int, Sums]],
        after: Expanded,
        kept: tuple[bool, bool],
    ) -> None:
        self.gone = tuple(old for old, _ in pairs)
        self.new = tuple(new for _, new in pairs)
        self.released = tuple(
            old.name
            for old, _ in pairs
            if (np.isfinite(old.lower).any() and not kept[0])
            or (np.isfinite(old.upper).any() and not kept[1])
        )
        self.texts = {new: f"{old.name} - φ({old.name})" for old, new in pairs}
        self.after = after
        self.choice = kept
        self._pairs, self._passes = pairs, passes

    @staticmethod
    def steps(model: Expanded, cut: Expanded, passes: list[dict[int, Sums]]) -> Iterator[Step]:
        """A step for each choice of bounds that are kept; they differ in these rows alone."""
        symbols = model.symbols
        inner = {symbol: sums for each in passes for symbol, sums in each.items()}
        pairs: list[tuple[Variable, Variable]] = []
        changes: dict[int, Sums] = {}
        for variable in model.variables:
            numbers = np.ravel(symbols.of_variable(variable)).tolist()
            if not any(symbol in inner for symbol in numbers):
                continue
            new = _residual(model, variable, inner)
            pairs.append((variable, new))
            fresh = np.ravel(symbols.of_variable(new)).tolist()
            changes |= {old: _one(model, u) for old, u in zip(numbers, fresh, strict=True)}
        # after the last pass the old entries stand for the new ones
        rewriting = Replacing(symbols, changes)
        gone, residuals = [old for old, _ in pairs], [new for _, new in pairs]
        after = rewritten(cut, rewriting, gone=gone, new=residuals)
        bounds: list[tuple[bool, Row]] | None = None
        for kept in _choices(model, passes):
            if bounds is None and any(kept):
                bounds = list(_bounds(model, passes, changes, rewriting))
            rows = [row for is_upper, row in bounds or () if kept[is_upper]]
            yield _Triangular(pairs, passes, replace(after, rows=(*after.rows, *rows)), kept)

    def forward(self, point: Points) -> None:
        symbols = self.after.symbols
        numbers = Evaluation(symbols, point)  # no φ depends on an entry of an earlier pass
        inner = {s: float(numbers.of(sums)) for each in self._passes for s, sums in each.items()}
        for old, new in self._pairs:
            own = np.ravel(symbols.of_variable(old)).tolist()
            shift = np.array([inner.get(symbol, 0.0) for symbol in own])
            point[new] = point[old] - shift.reshape(old.shape)

    def back(self, point: Points) -> None:
        symbols = self.after.symbols
        for old, new in self._pairs:
            point[old] = np.array(point[new], dtype=float)
        for each in reversed(self._passes):
            numbers = Evaluation(symbols, point)
            shifts = {symbol: float(numbers.of(sums)) for symbol, sums in each.items()}
            for old, _ in self._pairs:
                own = np.ravel(symbols.of_variable(old)).tolist()
                shift = np.array([shifts.get(symbol, 0.0) for symbol in own])
                point[old] = point[old] + shift.reshape(old.shape)


def _bounds(
    model: Expanded,
    passes: list[dict[int, Sums]],
    changes: dict[int, Sums],
    rewriting: Replacing,
) -> Iterator[tuple[bool, Row]]:
    """l <= u_k + φ_k <= h, in the new variables, and whether a row is an upper bound."""
    symbols, coding = model.symbols, model.symbols.coding
    for symbol, inner in passes[0].items():
        value = changes[symbol] + rewriting(inner)
        low, high = symbols.lower_of(symbol), symbols.upper_of(symbol)
        if np.isfinite(low):
            yield False, Row(Sums.constant(low, coding) - value, "<=", None)
        if np.isfinite(high):
            yield True, Row(value - Sums.constant(high, coding), "<=", None)


def _residual(model: Expanded, variable: Variable, inner: dict[int, Sums]) -> Variable:
    """The new variable: the bounds that those of x and the ranges of φ imply."""
    symbols = model.symbols
    low, high = (
        np.array(np.broadcast_to(end, variable.shape), dtype=float).reshape(-1)
        for end in variable.set.interval
    )
    for place, symbol in enumerate(np.ravel(symbols.of_variable(variable)).tolist()):
        if symbol in inner:
            least, most = symbols.interval(inner[symbol])
            low[place], high[place] = low[place] - float(most), high[place] - float(least)
    bounds = low.reshape(variable.shape), high.reshape(variable.shape)
    return Variable(variable.shape, name=fresh_name(model, "u"), bounds=bounds)
