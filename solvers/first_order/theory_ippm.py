"""IPPM under the theory rule: Algorithm 1 as printed, with the parameters of a corollary.

Fatkhullin, He, Lan, Wolf (2025), Algorithm 1, Theorem 1 and Corollaries 1 to 3; the hidden strong
convexity theorem where μ_H is given. The metric is Euclidean, and ε = τ is the tolerance. A start that is
not τ-feasible is first repaired by steps on F2 alone, the phase "feasibility".
"""

from __future__ import annotations

import numpy as np

from hcmodel.records import dataclass, replace
from hcmodel.solvers.first_order.ippm import InnerSolver
from hcmodel.solvers.first_order.theory_bundle import DONE
from hcmodel.solvers.first_order.violation import max_of_abs
from hcmodel.solvers.loop import State, Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.result import Termination
from hcmodel.solvers.theory.theorems import Constants, IppmParameters


@dataclass(frozen=True)
class TheoryIppmState(State):
    """`rule` is known once the descent begins; `outer` counts its steps."""

    rule: IppmParameters | None = None
    outer: int = 0


class TheoryIppm:
    """N outer steps, each an inner solver's answer to (Shifted-IPPM)."""

    def __init__(self, inner: InnerSolver, constants: Constants) -> None:
        self.inner = inner
        self.constants = constants

    def init(self, task: Task, start: Evaluation) -> TheoryIppmState:
        self.inner.check(task)
        state = TheoryIppmState(current=start, multipliers=np.zeros(start.rows.size))
        if max_of_abs(start)[0] <= task.tolerance:
            return self._descent(task, state, start)
        # Fail before the run, not in the middle of it, if a constant is missing.
        self.inner.parameters(task.tolerance, self.constants, 1.0)
        rows_only = task.oracle.restricted(objective=False).at(start.point)
        return replace(state, current=rows_only, phase="feasibility")

    def step(self, task: Task, state: TheoryIppmState) -> TheoryIppmState:
        if state.phase == "feasibility":
            following, over = self.inner.exact_feasibility(task, self.constants, state.current)
            state = replace(state, current=following)
            if max_of_abs(following)[0] <= task.tolerance:
                return self._descent(task, state, task.oracle.at(following.point))
            return replace(state, stop=Termination.STALLED) if over else state
        assert state.rule is not None
        if state.outer >= state.rule.outer_steps:
            return replace(state, stop=DONE)
        found = self.inner.exact(task, state.current, state.rule)
        if found.evaluation is None:
            return replace(state, stop=Termination.STALLED)
        length = float(np.linalg.norm(found.evaluation.point - state.current.point))
        multipliers = state.multipliers if found.multipliers is None else found.multipliers
        return replace(
            state,
            current=found.evaluation,
            multipliers=multipliers,
            step=length,
            outer=state.outer + 1,
        )

    def terminate(self, task: Task, state: TheoryIppmState) -> Termination | None:
        return None

    def _descent(self, task: Task, state: TheoryIppmState, start: Evaluation) -> TheoryIppmState:
        rule = self.inner.parameters(
            task.tolerance, self.constants, self._delta0(task, start.objective)
        )
        return replace(state, current=start, phase="descent", rule=rule, shift=rule.alpha)

    def _delta0(self, task: Task, objective: float) -> float:
        """F1(x0) − F1*, or a bound of it."""
        if task.optimal_value is not None:
            return objective - task.optimal_value
        (lower,) = self.constants.need("Theorem 1 without optimal_value", "f1_lower")
        return objective - lower
