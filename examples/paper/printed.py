"""The four methods of Fig. 6 with the settings that the paper prints, instead of rules of our own.

Printed: ten proximal epochs with ρ̂ = 0.02, τ = 1e-3, inner tolerance 1e-4, α = 0.1; 121 switching steps
of length 0.05/(t+1), or T_in = 60 accelerated steps without a shift; 605 projections with α = 0.3, β = 1;
five epochs of 121 with α = 0.3, β = ½, λ = 0.25, η0 = F1*/2.

Not printed: the curvature Λ of the accelerated steps, for which SMOOTHNESS stands (0.1 to 3 give the same
error to two digits, 0.03 is too small), and the slack τ of the bundle cuts. SLACK is inferred
from the final violation of about 3e-3 that the paper reports: at a fixed point of the cuts αF2 = τ.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import models
from runs import OPTIMUM_LARGE, Path, record

from hcmodel.solvers.first_order.accelerated_gradient import AcceleratedGradient
from hcmodel.solvers.first_order.switching_subgradient import SwitchingSubgradient
from hcmodel.solvers.first_order.theory_bundle import (
    TheoryAdaptiveLineSearch,
    TheoryStarBundleLevel,
    TheoryState,
)
from hcmodel.solvers.first_order.theory_ippm import TheoryIppm, TheoryIppmState
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.theory.theorems import BundleParameters, Constants, IppmParameters

SLACK = 1e-3
SMOOTHNESS = 0.3
RHO_HAT = 0.02
# Too small to be reached: the printed numbers of steps end the runs, not an accuracy.
NEVER = 1e-12

SWITCHING = IppmParameters(
    alpha=0.1,
    inner_accuracy=1e-4,
    outer_steps=10,
    # The step is 2/((ρ̂ − ρ)(t + 2)) from t = 0, which is 0.05/(t + 1) from t = 1.
    rho=RHO_HAT - 40.0,
    rho_hat=RHO_HAT,
    violation=SLACK,
    tightening=0.1 * SLACK / 3,
    inner_steps=121,
)
ACCELERATED = replace(
    SWITCHING, rho=RHO_HAT / 2, tightening=0.0, inner_steps=60, smoothness=SMOOTHNESS
)


class _FixedIppm(TheoryIppm):
    def __init__(
        self, inner: SwitchingSubgradient | AcceleratedGradient, rule: IppmParameters
    ) -> None:
        super().__init__(inner, Constants())
        self.rule = rule

    def _descent(self, task: Task, state: TheoryIppmState, start: Evaluation) -> TheoryIppmState:
        return replace(state, current=start, phase="descent", rule=self.rule)


class _FixedStar(TheoryStarBundleLevel):
    def init(self, task: Task, start: Evaluation) -> TheoryState:
        assert task.optimal_value is not None
        state = super().init(task, start)
        return replace(state, parameters=BundleParameters(0.3, 1.0, SLACK, 605), shift=0.3)


class _FixedLineSearch(TheoryAdaptiveLineSearch):
    def _descent(self, task: Task, state: TheoryState, start: Evaluation) -> TheoryState:
        rule = BundleParameters(0.3, 0.5, SLACK, 121, epochs=5, multiplier=0.25)
        return replace(
            state, current=start, phase="descent", parameters=rule, origin=start, lowest=start
        )


@cache
def large() -> tuple[Path, ...]:
    """IPPM+SwSG, IPPM+ACGD, S-StarBL and S-BL+AdaLS on d = 100, as printed."""
    # Constants that only pass the checks; the printed parameters replace what follows from them.
    any_star = Constants(rho=1.0, L=1.0, mu_c=1.0, diameter_u=1.0)
    level = Constants(multiplier=0.25, f1_lower=0.5 * OPTIMUM_LARGE)
    return (
        record("IPPM+SwSG", models.large(), _FixedIppm(SwitchingSubgradient(), SWITCHING)),
        record("IPPM+ACGD", models.large(), _FixedIppm(AcceleratedGradient(), ACCELERATED)),
        record(
            "S-StarBL",
            models.large(),
            _FixedStar(any_star),
            tolerance=NEVER,
            optimal_value=OPTIMUM_LARGE,
        ),
        record("S-BL+AdaLS", models.large(), _FixedLineSearch(level), tolerance=NEVER),
    )
