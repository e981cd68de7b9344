"""Values that are computed backwards, stage by stage, by the visits of these stages.

    V_t[s] = Σ_a π_t[s,a] (c[s,a] + Σ_z P[s,a,z] V_{t+1}[z]),      minimise μᵀ V_1

What is minimised is the same number with the visits d₁ = μ, d_{t+1}[z] = Σ d_t[s] π_t[s,a] P[s,a,z]:

    μᵀ V_1 = Σ_t Σ_s,a d_t[s] π_t[s,a] c[s,a]

In general a value V = b + M V', weighted by d ⪰ 0, is d·b and V' weighted by Mᵀ d. Values of rewards and
of costs that have the same weights and the same M share their visits. Each of these gets a variable and
a row, as `named_visits` does for visits that are written down.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.polynomials import Sums, added
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.named_visits import staged, with_names
from hcmodel.maps.map import Points, Step, fresh_name
from hcmodel.records import replace

Numbers = NDArray[np.int64]


def visits_of_values(model: Model) -> Step | None:
    """The model with visits instead of values; None if it has few, or uses them in another way."""
    values = staged(model, lambda node: True)
    if not values:
        return None
    named, variables = with_names(model, values, "value", nonneg=False)
    return _Transposition(named, variables).step(len(model.constraints))


class _Transposition:
    """Weighted values as sums over stages, with visits that get names as they are needed."""

    def __init__(self, model: Expanded, values: Sequence[Variable]) -> None:
        self._model, self._values = model, tuple(values)
        self._symbols, self._coding = model.symbols, model.symbols.coding
        self._owner = np.full(self._symbols.count + 1, -1, dtype=np.int64)
        self._place = self._owner.copy()
        for number, each in enumerate(values):
            digits = np.ravel(self._symbols.of_variable(each)) + 1
            self._owner[digits], self._place[digits] = number, np.arange(each.size)
        self._definitions: list[Sums] = []
        self._visits: dict[tuple[bytes, ...], Sums] = {}
        self.new: list[Variable] = []
        self.sums: list[Sums] = []

    def step(self, count: int) -> Step | None:
        own = self._model.rows[count:]
        for number, row in enumerate(own):
            if not self._is_definition(number, row.sums):
                return None
            self._definitions.append(row.sums.reshaped((row.sums.size,)))
        arrays = [self._written(each) for each in self._model.arrays[: count + 1]]
        found = [each for each in arrays if each is not None]
        if len(found) < len(arrays) or not self.new:
            return None
        rows = [
            replace(row, sums=sums)
            for row, sums in zip(self._model.rows[:count], found[1:], strict=True)
        ]
        for variable, sums in zip(self.new, self.sums, strict=True):
            numbers = self._symbols.of_variable(variable)
            rows.append(Row(Sums.symbols(numbers, self._coding) - sums, "==", None))
        gone = {*self._values}
        variables = tuple(each for each in self._model.variables if each not in gone)
        after = replace(
            self._model,
            objective=found[0],
            rows=tuple(rows),
            variables=(*variables, *self.new),
        )
        return _Visits(after, tuple(self.new), tuple(self.sums))

    def _is_definition(self, number: int, sums: Sums) -> bool:
        """Whether a row says V = …, linear in other values."""
        owner = self._owners(sums)
        alone = (sums.degrees == 1) & (owner == number).any(axis=1)
        whole = np.array_equal(self._place[sums.digits[alone, 0]], sums.entry[alone])
        single = ((owner >= 0).sum(axis=1) <= 1).all() and not (owner[~alone] == number).any()
        return bool(whole and single and (sums.weight[alone] == 1.0).all())

    def _owners(self, sums: Sums) -> Numbers:
        digits = sums.digits
        known = digits < self._owner.size
        return np.where(known, self._owner[np.where(known, digits, 0)], -1)

    def _written(self, sums: Sums) -> Sums | None:
        """A sum with visits in the place of values; None where these are not weighted by numbers."""
        owner = self._owners(sums)
        marks = np.asarray((owner >= 0).any(axis=1))
        if not marks.any():
            return sums
        if (sums.degrees[marks] > 1).any():
            return None
        parts = [sums.chosen(~marks)]
        heads = owner[marks].max(axis=1)
        entry, weight = sums.entry[marks], sums.weight[marks]
        place = self._place[sums.digits[marks, 0]]
        for head in np.unique(heads).tolist():
            for row in np.unique(entry[heads == head]).tolist():
                own = (heads == head) & (entry == row)
                weights = np.zeros(self._values[head].size)
                np.add.at(weights, place[own], weight[own])
                size = float(weights.sum())
                if size == 0 or (weights * size < 0).any():
                    return None
                value = self._value(head, Sums.constant(weights / size, self._coding))
                if value is None:
                    return None
                moved = np.full(value.key.size, row, dtype=np.intp)
                parts.append(
                    Sums.merged(sums.shape, moved, value.key, size * value.weight, self._coding)
                )
        return added(parts)

    def _value(self, head: int, visits: Sums) -> Sums | None:
        """Σ_s d[s] V[s] as costs of all stages."""
        weights, parts = {head: visits}, list[Sums]()
        for number in reversed(range(head + 1)):
            own = weights.get(number)
            if own is None:
                continue
            named = self._named(own)
            if named is None:
                return None
            sums = self._definitions[number]
            owner = self._owners(sums)
            linear = np.asarray((owner >= 0).any(axis=1))
            own_term = np.asarray((owner == number).any(axis=1))
            parts.append(self._weighed(sums.chosen(~linear), named, None, ()))
            for other in np.unique(owner[linear & ~own_term].max(axis=1, initial=-1)).tolist():
                part = sums.chosen(np.asarray((owner == other).any(axis=1)))
                found = self._weighed(part, named, other, (self._values[other].size,))
                before = weights.get(other)
                weights[other] = found if before is None else before + found
        return added(parts)

    def _weighed(self, sums: Sums, visits: Sums, other: int | None, shape: tuple[int, ...]) -> Sums:
        """d·b, or Mᵀ d, of terms of −b or −M V'."""
        digits = sums.digits
        places = np.zeros(sums.key.size, dtype=np.intp)
        if other is not None:
            hit = self._owners(sums) == other
            places = self._place[digits[hit]]
            digits = np.where(hit, 0, digits)
        count = sums.key.size
        keys = self._coding.keys(digits) if other is not None else sums.key
        terms = Sums((count,), np.arange(count), keys, -sums.weight, self._coding)
        found = terms.times(visits.taken(sums.entry, (count,)))
        return Sums.merged(shape, places[found.entry], found.key, found.weight, self._coding)

    def _named(self, visits: Sums) -> Sums | None:
        """Visits as numbers or symbols; None where they may be negative."""
        if (visits.weight < 0).any():
            return None
        single = visits.key.size == visits.size and (visits.degrees <= 1).all()
        if visits.is_constant or (single and (visits.weight == 1.0).all()):
            return visits
        found = self._visits.get(visits.content())
        if found is None:
            variable = Variable(visits.shape, name=fresh_name(self._model, "visits"), nonneg=True)
            found = Sums.symbols(self._symbols.of_variable(variable), self._coding)
            self._visits[visits.content()] = found
            self.new.append(variable)
            self.sums.append(visits)
        return found


class _Visits(Step):
    """Variables for visits."""

    name = "stages"
    first = True

    def __init__(self, after: Expanded, new: tuple[Variable, ...], sums: tuple[Sums, ...]) -> None:
        self.after, self.new, self.gone = after, new, ()
        self._sums = sums

    def forward(self, point: Points) -> None:
        for variable, sums in zip(self.new, self._sums, strict=True):
            point[variable] = Evaluation(self.after.symbols, point).of(sums)

    def back(self, point: Points) -> None:
        """The policies say all."""
