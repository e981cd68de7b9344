"""Rows with a root as rows between squares, and a level that is minimised by its square.

Standard deviations are roots of variances, which are linear in a covariance P, and an energy is a matrix
fraction. A root of these is not convex, and yet the points with √f <= c are those with f <= c²:

    w √f <= c     →  w² f <= c²,           the row times w √f + c,      where c > 0
    w √f <= k s   →  w² f <= k² s²,        the row times w √f + k s

The second one is convex where s is the objective itself. Then u = s² takes its place, as in

    minimise s subject to f <= s²    →    minimise u subject to f <= u,      the value is √u,

and so is the γ of an H∞ norm that is written with γ² or 1/γ². The level may occur in these powers and in
such rows only, and it has to be nonnegative, by its bounds or by such a row. Nothing is lost where f is
nowhere negative: by the bounds, or as ⟨Q, P⟩ + 2 ⟨N, K P⟩ + ⟨R, K P Kᵀ⟩ with P ⪰ 0 and
[[Q, Nᵀ], [N, R]] ⪰ 0.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums, added, stacked
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import rewritten
from hcmodel.maps.map import (
    ROOT,
    Map,
    Obstacle,
    Points,
    SameVariables,
    Step,
    fresh_name,
    symbol_sums,
)
from hcmodel.maps.matrix_algebra.growing import is_nonnegative
from hcmodel.records import dataclass, replace


class Roots(Map):
    """f <= c² in place of √f <= c; see the module."""

    name = "roots"
    summary = "f <= c² in place of √f <= c; u = s² for a level s that is minimised; back: s = √u"
    literature = "Boyd, Vandenberghe 2004, section 4.1.3"
    example = """
    # A regulator with a limit on the standard deviation of its input.
    param A[2,2] = [[0, 1], [-1, 0.5]]
    param B[2,1] = [[0], [1]]
    var P[2,2] symmetric in psd(0)
    var K[1,2]

    let F = A + B @ K

    minimize trace(P)

    subject to
        lyapunov: F @ P + P @ F.T + eye(2) == 0
        effort: sqrt(trace(K @ P @ K.T)) <= 2
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        level = _Level.of(model)
        powers = any(each.atom is ATOMS["power"] for each in model.functions())
        if level is None and not powers:
            return
        rows = tuple(_squared(model, row, level) for row in model.rows)
        plain = replace(model, rows=rows, is_original=False, written=None)
        if level is not None:
            bounded = level.is_nonnegative or any(
                new is not old and new.sums.holding(level.numbers).any()
                for new, old in zip(rows, model.rows, strict=True)
            )
            step = level.step(plain) if bounded else None
            if step is not None:
                yield step
                return
            rows = tuple(_squared(model, row, None) for row in model.rows)
            plain = replace(plain, rows=rows)
        if any(new is not old for new, old in zip(rows, model.rows, strict=True)):
            yield _Squared(plain)


class _Squared(SameVariables):
    """Rows between squares."""

    name = "roots"
    first = True

    def __init__(self, after: Expanded) -> None:
        self.after = after


@dataclass(frozen=True, eq=False)
class _Level:
    """A scalar s, of which the objective is `weight` s + `shift`."""

    variable: Variable
    symbol: int
    weight: float
    shift: float

    @staticmethod
    def of(model: Expanded) -> _Level | None:
        objective = model.objective
        moving = objective.key != ONE
        if moving.sum() != 1 or int(objective.degrees.max()) != 1:
            return None
        symbol, weight = int(objective.key[moving][0]) - 1, float(objective.weight[moving][0])
        variable = model.symbols.source(symbol)[0]
        if not isinstance(variable, Variable) or variable.size != 1 or weight <= 0:
            return None
        return _Level(variable, symbol, weight, float(objective.value))

    @property
    def numbers(self) -> np.ndarray:
        return np.array([self.symbol])

    @property
    def is_nonnegative(self) -> bool:
        return bool((self.variable.lower >= 0).all()) or self.variable.pos

    def step(self, model: Expanded) -> Step | None:
        """The model by u = s²; None where s stands elsewhere, or in no square."""
        powers, squares = self._powers(model), False
        for sums in (*(row.sums for row in model.rows), *self._inside(model)):
            total = powers[sums.digits].sum(axis=1)
            if not np.isin(total, (0, 2, -2)).all():
                return None
            squares = squares or bool(total.any())
        return _LevelSquared(model, self) if squares else None

    def _powers(self, model: Expanded) -> np.ndarray:
        """The power of s that each symbol is, by digit: 1 of itself, and −1 of its reciprocal."""
        found = np.zeros(model.symbols.count + 1)
        for symbol in model.used().tolist():
            base, power = model.symbols.power(symbol)
            if base.key.tolist() == [self.symbol + 1] and base.weight[0] == 1.0:
                found[symbol + 1] = power
        found[self.symbol + 1] = 1.0
        return found

    def _inside(self, model: Expanded) -> Iterator[Sums]:
        """The arguments of functions in the rows, but for those of powers of s."""
        powers = self._powers(model)
        for function in model.symbols.functions(np.unique(_symbols(model))):
            if not powers[function.start + 1]:
                yield from function.arguments


