"""Gradients near a point: the test of stationarity, and steps along the least element of their hull."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty, prices
from hcmodel.solvers.first_order.sampling.line_search import weak_wolfe
from hcmodel.solvers.first_order.sampling.trials import SamplingState, Trial, sides
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp import QPBackend, QuadraticProgram
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.result import Termination, WeightedPoint

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Hull:
    """Shares of gradients, and the element of least norm of their hull, which they add up to."""

    shares: FloatArray
    element: FloatArray


class HullSteps:
    """What is done where other steps lead no further down."""

    def __init__(
        self, penalty: ExactPenalty, generator: np.random.Generator, backend: QPBackend
    ) -> None:
        self._penalty, self._rules = penalty, penalty.rules
        self._generator, self._backend = generator, backend

    def step(self, state: SamplingState) -> SamplingState:
        """Whether the point is stationary by gradients near by; else a step along their hull.

        Gradients come from the past, then from steps along the hull's element of least norm that do not
        lead down (null steps of a bundle method), then from random points.
        """
        here, rules = state.here, self._rules
        near = self._near(state)
        for _ in range(rules.null_steps * (here.y.size + 1)):
            hull = self._hull(near)
            if hull is None:
                return replace(state, stop=Termination.STALLED)
            if self._is_stationary(hull, near):
                return self._escaped(state, near) or self.ended(state, near, hull.shares)
            move, trial, serious = self._tried(state, hull)
            if trial is None:
                break
            if serious:
                return self._descended(state, move, trial)
            near.append(trial)
        if state.tries >= rules.tries:
            return replace(state, stop=Termination.STALLED)
        more = self._samples(state, rules.samples * here.y.size + 1)
        return self.step(replace(state, recent=(*near, *more), tries=state.tries + 1))

    def ended(self, state: SamplingState, near: list[Trial], shares: FloatArray) -> SamplingState:
        """The end, unless rows are violated: then they become more expensive."""
        here, rules = state.here, self._rules
        if here.evaluation.relative_violation > self._penalty.task.tolerance:
            if state.rounds >= rules.penalty_rounds:
                return replace(state, stop=Termination.INFEASIBLE_STATIONARY)
            return self._charged_more(state)
        weighted = tuple(
            WeightedPoint(
                trial.evaluation,
                float(share),
                float(share) * prices(trial.evaluation, state.weights),
            )
            for trial, share in zip(near, shares, strict=True)
            if share > 0
        )
        multipliers = np.sum([each.rows for each in weighted], axis=0)
        return replace(
            state,
            current=here.evaluation,
            multipliers=np.asarray(multipliers, dtype=float),
            weighted=weighted,
            stop=Termination.HULL_STATIONARY,
        )

    def _charged_more(self, state: SamplingState) -> SamplingState:
        """With larger weights of the rows that the point violates."""
        here, charged = state.here, self._penalty.charged
        violated = here.evaluation.violations > 0
        dearer = self._rules.penalty_growth * state.weights
        weights = np.where(violated, dearer, state.weights)
        others = [trial for trial in state.trials if trial is not here]
        trials = tuple(charged(each.y, each.evaluation, weights) for each in others)
        fresh = charged(here.y, here.evaluation, weights)
        return replace(
            state,
            here=fresh,
            weights=weights,
            inverse=None,
            recent=(fresh,),
            trials=(*trials, fresh),
            rounds=state.rounds + 1,
            idle=0,
        )

    def _escaped(self, state: SamplingState, near: list[Trial]) -> SamplingState | None:
        """A step down from a point that is stationary only because gradients of other sides count.

        For a maximum of smooth pieces no linearisation exceeds the function at points close by. Where
        one does, there is a concave kink between the two points, and the gradients that fit together
        with one side may have no small element in their hull.
        """
        rules = self._rules
        if not state.concave:
            return None
        tried: set[tuple[int, ...]] = set()
        for _ in range(rules.probe_rounds):
            near = [*near, *self._samples(state, rules.probes)]
            size = max(float(np.max(np.abs(trial.slope))) for trial in near)
            margin = rules.contradiction * rules.radius * size
            for fitting in sides(near, margin):
                key = tuple(sorted(id(trial) for trial in fitting))
                if len(fitting) == len(near) or key in tried:
                    continue
                tried.add(key)
                lower = self._down_one_side(state, fitting, margin)
                if lower is not None:
                    return lower
            if not tried:  # no concave kink here
                return None
        return None

    def _down_one_side(
        self, state: SamplingState, fitting: list[Trial], margin: float
    ) -> SamplingState | None:
        """A step along the hull of gradients that fit together; null steps add those that do."""
        for _ in range(self._rules.null_steps * (state.here.y.size + 1)):
            hull = self._hull(fitting)
            if hull is None or self._is_stationary(hull, fitting):
                return None
            move, trial, serious = self._tried(state, hull)
            if trial is None:
                return None
            if serious:
                state = replace(self._descended(state, move, trial), recent=tuple(fitting))
                return state if state.pieces is None else state.with_pieces(self._rules)
            fitting = [trial, *(each for each in fitting if each.fits(trial, margin))]
        return None

    def _tried(self, state: SamplingState, hull: Hull) -> tuple[FloatArray, Trial | None, bool]:
        """A move by the radius along the hull's least element, and whether it leads clearly down."""
        here, rules, element = state.here, self._rules, hull.element
        length = rules.radius / float(np.max(np.abs(element)))
        move = -length * element
        trial = self._penalty.at(here.y + move, state.weights)
        fall = length * float(element @ element)
        serious = trial is not None and here.value - trial.value >= rules.serious * fall
        return move, trial, serious

    def _descended(self, state: SamplingState, move: FloatArray, first: Trial) -> SamplingState:
        """A step in the direction of a move that leads down, at least as good as its trial."""
        here, rules = state.here, self._rules
        found = weak_wolfe(self._penalty, here, move, state.weights).found
        if found is None or found.value > first.value:
            found = first
        idle = here.value - found.value <= rules.progress * here.size(rules)
        if idle and state.tries >= rules.tries:
            return replace(state, stop=Termination.STALLED)
        return replace(
            state.at(found),
            idle=0,
            tries=state.tries + idle,
            phase="pieces" if state.pieces is not None else "sampling",
        )

    def _near(self, state: SamplingState) -> list[Trial]:
        here = state.here
        return [here] + [
            trial
            for trial in state.recent
            if trial is not here and float(np.max(np.abs(trial.y - here.y))) <= self._rules.radius
        ]

    def _samples(self, state: SamplingState, count: int) -> list[Trial]:
        y = state.here.y
        moves = self._generator.uniform(-1.0, 1.0, size=(count, y.size))
        found = [self._penalty.at(y + self._rules.radius * move, state.weights) for move in moves]
        return [trial for trial in found if trial is not None]

    def _hull(self, near: list[Trial]) -> Hull | None:
        slopes = np.array([trial.slope for trial in near])
        size = max(float(np.max(np.abs(slopes))), TINY)
        count = len(near)
        gram = (slopes / size) @ (slopes / size).T
        program = QuadraticProgram(
            gram,
            np.zeros(count),
            np.zeros((0, count)),
            np.zeros(0),
            np.ones((1, count)),
            np.ones(1),
            StepRows(np.zeros(count), np.full(count, np.inf)),
        )
        answer = self._backend.solve(program)
        if not answer.usable:
            return None
        shares = np.maximum(answer.step, 0.0)
        shares = shares / max(float(np.sum(shares)), TINY)
        return Hull(shares, np.asarray(shares @ slopes))

    def _is_stationary(self, hull: Hull, near: list[Trial]) -> bool:
        """In the units of the point, which may be far from those of the start."""
        domain = self._penalty.task.domain
        ratio = domain.metric(near[0].evaluation.point) / self._penalty.unit
        size = max(float(np.max(np.abs(ratio * trial.slope))) for trial in near)
        least = self._rules.stationary * size
        return float(np.max(np.abs(ratio * hull.element))) <= max(least, TINY)
