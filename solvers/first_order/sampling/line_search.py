"""The weak Wolfe line search, and BFGS with what its trials and others have shown."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty
from hcmodel.solvers.first_order.sampling.trials import SamplingState, Trial, missed
from hcmodel.solvers.numerics import MERIT_ROUNDING, SUM_ROUNDING

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Search:
    """The best trial that leads down, whether the conditions of Wolfe hold there, and all trials."""

    found: Trial | None
    wolfe: bool
    seen: tuple[Trial, ...]


def weak_wolfe(
    penalty: ExactPenalty,
    here: Trial,
    direction: FloatArray,
    weights: FloatArray,
    trials: int | None = None,
) -> Search:
    """Bisection and doubling, as Lewis and Overton have it.

    It ends after a number of trials if that is given, unless they show no kink.
    """
    rules, seen = penalty.rules, list[Trial]()
    fall = float(here.slope @ direction)
    low, high, length = 0.0, np.inf, 1.0
    best: Trial | None = None
    ends: list[Trial | None] = [here, None]
    for count in range(1, rules.trials + 1):
        trial = penalty.at(here.y + length * direction, weights)
        if trial is not None:
            seen.append(trial)
        if trial is None or trial.value > here.value + rules.decrease * length * fall:
            high, ends[1] = length, trial
        else:
            best = trial if best is None or trial.value < best.value else best
            if trial.slope @ direction >= rules.curvature * fall:
                return Search(trial, True, tuple(seen))
            low, ends[0] = length, trial
        length = (low + high) / 2 if np.isfinite(high) else 2.0 * low
        if count >= (trials or np.inf) and np.isfinite(high):
            more = count < rules.searches and not _shows_a_kink(ends, rules.trapezoid)
            if not more:
                break
        if length * float(np.max(np.abs(direction))) <= SUM_ROUNDING * max(
            1.0, float(np.max(np.abs(here.y)))
        ):
            break
    return Search(best, False, tuple(seen))


def _shows_a_kink(ends: list[Trial | None], most: float) -> bool:
    """Whether there is a kink between two trials, as far as their values and slopes tell."""
    low, high = ends
    return low is None or high is None or missed(low, high) > most


def updated(inverse: FloatArray, s: FloatArray, y: FloatArray) -> FloatArray:
    """BFGS for the inverse Hessian."""
    along = float(s @ y)
    if along <= SUM_ROUNDING * float(np.linalg.norm(s) * np.linalg.norm(y)):
        return inverse
    moved = inverse @ y
    grown = (1.0 + float(y @ moved) / along) / along
    return inverse + grown * np.outer(s, s) - (np.outer(moved, s) + np.outer(s, moved)) / along


def bent(other: Trial, best: Trial) -> tuple[FloatArray, FloatArray]:
    """A step and the change of the slope with which a quadratic model has the values at both ends.

    Yuan, A modified BFGS algorithm for unconstrained optimization, 1991, in the form of Wei, Li and
    Qi, New quasi-Newton methods for unconstrained optimization problems, 2006.
    """
    step, change = best.y - other.y, best.slope - other.slope
    wrong = 2 * (other.value - best.value) + float((other.slope + best.slope) @ step)
    rounding = MERIT_ROUNDING * max(abs(other.value), abs(best.value))
    if abs(wrong) <= rounding:
        return step, change
    return step, change + wrong / float(step @ step) * step


def learnt(state: SamplingState, best: Trial, inverse: FloatArray, most: float) -> FloatArray:
    """BFGS with the trials nearest to the best one, the nearest last.

    Those across a kink, where the trapezoidal rule fails by more than `most`, say nothing of curvature.
    """
    others = [trial for trial in state.trials if trial is not best]
    others.sort(key=lambda trial: -float(np.linalg.norm(trial.y - best.y)))
    last = state.trials[-1] if state.trials[-1] is not best else state.here
    for other in (last, *others[-best.y.size :]):
        if missed(other, best) <= most:
            inverse = updated(inverse, *bent(other, best))
    return inverse
