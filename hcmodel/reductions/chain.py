"""A chain of reductions, from a minimisation to a program: a *form* of the model.

The chain composes the ways there and back of its reductions, and adds what belongs to none of them:
records of the trace, and the origin of a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.model import Model
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.reduction import (
    BoundOrigin,
    Claim,
    Duals,
    ModelReduction,
    Origin,
    Reduction,
)
from hcmodel.reductions.release import Release
from hcmodel.reductions.smooth import Smooth, SmoothProgram
from hcmodel.solvers.result import Record

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Chain:
    """Reductions from model to model, then the end, then bounds left out of the program, if any."""

    steps: tuple[ModelReduction, ...]
    end: Smooth
    release: Release | None = None

    @property
    def before(self) -> Model:
        return self.steps[0].before if self.steps else self.end.before

    @property
    def after(self) -> SmoothProgram:
        return self.end.after if self.release is None else self.release.after

    @property
    def keeps(self) -> frozenset[Claim]:
        """The claims that hold of the model where they hold of the program."""
        kept = self.end.keeps if self.release is None else self.end.keeps & self.release.keeps
        for step in self.steps:
            kept &= step.keeps
        return kept

    def excludes(self, parts: Iterable[Origin | BoundOrigin] | None) -> bool:
        """Whether rows and bounds that contradict each other in the program do so in the model.

        Where some points have no image, the rows must not have the variables that these differ in.
        """
        if Claim.INFEASIBLE in self.keeps:
            return True
        if parts is None:
            return False
        outside = {name for step in self.steps for name in step.outside}
        for part in parts:
            if isinstance(part, BoundOrigin):
                own = {part.variable.name}
            else:
                constraint = self.before.constraints[part.position]
                sides = (constraint.lhs, constraint.rhs)
                own = {each.name for side in sides for each in side.variables()}
            if own & outside:
                return False
        return True

    def fits(self) -> bool:
        """Whether the reductions fit the parameters' values; if not, they must be made again."""
        return all(step.refresh() for step in self.steps)

    def refresh(self) -> bool:
        """Read the parameters; False where a reduction must be made again."""
        return self.end.refresh() and self.fits()

    def point(self, x: FloatArray) -> FloatArray:
        """A point of the model, as methods see it."""
        for step in self.steps:
            x = step.point(x)
        return self.end.point(x)

    def point_back(self, u: FloatArray) -> FloatArray:
        """The point of the model behind a point that methods see."""
        x = self.end.point_back(u)
        for step in reversed(self.steps):
            x = step.point_back(x)
        return x

    def multipliers(self, x: FloatArray, duals: Duals) -> FloatArray:
        """Multipliers of the program's rows, from those of the model's constraints at the point x."""
        asking = [place for place, step in enumerate(self.steps) if step.duals_at_points]
        for place, step in enumerate(self.steps):
            duals = step.duals(x, duals)
            if asking and place < asking[-1]:
                x = step.point(x)
        return self.end.multipliers(duals)

    def duals_back(
        self,
        u: FloatArray,
        multipliers: FloatArray,
        slope: FloatArray | None = None,
        factors: FloatArray | None = None,
    ) -> Duals:
        """Multipliers of the model's constraints, from those of the program's rows at u.

        `slope` is the gradient of the Lagrangian by u; rows that became bounds get theirs from it.
        `factors` are those of the rows' forms (`Evaluation.row_factors`), where they are known.
        """
        if factors is not None:
            with np.errstate(all="ignore"):
                multipliers = multipliers / factors
        duals, x = self.end.by_constraint(multipliers), self.end.point_back(u)
        if slope is not None:
            duals = replace(duals, sets=self.end.set_duals_back(u, slope))
        for step in reversed(self.steps):
            back = step.duals_back if factors is None else step.plain_duals_back
            walked = back(x, duals)
            if walked.sets is not None:
                walked = replace(walked, sets=step.set_duals_back(x, walked.sets))
            duals, x = walked, step.point_back(x)
        return duals

    def value_back(self, value: float) -> float:
        """The model's objective, from the number that methods see."""
        for step in self._changing:
            value = step.value_back(value)
        return value

    @cached_property
    def _changing(self) -> list[ModelReduction]:
        """The steps that change the objective, the last one first; without any, methods see it itself."""
        plain = Reduction.value_back
        steps = reversed(self.steps)
        return [step for step in steps if getattr(type(step), "value_back", None) is not plain]

    def origin(self, row: int) -> Origin | None:
        """The constraint and entry of the model that a row comes from; None where it was added."""
        found: Origin | None = self.after.canonical.origin(row)
        for step in reversed(self.steps):
            found = None if found is None else step.origin(found)
        return found

    def origins(self) -> list[Origin | None]:
        """The same of all rows."""
        found: list[Origin | None] = list(self.after.canonical.origins())
        for step in reversed(self.steps):
            if type(step).origin is not Reduction.origin:  # which leaves them as they are
                found = [None if each is None else step.origin(each) for each in found]
        return found

    def taken(self) -> list[Origin]:
        """The constraints of the model that all points of the program satisfy, and not by its bounds."""
        found: list[Origin | None] = []
        for step in reversed(self.steps):
            found = [None if each is None else step.origin(each) for each in found]
            found += [Origin(position) for position in step.taken]
        return [each for each in found if each is not None]

    def fixings(self, parts: Sequence[Origin | BoundOrigin]) -> list[Origin]:
        """The constraints that say numbers which stand for variables of these parts."""
        found: list[Origin] = []
        if not any(step.fixes for step in self.steps):
            return found
        rows = [each for each in parts if isinstance(each, Origin)]
        own = [self.before.constraints[each.position] for each in rows]
        used = [each for row in own for side in (row.lhs, row.rhs) for each in side.variables()]
        for step, earlier in zip(self.steps, [None, *self.steps], strict=False):
            first = earlier if isinstance(earlier, Bounds) else None
            named = used if first is None else [first.renewed(each) for each in used]
            for position in step.fixings(named):
                origin = Origin(position)
                walked = origin if first is None else first.origin(origin)
                found += [] if walked is None else [walked]
        return found

    def bound_origin(self, origin: BoundOrigin) -> Origin | BoundOrigin | None:
        """What a bound of the last model is in the first; None for variables that a reduction added."""
        found: Origin | BoundOrigin = origin
        if self._bounds is not None:
            found = self._bounds.bound_origin(origin)
        if isinstance(found, BoundOrigin) and not self.before.layout.holds(found.variable):
            return None
        return found

    def implies(self, origin: BoundOrigin) -> bool:
        """Whether a bound of the last model follows from the model before the reduction that added it."""
        return any(step.implies(origin) for step in self.steps)

    def record(self, record: Record) -> Record:
        """A record of the trace with the model's objective in it, and with its point if that is kept."""
        if record.point is None and not self._changing:
            return record
        back = self.value_back
        return replace(
            record,
            objective=back(record.objective),
            level=back(record.level),
            bound=back(record.bound),
            point=None if record.point is None else self.point_back(record.point),
        )

    def settled(self, u: FloatArray) -> FloatArray:
        """The same point with the variables that a reduction added at the values they stand for."""
        return self.after.domain.project(self.point(self.point_back(u)))

    @property
    def adds_variables(self) -> bool:
        known = set(self.before.variables)
        if self._bounds is not None:
            known = {self._bounds.renewed(variable) for variable in known}
        return any(variable not in known for variable in self.end.before.variables)

    @property
    def _bounds(self) -> Bounds | None:
        first = self.steps[0] if self.steps else None
        return first if isinstance(first, Bounds) else None

    @property
    def has_bound_rows(self) -> bool:
        """Whether rows of the model are bounds of the program."""
        return self._bounds is not None

    def bound_rows_only(self, rows: Sequence[FloatArray | None]) -> tuple[FloatArray | None, ...]:
        """Multipliers of the model's constraints, None for those that are rows of the program too."""
        wanted = () if self._bounds is None else self._bounds.rows
        return tuple(each if i in wanted else None for i, each in enumerate(rows))
