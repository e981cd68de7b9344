"""Points that were evaluated, what they say of each other, and the state of a run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.minorants import Minorants
from hcmodel.solvers.first_order.pieces import Piece, Pieces
from hcmodel.solvers.first_order.sampling.sampling_rules import SamplingRules
from hcmodel.solvers.loop import State
from hcmodel.solvers.numerics import BACKEND_ROUNDING, BOTTOM, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Termination

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Trial:
    """A point y in natural units, P and a gradient of it there."""

    y: FloatArray
    evaluation: Evaluation
    value: float
    slope: FloatArray

    def size(self, rules: SamplingRules) -> float:
        """What a decrease of P is measured against."""
        slope = float(np.max(np.abs(self.slope), initial=0.0))
        return max(abs(self.value), rules.smallest * slope, TINY)

    def excess(self, other: Trial) -> float:
        """How much the linearisation at this point exceeds the function at another."""
        return self.value + float(self.slope @ (other.y - self.y)) - other.value

    def fits(self, other: Trial, margin: float) -> bool:
        """Whether both may be pieces of one maximum."""
        return max(self.excess(other), other.excess(self)) <= margin


@dataclass(frozen=True)
class SamplingState(State):
    """The point and the weights of the penalty, and what the steps have learnt.

    `inverse` is the approximation of the inverse Hessian, `recent` the trials of the last steps, and
    `trials` those of many more.
    """

    here: Trial = field(kw_only=True)
    weights: FloatArray = field(kw_only=True)
    inverse: FloatArray | None = None
    recent: tuple[Trial, ...] = ()
    trials: tuple[Trial, ...] = ()
    idle: int = 0
    rounds: int = 0
    tries: int = 0
    pieces: Pieces | None = None
    reach: float = np.nan
    failures: int = 0
    kinks: int = 0
    returns: int = 0
    concave: bool = False
    modelled: int = 0
    mark: float = np.inf

    def at(self, trial: Trial) -> SamplingState:
        """At another point; the end where the objective has none."""
        endless = trial.evaluation.objective < -BOTTOM
        return replace(
            self,
            current=trial.evaluation,
            here=trial,
            step=float(np.linalg.norm(trial.y - self.here.y)),
            stop=Termination.UNBOUNDED if endless else self.stop,
        )

    def remembered(self, seen: Sequence[Trial], rules: SamplingRules) -> SamplingState:
        """With these trials; a linearisation above one of them shows that P is not convex."""
        size = self.here.y.size + 1
        known = self.trials if self.phase == "level" else self.recent
        concave = self.concave or any(
            max(old.excess(new), new.excess(old)) > BACKEND_ROUNDING * new.size(rules)
            for old in known
            for new in seen
        )
        return replace(
            self,
            recent=(*self.recent, *seen)[-rules.memory * size :],
            trials=(*self.trials, *seen)[-rules.linearisations * size :],
            concave=concave,
        )

    def with_pieces(self, rules: SamplingRules, found: Trial | None = None) -> SamplingState:
        """At a better trial, with models of the pieces that the trials of the past have shown."""
        here = found or self.here
        moved = float(np.max(np.abs(here.y - self.here.y)))
        flat = np.zeros((here.y.size, here.y.size))
        first, *others = (*(each for each in self.recent if each is not here), here)
        pieces = Pieces((Piece(first.y, first.value, first.slope, flat),))
        for trial in others:
            pieces = pieces.noted(trial.y, trial.value, trial.slope)[0]
        return replace(
            self.at(here),
            phase="pieces",
            pieces=pieces,
            reach=min(max(moved, rules.radius), rules.reach) if moved > 0 else rules.reach,
            failures=0,
        )


def linearised(trials: Sequence[Trial]) -> Minorants:
    return Minorants(
        np.array([trial.y for trial in trials]),
        np.array([trial.value for trial in trials]),
        np.array([trial.slope for trial in trials]),
    )


def missed(here: Trial, there: Trial) -> float:
    """How far the trapezoidal rule between two points fails, as it does across a kink."""
    step = there.y - here.y
    change = float((there.slope - here.slope) @ step) / 2
    failed = abs(there.value - here.value - float(here.slope @ step) - change)
    return failed / max(abs(change), TINY)


def sides(trials: Sequence[Trial], margin: float) -> Iterator[list[Trial]]:
    """For each trial those that fit together with it and each other, the closest taken first."""
    # around one of them, so that little is lost where they lie close together
    points = np.array([each.y - trials[0].y for each in trials])
    slopes = np.array([each.slope for each in trials])
    values = np.array([each.value for each in trials])
    own = np.einsum("ij,ij->i", slopes, points)
    excess = (values - own)[:, None] + slopes @ points.T - values  # as in `Trial.excess`
    fit = np.maximum(excess, excess.T) <= margin
    for first in range(len(trials)):
        left, found = fit[first].copy(), [first]
        for k in np.argsort(np.linalg.norm(points - points[first], axis=1), kind="stable"):
            if left[k] and k != first:
                found.append(k)
                left &= fit[k]
        yield [trials[k] for k in found]