def _symbols(model: Expanded) -> np.ndarray:
    return np.concatenate([row.sums.symbols_used() for row in model.rows] or [np.zeros(0, int)])


class _LevelSquared(Step):
    """u = s² in place of s."""

    name = "roots"
    first = True

    def __init__(self, model: Expanded, level: _Level) -> None:
        low, high = (
            float(np.ravel(end)[0]) for end in (level.variable.lower, level.variable.upper)
        )
        name = fresh_name(model, f"{level.variable.name}²")
        ends = max(low, 0.0) ** 2, high**2
        new = Variable((), name=name, bounds=ends, pos=level.variable.pos)
        self.gone, self.new, self._level = (level.variable,), (new,), level
        self.texts = {new: f"{level.variable.name}^2"}
        symbols = model.symbols
        own = symbol_sums(symbols, symbols.of_variable(new))
        root = symbol_sums(symbols, np.array(symbols.of_power(own, ROOT)))
        exchange = Replacing(symbols, {level.symbol: root})
        rows = tuple(
            replace(row, sums=_with_square(row.sums, level.symbol, own)) for row in model.rows
        )
        plain = replace(model, objective=own, rows=rows)
        self.after = rewritten(plain, exchange, gone=self.gone, new=self.new)

    def forward(self, point: Points) -> None:
        value = np.reshape(point[self.gone[0]], ())
        point[self.new[0]] = np.where(value >= 0, value**2, np.nan)

    def back(self, point: Points) -> None:
        root = np.sqrt(np.maximum(point[self.new[0]], 0.0))
        point[self.gone[0]] = np.reshape(root, self.gone[0].shape)

    def settle(self, point: Points) -> None:
        """A point with s < 0 violates a row."""
        point[self.gone[0]] = np.abs(point[self.gone[0]])

    def value(self, value: float) -> float:
        return max((value - self._level.shift) / self._level.weight, 0.0) ** 2

    def value_back(self, value: float) -> float:
        return self._level.shift + self._level.weight * float(np.sqrt(max(value, 0.0)))

    def slope(self, value: float) -> float:
        with np.errstate(all="ignore"):
            return float(self._level.weight * ROOT / np.sqrt(max(value, 0.0)))


def _with_square(sums: Sums, symbol: int, own: Sums) -> Sums:
    """u in the place of s·s."""
    here = sums.digits == symbol + 1
    touched = here.any(axis=1)
    if not touched.any():
        return sums
    keys = sums.coding.keys(np.where(here, 0, sums.digits)[touched])
    keys = sums.coding.times(keys, np.repeat(own.key, keys.size))
    moved = Sums.merged(sums.shape, sums.entry[touched], keys, sums.weight[touched], sums.coding)
    return added([sums.chosen(~touched), moved])


# ---- rows


def _squared(model: Expanded, row: Row, level: _Level | None) -> Row:
    """A row with its entries squared where they compare a root with a number or with the level."""
    plain = row.factor is None and row.image is None and row.congruence is None
    if row.sense != "<=" or not plain or not model.symbols.functions(row.sums.symbols_used()):
        return row
    found = [_entry(model, entry, level) for entry in row.sums.entries()]
    if not any(found):
        return row
    coding, one = model.symbols.coding, Sums.constant(1.0, model.symbols.coding)
    entries = zip(found, row.sums.entries(), strict=True)
    sums = [entry if both is None else both[0] for both, entry in entries]
    factors = [one if both is None else both[1] for both in found]
    shape = row.sums.shape
    return replace(
        row,
        sums=stacked(sums, coding).reshaped(shape),
        factor=stacked(factors, coding).reshaped(shape),
    )


def _entry(model: Expanded, entry: Sums, level: _Level | None) -> tuple[Sums, Sums] | None:
    """w² f − r² and w √f + r for an entry w √f − r; None for others."""
    symbols = model.symbols
    single = [
        (place, base)
        for place in np.flatnonzero(entry.degrees == 1).tolist()
        for base, power in [symbols.power(int(entry.key[place]) - 1)]
        if power == ROOT
    ]
    if len(single) != 1:
        return None
    place, base = single[0]
    weight = float(entry.weight[place])
    right = -entry.chosen(np.arange(entry.key.size) != place)
    levelled = level is not None and right.key.tolist() == [level.symbol + 1]
    if weight <= 0 or not (right.is_constant or levelled) or not (right.weight > 0).all():
        return None
    if not right.key.size or not is_nonnegative(model.symbols, base):
        return None
    root = entry.chosen(np.arange(entry.key.size) == place)
    return base.scaled(weight**2) - right.times(right), root + right
