"""A form of a model: a chain of reductions, and what is known of the coordinates at its end.

It has the programs and the functions of the model in these coordinates, and walks points and multipliers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.engine import CompiledStack
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.proof.prove import Proof, prove
from hcmodel.proof.visible import VisibleProof
from hcmodel.records import cached_property, dataclass, replace
from hcmodel.reductions.canonical import CanonicalProblem
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.reduction import BoundRows, Duals, Refusal
from hcmodel.reductions.release import Release
from hcmodel.reductions.sign import signed_objective
from hcmodel.reductions.smooth import SmoothProgram
from hcmodel.reductions.sums.cone_sums import SumsCone, cone_of_sums
from hcmodel.reductions.sums.sum_arrays import (
    SumArrays,
    affine_roots,
    arrays_of_sums,
)
from hcmodel.reductions.witness import shown
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.coordinates.protocol import Coordinates
from hcmodel.solvers.loop import RelaxedProgram, WholeProgram
from hcmodel.solvers.numerics import DATA_ROUNDING, INFINITE
from hcmodel.solvers.oracle import Evaluation, Oracle, Stack
from hcmodel.solvers.result import Result
from hcmodel.solvers.sets.domain import Domain

if TYPE_CHECKING:
    # imported by the functions that make one: many models need none of them
    from hcmodel.reductions.cone.cone import Cone
    from hcmodel.reductions.smooth_convex import SmoothConvex
    from hcmodel.solvers.coordinates.general import MapCoordinates

FloatArray = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LeastRelaxation:
    """The program of the least relaxation of all rows, and its rows that are bounds."""

    least: RelaxedProgram
    bounds: tuple[BoundRows, ...]

    @staticmethod
    def of_sums(arrays: SumArrays) -> LeastRelaxation:
        """Of a form whose functions are affine or sums of exponentials."""
        sums, size = cone_of_sums(arrays, relaxed=True), arrays.lower.size
        rows, entries, values = sums.bounds
        low, found = int(np.count_nonzero(np.isfinite(arrays.lower))), list[BoundRows]()
        for side, own in (("lower", slice(0, low)), ("upper", slice(low, values.size))):
            if rows[own].size:
                found.append(BoundRows(int(rows[own][0]), side, entries[own]))
        return LeastRelaxation(
            RelaxedProgram(sums.program, size, sums.rows, sums.others), tuple(found)
        )


@dataclass(frozen=True, eq=False)
class Form:
    """A chain, and what is known of the coordinates at its end.

    `proof` is there where the model is proven convex in them; `hidden` says that they are hidden
    coordinates at all, proven or declared.
    """

    chain: Chain
    hidden: bool = False
    proof: Proof | VisibleProof | None = None
    found_last: Proof | VisibleProof | None = None
    """The proof of the model at the end of the chain, kinks lifted."""
    renewed: bool = False
    """Whether parameters have got other values since, for which the arrays show convexity."""
    slacks: frozenset[Variable] = frozenset()
    """The variables of the model that the user did not write, and that only bound something."""
    texts: Mapping[Variable, str] = field(default_factory=dict)
    """New variables in the terms of the user's (`Substitution`)."""
    implied: Mapping[str, tuple[FloatArray, FloatArray]] = field(default_factory=dict)
    """Ranges of new variables beyond their sets (`Substitution`)."""
    divisors: frozenset[Variable] = frozenset()
    """Matrices and positive numbers that the way back divides by (`Substitution`)."""
    written_in_map: Callable[[], bool] | None = None
    """Whether the functions are written in the entries of a declared map, and proven convex in these."""

    @cached_property
    def is_convex_in_map(self) -> bool:
        """Whether this is so, with the rows as they are at the end of the chain."""
        return self.written_in_map is not None and self.written_in_map()

    @cached_property
    def last(self) -> Proof | None:
        """The proof of the model at the end of the chain, for the parameters' current values."""
        if self.found_last is None or (isinstance(self.found_last, Proof) and not self.renewed):
            return self.found_last
        proof = proof_of_end(self, self.found_last)
        return proof if proof.proven else None

    @cached_property
    def cone(self) -> Cone | Refusal:
        """The cone program of a proven form, in the same coordinates; a refusal where there is none."""
        if self.proof is None or self.last is None:
            return Refusal(None, "the model is not proven convex")
        from hcmodel.reductions.cone.cone import Cone

        return Cone.of(self.chain.end.before, self.last, affine_roots(self.program))

    def whole(self, kind: str) -> WholeProgram | Refusal:
        """The convex program of a proven form for methods of this kind (`MethodEntry.program`)."""
        return self._whole_cone if kind == "cone" else self._whole_smooth

    @cached_property
    def convex(self) -> SmoothConvex | Refusal:
        """The smooth convex program of a proven form; a refusal where there is none."""
        if self.proof is None:
            return Refusal(None, "the model is not proven convex")
        from hcmodel.reductions.smooth_convex import SmoothConvex, smooth_convex

        if self.arrays is not None:
            from hcmodel.reductions.sums.convex_sums import convex_of_sums

            return SmoothConvex.of(convex_of_sums(self.arrays), self.canonical.outer.size)
        return smooth_convex(self.program)

    @property
    def is_structured(self) -> bool:
        """Whether every function of the smooth convex program is affine or a sum of exponentials.

        Their weights are positive, so that the arrays of the program show that it is convex.
        """
        if self.arrays is not None:
            return True
        convex = self.convex
        return not isinstance(convex, Refusal) and not convex.program.smooth

    @property
    def linear_density(self) -> float | None:
        """The share of entries that are not 0 in the rows of a linear program; None for other models."""
        density = None if self.arrays is None else self.arrays.linear_density
        if density is not None:
            return density
        convex = self.convex
        if isinstance(convex, Refusal) or not convex.program.is_linear:
            return None
        return convex.program.density

    @property
    def all_bounded(self) -> bool:
        """Whether each unknown of the smooth convex program has a bound."""
        if self.arrays is not None:
            return every((self.arrays.lower > -INFINITE) | (self.arrays.upper < INFINITE))
        convex = self.convex
        return not isinstance(convex, Refusal) and convex.program.all_bounded

    @cached_property
    def _whole_smooth(self) -> WholeProgram | Refusal:
        convex = self.convex
        if isinstance(convex, Refusal):
            return convex
        size = self.canonical.outer.size
        none = np.zeros(0, dtype=np.intp)
        return WholeProgram(
            convex.program,
            np.arange(size),
            np.ones(size),
            (none, none, np.zeros(0)),  # bounds are not rows of the program
            factors=convex.factors if convex.converted.size else None,
        )

    @cached_property
    def _whole_cone(self) -> WholeProgram | Refusal:
        sums = self._sums
        if sums is not None:
            signs = np.ones(sums.rows.size)
            divisors = self._zero_rows(sums.bounds)
            return WholeProgram(
                sums.program, sums.rows, signs, sums.bounds, self._relaxed, divisors=divisors
            )
        cone = self.cone
        if isinstance(cone, Refusal):
            return cone
        signs = self.canonical.multipliers(cone.signs)
        rows = self._row_numbers(cone.rows)
        bounds = cone.bounds()
        divisors = cone.matrix_rows(self.divisors) + self._zero_rows(bounds)
        return WholeProgram(cone.after, rows, signs, bounds, self._relaxed, divisors=divisors)

    def _zero_rows(
        self, bounds: tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]
    ) -> tuple[slice, ...]:
        """Of rows that bound entries, those that keep from 0 what the way back divides by."""
        layout = self.canonical.layout
        numbers = [each for each in self.divisors & set(layout.variables) if each.pos]
        if not numbers:
            return ()
        marks = np.zeros(layout.size, dtype=bool)
        for each in numbers:
            marks[layout.slice(each)] = True
        marks &= ~self.program.logs  # a logarithm has no bound at 0
        rows, entries, values = bounds
        return tuple(slice(row, row + 1) for row in rows[marks[entries] & (values == 0.0)].tolist())

    @cached_property
    def _sums(self) -> SumsCone | None:
        """The cone program of a proven form, where it can be read off the form's arrays."""
        return None if self.arrays is None else cone_of_sums(self.arrays)

    @cached_property
    def arrays(self) -> SumArrays | None:
        """The functions of a proven form where all are affine or sums of exponentials."""
        return None if self.proof is None else arrays_of_sums(self.program)

    @property
    def has_posynomials(self) -> bool:
        """Whether every function of a proven form is a posynomial or a sum of logarithms."""
        return isinstance(self.stack, LogStack) and self.arrays is not None

    def implied_ends(self) -> tuple[FloatArray, FloatArray]:
        """Lower and upper ends of the unknowns, infinite but for ranges that a map implies."""
        model = self.chain.end.before
        lower, upper = np.full(model.layout.size, -np.inf), np.full(model.layout.size, np.inf)
        for variable in model.variables:
            if variable.name in self.implied:
                own = model.layout.slice(variable)
                stored = variable.set.store if variable.set.is_symmetric else np.ravel
                low, high = (stored(end) for end in self.implied[variable.name])
                lower[own] = low - DATA_ROUNDING * np.abs(low)
                upper[own] = high + DATA_ROUNDING * np.abs(high)
        return lower, upper

    def _relaxed(self) -> RelaxedProgram | None:
        """The program of the least relaxation; None where there is none."""
        return None if self.relaxation is None else self.relaxation.least

    @cached_property
    def relaxation(self) -> LeastRelaxation | None:
        """The program of the least relaxation of a proven form, and the bounds in it."""
        if self.arrays is not None:
            return LeastRelaxation.of_sums(self.arrays)
        if isinstance(self.cone, Refusal):
            return None
        found = self.cone.relaxed()
        rows, others = self._row_numbers(found.rows), self._row_numbers(found.others)
        return LeastRelaxation(
            RelaxedProgram(found.program, found.amount, rows, others), found.bounds
        )

    def _row_numbers(self, duals: Duals) -> NDArray[np.intp]:
        """Numbers of rows by those of the canonical problem, from those by constraint."""
        return self.canonical.multipliers(duals).astype(np.intp)

    @cached_property
    def program(self) -> SmoothProgram:
        return self.chain.after

    @property
    def canonical(self) -> CanonicalProblem:
        return self.program.canonical

    @property
    def compiled(self) -> CompiledStack:
        return self.program.compiled

    @property
    def stack(self) -> Stack:
        return self.program.stack

    @property
    def domain(self) -> Domain:
        return self.program.domain

    @property
    def geometry(self) -> Coordinates:
        return self.program.geometry

    @property
    def map_geometry(self) -> MapCoordinates | None:
        return self.program.map_geometry

    @property
    def entries(self) -> tuple[Expression, ...]:
        return self.program.entries

    @property
    def affords_hessian(self) -> bool:
        return self.program.affords_hessian

    def oracle(self) -> Oracle:
        return shown(self, self.program.oracle())

    @cached_property
    def released(self) -> Form | None:
        """The same without the bounds that bend in hidden coordinates; None where there are none."""
        release = Release.of(self.chain.end.after)
        if not isinstance(release, Release):
            return None
        return replace(self, chain=replace(self.chain, release=release))

    @cached_property
    def settle(self) -> Callable[[FloatArray], FloatArray] | None:
        """Puts variables that bound kinks at what they bound; None where there are none."""
        return self.chain.settled if self.chain.adds_variables else None

    def settled(self, u: FloatArray) -> FloatArray:
        """The point with the variables that bound kinks at what they bound."""
        return u if self.settle is None else self.settle(u)

    def coordinate_names(self) -> list[str]:
        """The coordinates of a proven form, as people write them."""
        assert self.proof is not None
        return list(self.coordinate_texts().values())

    def coordinate_texts(self) -> dict[str, str]:
        """The coordinates of a proven form by the names of the variables that it works on."""
        assert self.proof is not None
        found = {}
        for variable, kind in self.proof.coordinates.items():
            if variable not in self.slacks:
                text = self.texts.get(variable, variable.name)
                found[variable.name] = f"log({text})" if kind == "log" else text
        return found

    def duals(self, evaluation: Evaluation, multipliers: FloatArray) -> Duals:
        """Multipliers of the model's constraints, from those of the rows at an evaluation."""
        slope = None
        if self.chain.has_bound_rows and evaluation.differentiable:
            slope = evaluation.gradient + evaluation.jacobian.T @ multipliers
        factors = evaluation.row_factors
        return self.chain.duals_back(evaluation.point, multipliers, slope, factors)

    def program_duals(self, result: Result) -> Duals | None:
        """The multipliers that the cone program of a run has found, those of the sets among them."""
        evaluation, solution = result.evaluation, result.cone
        if evaluation is None or solution is None or self._sums is not None:
            return None  # sums of terms have slopes wherever they are defined
        if isinstance(self.cone, Refusal):
            return None
        whole = self.whole("cone")
        assert isinstance(whole, WholeProgram)
        multipliers, slope = whole.multipliers(solution.dual), self.cone.set_slope(solution)
        return self.chain.duals_back(evaluation.point, multipliers, slope, evaluation.row_factors)

    def conflicting_bounds(self, evaluation: Evaluation, weights: FloatArray) -> Duals:
        """Weights of the rows that are bounds here and on which a contradiction of rows rests."""
        slope = evaluation.jacobian.T @ weights
        found = self.chain.duals_back(evaluation.point, weights, slope)
        return replace(found, rows=self.chain.bound_rows_only(found.rows))

    def multipliers(self, evaluation: Evaluation, duals: Duals) -> FloatArray:
        """Multipliers of the rows at an evaluation, from those of the model's constraints."""
        return self.chain.multipliers(self.chain.point_back(evaluation.point), duals)


def proof_of_end(form: Form, last: Proof | VisibleProof) -> Proof:
    """The proof of the model at the end of a form that was made for other data."""
    model = form.chain.end.before
    names = {variable.name: kind for variable, kind in last.coordinates.items()}
    fixed = {variable: names[variable.name] for variable in model.variables}
    objective, sign = signed_objective(model)
    return prove(objective, sign, model.constraints, fixed=fixed)
