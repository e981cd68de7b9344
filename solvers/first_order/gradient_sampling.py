"""gradient-sampling: kinks without coordinates, by BFGS, models of pieces, and sampled gradients.

Lewis and Overton, Nonsmooth optimization via quasi-Newton methods, 2013: BFGS with a weak Wolfe line
search converges at kinks too, although no theorem says so (`line_search`). With few unknowns and while
the function looks convex, linearisations take the place of the search. Other steps, which need far
fewer evaluations, are taken as soon as kinks are noticed: a level method for as long as the function
looks convex and gradients keep their size (`level_steps`), else models of the smooth pieces
(`piece_steps`). Burke, Curtis, Lewis, Overton and Simões, Gradient sampling methods for nonsmooth
optimization, 2020: the element of least norm in the hull of gradients near a point is a descent
direction there, or shows that the point is almost stationary (`hull_steps`). Kiwiel, Methods of descent
for nondifferentiable optimization, 1985: a step along it that does not lead down brings the gradient
that was missing (a null step), before random points do. Rows enter by an exact penalty, and every point
lies in X (`exact_penalty`).

Nothing global is claimed. A run that ends by its own test leaves the gradients of the hull behind, with
their weights, so that others can check it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers import kkt
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty
from hcmodel.solvers.first_order.sampling.hull_steps import HullSteps
from hcmodel.solvers.first_order.sampling.level_steps import LevelSteps, lowered
from hcmodel.solvers.first_order.sampling.line_search import learnt, updated, weak_wolfe
from hcmodel.solvers.first_order.sampling.piece_steps import PieceSteps
from hcmodel.solvers.first_order.sampling.sampling_rules import SamplingOptions, SamplingRules
from hcmodel.solvers.first_order.sampling.surroundings import looked_around
from hcmodel.solvers.first_order.sampling.trials import SamplingState, Trial, linearised, missed
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import make_backend
from hcmodel.solvers.result import Termination

FloatArray = NDArray[np.float64]

__all__ = ["GradientSampling", "SamplingOptions", "SamplingRules"]


class GradientSampling:
    """`gradient-sampling`: the phases of a run, of which BFGS is the first."""

    def __init__(self, options: SamplingOptions | None = None) -> None:
        self.options = options or SamplingOptions()
        self._generator = np.random.default_rng(self.options.seed)
        self._backend = make_backend(self.options.backend)

    def init(self, task: Task, start: Evaluation) -> SamplingState:
        penalty = ExactPenalty(task, start, self.options.rules)
        self._penalty = penalty
        self._hulls = HullSteps(penalty, self._generator, self._backend)
        self._levels = LevelSteps(penalty, self._hulls, self._backend)
        self._pieces = PieceSteps(penalty, self._hulls, self._backend)
        weights, none = penalty.first_weights(start), np.zeros(start.rows.size)
        here = penalty.at(penalty.first, weights)
        if here is None:
            nowhere = Trial(penalty.first, start, np.inf, np.zeros(start.point.size))
            stop = Termination.STALLED
            return SamplingState(start, none, stop=stop, here=nowhere, weights=weights)
        return SamplingState(
            current=start,
            multipliers=none,
            here=here,
            weights=weights,
            recent=(here,),
            trials=(here,),
            phase="bfgs",
        )

    def step(self, task: Task, state: SamplingState) -> SamplingState:
        if state.phase not in ("pieces", "level"):
            return self._quasi_newton(state)
        state = self._watched(state)
        if state.stop is not None:
            return state
        return (self._pieces if state.phase == "pieces" else self._levels).step(state)

    def terminate(self, task: Task, state: SamplingState) -> Termination | None:
        return None

    def _watched(self, state: SamplingState) -> SamplingState:
        """Whether many steps have brought nothing, as with values that are noisy."""
        here, rules = state.here, self.options.rules
        if state.modelled % (rules.patience * (here.y.size + 1)):
            return replace(state, modelled=state.modelled + 1)
        idle = not state.mark - here.value > rules.stalled * here.size(rules)
        stop = Termination.STALLED if idle else None
        return replace(state, modelled=state.modelled + 1, mark=here.value, stop=stop)

    # ---- BFGS

    def _quasi_newton(self, state: SamplingState) -> SamplingState:
        """A step of BFGS; another kind of steps where it shows kinks."""
        here, rules, inverse = state.here, self.options.rules, state.inverse
        if inverse is None or not here.slope @ (inverse @ here.slope) > 0:
            inverse = np.eye(here.y.size) / max(float(np.linalg.norm(here.slope)), TINY)
        modelled = here.y.size <= rules.modelled and state.pieces is None
        if modelled and not state.concave:
            return self._guided(state, inverse)
        return self._searched(state, inverse, modelled, rules.searches if modelled else None)

    def _guided(self, state: SamplingState, inverse: FloatArray) -> SamplingState:
        """A step while the function looks convex, to the least value that all trials allow.

        Trials that do not lead down show curvature too (Nocedal and Wright, algorithm 6.2), so that no
        line is searched.
        """
        here, rules = state.here, self.options.rules
        step = linearised(state.trials).newton(here.y, here.value, here.slope, inverse)
        trial = self._penalty.at(here.y + step, state.weights)
        if trial is not None:
            state = state.remembered([trial], rules)
        if trial is None or state.concave:
            return self._searched(state, inverse, True, rules.convex_searches)
        failed, better = missed(here, trial), trial.value < here.value
        kinks = state.kinks + 1 if failed > rules.convex_trapezoid else max(state.kinks - 1, 0)
        failures = 0 if better else state.failures + 1
        state = replace(state, inverse=inverse, kinks=kinks, failures=failures)
        if failed > rules.clear or failures >= rules.convex_searches or kinks >= rules.convex_kinks:
            return lowered(state, rules)
        inverse = learnt(state, trial if better else here, inverse, rules.convex_trapezoid)
        state = replace(state, inverse=inverse)
        return self._moved(state, trial) if better else state

    def _searched(
        self, state: SamplingState, inverse: FloatArray, modelled: bool, trials: int | None
    ) -> SamplingState:
        """A step of BFGS with a weak Wolfe line search; pieces are modelled where it fails."""
        here, rules = state.here, self.options.rules
        search = weak_wolfe(self._penalty, here, -inverse @ here.slope, state.weights, trials)
        found = search.found
        state = replace(state, inverse=inverse).remembered(search.seen, rules)
        if found is not None:
            kink = missed(here, found) > rules.trapezoid
            state = replace(state, kinks=state.kinks + 1 if kink else max(state.kinks - 1, 0))
        if modelled and (not search.wolfe or state.kinks >= rules.kinks):
            return state.with_pieces(rules, found)
        if found is None:
            return self._hulls.step(replace(state, inverse=None))
        if search.wolfe:
            inverse = updated(inverse, found.y - here.y, found.slope - here.slope)
        return self._moved(replace(state, inverse=inverse), found)

    def _moved(self, state: SamplingState, found: Trial) -> SamplingState:
        """At a better point, which may be the end."""
        here, rules = state.here, self.options.rules
        idle = here.value - found.value <= rules.progress * here.size(rules)
        state = replace(state.at(found), idle=state.idle + 1 if idle else 0)
        if state.stop is not None:
            return state
        return self._looked_at(state, float(np.linalg.norm(here.slope)))

    def _looked_at(self, state: SamplingState, length: float) -> SamplingState:
        """The end of BFGS: a gradient that vanishes, or steps that bring nothing more."""
        here, rules, task = state.here, self.options.rules, self._penalty.task
        done = state.idle >= rules.idle
        if not here.evaluation.rows.size:
            none = np.zeros(0)
            residual = kkt.residual(here.evaluation, task.domain, none)
            state = replace(state, residual=residual)
            if residual <= rules.smooth * task.tolerance:
                # near a minimum of value 0 only steps that bring nothing more end it
                if done or kkt.is_stationary(
                    here.evaluation, task.domain, none, task.tolerance, residual
                ):
                    ended = replace(state, stop=Termination.CONVERGED)
                    return looked_around(ended, self._penalty)
                return state
        if done or float(np.max(np.abs(here.slope))) <= task.tolerance * length:
            return self._hulls.step(state)
        return state
