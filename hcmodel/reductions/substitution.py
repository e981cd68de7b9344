"""The model in hidden coordinates, by maps of the catalogue: an ordinary model in u.

Maps rewrite the model as sums of products (`maps/expanded`), one after the other; what they leave becomes
expressions again. Nothing rests on the rewriting alone: objective and rows before and after it are
compared at points of the model, and a map that gets a single number wrong is refused.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import cast

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.matrix_equations import formally
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.graph import topological_order, values_at
from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.table import ATOMS
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.maps.algebra.assembly import Assembly
from hcmodel.maps.algebra.expanded import Evaluation, Row
from hcmodel.maps.algebra.variables_in import variables_in
from hcmodel.maps.identity import maximised_product
from hcmodel.maps.map import Points, Step
from hcmodel.records import replace
from hcmodel.reductions.reduction import Claim, Duals, ModelReduction, Origin
from hcmodel.reductions.sums.known_sums import KnownFunctions, KnownSums
from hcmodel.solvers.algebra.marks import all_finite, some

FloatArray = NDArray[np.float64]
Merged = Sequence[tuple[int, NDArray[np.int64], NDArray[np.int64]]]

# Points that are tried until the models before and after were compared at one of them (a denominator may
# be negative where rows are violated), and how far their numbers may differ, relative to the sizes of
# the terms: far above rounding, far below what a wrong rule makes. Different formulas do not agree at a
# random point; in the middle of the sets, at 0 or equal shares, they may.
TRIALS = 60
AGREEMENT = 1e-7
NO_POINT = "no point was found at which the models can be compared"
# Points more than an affine function has unknowns, to tell it from others.
SPARE_POINTS = 5


class Substitution(ModelReduction):
    """Steps of maps, in order. Bounds that the maps lose are tested on the point that comes back."""

    keeps = frozenset({Claim.OPTIMAL, Claim.BOUND, Claim.INFEASIBLE})
    """INFEASIBLE only where all points have an image."""

    def __init__(self, before: Model, after: Model, steps: Sequence[Step]) -> None:
        super().__init__(before, after)
        self.steps = tuple(steps)
        last = self.steps[-1].after
        self._rows = last.rows
        self._merged = {place: each for step in self.steps for place, each in step.merged.items()}
        left = {row.position for row in self._rows}
        for place, parts in self._merged.items():
            left |= {position for position, _, _ in parts} if place in left else set()
        self.taken = tuple(p for p in range(len(before.constraints)) if p not in left)
        product = maximised_product(last.objective) is not None
        self._shift = float(last.objective.value) if product else 0.0
        self.outside = tuple(name for step in self.steps for name in step.outside)
        if self.outside:
            self.keeps = self.keeps - {Claim.INFEASIBLE}
            if any(row.position is None for row in self._rows):  # which tie variables to each other
                self.outside = tuple(variable.name for variable in before.variables)

    @staticmethod
    def of(model: Model, steps: Sequence[Step]) -> Substitution:
        """The model after the last step, before its numbers are compared (`disagreement`)."""
        found = dict(functions_after(model, steps))
        return Substitution.of_functions(model, steps, [found[place] for place in sorted(found)])

    @staticmethod
    def of_functions(
        model: Model, steps: Sequence[Step], functions: Iterable[Expression | Constraint]
    ) -> Substitution:
        """The same from the objective and the rows after the last step (`functions_after`)."""
        objective, *constraints = functions
        after = replace(
            model,
            objective=Minimize(cast("Expression", objective)),
            constraints=tuple(cast("list[Constraint]", constraints)),
            hidden=None,
            source=None,
        )
        return Substitution(model, after, steps)

    @property
    def known(self) -> KnownFunctions | None:
        """The functions after the last step, which were made of its sums."""
        last = self.steps[-1].after
        if _is_renewed(self.steps):
            return None
        functions = [each.lhs for each in self.after.constraints]
        pairs = list(zip(functions, (row.sums for row in last.rows), strict=True))
        if maximised_product(last.objective) is None:
            pairs.append((self.after.objective.expression, last.objective))
        return KnownSums(last.symbols, tuple(pairs))

    @property
    def texts(self) -> dict[Variable, str]:
        """The new variables of the model after it in the terms of those before."""
        found: dict[Variable, str] = {}
        for step in self.steps:
            between = {each.name: _in_brackets(found[each]) for each in step.gone if each in found}
            found.update({new: _renamed(text, between) for new, text in step.texts.items()})
        return found

    @property
    def auxiliary(self) -> frozenset[Variable]:
        """The new variables that only bound something."""
        return frozenset(new for step in self.steps for new in step.new if new not in step.texts)

    @property
    def implied(self) -> dict[str, tuple[FloatArray, FloatArray]]:
        """What is known of the ranges of new variables beyond their sets, by name."""
        left = set(self.after.variables)
        found = [(each, ends) for step in self.steps for each, ends in step.implied.items()]
        return {each.name: ends for each, ends in found if each in left}

    @property
    def divisors(self) -> frozenset[Variable]:
        """Matrices and positive variables of the model after it that the way back divides by."""
        left = set(self.after.variables)
        return frozenset(each for step in self.steps for each in step.divisors if each in left)

    @property
    def injective(self) -> bool:
        """Whether different points have different images, so that the model is hidden convex."""
        return all(step.injective for step in self.steps)

    @property
    def released(self) -> tuple[str, ...]:
        """The variables whose bounds the model after it does not have."""
        return tuple(name for step in self.steps for name in step.released)

    def disagreement(self) -> str | None:
        """What differs before and after at a point of the model; None where nothing does."""
        wrong = self._difference()
        if wrong == NO_POINT:
            with formally():  # the functions are defined at few points
                return self._difference()
        return wrong

    def _difference(self) -> str | None:
        domain = make_domain(self.before.variables)
        generator = np.random.default_rng(0)
        samples = (domain.sample(generator) for _ in range(TRIALS))
        for x in itertools.chain(samples, [domain.middle()]):
            with np.errstate(all="ignore"):
                mine = self._functions(domain.project(x))
            if mine is not None:
                wrong = [name for name, one, two, size in mine if _differ(one, two, size)]
                return f"the rewriting changed {wrong[0]}" if wrong else None
        return NO_POINT

    def _functions(
        self, x: FloatArray
    ) -> list[tuple[str, FloatArray, FloatArray, FloatArray]] | None:
        """Objective and rows before and after at a point, where all are defined."""
        point = self._arrays(self.before, x)
        if not self._settled(point):
            return None
        x = self._vector(self.before, point)
        new = [point.get(each) for each in self.after.variables]
        if not all(each is not None and all_finite(each) for each in new):
            return None  # or a map has left a variable of another one in the model
        u = self._vector(self.after, point)
        before = self.before.values_once(x)
        after = self.after.values_once(u)
        last = self.steps[-1].after
        numbers = Evaluation(last.symbols, point)
        value = np.array(self.value_back(float(np.sum(after[0]))))
        size = np.abs(before[0])
        if not self._has_outer and _differ(before[0], value, size):  # terms may cancel
            size = size + numbers.of(last.objective, sizes=True)
        found = [("the objective", before[0], value, size)]
        for place, row in enumerate(self._rows):
            difference = after[1 + 2 * place] - after[2 + 2 * place]
            found.append(self._compared(row, before, difference, numbers))
        finite = all(all_finite(each) for _, one, two, _ in found for each in (one, two))
        return found if finite else None

    def _compared(
        self, row: Row, before: Sequence[FloatArray], after: FloatArray, numbers: Evaluation
    ) -> tuple[str, FloatArray, FloatArray, FloatArray]:
        """A row before and after, as `_functions` has them; `after` is the one of the model after."""
        if row.position is None and row.bound is None:
            # a row that a map adds has to hold at all points of the model's sets
            value, size = numbers.of(row.sums), numbers.of(row.sums, sizes=True)
            wrong = value if row.sense == "==" else np.maximum(value, 0.0)
            return "the sets of the variables", 0.0 * value, wrong, size
        name, one, size = self._written(row, before, numbers)
        if row.image is not None:
            one = row.image.of(one, numbers.of(row.image.scales))
        factor = np.ones(()) if row.factor is None else numbers.of(row.factor)
        outer = None if row.congruence is None else numbers.of(row.congruence)
        two = _leading(after, row)
        if not _fit(one, two, factor, outer):
            return name, np.zeros(()), np.ones(()), np.zeros(())  # which differ
        one, size = one * factor, size * np.abs(factor)
        if outer is not None:
            one, size = outer @ one @ outer, np.abs(outer) @ size @ np.abs(outer)
        if _differ(one, two, size):
            size = size + _leading(numbers.of(row.sums, sizes=True), row)
        return name, one, two, size

    def _written(
        self, row: Row, before: Sequence[FloatArray], numbers: Evaluation
    ) -> tuple[str, FloatArray, FloatArray]:
        """A row as the user has written it, left minus right, with its name and its size."""
        if row.position is None:
            assert row.bound is not None
            return "a bound", numbers.of(row.bound), numbers.of(row.bound, sizes=True)
        name = self.before.constraints[row.position].name or f"c{row.position + 1}"
        if row.position in self._merged:
            sides = [self._put_together(row.position, before[side::2]) for side in (1, 2)]
            return name, sides[0] - sides[1], np.abs(sides[0]) + np.abs(sides[1])
        left, right = before[1 + 2 * row.position], before[2 + 2 * row.position]
        sign = -1.0 if self.before.constraints[row.position].sense == ">=" else 1.0
        return name, sign * (left - right), np.abs(left) + np.abs(right)

    def _put_together(self, place: int, arrays: Sequence[FloatArray]) -> FloatArray:
        """Entries of constraints, by position, as the symmetric matrix that a map made of them."""
        parts = self._merged[place]
        order = math.isqrt(1 + max(int(places.max()) for _, _, places in parts))
        found, known = np.zeros(order**2), np.zeros(order**2, dtype=bool)
        for position, own, places in parts:
            whole = np.broadcast_to(arrays[position], self.before.constraints[position].shape)
            found[places], known[places] = np.ravel(whole)[own], True
        matrix, marks = found.reshape(order, order), known.reshape(order, order)
        return np.where(marks, matrix, matrix.T)

    def explains(self, parts: Sequence[Expression]) -> bool:
        """Whether declared coordinates are affine functions of the new variables, at random points."""
        generator, domain = np.random.default_rng(1), make_domain(self.before.variables)
        images, values = [], []
        for _ in range(self.after.layout.size + SPARE_POINTS):
            x = domain.sample(generator)
            with np.errstate(all="ignore"):
                found = [np.ravel(each) for each in values_at(self.before.layout, x, parts)]
            images.append(np.append(self.point(x), 1.0))
            values.append(np.concatenate(found))
        matrix, wanted = np.array(images), np.array(values)
        if not (np.isfinite(matrix).all() and np.isfinite(wanted).all()):
            return False
        sizes = np.maximum(np.abs(matrix).max(axis=0), np.finfo(float).tiny)
        fit = np.linalg.lstsq(matrix / sizes, wanted, rcond=None)[0]
        left = np.abs(matrix / sizes @ fit - wanted).max(axis=0)
        return bool((left <= AGREEMENT * np.abs(wanted).max(axis=0)).all())

    # ---- points

    def has_image(self, x: FloatArray) -> bool:
        """A point that violates rows which a map takes out of the model has none."""
        point = self._arrays(self.before, x)
        self._settled(point)
        return np.array_equal(self._vector(self.before, point), x)

    def _settled(self, point: Points) -> bool:
        """Move a point onto the rows that maps take out, and add its image; whether all maps fit it."""
        fits = True
        for place, step in enumerate(self.steps):
            if type(step).settle is not Step.settle:
                step.settle(point)
                for earlier in reversed(self.steps[:place]):
                    earlier.back(point)
            step.forward(point)
            fits = fits and step.fits(point)
        return fits

    def point(self, x: FloatArray) -> FloatArray:
        point = self._arrays(self.before, x)
        for step in self.steps:
            step.forward(point)
        return self._vector(self.after, point)

    def point_back(self, u: FloatArray) -> FloatArray:
        point = self._whole(u)
        for step in reversed(self.steps):
            step.back(point)
        return self._vector(self.before, point)

    def _whole(self, u: FloatArray, fill: float | None = None) -> Points:
        """The new variables at u; those that the model does not need are anywhere in their sets."""
        point = self._arrays(self.after, u)
        gone = {each for step in self.steps for each in step.gone}
        dropped = [each for each in self.before.variables if each not in gone]  # as q in n + sin(q)
        for variable in (*(each for step in self.steps for each in step.new), *dropped):
            if variable not in point:
                value = _defined(variable, {}) if fill is None else np.full(variable.shape, fill)
                point[variable] = value
        return point

    def tangent_back(self, u: FloatArray, direction: FloatArray) -> FloatArray:
        point, moves = self._whole(u), self._whole(direction, fill=0.0)
        for step in reversed(self.steps):
            step.back(point)
            step.tangent_back(point, moves)
        zeros = {each: np.zeros(each.shape) for each in self.before.variables}
        return self._vector(self.before, {**zeros, **moves})

    def cotangent(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        return np.array([weights @ self.tangent_back(u, unit) for unit in np.eye(u.size)])

    @staticmethod
    def _arrays(model: Model, x: FloatArray) -> Points:
        return dict(zip(model.variables, model.layout.unpack(np, x), strict=True))

    @staticmethod
    def _vector(model: Model, point: Points) -> FloatArray:
        return model.layout.pack([_defined(variable, point) for variable in model.variables])

    def value(self, value: float) -> float:
        for step in self.steps:
            value = step.value(value)
        return value - self._shift

    def value_back(self, value: float) -> float:
        value = value + self._shift
        for step in reversed(self.steps):
            value = step.value_back(value)
        return value

    @property
    def is_open(self) -> bool:
        """Whether it shows something only if the minimum of the model after it is low enough."""
        return any(step.ceiling is not None for step in self.steps)

    def is_below(self, value: float) -> bool:
        """Whether a value of the model after it is below the ceilings of all maps."""
        value = value + self._shift
        for step in reversed(self.steps):
            if step.ceiling is not None and not value < step.ceiling:
                return False
            value = step.value_back(value)
        return True

    @property
    def _has_outer(self) -> bool:
        """Whether the objective is not that of the model before it."""
        return any(type(step).slope is not Step.slope for step in self.steps)

    def _slope(self, u: FloatArray) -> float:
        """The derivative of `value_back` at a point of the model after it."""
        if not self._has_outer:
            return 1.0
        value = (
            float(np.sum(values_at(self.after.layout, u, self.after.roots[:1])[0])) + self._shift
        )
        slope = 1.0
        for step in reversed(self.steps):
            slope, value = slope * step.slope(value), step.value_back(value)
        return slope

    # ---- multipliers

    def duals(self, x: FloatArray, duals: Duals) -> Duals:
        """Rows that a map adds have no known multiplier."""
        u = self.point(x)
        point, slope = self._with_factors(u), self._slope(u)
        rows = [
            None
            if row.position is None
            else _divided(
                self._turned(self._merged_dual(row.position, duals), row, point),
                slope * self._factor(row, point),
                row,
            )
            for row in self._rows
        ]
        return replace(duals, rows=tuple(rows))

    def duals_back(self, u: FloatArray, duals: Duals) -> Duals:
        point, slope = self._with_factors(u), self._slope(u)
        rows: list[FloatArray | None] = [None] * len(self.before.constraints)
        for row, dual in zip(self._rows, duals.rows, strict=True):
            if row.position is not None and dual is not None:
                found = _leading(dual, row) * (slope * self._factor(row, point))
                parts = self._merged.get(row.position)
                whole = parts is not None or self.before.constraints[row.position].entries is None
                if row.entries is not None and (whole or row.congruence is not None):
                    found = 0.5 * (found + found.T)  # of a triangle
                if row.congruence is not None:
                    outer = Evaluation(self.steps[-1].after.symbols, point).of(row.congruence)
                    found = outer @ found @ outer
                    found = found if whole else _triangle(found)
                if parts is None:
                    rows[row.position] = found
                else:
                    self._share(found, parts, rows)
        return replace(duals, rows=tuple(rows), sets=None)

    def _merged_dual(self, position: int, duals: Duals) -> FloatArray | None:
        """The multiplier of a row, of one that several constraints make up as a matrix."""
        parts = self._merged.get(position)
        if parts is None:
            return duals.rows[position]
        arrays = [each for part in parts if (each := duals.rows[part[0]]) is not None]
        if len(arrays) < len(parts):
            return None
        order = math.isqrt(1 + max(int(places.max()) for _, _, places in parts))
        found = np.zeros(order**2)
        for (_, own, places), dual in zip(parts, arrays, strict=True):
            found[places] = np.ravel(dual)[own]
        matrix = found.reshape(order, order)
        return np.asarray((matrix + matrix.T) / 2)

    def _share(self, dual: FloatArray, parts: Merged, rows: list[FloatArray | None]) -> None:
        """The multiplier of a matrix equation, for the constraints that make it up."""
        order = dual.shape[0]
        numbers = np.arange(order**2).reshape(order, order)
        lower = np.minimum(numbers, numbers.T).reshape(-1)
        counts = np.zeros(order**2)
        for _, _, places in parts:
            np.add.at(counts, lower[places], 1.0)
        both = (dual + dual.T - np.diag(np.diag(dual))).reshape(-1)
        for position, own, places in parts:
            found = np.zeros(self.before.constraints[position].shape)
            found.reshape(-1)[own] = both[places] / counts[lower[places]]
            rows[position] = found

    def set_duals_back(self, u: FloatArray, sets: FloatArray) -> FloatArray:
        return np.zeros(self.before.layout.size)

    def _with_factors(self, u: FloatArray) -> Points:
        """A point of the model after it, with variables that only rows are multiplied by."""
        point = self._arrays(self.after, u)
        symbols = self.steps[-1].after.symbols
        both = [each for row in self._rows for each in (row.factor, row.congruence)]
        factors = [each for each in both if each is not None]
        needed = set().union(*(variables_in(symbols, each) for each in factors))
        if needed <= set(point):
            return point
        whole = self._arrays(self.before, self.point_back(u))
        for step in self.steps:
            step.forward(whole)
        return {**whole, **point}

    def _factor(self, row: Row, point: Points) -> FloatArray:
        if row.factor is None:
            return np.ones(())
        return Evaluation(self.steps[-1].after.symbols, point).of(row.factor)

    def _turned(self, dual: FloatArray | None, row: Row, point: Points) -> FloatArray | None:
        """The multiplier of a row before it is multiplied by a matrix from both sides."""
        if dual is None or row.congruence is None:
            return dual
        outer = Evaluation(self.steps[-1].after.symbols, point).of(row.congruence)
        inverse = np.linalg.pinv(outer, hermitian=True)
        return np.asarray(inverse @ (dual + dual.T) @ inverse / 2)

    def origin(self, origin: Origin) -> Origin | None:
        row = self._rows[origin.position]
        if row.position is None:
            return None
        if row.leading is not None and max(origin.entry, default=0) >= row.leading:
            return Origin(row.position)  # the other blocks are of all entries
        parts = self._merged.get(row.position)
        if parts is None:
            return origin._replace(position=row.position)
        order = math.isqrt(1 + max(int(places.max()) for _, _, places in parts))
        for i, j in (origin.entry, origin.entry[::-1]) if len(origin.entry) == 2 else ():
            for position, own, places in parts:
                here = np.flatnonzero(places == i * order + j)
                if here.size and max(i, j) < order:
                    shape = self.before.constraints[position].shape
                    entry = np.unravel_index(int(own[here[0]]), shape) if shape else ()
                    return Origin(position, tuple(int(each) for each in entry))
        return Origin(row.position)


def functions_after(
    model: Model, steps: Sequence[Step]
) -> Iterator[tuple[int, Expression | Constraint]]:
    """The objective after the last step, to be minimised, and its rows, each when it is asked.

    With each comes its place: 0 for the objective, then the rows. Where a map proposes the same with
    other rows of its own, those come first: they alone decide between the proposals.
    """
    last = steps[-1].after
    product = maximised_product(last.objective)
    if _is_renewed(steps):
        renewed = _renewed(model, steps)
        yield from enumerate((renewed.objective.expression, *renewed.constraints))
        return
    assembly = Assembly(last.symbols)
    first = steps[-1].choice is not None
    own = [place for place, row in enumerate(last.rows) if first and row.position is None]
    for place in own:
        yield 1 + place, _constraint(model, last.rows[place], assembly)
    if product is not None:  # its logarithm is maximised, which no constant is added to
        yield 0, ATOMS["neg"].apply((assembly.expression(-product),))
    else:
        yield 0, assembly.expression(last.objective)
    for place, row in enumerate(last.rows):
        if place not in own:
            yield 1 + place, _constraint(model, row, assembly)


def _is_renewed(steps: Sequence[Step]) -> bool:
    """Whether the model after the last step is the one that is written, in other variables."""
    objective = steps[-1].after.objective
    if not all(step.renamed for step in steps):
        return False
    return maximised_product(objective) is None or not objective.value  # a constant beside it


def _renewed(model: Model, steps: Sequence[Step]) -> Model:
    """The model as it is written, in other variables; rows are turned to <= as in all models after."""
    new: dict[int, Expression] = {}
    for step in steps:
        new.update({id(old): each for old, each in step.renamed.items()})
    for node in topological_order(model.roots):
        if isinstance(node, Variable):
            while id(new.get(id(node), node)) in new:
                new[id(node)] = new[id(new[id(node)])]
        elif isinstance(node, Apply) and any(id(each) in new for each in node.args):
            arguments = tuple(new.get(id(each), each) for each in node.args)
            new[id(node)] = Apply(node.atom, arguments, node.params, node.shape)
    constraints = []
    rows = steps[-1].after.rows
    for position, (constraint, row) in enumerate(zip(model.constraints, rows, strict=True)):
        left, right = (new.get(id(side), side) for side in (constraint.lhs, constraint.rhs))
        turned = constraint.sense == ">="
        sides = (right, left) if turned else (left, right)
        sense = "<=" if turned else constraint.sense
        copy = constraint.like(*sides, sense=sense, entries=row.entries)
        copy.name = constraint.name or f"c{position + 1}"
        constraints.append(copy)
    objective = model.objective.expression
    return replace(
        model,
        objective=Minimize(new.get(id(objective), objective)),
        constraints=tuple(constraints),
        hidden=None,
        source=None,
    )


def _defined(variable: Variable, point: Points) -> FloatArray:
    """The value of a variable, the middle of its set where it has none."""
    value = point.get(variable)
    if value is None or not all_finite(value):
        middle = variable.set.domain().middle()
        return np.asarray(variable.set.expand(np, middle))
    return np.asarray(value, dtype=float).reshape(variable.shape)


def _in_brackets(text: str) -> str:
    return text if text.isidentifier() else f"({text})"


def _renamed(text: str, texts: dict[str, str]) -> str:
    """A text with what names stand for in the place of the names."""
    if not texts:
        return text
    names = "|".join(map(re.escape, texts))
    return re.sub(rf"\b({names})\b", lambda match: texts[match.group()], text)


def _differ(one: FloatArray, two: FloatArray, size: FloatArray) -> bool:
    """Whether numbers differ by more than rounding."""
    return some(np.abs(one - two) > AGREEMENT * (size + np.abs(one)))


def _fit(one: FloatArray, two: FloatArray, factor: FloatArray, outer: FloatArray | None) -> bool:
    """Whether a row before and after, and what the one before is multiplied by, fit by their shapes."""
    try:
        shape = np.broadcast_shapes(one.shape, two.shape, factor.shape)
    except ValueError:
        return False
    return outer is None or shape == outer.shape == one.shape


def _divided(dual: FloatArray | None, factor: FloatArray, row: Row) -> FloatArray | None:
    if dual is None:
        return None
    with np.errstate(all="ignore"):
        found = dual / factor
    if row.entries is not None and found.ndim == 2:
        found = _triangle(found)
    if row.leading is not None:
        whole = np.zeros(row.sums.shape)
        whole[: row.leading, : row.leading] = found
        return whole
    return np.asarray(found)


def _triangle(dual: FloatArray) -> FloatArray:
    """A multiplier with those of both triangles in the upper one."""
    return np.asarray(np.triu(dual + dual.T - np.diag(np.diag(dual))))


def _leading(array: FloatArray, row: Row) -> FloatArray:
    """The part of a row that is the user's constraint."""
    return array if row.leading is None else array[: row.leading, : row.leading]


def _constraint(model: Model, row: Row, assembly: Assembly) -> Constraint:
    """A row of the model after it; it keeps the name of the user's constraint."""
    left, right = assembly.expression(row.sums), Constant(np.zeros(row.sums.shape))
    made = left == right if row.sense == "==" else left <= right
    if row.position is not None:
        made.name = model.constraints[row.position].name or f"c{row.position + 1}"
    return made.like(entries=row.entries) if row.entries is not None else made
