"""Ratios as rows: a level t with t·D(x) <= N(x), which says t <= N(x)/D(x).

The largest ratio N(x)/D(x) is often written as the largest t for which a row t·D(x) <= N(x) holds, so
that nothing is divided, or with a row t <= N(x)/D(x). Where D > 0, rows with the level are divided by D.
With w = 1/D(x) and y = w·x in place of x, as for other ratios (`fractional`), such a row is

    t <= w·N(y/w),

affine where N is, and convex where N is concave: t stays as it is, and no other row has both t and x.
Any function of t may have the place of t, such as 1/t, and several levels may share one D. What ties w to
y is

    D affine:                       w·D(y/w) == 1, an affine row;
    t·D <= N, D convex:             w·D(y/w) <= 1, as a smaller w does not improve t where N > 0;
    t·D >= N, D concave, N >= 0:    w·D(y/w) >= 1, as a larger w does not improve t.

Every feasible x has its point (y, w) with the same t, so that no bound is wrong. D must be nowhere 0, by
the bounds and the affine rows: at a point with D = 0 the row t·D <= N holds for all t or for none, which
t <= N/D does not say. Ratios with different D are not convex in such coordinates.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums, added, stacked
from hcmodel.maps.algebra.expanded import Expanded, Row
from hcmodel.maps.algebra.ranges import is_affine, is_positive, sign_of
from hcmodel.maps.algebra.rewriting import substituted, without
from hcmodel.maps.algebra.variables_in import linked_variables, variables_in
from hcmodel.maps.fractional import Denominator, Ratio, denominators, may_vanish
from hcmodel.maps.map import Map, Obstacle, Step, text_of
from hcmodel.records import dataclass, replace


class Levels(Map):
    """w = 1/D, y = w·x, and the level as it is; see the module."""

    name = "levels"
    summary = "w = 1/D(x) and y = w x for rows t D(x) <= N(x) with a level t; back: x = y/w"
    literature = "Charnes, Cooper 1962; Schaible 1974; Boyd, Vandenberghe 2004, section 4.2.5"
    example = """
    # The largest ratio (3 x1 + 4 x2) / (1 + x1 + 2 x2), as a level.
    var x[2] >= 0
    var t

    maximize t

    subject to
        level: t * (1 + x[1] + 2*x[2]) <= 3*x[1] + 4*x[2]
        budget: x[1] + x[2] <= 5
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not any((row.sums.degrees > 1).any() for row in model.rows):
            return
        wanted = variables_in(model.symbols, model.objective)
        for level in model.variables:
            held = level.set
            if level in wanted and not held.is_curved and not held.is_distribution:
                found = _Search(model, level).step(self.name)
                if found is not None:
                    yield found


@dataclass(eq=False)
class _Entry:
    """An entry of a row that has the level: Σ c·p(t)·D + rest; `parts` are the p with their c.

    Where `reciprocals` are not None, the entry is Σ c·p(t) + rest and the rest has these symbols, each
    1/D times a number.
    """

    parts: list[tuple[Sums, float]]
    rest: Sums
    reciprocals: dict[int, float] | None

    def weights(self, sign: float) -> list[float]:
        """The c where D is positive; `sign` is that of D."""
        return [c if self.reciprocals is not None else sign * c for _, c in self.parts]

    def above(self, sign: float) -> Sums | None:
        """−N where the entry says Σ c·p(t) <= N/|D|; None where terms are outside the ratio."""
        if self.reciprocals is None:
            return self.rest
        symbols = np.array([*self.reciprocals], dtype=np.int64)
        if symbols.size > 1 or not self.rest.holding(symbols).all():
            return None
        return without(self.rest, int(symbols[0]) + 1).scaled(
            sign * self.reciprocals[int(symbols[0])]
        )

    def divided(self, below: int, sign: float) -> Sums:
        """The entry divided by |D|, of which `below` is the reciprocal."""
        coding = self.rest.coding
        own = Sums.symbols(np.array(below), coding)
        if self.reciprocals is None:
            rest = self.rest.times(own)
            return added([*(part.scaled(sign * c) for part, c in self.parts), rest])
        changes = {symbol: own.scaled(sign * c) for symbol, c in self.reciprocals.items()}
        return added([*(part.scaled(c) for part, c in self.parts), substituted(self.rest, changes)])


