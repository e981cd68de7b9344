"""gradient-sampling: kinks without coordinates, by BFGS, models of pieces, and sampled gradients.

Lewis and Overton, Nonsmooth optimization via quasi-Newton methods, 2013: BFGS with a weak Wolfe line
search converges at kinks too, although no theorem says so. With few unknowns and while the function looks
convex, linearisations take the place of the search (see `minorants`); and other steps are taken as
soon as kinks are noticed, which need far fewer evaluations: a level method for as long as the function
looks convex (see `minorants`) and gradients keep their size, else models of the smooth pieces (see
`pieces`). Burke, Curtis, Lewis,
Overton and Simões, Gradient sampling methods for nonsmooth optimization, 2020: the element of least norm
in the hull of gradients near a point is a descent direction there, or shows that the point is almost
stationary. Kiwiel, Methods of descent for nondifferentiable optimization, 1985: a step along it that does
not lead down brings the gradient that was missing (a null step), before random points do. Rows enter by
an exact penalty, and every point lies in X:

    P(y) = F(x) + Σ ρ_i [g_i(x)]₊ + Σ ρ_j |h_j(x)| + σ|y − x|,   x = Π_X(y), in natural units.

Nothing global is claimed. A run that ends by its own test leaves the gradients of the hull behind, with
their weights, so that others can check it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers import kkt
from hcmodel.solvers.first_order.minorants import Minorants
from hcmodel.solvers.first_order.pieces import ModelStep, Piece, Pieces
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.numerics import BACKEND_ROUNDING, BOTTOM, MERIT_ROUNDING, SUM_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import DEFAULT_BACKEND, QuadraticProgram, make_backend
from hcmodel.solvers.qp.program import StepRows
from hcmodel.solvers.result import Termination, WeightedPoint

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SamplingRules:
    """Numbers of the method. *black boxes*: measured with tests/benchmarks/black_boxes.py."""

    # Sufficient decrease and the weak curvature condition.
    decrease: float = 1e-4  # Lewis and Overton, section 4
    curvature: float = 0.5  # Lewis and Overton, section 4
    # Trials of a line search.
    trials: int = 30  # Lewis and Overton: 30 halvings exhaust the accuracy of doubles near a kink
    # Points within this distance, in natural units, count as near.
    radius: float = 1e-6  # the default tolerance
    # Null steps for each unknown, and the share of the predicted decrease that makes a step serious.
    null_steps: int = 4  # black boxes
    serious: float = 0.1  # Kiwiel 1985
    # Points sampled in a ball, for each unknown, and one more.
    samples: int = 1  # Burke et al.: n + 1 at least
    # The least norm in the hull, relative to the gradients, at which a point counts as stationary.
    stationary: float = 5e-5  # black boxes
    # How often more points are sampled in the smallest ball before a run counts as stalled.
    tries: int = 5  # black boxes
    # The decrease of P that a model has to predict, relative to its size.
    model_progress: float = 1e-8  # black boxes
    # The decrease of P, relative to its size, below which an iteration is idle, and how many end BFGS.
    progress: float = 1e-8  # black boxes
    idle: int = 8  # black boxes
    # The least size that P is taken to have, in slopes.
    smallest: float = 1e-3  # black boxes (optima of 0)
    # The KKT residual, in tolerances, at which a smooth function without rows has its minimum.
    smooth: float = 1.0  # what is asked for
    # Unknowns up to which the smooth pieces are modelled, and the first trust region.
    modelled: int = 50  # each piece has a dense matrix
    reach: float = 0.1  # black boxes
    # A kink: how much the trapezoidal rule fails, trials of a search, and how many steps show kinks.
    trapezoid: float = 1 / 3  # cubic terms make it fail by that much at the most
    searches: int = 8  # black boxes
    kinks: int = 3  # black boxes
    # The same where the function looks convex; where the level lies, and the first box.
    convex_trapezoid: float = 0.25  # black boxes
    convex_searches: int = 2  # black boxes
    convex_kinks: int = 1  # black boxes
    clear: float = 0.6  # one such step shows a kink
    level: float = 0.5  # Lemaréchal, Nemirovskii and Nesterov 1995: any number between 0 and 1
    box: float = 1.0  # a natural unit
    # The share of the largest gradient below which one shows no kink at the minimum (at kinks gradients
    # keep their size), and how often BFGS takes over again.
    flat: float = 0.1  # black boxes
    returns: int = 3  # black boxes
    # The errors of a quadratic model, over those of all linearisations, at which BFGS takes over again.
    foreseen: float = 0.3  # black boxes
    # How the box grows where one of its sides holds the bound.
    wider: float = 10.0
    # Linearisations that are kept, for each unknown.
    linearisations: int = 20  # black boxes
    # Trials lie all around a point where the least singular value of their directions is this large.
    spread: float = 0.01  # black boxes
    # The least cosine of the angle between the way from the start and that to a trial beyond the point.
    ahead: float = 0.5  # 60 degrees
    # Steps for each unknown within which the value has to decrease.
    patience: int = 20  # black boxes
    stalled: float = 1e-5  # by this share of its size; noise decreases slower
    # The share of a predicted decrease that makes a step long, and steps in a row that fail.
    good: float = 0.5  # Conn, Gould and Toint 2000, section 6.1
    # A step of this share of the trust region ends at its edge; how the region grows and shrinks.
    edge: float = 0.9  # black boxes
    longer: float = 2.0  # Conn, Gould and Toint 2000, section 17.1
    shorter: float = 0.5  # Conn, Gould and Toint 2000, section 17.1
    # The share of a piece that counts, and where in the radius it is looked at again.
    share: float = 1e-6  # above the accuracy of the backends
    inside: float = 0.5  # black boxes
    failures: int = 1  # for each unknown, black boxes
    # How much a linearisation exceeds the function, in slopes times radius, at a concave kink.
    contradiction: float = 0.05  # black boxes
    # Points sampled to find concave kinks, if the function is not convex.
    probes: int = 20  # black boxes
    # How often they are sampled where there are concave kinks.
    probe_rounds: int = 4  # black boxes
    # Gradients of the past that are looked at, for each unknown.
    memory: int = 3  # black boxes
    # The first penalty weights over the ratio of slopes, their growth, and how often they may grow.
    penalty: float = 2.0  # above a multiplier of that ratio
    penalty_growth: float = 10.0  # Nocedal and Wright, framework 17.2
    penalty_rounds: int = 6  # black boxes


@dataclass(frozen=True)
class SamplingOptions:
    """Options of `gradient-sampling`."""

    seed: int = 0
    """Of the points that are sampled."""
    backend: str = DEFAULT_BACKEND
    """The backend of the quadratic programs."""
    rules: SamplingRules = SamplingRules()
    """Numbers that seldom have to be changed."""

    def __post_init__(self) -> None:
        make_backend(self.backend)


@dataclass(frozen=True)
class Trial:
    """A point y in natural units, P and a gradient of it there."""

    y: FloatArray
    evaluation: Evaluation
    value: float
    slope: FloatArray


@dataclass(frozen=True)
class SamplingState(State):
    """`inverse` is the approximation of the inverse Hessian, `recent` the trials of the past."""

    here: Trial | None = None
    inverse: FloatArray | None = None
    weights: FloatArray | None = None
    recent: tuple[Trial, ...] = ()
    idle: int = 0
    rounds: int = 0
    tries: int = 0
    pieces: Pieces | None = None
    reach: float = np.nan
    failures: int = 0
    kinks: int = 0
    returns: int = 0
    concave: bool = False
    trials: tuple[Trial, ...] = ()
    modelled: int = 0
    mark: float = np.inf


class GradientSampling:
    """`gradient-sampling`."""

    def __init__(self, options: SamplingOptions | None = None) -> None:
        self.options = options or SamplingOptions()
        self._generator = np.random.default_rng(self.options.seed)
        self._backend = make_backend(self.options.backend)

    def init(self, task: Task, start: Evaluation) -> SamplingState:
        unit = task.domain.metric(start.point)
        if not task.domain.is_box:  # entries that move together have one unit
            unit = np.full(unit.size, float(np.max(unit, initial=TINY)))
        self._unit = unit
        self._first = start.point / unit
        weights = self._first_weights(start)
        here = self._trial(task, start.point / unit, weights)
        none = np.zeros(start.rows.size)
        if here is None:
            return SamplingState(start, none, stop=Termination.STALLED)
        return SamplingState(
            current=start,
            multipliers=none,
            here=here,
            inverse=None,
            weights=weights,
            recent=(here,),
            trials=(here,),
            phase="bfgs",
        )

    def step(self, task: Task, state: SamplingState) -> SamplingState:
        if state.phase == "pieces":
            return self._modelled(task, self._watched(state))
        if state.phase == "level":
            return self._levelled(task, self._watched(state))
        return self._quasi_newton(task, state)

    def terminate(self, task: Task, state: SamplingState) -> Termination | None:
        return None

    def _quasi_newton(self, task: Task, state: SamplingState) -> SamplingState:
        """A step of BFGS; another kind of steps where it shows kinks."""
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        length = float(np.linalg.norm(here.slope))
        inverse = state.inverse
        if inverse is None or not here.slope @ (inverse @ here.slope) > 0:
            inverse = np.eye(here.y.size) / max(length, TINY)
        modelled = here.y.size <= rules.modelled and state.pieces is None
        if modelled and not state.concave:
            return self._guided(task, replace(state, inverse=inverse))
        trials = rules.searches if modelled else None
        return self._searched(task, replace(state, inverse=inverse), modelled, trials)

    def _guided(self, task: Task, state: SamplingState) -> SamplingState:
        """A step while the function looks convex, to the least value that all trials allow.

        Trials that do not lead down show curvature too (Nocedal and Wright, algorithm 6.2), so that no
        line is searched.
        """
        here, rules, inverse = state.here, self.options.rules, state.inverse
        assert here is not None
        assert state.weights is not None
        assert inverse is not None
        step = _linearised(state.trials).newton(here.y, here.value, here.slope, inverse)
        trial = self._trial(task, here.y + step, state.weights)
        if trial is None:
            return self._searched(task, state, True, rules.convex_searches)
        state = self._remembered(state, [trial])
        if state.concave:
            return self._searched(task, state, True, rules.convex_searches)
        missed = self._missed(here, trial)
        kinks = state.kinks + 1 if missed > rules.convex_trapezoid else max(state.kinks - 1, 0)
        better = trial.value < here.value
        failures = 0 if better else state.failures + 1
        state = replace(state, kinks=kinks, failures=failures)
        if missed > rules.clear or failures >= rules.convex_searches or kinks >= rules.convex_kinks:
            return self._lowered(state)
        best = trial if better else here
        state = replace(state, inverse=self._learnt(state, best, inverse))
        return self._moved(task, state, trial) if better else state

    def _learnt(self, state: SamplingState, best: Trial, inverse: FloatArray) -> FloatArray:
        """BFGS with the trials nearest to the best one, the nearest last."""
        others = [trial for trial in state.trials if trial is not best]
        others.sort(key=lambda trial: -float(np.linalg.norm(trial.y - best.y)))
        last = state.trials[-1] if state.trials[-1] is not best else state.here
        assert last is not None
        for other in (last, *others[-best.y.size :]):
            if self._missed(other, best) <= self.options.rules.convex_trapezoid:
                inverse = _updated(inverse, *_bent(other, best))
        return inverse

    def _searched(
        self, task: Task, state: SamplingState, modelled: bool, trials: int | None
    ) -> SamplingState:
        """A step of BFGS with a weak Wolfe line search; pieces are modelled where it fails."""
        here, rules, inverse = state.here, self.options.rules, state.inverse
        assert here is not None
        assert state.weights is not None
        assert inverse is not None
        seen: list[Trial] = []
        direction = -inverse @ here.slope
        found, wolfe = self._search(task, here, direction, state.weights, seen, trials)
        state = self._remembered(state, seen)
        if found is not None:
            kink = self._missed(here, found) > rules.trapezoid
            state = replace(state, kinks=state.kinks + 1 if kink else max(state.kinks - 1, 0))
        if modelled and (not wolfe or state.kinks >= rules.kinks):
            return self._begun(state, found)
        if found is None:
            return self._sampled(task, replace(state, inverse=None))
        if wolfe:
            updated = _updated(inverse, found.y - here.y, found.slope - here.slope)
            state = replace(state, inverse=updated)
        return self._moved(task, state, found)

    def _moved(self, task: Task, state: SamplingState, found: Trial) -> SamplingState:
        """At a better point, which may be the end."""
        here, rules = state.here, self.options.rules
        assert here is not None
        small = rules.progress * self._size(here)
        state = replace(
            state,
            current=found.evaluation,
            here=found,
            idle=state.idle + 1 if here.value - found.value <= small else 0,
            step=float(np.linalg.norm(found.y - here.y)),
        )
        if found.evaluation.objective < -BOTTOM:
            return replace(state, stop=Termination.UNBOUNDED)
        return self._looked_at(task, state, float(np.linalg.norm(here.slope)))

    def _looked_at(self, task: Task, state: SamplingState, length: float) -> SamplingState:
        """The end of BFGS: a gradient that vanishes, or steps that bring nothing more."""
        here, rules, idle = state.here, self.options.rules, state.idle
        assert here is not None
        if not here.evaluation.rows.size:
            none = np.zeros(0)
            residual = kkt.residual(here.evaluation, task.domain, none)
            state = replace(state, residual=residual)
            if residual <= rules.smooth * task.tolerance:
                # near a minimum of value 0 only steps that bring nothing more end it
                if idle >= rules.idle or kkt.is_stationary(
                    here.evaluation, task.domain, none, task.tolerance, residual
                ):
                    return self._looked_around(replace(state, stop=Termination.CONVERGED))
                return state
        if idle >= rules.idle or float(np.max(np.abs(here.slope))) <= task.tolerance * length:
            return self._sampled(task, state)
        return state

    # ---- the penalty

    def _first_weights(self, start: Evaluation) -> FloatArray:
        slopes = np.abs(_dense(start.jacobian) * self._unit).max(axis=1, initial=0.0)
        top = float(np.max(np.abs(start.gradient * self._unit), initial=0.0))
        sizes = np.where(slopes > 0, slopes, 1.0)
        return np.asarray(self.options.rules.penalty * max(top, TINY) / sizes)

    def _trial(self, task: Task, y: FloatArray, weights: FloatArray) -> Trial | None:
        """P and a gradient; None where a function is not defined."""
        inner = task.domain.project(y * self._unit)
        evaluation = task.oracle.at(inner)
        if not (evaluation.finite and evaluation.differentiable):
            return None
        return self._charged(task, y, evaluation, weights)

    def _charged(
        self, task: Task, y: FloatArray, evaluation: Evaluation, weights: FloatArray
    ) -> Trial:
        inner = evaluation.point
        away = y - inner / self._unit
        away = np.where(np.abs(away) > SUM_ROUNDING * np.abs(y), away, 0.0)
        charged = _prices(evaluation, weights)
        gradient = evaluation.gradient + _dense(evaluation.jacobian).T @ charged
        size = max(float(np.max(np.abs(gradient * self._unit), initial=0.0)), 1.0)
        distance = float(np.linalg.norm(away))
        slope = gradient * self._unit
        if not task.domain.is_box:
            slope = self._along(task, inner, gradient) * self._unit
        if distance > 0:
            slope = self._along(task, inner, gradient) * self._unit + size * away / distance
        value = evaluation.objective + float(charged @ evaluation.rows) + size * distance
        return Trial(y, evaluation, value, slope)

    def _along(self, task: Task, x: FloatArray, gradient: FloatArray) -> FloatArray:
        """The part of a gradient that X does not hold back at x, in place of that of F∘Π_X."""
        return -task.domain.normal_cone_distance(x, -gradient)

    # ---- steps of a level method, while the function looks convex

    def _lowered(self, state: SamplingState) -> SamplingState:
        """The level method from the best trial."""
        assert state.here is not None
        best = min(state.trials, key=lambda trial: trial.value)
        return replace(
            state,
            current=best.evaluation,
            here=best,
            step=float(np.linalg.norm(best.y - state.here.y)),
            phase="level",
            reach=self.options.rules.box,
        )

    def _levelled(self, task: Task, state: SamplingState) -> SamplingState:
        """A step of the level method; the end where linearisations promise nothing more."""
        here, rules, weights = state.here, self.options.rules, state.weights
        assert here is not None
        assert weights is not None
        if state.stop is not None:
            return state
        limits, reach = self._limits(task), state.reach
        known = _linearised(state.trials)
        allowed = task.tolerance * self._allowed_size(state)
        bound = known.bound(here.y, here.value, reach, limits)
        while bound is not None and bound.gap <= allowed and bound.held and reach < BOTTOM:
            reach = rules.wider * reach
            bound = known.bound(here.y, here.value, reach, limits)
        if bound is None:
            return self._begun(state)
        if bound.gap <= allowed:
            lower = self._below_the_bound(task, state, allowed)
            if lower is not None:
                return lower
            ended = self._stationary(task, state, list(state.trials), bound.weights)
            return self._looked_around(ended)
        fall = (1.0 - rules.level) * bound.gap
        step = known.step(here.y, here.value, fall, reach, limits, self._backend)
        if step is None:
            return self._begun(state)
        trial = self._trial(task, here.y + step, weights)
        if trial is None:
            return replace(state, reach=rules.shorter * float(np.max(np.abs(step))))
        before = state
        state = self._remembered(replace(state, reach=reach), [trial])
        best = trial if trial.value < here.value else here
        if state.inverse is not None:
            state = replace(state, inverse=self._learnt(state, best, state.inverse))
        if best is trial:
            long = float(np.max(np.abs(step))) >= rules.good * reach
            good = here.value - trial.value >= rules.good * fall
            state = replace(
                state,
                current=trial.evaluation,
                here=trial,
                step=float(np.linalg.norm(step)),
                reach=rules.longer * reach if long and good else reach,
                stop=Termination.UNBOUNDED if trial.evaluation.objective < -BOTTOM else None,
            )
        return self._after_level(before, state, trial)

    def _after_level(
        self, before: SamplingState, state: SamplingState, trial: Trial
    ) -> SamplingState:
        """Whether the level method goes on: not where the function bends, with or without kinks."""
        here, rules = before.here, self.options.rules
        assert here is not None
        if state.stop is not None:
            return state
        missed = self._missed(here, trial)
        again = replace(state, phase="bfgs", kinks=0, idle=0, failures=0)
        if state.concave:
            return again if missed <= rules.trapezoid else self._begun(state)
        if missed > rules.convex_trapezoid:
            return state
        if state.returns < rules.returns and _foreseen(before, trial, rules.foreseen):
            return replace(again, returns=state.returns + 1)
        steepest = max(float(np.linalg.norm(each.slope)) for each in state.trials)
        flat = float(np.linalg.norm(trial.slope)) <= rules.flat * steepest
        if flat and state.here is trial and state.returns < rules.returns:
            return replace(again, returns=state.returns + 1)
        return state

    def _below_the_bound(
        self, task: Task, state: SamplingState, allowed: float
    ) -> SamplingState | None:
        """A step down that the linearisations exclude, where one of them is no lower bound.

        Steps of the level method end where a linearisation crosses the function, whether a kink is
        there or not. If not, the function falls along its own gradient.
        """
        here, rules, weights = state.here, self.options.rules, state.weights
        assert here is not None
        assert weights is not None
        steepness = float(here.slope @ here.slope)
        if steepness <= task.tolerance**2:
            return None
        fall = rules.wider * allowed
        trial = self._trial(task, here.y - fall / steepness * here.slope, weights)
        if trial is None:
            return None
        state = self._remembered(state, [trial])
        if here.value - trial.value < rules.good * fall:
            return None
        state = replace(state, here=trial, current=trial.evaluation, concave=True)
        return self._begun(state)

    def _allowed_size(self, state: SamplingState) -> float:
        """What a gap is measured against: between the value and 1, as a large value may be an offset."""
        here = state.here
        assert here is not None
        slope = max(float(np.max(np.abs(trial.slope), initial=0.0)) for trial in state.trials)
        size = max(abs(here.value), min(slope, 1.0), TINY)
        return min(size, float(np.sqrt(size)))

    def _looked_around(self, state: SamplingState) -> SamplingState:
        return replace(state, surrounded=self._is_surrounded(state), passed=self._has_passed(state))

    def _has_passed(self, state: SamplingState) -> bool:
        """Whether a trial lies beyond the point, as seen from the start, in about that direction."""
        here = state.here
        assert here is not None
        way = here.y - self._first
        beyond = np.array([trial.y - here.y for trial in state.trials])
        lengths = np.linalg.norm(beyond, axis=1) * float(np.linalg.norm(way))
        along = beyond @ way
        return bool(np.any((along > 0) & (along >= self.options.rules.ahead * lengths)))

    def _is_surrounded(self, state: SamplingState) -> bool:
        """Whether trials lie in all directions from the point, so that no other has to be looked at."""
        here = state.here
        assert here is not None
        moves = np.array([trial.y - here.y for trial in state.trials if trial is not here])
        if moves.shape[0] < here.y.size:
            return False
        lengths = np.linalg.norm(moves, axis=1)
        units = moves[lengths > 0] / lengths[lengths > 0, None]
        if units.shape[0] < here.y.size:
            return False
        return float(np.linalg.svd(units, compute_uv=False)[-1]) > self.options.rules.spread

    # ---- steps by models of the smooth pieces

    def _watched(self, state: SamplingState) -> SamplingState:
        """Whether many steps have brought nothing, as with values that are noisy."""
        here, rules = state.here, self.options.rules
        assert here is not None
        if state.modelled % (rules.patience * (here.y.size + 1)):
            return replace(state, modelled=state.modelled + 1)
        idle = not state.mark - here.value > rules.stalled * self._size(here)
        stop = Termination.STALLED if idle else None
        return replace(state, modelled=state.modelled + 1, mark=here.value, stop=stop)

    def _begun(self, state: SamplingState, found: Trial | None = None) -> SamplingState:
        """Models of the pieces that the trials of the past have shown, from a better one of them."""
        here, rules = found or state.here, self.options.rules
        assert here is not None
        assert state.here is not None
        moved = float(np.max(np.abs(here.y - state.here.y)))
        pieces: Pieces | None = None
        for trial in (*(each for each in state.recent if each is not here), here):
            if pieces is None:
                flat = np.zeros((here.y.size, here.y.size))
                pieces = Pieces((Piece(trial.y, trial.value, trial.slope, flat),))
            else:
                pieces = pieces.noted(trial.y, trial.value, trial.slope)[0]
        return replace(
            state,
            current=here.evaluation,
            here=here,
            step=moved,
            phase="pieces",
            pieces=pieces,
            reach=min(max(moved, rules.radius), rules.reach) if moved > 0 else rules.reach,
            failures=0,
        )

    def _missed(self, here: Trial, there: Trial) -> float:
        """How far the trapezoidal rule between two points fails, as it does across a kink."""
        step = there.y - here.y
        change = float((there.slope - here.slope) @ step) / 2
        missed = abs(there.value - here.value - float(here.slope @ step) - change)
        return missed / max(abs(change), TINY)

    def _shows_a_kink(self, low: Trial | None, high: Trial | None) -> bool:
        """Whether there is a kink between two trials, as far as their values and slopes tell."""
        if low is None or high is None:
            return True
        return self._missed(low, high) > self.options.rules.trapezoid

    def _modelled(self, task: Task, state: SamplingState) -> SamplingState:
        """A step to the least value of the model, or an evaluation that checks a piece of it."""
        here, rules, pieces, weights = state.here, self.options.rules, state.pieces, state.weights
        assert here is not None
        assert pieces is not None
        assert weights is not None
        if state.stop is not None:
            return state
        pieces = pieces.below(here.y, here.value)
        found = pieces.least(here.y, state.reach, self._limits(task), self._backend)
        if found is None:
            return replace(state, phase="bfgs", inverse=None, idle=0)
        state = replace(state, pieces=pieces)
        gain = here.value - found.value
        if gain <= rules.model_progress * self._size(here):
            return self._checked(task, state, found)
        trial = self._trial(task, here.y + found.step, weights)
        if trial is None:
            return replace(state, reach=rules.shorter * state.reach)
        after, was = pieces.noted(trial.y, trial.value, trial.slope, state.failures)
        state = self._remembered(replace(state, pieces=after), [trial])
        fall = here.value - trial.value
        if fall < rules.serious * gain:
            if len(after.below(here.y, here.value).active) <= len(pieces.active) - (
                was is not None
            ):
                return replace(
                    state, reach=rules.shorter * state.reach, failures=0
                )  # it says nothing of here
            failures = state.failures + (was is not None)
            if failures > rules.failures * here.y.size:
                return replace(state, reach=rules.shorter * state.reach, failures=0)
            return replace(state, failures=failures)
        length = float(np.max(np.abs(found.step)))
        longer = fall >= rules.good * gain and length >= rules.edge * state.reach
        return replace(
            state,
            current=trial.evaluation,
            here=trial,
            step=float(np.linalg.norm(found.step)),
            reach=rules.longer * state.reach if longer else state.reach,
            failures=0,
            stop=Termination.UNBOUNDED if trial.evaluation.objective < -BOTTOM else None,
        )

    def _checked(self, task: Task, state: SamplingState, found: ModelStep) -> SamplingState:
        """Evaluate a piece that holds the point and was last seen far from it; else the hull's test."""
        here, rules, pieces, weights = state.here, self.options.rules, state.pieces, state.weights
        assert here is not None
        assert pieces is not None
        assert weights is not None
        far = [
            (share, piece)
            for share, piece in zip(found.shares, pieces.active, strict=True)
            if share > rules.share and float(np.max(np.abs(piece.y - here.y))) > rules.radius
        ]
        if not far:
            state = replace(state, idle=0)
            return self._sampled(task, state)
        piece = max(far, key=lambda each: each[0])[1]
        slope = piece.at(here.y)[1]
        move = rules.inside * rules.radius * slope / max(float(np.max(np.abs(slope))), TINY)
        trial = self._trial(task, here.y + move, weights)
        if trial is None:
            return replace(state, pieces=pieces.without([piece]), reach=rules.shorter * state.reach)
        after, was = pieces.noted(trial.y, trial.value, trial.slope)
        reach = state.reach
        if was is not piece:
            after, reach = after.without([piece]), rules.shorter * reach
        state = self._remembered(replace(state, pieces=after, reach=reach), [trial])
        if trial.value < here.value:
            state = replace(state, here=trial, current=trial.evaluation)
        return state

    def _limits(self, task: Task) -> tuple[FloatArray, FloatArray]:
        """Bounds of steps; other sets than boxes hold a point by the price of leaving them."""
        if not task.domain.is_box:
            return np.full(self._unit.size, -np.inf), np.full(self._unit.size, np.inf)
        rows = task.domain.cone_rows()
        return rows.lower / self._unit, rows.upper / self._unit

    def _remembered(self, state: SamplingState, seen: list[Trial]) -> SamplingState:
        rules, size = self.options.rules, self._unit.size + 1
        known = state.trials if state.phase == "level" else state.recent
        concave = state.concave or any(
            max(_excess(old, new), _excess(new, old)) > BACKEND_ROUNDING * self._size(new)
            for old in known
            for new in seen
        )
        return replace(
            state,
            recent=(*state.recent, *seen)[-rules.memory * size :],
            trials=(*state.trials, *seen)[-rules.linearisations * size :],
            concave=concave,
        )

    # ---- steps

    def _search(
        self,
        task: Task,
        here: Trial,
        direction: FloatArray,
        weights: FloatArray,
        seen: list[Trial],
        trials: int | None = None,
    ) -> tuple[Trial | None, bool]:
        """The weak Wolfe line search by bisection and doubling; whether its conditions hold.

        It ends after a number of trials if that is given, unless they show no kink.
        """
        rules = self.options.rules
        fall = float(here.slope @ direction)
        low, high, length = 0.0, np.inf, 1.0
        best: Trial | None = None
        ends: list[Trial | None] = [here, None]
        for count in range(1, rules.trials + 1):
            trial = self._trial(task, here.y + length * direction, weights)
            if trial is not None:
                seen.append(trial)
            if trial is None or trial.value > here.value + rules.decrease * length * fall:
                high, ends[1] = length, trial
            else:
                best = trial if best is None or trial.value < best.value else best
                if trial.slope @ direction >= rules.curvature * fall:
                    return trial, True
                low, ends[0] = length, trial
            length = (low + high) / 2 if np.isfinite(high) else 2.0 * low
            if count >= (trials or np.inf) and np.isfinite(high):
                more = count < rules.searches and not self._shows_a_kink(*ends)
                if not more:
                    break
            if length * float(np.max(np.abs(direction))) <= SUM_ROUNDING * max(
                1.0, float(np.max(np.abs(here.y)))
            ):
                break
        return best, False

    def _sampled(self, task: Task, state: SamplingState) -> SamplingState:
        """Whether the point is stationary by gradients near by; else a step along their hull.

        Gradients come from the past, then from steps along the hull's element of least norm that do not
        lead down (null steps of a bundle method), then from random points.
        """
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        near = self._near(state, here)
        for _ in range(rules.null_steps * (here.y.size + 1)):
            hull = self._hull(near)
            if hull is None:
                return replace(state, stop=Termination.STALLED)
            shares, element = hull
            if self._is_stationary(task, hull, near):
                escaped = self._escaped(task, state, near)
                return escaped or self._stationary(task, state, near, shares)
            length = rules.radius / float(np.max(np.abs(element)))
            trial = self._trial(task, here.y - length * element, state.weights)
            if trial is None:
                break
            fall = length * float(element @ element)
            if here.value - trial.value >= rules.serious * fall:
                return self._descended(task, state, trial, -length * element)
            near.append(trial)
        if state.tries >= rules.tries:
            return replace(state, stop=Termination.STALLED)
        more = self._samples(task, here, state, rules.samples * here.y.size + 1)
        recent = (*near, *more)
        return self._sampled(task, replace(state, recent=recent, tries=state.tries + 1))

    def _escaped(self, task: Task, state: SamplingState, near: list[Trial]) -> SamplingState | None:
        """A step down from a point that is stationary only because gradients of other sides count.

        For a maximum of smooth pieces no linearisation exceeds the function at points close by. Where
        one does, there is a concave kink between the two points, and the gradients that fit together
        with one side may have no small element in their hull.
        """
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        if not state.concave:
            return None
        tried: set[tuple[int, ...]] = set()
        for _ in range(rules.probe_rounds):
            near = [*near, *self._samples(task, here, state, rules.probes)]
            size = max(float(np.max(np.abs(trial.slope))) for trial in near)
            margin = rules.contradiction * rules.radius * size
            for fitting in _sides(near, margin):
                key = tuple(sorted(id(trial) for trial in fitting))
                if len(fitting) == len(near) or key in tried:
                    continue
                tried.add(key)
                lower = self._down_one_side(task, state, fitting, margin)
                if lower is not None:
                    return lower
            if not tried:  # no concave kink here
                return None
        return None

    def _down_one_side(
        self, task: Task, state: SamplingState, fitting: list[Trial], margin: float
    ) -> SamplingState | None:
        """A step along the hull of gradients that fit together; null steps add those that do."""
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        for _ in range(rules.null_steps * (here.y.size + 1)):
            hull = self._hull(fitting)
            if hull is None or self._is_stationary(task, hull, fitting):
                return None
            element = hull[1]
            length = rules.radius / float(np.max(np.abs(element)))
            trial = self._trial(task, here.y - length * element, state.weights)
            if trial is None:
                return None
            fall = length * float(element @ element)
            if here.value - trial.value >= rules.serious * fall:
                state = self._descended(task, state, trial, -length * element)
                state = replace(state, recent=tuple(fitting))
                return self._begun(state) if state.pieces is not None else state
            fitting = [trial, *(each for each in fitting if _fit(each, trial, margin))]
        return None

    def _descended(
        self, task: Task, state: SamplingState, first: Trial, direction: FloatArray
    ) -> SamplingState:
        """A step along a direction of descent, at least as good as the trial that showed it."""
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        found, _ = self._search(task, here, direction, state.weights, [])
        if found is None or found.value > first.value:
            found = first
        idle = here.value - found.value <= rules.progress * self._size(here)
        if idle and state.tries >= rules.tries:
            return replace(state, stop=Termination.STALLED)
        return replace(
            state,
            current=found.evaluation,
            here=found,
            idle=0,
            tries=state.tries + idle,
            phase="pieces" if state.pieces is not None else "sampling",
        )

    def _size(self, here: Trial) -> float:
        """What a decrease of P is measured against."""
        slope = float(np.max(np.abs(here.slope), initial=0.0))
        return max(abs(here.value), self.options.rules.smallest * slope, TINY)

    def _near(self, state: SamplingState, here: Trial) -> list[Trial]:
        reach = self.options.rules.radius
        return [here] + [
            trial
            for trial in state.recent
            if trial is not here and float(np.max(np.abs(trial.y - here.y))) <= reach
        ]

    def _samples(self, task: Task, here: Trial, state: SamplingState, count: int) -> list[Trial]:
        assert state.weights is not None
        moves = self._generator.uniform(-1.0, 1.0, size=(count, here.y.size))
        found = [
            self._trial(task, here.y + self.options.rules.radius * move, state.weights)
            for move in moves
        ]
        return [trial for trial in found if trial is not None]

    def _hull(self, near: list[Trial]) -> tuple[FloatArray, FloatArray] | None:
        """Weights of the gradients whose sum has the least norm, and that sum."""
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
        weights = np.maximum(answer.step, 0.0)
        weights = weights / max(float(np.sum(weights)), TINY)
        return weights, np.asarray(weights @ slopes)

    def _is_stationary(
        self, task: Task, hull: tuple[FloatArray, FloatArray], near: list[Trial]
    ) -> bool:
        """In the units of the point, which may be far from those of the start."""
        ratio = task.domain.metric(near[0].evaluation.point) / self._unit
        size = max(float(np.max(np.abs(ratio * trial.slope))) for trial in near)
        least = self.options.rules.stationary * size
        return float(np.max(np.abs(ratio * hull[1]))) <= max(least, TINY)

    def _stationary(
        self, task: Task, state: SamplingState, near: list[Trial], shares: FloatArray
    ) -> SamplingState:
        """The end, unless rows are violated: then they become more expensive."""
        here, rules = state.here, self.options.rules
        assert here is not None
        assert state.weights is not None
        if here.evaluation.relative_violation > task.tolerance:
            if state.rounds >= rules.penalty_rounds:
                return replace(state, stop=Termination.INFEASIBLE_STATIONARY)
            violated = here.evaluation.violations > 0
            weights = np.where(violated, rules.penalty_growth * state.weights, state.weights)
            trials = tuple(
                self._charged(task, trial.y, trial.evaluation, weights)
                for trial in state.trials
                if trial is not here
            )
            fresh = self._charged(task, here.y, here.evaluation, weights)
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
        weighted = tuple(
            WeightedPoint(
                trial.evaluation,
                float(share),
                float(share) * _prices(trial.evaluation, state.weights),
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


def _linearised(trials: tuple[Trial, ...]) -> Minorants:
    return Minorants(
        np.array([trial.y for trial in trials]),
        np.array([trial.value for trial in trials]),
        np.array([trial.slope for trial in trials]),
    )


def _foreseen(state: SamplingState, trial: Trial, share: float) -> bool:
    """Whether the quadratic model of BFGS knew value and slope of a trial far better than linearisations.

    At a kink it does not, whatever its matrix; at a smooth minimum it soon does.
    """
    here, inverse = state.here, state.inverse
    assert here is not None
    if inverse is None:
        return False
    known = _linearised(state.trials)
    errors = known.errors(trial.y, trial.value)
    nearest = int(np.argmin(errors))
    step = trial.y - here.y
    try:
        bend = np.linalg.solve(inverse, step)
    except np.linalg.LinAlgError:
        return False
    missed = trial.value - here.value - float(step @ (here.slope + bend / 2))
    if abs(missed) > share * float(errors[nearest]):
        return False
    turned = float(np.linalg.norm(trial.slope - known.slopes[nearest]))
    return float(np.linalg.norm(trial.slope - here.slope - bend)) <= share * turned


def _prices(evaluation: Evaluation, weights: FloatArray) -> FloatArray:
    """The derivative of the penalty by the rows."""
    count = evaluation.inequalities
    violated = np.where(evaluation.rows[:count] > 0, weights[:count], 0.0)
    return np.concatenate([violated, weights[count:] * np.sign(evaluation.rows[count:])])


def _excess(trial: Trial, other: Trial) -> float:
    """How much the linearisation at a point exceeds the function at another."""
    return trial.value + float(trial.slope @ (other.y - trial.y)) - other.value


def _fit(one: Trial, other: Trial, margin: float) -> bool:
    """Whether both may be pieces of one maximum."""
    return max(_excess(one, other), _excess(other, one)) <= margin


def _sides(trials: list[Trial], margin: float) -> Iterator[list[Trial]]:
    """For each trial those that fit together with it and each other, the closest taken first."""
    # around one of them, so that little is lost where they lie close together
    points = np.array([each.y - trials[0].y for each in trials])
    slopes = np.array([each.slope for each in trials])
    values = np.array([each.value for each in trials])
    own = np.einsum("ij,ij->i", slopes, points)
    excess = (values - own)[:, None] + slopes @ points.T - values  # as in `_excess`
    fit = np.maximum(excess, excess.T) <= margin
    for first in range(len(trials)):
        left, found = fit[first].copy(), [first]
        for k in np.argsort(np.linalg.norm(points - points[first], axis=1), kind="stable"):
            if left[k] and k != first:
                found.append(k)
                left &= fit[k]
        yield [trials[k] for k in found]


def _updated(inverse: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """BFGS for the inverse Hessian."""
    along = float(s @ y)
    if along <= SUM_ROUNDING * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return inverse
    moved = inverse @ y
    grown = (1.0 + float(y @ moved) / along) / along
    return inverse + grown * np.outer(s, s) - (np.outer(moved, s) + np.outer(s, moved)) / along


def _bent(other: Trial, best: Trial) -> tuple[FloatArray, FloatArray]:
    """A step and the change of the slope with which a quadratic model has the values at both ends.

    Yuan, A modified BFGS algorithm for unconstrained optimization, 1991, in the form of Wei, Li and
    Qi, New quasi-Newton methods for unconstrained optimization problems, 2006.
    """
    step, change = best.y - other.y, best.slope - other.slope
    missed = 2 * (other.value - best.value) + float((other.slope + best.slope) @ step)
    rounding = MERIT_ROUNDING * max(abs(other.value), abs(best.value))
    if abs(missed) <= rounding:
        return step, change
    return step, change + missed / float(step @ step) * step


def _dense(matrix: Any) -> FloatArray:
    return np.asarray(matrix.toarray() if scipy.sparse.issparse(matrix) else matrix)
