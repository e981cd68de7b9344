"""S-BL with adaptive line search, the bundle-level method for an unknown optimal value.

Fatkhullin, He, Lan, Wolf (2025), Algorithms 4 and 5 and Theorem 3, with β = ½. The QP asks for a decrease
δ = αβ(F1 + λ[F2]₊ − η) of the merit, η being an estimate of F1*. Under the adaptive rule δ follows the
curvature met, and η is what holds it: α never passes 1. An epoch ends when α has become small; η has then
proved too low, and η ← βη + (1−β)(F1 + λ[F2]₊). Where δ asks for α > 1, η has proved too high and is
lowered: it is a target, not a bound, and nothing is claimed on its strength.
"""

from __future__ import annotations

from dataclasses import field

import numpy as np

from hcmodel.records import dataclass, replace
from hcmodel.solvers import kkt
from hcmodel.solvers.first_order.bundle_level import (
    BundleState,
    Options,
    advance,
    continue_feasibility,
    initial_state,
)
from hcmodel.solvers.first_order.method_rules import AdaLSRules
from hcmodel.solvers.loop import Task
from hcmodel.solvers.numerics import SUM_ROUNDING
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import make_backend
from hcmodel.solvers.result import Termination


@dataclass(frozen=True)
class AdaLSOptions(Options):
    """Options of `sbl-adals` under the adaptive rule."""

    objective_steps: int = 12
    """Steps on the objective alone, over X without the rows, to find the first level η0."""
    rules: AdaLSRules = field(default_factory=AdaLSRules)
    """The numbers inside the method, with their sources in `solvers/first_order/method_rules.py`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.objective_steps, int) or self.objective_steps < 0:
            raise ValueError(f"objective_steps is a whole number, not {self.objective_steps!r}")


class AdaptiveLineSearch:
    """`sbl-adals`."""

    def __init__(self, options: AdaLSOptions | None = None) -> None:
        self.options = options or AdaLSOptions()
        self.backend = make_backend(self.options.backend)

    def init(self, task: Task, start: Evaluation) -> BundleState:
        if task.oracle.size == 0 or self.options.objective_steps == 0:
            state = initial_state(task, start, self.options.rules)
            return replace(state, level=start.objective - self._first_gap(state))
        return replace(self._objective_state(task, start), phase="objective")

    def step(self, task: Task, state: BundleState) -> BundleState:
        if state.phase == "objective":
            return self._objective_step(task, state)
        if state.feasibility is not None:
            return continue_feasibility(task, self.backend, state, self.options.rules)
        if state.penalty.merit(state.current) <= state.level:  # the phase on the rows went below η0
            state = self._update_level(state)
        most = self.options.rules.beta * max(state.penalty.merit(state.current) - state.level, 0.0)
        wanted = min(state.decrease, most)
        shift = wanted / most if most > 0 else 1.0
        state = advance(task, self.backend, self.options, state, wanted)
        return self._update_level(replace(state, shift=shift))

    def terminate(self, task: Task, state: BundleState) -> Termination | None:
        return None

    def _first_gap(self, state: BundleState) -> float:
        rules = self.options.rules
        return rules.first_gap * state.decrease / rules.beta

    def _update_level(self, state: BundleState) -> BundleState:
        """Raise η when the shift is small, lower it when the decrease would need α > 1."""
        if state.feasibility is not None:
            return state
        rules = self.options.rules
        merit = state.penalty.merit(state.current)
        gap = merit - state.level
        if state.decrease > rules.beta * gap:
            # The merit may even have fallen below η; then only δ tells how far to aim.
            distance = rules.lowering * gap if gap > 0 else self._first_gap(state)
            return replace(state, level=merit - distance - SUM_ROUNDING * abs(merit))
        if state.decrease < rules.epoch_shift * rules.beta * gap:
            return replace(state, level=rules.beta * state.level + (1.0 - rules.beta) * merit)
        return state

    def _objective_state(self, task: Task, start: Evaluation) -> BundleState:
        alone = task.oracle.restricted(rows=False).at(start.point)
        state = initial_state(task, alone, self.options.rules)
        return replace(state, level=alone.objective - self._first_gap(state), origin=start)

    def _objective_step(self, task: Task, state: BundleState) -> BundleState:
        """The phase that finds η0; its last point is the answer if it is stationary and feasible."""
        alone = task.oracle.restricted(rows=False)
        moved = advance(task, self.backend, self.options, state, state.decrease, alone)
        steps = state.phase_steps + 1
        if moved.stop is None and steps < self.options.objective_steps:
            return replace(moved, phase_steps=steps)
        if moved.stop is Termination.CONVERGED:
            whole = task.oracle.at(moved.current.point)
            if whole.relative_violation <= task.tolerance:
                zeros = np.zeros(whole.rows.size)
                value = kkt.residual(whole, task.domain, zeros)
                return replace(moved, current=whole, multipliers=zeros, residual=value)
        assert state.origin is not None
        fallen = max(state.origin.objective - moved.current.objective, 0.0)
        exact = moved.stop is Termination.CONVERGED
        eta = moved.current.objective - (0.0 if exact else fallen)
        rules = self.options.rules
        fresh = initial_state(task, state.origin, rules)
        eta = min(eta, fresh.current.objective - fresh.decrease / rules.beta)
        return replace(fresh, level=eta)