class _Search:
    """What one variable is multiplied by in the rows: the same D up to numbers, or it is no level."""

    def __init__(self, model: Expanded, level: Variable) -> None:
        self._model, self._level = model, level
        self._below: Sums | None = None
        own = [np.ravel(model.symbols.of_variable(level))]
        for function in model.functions():
            inside = [variables_in(model.symbols, each) for each in function.arguments]
            if set().union(*inside) == {level}:
                own.append(np.ravel(function.numbers))
        self._digits = np.unique(np.concatenate(own)) + 1

    def step(self, name: str) -> Step | Obstacle | None:
        """The ratio, with all rows of the level divided by D; None where there is none."""
        model = self._model
        found: dict[int, dict[int, _Entry]] = {}
        for place, row in enumerate(model.rows):
            entries = self._entries(row)
            if entries is None:
                return None
            if entries:
                found[place] = entries
        if self._below is None:
            return None
        if is_affine(model, self._below) and int(self._below.degrees.max()) < 1:
            return None
        sign = self._sign()
        if not sign:
            word = text_of(model.symbols, self._below)
            return Obstacle(name, f"{self._level.name} * ({word}): it is not known to be positive")
        below = self._below.scaled(sign)
        relation = self._relation(below, sign, found)
        if isinstance(relation, str):
            return self._ratio(name, below, sign, relation, found)
        return None if relation is None else Obstacle(name, relation[0])

    # ---- rows

    def _entries(self, row: Row) -> dict[int, _Entry] | None:
        """The entries of a row that are to be divided; None where the level stands in another way."""
        holding = row.sums.among(self._digits).any(axis=1)
        found: dict[int, _Entry] = {}
        if not holding.any():
            return found
        if row.sense not in ("<=", "=="):
            return None
        single = row.sums.reshaped((row.sums.size,))
        for place in np.unique(row.sums.entry[holding]).tolist():
            entry = self._entry(single.taken(np.array([place]), ()))
            if entry is None:
                return None
            if entry.parts:
                found[place] = entry
        return found

    def _entry(self, entry: Sums) -> _Entry | None:
        coding, digits = entry.coding, entry.digits
        ours = entry.among(self._digits)
        hit = np.asarray(ours.any(axis=1))
        level = coding.keys(np.where(ours, digits, 0))
        others = coding.keys(np.where(ours, 0, digits))
        parts: list[tuple[Sums, Sums]] = []
        zero = np.zeros(1, dtype=np.intp)
        for key in np.unique(level[hit]):
            chosen = hit & (level == key)
            part = Sums((), zero, np.array([key]), np.ones(1), coding)
            cofactor = Sums.merged(
                (),
                np.zeros(int(chosen.sum()), dtype=np.intp),
                others[chosen],
                entry.weight[chosen],
                coding,
            )
            parts.append((part, cofactor))
        rest = entry.chosen(~hit)
        if all(cofactor.is_constant for _, cofactor in parts):
            return self._with_ratio([(part, float(each.value)) for part, each in parts], rest)
        weights = [self._multiple(cofactor) for _, cofactor in parts]
        if not all(weights):
            return None
        pairs = zip((part for part, _ in parts), map(float, weights), strict=True)
        return _Entry(list(pairs), rest, None)

    def _with_ratio(self, parts: list[tuple[Sums, float]], rest: Sums) -> _Entry | None:
        """An entry with the level beside a ratio; without parts where it has nothing else."""
        if rest.is_constant:
            return _Entry([], rest, None)
        reciprocals: dict[int, float] = {}
        for base, powers in denominators(self._model.symbols, rest):
            for symbol, power in powers.items():
                multiple = self._multiple(base) if power == 1 else 0.0
                if not multiple:
                    return None
                reciprocals[symbol] = 1.0 / multiple
        return _Entry(parts, rest, reciprocals) if reciprocals else None

    def _multiple(self, sums: Sums) -> float:
        """The c for which sums are c·D; 0 for others. The first that is asked for is D."""
        if self._below is None:
            self._below = sums
        return sums.multiple_of(self._below) or 0.0

    # ---- the ratio

    def _sign(self) -> float:
        """The sign of D where it is never 0; 0 where that is not known."""
        assert self._below is not None
        for sign in (1.0, -1.0):
            own = self._below.scaled(sign)
            if is_positive(self._model, own) and not may_vanish(self._model, own):
                return sign
        return 0.0

    def _relation(
        self, below: Sums, sign: float, found: dict[int, dict[int, _Entry]]
    ) -> str | tuple[str] | None:
        """How w·D is tied to 1; in a tuple, why it cannot be."""
        model = self._model
        if is_affine(model, below):
            return "=="
        entries = [each for row in found.values() for each in row.values()]
        rising = {weight > 0 for each in entries for weight in each.weights(sign)}
        above = [each.above(sign) for each in entries]
        if len(rising) > 1 or any(model.rows[place].sense == "==" for place in found):
            return None
        if any(each is None for each in above) or self._is_divided(below, found):
            return None
        signs = [sign_of(model, each) for each in above if each is not None]
        if False in rising:
            return ">=" if min(signs) > 0 else ("a numerator may be negative",)
        if len(signs) == 1:
            hopeless = signs[0] > 0
            return ("no point has a positive ratio",) if hopeless else "<="
        return "<=" if max(signs) < 0 else ("a numerator may be negative",)

    def _is_divided(self, below: Sums, found: dict[int, dict[int, _Entry]]) -> bool:
        """Whether anything but the rows of the level has 1/D."""
        model = self._model
        rows = tuple(row for place, row in enumerate(model.rows) if place not in found)
        others = replace(model, rows=rows)
        return model.symbols.of_power(below, -1.0) in others.used()

    def _ratio(
        self,
        name: str,
        below: Sums,
        sign: float,
        relation: str,
        found: dict[int, dict[int, _Entry]],
    ) -> Step | Obstacle:
        model, symbols = self._model, self._model.symbols
        reciprocal = symbols.of_power(below, -1.0)
        rows = list(model.rows)
        for place, entries in found.items():
            rows[place] = _divided_row(rows[place], entries, reciprocal, sign)
        whole = replace(model, rows=tuple(rows), is_original=False, written=None)
        linked = linked_variables(whole, variables_in(symbols, below), without=self._level)
        return Ratio.of(whole, Denominator(below, 1.0, {reciprocal: 1}), relation, name, linked)


def _divided_row(row: Row, entries: dict[int, _Entry], below: int, sign: float) -> Row:
    """A row with some entries divided by |D|."""
    coding, shape = row.sums.coding, row.sums.shape
    own, one = Sums.symbols(np.array(below), coding), Sums.constant(1.0, coding)
    parts, factors = list(row.sums.entries()), [one] * row.sums.size
    for place, entry in entries.items():
        parts[place] = entry.divided(below, sign)
        if entry.reciprocals is None:
            factors[place] = own
    factor = stacked(factors, coding).reshaped(shape)
    return replace(
        row,
        sums=stacked(parts, coding).reshaped(shape),
        factor=factor if row.factor is None else row.factor.times(factor),
    )
