"""Variables that a row fixes become numbers: `x == 0`, `2 == y`, `z == [1, 2, 3]`.

A product with such a variable is one with a number, so that x·y is affine in y where x == 0: the proof,
the cone program and the certificate see a model without x. Only rows that say the value itself count, so
that no rounding is between the row and the number. The multiplier of such a row is whatever the slope of
the Lagrangian by x is; it is found with all others at the point as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.exchanged import exchanged, follow
from hcmodel.expressions.graph import topological_order, values_at
from hcmodel.expressions.leaves import Constant, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.records import replace
from hcmodel.reductions.bounds import with_places
from hcmodel.reductions.reduction import Duals, ModelReduction, Origin, moved_point

FloatArray = NDArray[np.float64]

# Points at which functions of the numbers are tried; one with values is enough.
SAMPLES = 5  # those with logarithms of a free unknown have values at half of them


class Fixed(ModelReduction):
    """The model with numbers for some variables, and without the rows that fix them."""

    fixes = True

    def __init__(
        self,
        before: Model,
        after: Model,
        values: Mapping[Variable, FloatArray],
        positions: Sequence[int],
    ) -> None:
        super().__init__(before, after)
        self._values = dict(values)
        self.positions = tuple(positions)
        self._kept = [i for i in range(len(before.constraints)) if i not in set(positions)]

    @staticmethod
    def of(model: Model) -> Fixed | None:
        """The reduction; None where no row fixes a variable, or nothing else is left."""
        values, positions = _fixed_rows(model)
        if not values or len(values) == len(model.variables) or model.hidden is not None:
            return None
        after = _with_numbers(model, values, set(positions))
        return None if after is None else Fixed(model, after, values, positions)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables that are numbers."""
        return tuple(variable.name for variable in self._values)

    def fixings(self, variables: Iterable[Variable]) -> list[int]:
        """The rows that fix some of these variables."""
        wanted = {variable for variable in variables if variable in self._values}
        rows = [(each, self.before.constraints[each]) for each in self.positions]
        return [
            position
            for position, row in rows
            if wanted & {*row.lhs.variables(), *row.rhs.variables()}
        ]

    def has_image(self, x: FloatArray) -> bool:
        return bool(np.array_equal(self.point_back(self.point(x)), x))

    def point_back(self, u: FloatArray) -> FloatArray:
        x = moved_point(self.after, self.before, u)
        for variable, value in self._values.items():
            x[self.before.layout.slice(variable)] = variable.set.store(value)
        return x

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        return replace(duals, rows=tuple(duals.rows[position] for position in self._kept))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        rows: list[FloatArray | None] = [None] * len(self.before.constraints)
        for position, dual in zip(self._kept, duals.rows, strict=True):
            rows[position] = dual
        return replace(duals, rows=tuple(rows))

    def origin(self, origin: Origin) -> Origin | None:
        return origin._replace(position=self._kept[origin.position])


def _fixed_rows(model: Model) -> tuple[dict[Variable, FloatArray], list[int]]:
    """The variables of boxes that rows without parameters fix at a point of the box, and these rows."""
    values: dict[Variable, FloatArray] = {}
    rows: dict[Variable, list[int]] = {}
    refused: set[Variable] = set()
    for position, constraint in enumerate(model.constraints):
        if constraint.sense != "==" or constraint.entries is not None:
            continue
        sides = constraint.lhs, constraint.rhs
        for variable, number in (sides, sides[::-1]):
            if isinstance(variable, Variable) and isinstance(number, Constant):
                value = np.asarray(number.value, dtype=float)
                known = values.setdefault(variable, np.broadcast_to(value, variable.shape))
                rows.setdefault(variable, []).append(position)
                if not (_is_inside(variable, value) and np.array_equal(known, known * 0 + value)):
                    refused.add(variable)
    values = {each: value for each, value in values.items() if each not in refused}
    return values, sorted(position for each in values for position in rows[each])


def _is_inside(variable: Variable, value: FloatArray) -> bool:
    if not variable.set.is_box or not np.isfinite(value).all():
        return False
    if np.broadcast_shapes(value.shape, variable.shape) != variable.shape:
        return False
    inside = (value >= variable.lower) & (value <= variable.upper)
    return bool(inside.all()) and not (variable.pos and bool((value <= 0.0).any()))


def _with_numbers(
    model: Model, values: Mapping[Variable, FloatArray], taken: set[int]
) -> Model | None:
    """The model after it; None where functions of the numbers are not defined."""
    new: dict[int, Expression] = {id(each): Constant(value) for each, value in values.items()}
    made = follow(topological_order(model.roots), new)
    if any(each.atom.black_box for each in made):
        return None
    after = exchanged(model, new, taken, source=with_places(model.source, new))
    return after if after.variables and _is_defined(after, made) else None


def _is_defined(model: Model, made: Sequence[Expression]) -> bool:
    """Whether all functions that got numbers have values at some sample: a pole, as 1/0, has none."""
    domain, generator = make_domain(model.variables), np.random.default_rng(0)
    for _ in range(SAMPLES):
        point = domain.sample(generator)
        with np.errstate(all="ignore"):
            found = values_at(model.layout, point, made)
        if all(np.isfinite(value).all() for value in found):
            return True
    return False
