"""An end of a chain: a proven model as one cone program in its hidden coordinates.

The proof is the recipe. Affine nodes are sparse rows, a sum of log-affine terms is a log-sum-exp, and
what is neither has the cone form that its atom declares (`cone_bounds`). A node without one is the
reason of a refusal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.depth import with_room
from hcmodel.expressions.leaves import Apply, Variable
from hcmodel.expressions.model import Model
from hcmodel.proof.prove import Proof
from hcmodel.records import cached_property, dataclass
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.cone_bounds import Translation
from hcmodel.reductions.cone.cone_sides import NoConeForm
from hcmodel.reductions.reduction import BoundRows, Duals, Reduction, Refusal
from hcmodel.solvers.numerics import SUM_ROUNDING, TINY
from hcmodel.solvers.qp.cone_program import ConeProgram, ConeSolution

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RelaxedCone:
    """The program of the least amount by which all constraints have to give; `amount` is its place.

    For each entry of each constraint `rows` has its row and `others`, for an equality, the row of the
    other side; −1 stands for none.
    """

    program: ConeProgram
    amount: int
    rows: Duals
    others: Duals
    bounds: tuple[BoundRows, ...]


@dataclass(frozen=True)
class NormSlope:
    """A Euclidean norm, or several along an axis, with slopes y of its argument, and its value.

    `targets` says which of the norms each entry of the argument belongs to.
    """

    node: Apply
    y: FloatArray
    targets: NDArray[np.intp]
    value: FloatArray


def _translated(
    model: Model, proof: Proof, affine: Mapping[int, Affine]
) -> tuple[Translation, ConeProgram]:
    translation = Translation(model, proof, affine)
    return translation, translation.rows.program(translation.objective())


class Cone(Reduction[Model, ConeProgram]):
    """A cone program over (u, bounds); u are the coordinates of the proof, in the model's order."""

    def __init__(self, before: Model, after: ConeProgram, translation: Translation) -> None:
        super().__init__(before, after)
        self.logs = translation.logs
        self._proof, self._affine = translation.proof, translation.affine
        self._places = translation.places
        self._starts = translation.rows.starts()
        self._bounds = translation.bounds
        self._norms = [(node, *translation.rows.norms[i]) for i, node in translation.norms.items()]

    @staticmethod
    def of(model: Model, proof: Proof, affine: Mapping[int, Affine]) -> Cone | Refusal:
        """The cone program of a model whose rows are in the forms of its proof (`NormalRows`).

        `affine` has roots that are known to be affine, by their identities.
        """
        try:
            translation, program = with_room(
                lambda: _translated(model, proof, affine), model.nodes_and_hidden
            )
        except NoConeForm as stop:
            return Refusal(stop.expression, stop.reason)
        except RecursionError:
            return Refusal(None, "it is nested too deeply; write sums of loops with hc.sum")
        if not np.isfinite(program.offset).all():
            return Refusal(None, "the cone program has the logarithm of 0 in it")
        return Cone(model, program, translation)

    def relaxed(self) -> RelaxedCone:
        """The program of the least relaxation of all constraints."""
        translation = with_room(
            lambda: Translation(self.before, self._proof, self._affine, relaxed=True),
            self.before.nodes_and_hidden,
        )
        assert translation.slack is not None
        starts, places = translation.rows.starts(), translation.places
        rows = [int(starts[place.block]) for place in places]
        others = [-1 if place.other is None else int(starts[place.other]) for place in places]
        return RelaxedCone(
            program=translation.rows.program(translation.slack),
            amount=self.before.layout.size,
            rows=self._numbers(rows),
            others=self._numbers(others),
            bounds=tuple(
                BoundRows(int(starts[each.block]), each.side, each.entries)
                for each in translation.bounds
            ),
        )

    def point(self, x: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.logs, np.log(np.where(self.logs, x, 1.0)), x))

    def point_back(self, u: FloatArray) -> FloatArray:
        own = u[: self.before.layout.size]
        with np.errstate(all="ignore"):
            return np.asarray(np.where(self.logs, np.exp(np.where(self.logs, own, 0.0)), own))

    @cached_property
    def rows(self) -> Duals:
        """The row of the program of each entry of each constraint; −1 where an entry has none."""
        return self._numbers([int(self._starts[place.block]) for place in self._places])

    def bounds(self) -> tuple[NDArray[np.intp], NDArray[np.intp], FloatArray]:
        """The rows of the program that are bounds, the entries of u that they bound, and the bounds."""
        none = np.zeros(0, dtype=np.intp)
        found = [each for each in self._bounds if each.side in ("lower", "upper")]
        rows = [self._starts[each.block] + np.arange(each.entries.size) for each in found]
        return (
            np.concatenate([none, *rows]),
            np.concatenate([none, *[each.entries for each in found]]),
            np.concatenate([np.zeros(0), *[each.values for each in found]]),
        )

    def matrix_rows(self, matrices: Collection[Variable]) -> tuple[slice, ...]:
        """The rows that say of each of these matrices, and of no multiple or shift, that it is ⪰ 0."""
        layout, found = self.before.layout, list[slice]()
        for matrix in self.before.variables if matrices else ():
            own = layout.slice(matrix)
            for each in self._bounds if matrix in matrices else ():
                rows = slice(int(self._starts[each.block]), int(self._starts[each.block + 1]))
                square = each.side == "set" and each.entries.size == own.stop - own.start
                if (
                    square
                    and rows.stop - rows.start == each.entries.size
                    and own.start <= each.entries.min() <= each.entries.max() < own.stop
                    and not self.after.offset[rows].any()
                ):
                    found.append(rows)
        return tuple(found)

    def set_slope(self, solution: ConeSolution) -> FloatArray:
        """The gradient of the Lagrangian by u, which the sets balance: it is minus their own part.

        It is right at kinks too, where the gradients of the model's functions are any of many.
        """
        own = np.zeros(solution.dual.size)
        for each in self._bounds:
            rows = slice(self._starts[each.block], self._starts[each.block + 1])
            own[rows] = solution.dual[rows]
        size = self.before.layout.size
        return -self.after.pull(own)[:size]

    @property
    def signs(self) -> Duals:
        """The sign of the multiplier of each entry of each constraint."""
        pairs = zip(self._places, self.before.constraints, strict=True)
        return Duals(tuple(np.full(each.shape, place.sign) for place, each in pairs))

    def norm_slopes(self, solution: ConeSolution) -> list[NormSlope]:
        """For each Euclidean norm ‖a‖ the y with ‖y‖ <= 1 that its cone's multiplier stands for.

        A row ‖a‖ <= t with the multiplier (z, w) enters the Lagrangian as z·t − (z t + w·a), and
        ‖a‖ >= y·a with y = −w/z. At a = 0, where the norm has no derivative, y is the one that counts.
        """
        found = []
        for node, group, targets in self._norms:
            count = int(targets.max(initial=-1)) + 1
            order = np.argsort(np.concatenate([np.arange(count), targets]), kind="stable")
            own = slice(self._starts[group], self._starts[group] + order.size)
            weights, sides = np.empty(order.size), np.empty(order.size)
            weights[order], sides[order] = solution.dual[own], solution.slack[own]
            y = -weights[count:] / np.maximum(weights[:count], TINY)[targets]
            y = y / np.maximum(_lengths(y, targets, count) * (1 + SUM_ROUNDING), 1.0)[targets]
            sizes = _lengths(sides[count:], targets, count)
            slope = NormSlope(
                node, y.reshape(node.args[0].shape), targets, sizes.reshape(node.shape)
            )
            found.append(slope)
        return found

    def by_constraint(self, dual: FloatArray) -> Duals:
        """Multipliers of the constraints, in the forms of their rows, from the program's dual."""
        found = []
        for rows, signs in zip(self.rows.rows, self.signs.rows, strict=True):
            assert rows is not None
            assert signs is not None
            found.append(np.where(rows >= 0, signs * dual[rows.astype(np.intp)], 0.0))
        return Duals(tuple(found))

    def _numbers(self, starts: Sequence[int]) -> Duals:
        """Consecutive numbers for the entries that have rows, by constraint."""
        found = []
        for start, constraint in zip(starts, self.before.constraints, strict=True):
            own = np.full(constraint.shape, -1.0)
            if start >= 0:
                own.reshape(-1)[constraint.rows] = start + np.arange(constraint.rows.size)
            found.append(own)
        return Duals(tuple(found))


def _lengths(entries: FloatArray, targets: NDArray[np.intp], count: int) -> FloatArray:
    """The Euclidean length of the entries of each target."""
    return np.sqrt(np.bincount(targets, entries * entries, minlength=count))
