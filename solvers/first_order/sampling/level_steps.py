"""Steps of a level method with linearisations, while the function looks convex (see `minorants`)."""

from __future__ import annotations

import numpy as np

from hcmodel.records import replace
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty
from hcmodel.solvers.first_order.sampling.hull_steps import HullSteps
from hcmodel.solvers.first_order.sampling.line_search import learnt
from hcmodel.solvers.first_order.sampling.sampling_rules import SamplingRules
from hcmodel.solvers.first_order.sampling.surroundings import looked_around
from hcmodel.solvers.first_order.sampling.trials import SamplingState, Trial, linearised, missed
from hcmodel.solvers.numerics import BOTTOM, TINY
from hcmodel.solvers.qp import QPBackend


def lowered(state: SamplingState, rules: SamplingRules) -> SamplingState:
    """The level method from the best trial."""
    best = min(state.trials, key=lambda trial: trial.value)
    return replace(state.at(best), phase="level", reach=rules.box)


class LevelSteps:
    """The phase "level"; it ends where linearisations promise nothing more."""

    def __init__(self, penalty: ExactPenalty, hulls: HullSteps, backend: QPBackend) -> None:
        self._penalty, self._rules = penalty, penalty.rules
        self._hulls, self._backend = hulls, backend

    def step(self, state: SamplingState) -> SamplingState:
        here, rules = state.here, self._rules
        limits, reach = self._penalty.limits(), state.reach
        known = linearised(state.trials)
        allowed = self._penalty.task.tolerance * _allowed_size(state)
        bound = known.bound(here.y, here.value, reach, limits)
        while bound is not None and bound.gap <= allowed and bound.held and reach < BOTTOM:
            reach = rules.wider * reach
            bound = known.bound(here.y, here.value, reach, limits)
        if bound is None:
            return state.with_pieces(rules)
        if bound.gap <= allowed:
            lower = self._below_the_bound(state, allowed)
            if lower is not None:
                return lower
            ended = self._hulls.ended(state, list(state.trials), bound.weights)
            return looked_around(ended, self._penalty)
        fall = (1.0 - rules.level) * bound.gap
        step = known.step(here.y, here.value, fall, reach, limits, self._backend)
        if step is None:
            return state.with_pieces(rules)
        length = float(np.max(np.abs(step)))
        trial = self._penalty.at(here.y + step, state.weights)
        if trial is None:
            return replace(state, reach=rules.shorter * length)
        before = state
        state = replace(state, reach=reach).remembered([trial], rules)
        best = trial if trial.value < here.value else here
        if state.inverse is not None:
            inverse = learnt(state, best, state.inverse, rules.convex_trapezoid)
            state = replace(state, inverse=inverse)
        if best is trial:
            good = here.value - trial.value >= rules.good * fall
            longer = good and length >= rules.good * reach
            state = replace(state.at(trial), reach=rules.longer * reach if longer else reach)
        return state if state.stop is not None else self._continued(before, state, trial)

    def _continued(
        self, before: SamplingState, state: SamplingState, trial: Trial
    ) -> SamplingState:
        """Whether the level method goes on: not where the function bends, with or without kinks."""
        rules, failed = self._rules, missed(before.here, trial)
        again = replace(state, phase="bfgs", kinks=0, idle=0, failures=0)
        if state.concave:
            return again if failed <= rules.trapezoid else state.with_pieces(rules)
        if failed > rules.convex_trapezoid or state.returns >= rules.returns:
            return state
        steepest = max(float(np.linalg.norm(each.slope)) for each in state.trials)
        flat = float(np.linalg.norm(trial.slope)) <= rules.flat * steepest
        if _foreseen(before, trial, rules.foreseen) or (flat and state.here is trial):
            return replace(again, returns=state.returns + 1)
        return state

    def _below_the_bound(self, state: SamplingState, allowed: float) -> SamplingState | None:
        """A step down that the linearisations exclude, where one of them is no lower bound.

        Steps of the level method end where a linearisation crosses the function, whether a kink is
        there or not. If not, the function falls along its own gradient.
        """
        here, rules = state.here, self._rules
        steepness = float(here.slope @ here.slope)
        if steepness <= self._penalty.task.tolerance**2:
            return None
        fall = rules.wider * allowed
        trial = self._penalty.at(here.y - fall / steepness * here.slope, state.weights)
        if trial is None or here.value - trial.value < rules.good * fall:
            return None
        state = state.remembered([trial], rules).at(trial)
        return replace(state, concave=True).with_pieces(rules)


def _allowed_size(state: SamplingState) -> float:
    """What a gap is measured against: between the value and 1, as a large value may be an offset."""
    slope = max(float(np.max(np.abs(trial.slope), initial=0.0)) for trial in state.trials)
    size = max(abs(state.here.value), min(slope, 1.0), TINY)
    return min(size, float(np.sqrt(size)))


def _foreseen(state: SamplingState, trial: Trial, share: float) -> bool:
    """Whether the quadratic model of BFGS knew value and slope of a trial far better than linearisations.

    At a kink it does not, whatever its matrix; at a smooth minimum it soon does.
    """
    here, inverse = state.here, state.inverse
    if inverse is None:
        return False
    known = linearised(state.trials)
    errors = known.errors(trial.y, trial.value)
    nearest = int(np.argmin(errors))
    step = trial.y - here.y
    try:
        bend = np.linalg.solve(inverse, step)
    except np.linalg.LinAlgError:
        return False
    wrong = trial.value - here.value - float(step @ (here.slope + bend / 2))
    if abs(wrong) > share * float(errors[nearest]):
        return False
    turned = float(np.linalg.norm(trial.slope - known.slopes[nearest]))
    return float(np.linalg.norm(trial.slope - here.slope - bend)) <= share * turned
