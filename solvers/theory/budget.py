"""What a theorem promises before a run is started: `budget`, for every method with a theory rule."""

from __future__ import annotations

from collections.abc import Callable

from hcmodel.records import dataclass
from hcmodel.solvers.theory.theorems import (
    BundleParameters,
    Constants,
    IppmParameters,
    corollary_1,
    corollary_2,
    corollary_3,
    feasibility_phase,
    multiplier_bound,
    subgradient_phase,
    theorem_2,
    theorem_3,
    unconstrained_corollary,
)


def accelerated_corollary(tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
    """Corollary 3 where a Slater gap is given, else Corollary 2."""
    corollary = corollary_3 if constants.slater_gap else corollary_2
    return corollary(tolerance, constants, delta0)


RULES: dict[str, Callable[..., IppmParameters | BundleParameters]] = {
    "ippm-swsg": corollary_1,
    "ippm-sm": unconstrained_corollary,
    "ippm-acgd": accelerated_corollary,
    "sbl-star": theorem_2,
    "sbl-adals": theorem_3,
}


@dataclass(frozen=True)
class Promise:
    """What a theorem asks for: parameters of the descent, and of the phase before it if any."""

    method: str
    parameters: IppmParameters | BundleParameters
    feasibility: IppmParameters | BundleParameters | None = None

    @property
    def calls(self) -> int:
        before = 0 if self.feasibility is None else self.feasibility.calls
        return self.parameters.calls + before


def budget(
    method: str,
    tolerance: float,
    constants: Constants,
    *,
    delta0: float | None = None,
    violation0: float = 0.0,
) -> Promise:
    """The calls that a theorem promises for ε = τ = tolerance, before a run is started.

    delta0 bounds F1(x0) − F1* (for sbl-adals: F1(x0) − η0), by default F1_up − F1_low; violation0 is
    F2(x0). A start found by the phase on F2 is not known yet, so its delta0 is the default again.
    """
    if method not in RULES:
        raise ValueError(f"{method!r} has no theory rule; there are: {', '.join(RULES)}")
    if not tolerance > 0:
        raise ValueError("a theorem needs a tolerance above 0")
    wanted = tolerance
    if method == "sbl-adals":
        wanted = tolerance / (2.0 * multiplier_bound(constants))
    infeasible = violation0 > wanted and method not in ("sbl-star", "ippm-sm")
    if delta0 is None or infeasible:
        lower, upper = constants.need("the budget without delta0", "f1_lower", "f1_upper")
        delta0 = upper - lower
    first = max(delta0, violation0) if method == "sbl-star" else delta0
    parameters = RULES[method](tolerance, constants, first)
    if not infeasible:
        return Promise(method, parameters)
    phase = subgradient_phase if method == "ippm-swsg" else feasibility_phase
    return Promise(method, parameters, phase(wanted, constants, violation0))
