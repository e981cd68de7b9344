"""The paper's parameter formulas: one function a theorem, from constants to parameters.

Fatkhullin, He, Lan, Wolf (2025), with the errata of their text put right where a docstring says so.
Nothing here runs a method; `budget` tells what a theorem promises before a run is started. The user
vouches for the constants. ρ: weak convexity of F1 and F2, L: smoothness, G: bound of sub-gradients,
μ_c and D_U: of the map, D_X: diameter of X, λ: bound of the multiplier, θ: Slater gap, μ_H: hidden
strong convexity, f1_lower, f1_upper, f2_lower: bounds of F1 and F2 over X.
"""

from __future__ import annotations

import math

from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

# The theorems ask for ρ > 0; a convex problem has ρ = 0, and any small ρ > 0 is a valid bound too.
SMALLEST_RHO = 1e-6
# Theorem 3 divides by λ > 0; without active rows λ = 0, and any small λ > 0 is a valid bound too.
SMALLEST_MULTIPLIER = 1e-12


@dataclass(frozen=True)
class Constants:
    """What a user may know of a problem; each theorem names those that it misses."""

    rho: float | None = None
    L: float | None = None
    G: float | None = None
    mu_c: float | None = None
    diameter_u: float | None = None
    diameter_x: float | None = None
    multiplier: float | None = None
    slater_gap: float | None = None
    mu_h: float | None = None
    f1_lower: float | None = None
    f1_upper: float | None = None
    f2_lower: float | None = None

    def need(self, theorem: str, *names: str) -> tuple[float, ...]:
        """The values of the named constants, or an error that names every missing one."""
        missing = [name for name in names if getattr(self, name) is None]
        if missing:
            raise ValueError(f"{theorem} needs the constants {', '.join(missing)}")
        return tuple(float(getattr(self, name)) for name in names)

    def rho_and_geometry(self, theorem: str) -> tuple[float, float]:
        """ρ, not below a small positive number, and Q = D_U²/μ_c²."""
        rho, mu_c, diameter = self.need(theorem, "rho", "mu_c", "diameter_u")
        if mu_c <= 0 or diameter <= 0 or rho < 0:
            raise ValueError(f"{theorem} needs mu_c > 0, diameter_u > 0 and rho >= 0")
        return max(rho, SMALLEST_RHO), (diameter / mu_c) ** 2

    def reach(self) -> float:
        """A bound of ‖x − y‖ over X: D_X, or else D_U/μ_c, which (HC-NI) makes one too."""
        if self.diameter_x is not None:
            return self.diameter_x
        diameter, mu_c = self.need("the diameter of X", "diameter_u", "mu_c")
        return diameter / mu_c


@dataclass(frozen=True)
class IppmParameters:
    """Algorithm 1. `tightening` is what the inner solver takes off the budget τ of the rows."""

    alpha: float
    inner_accuracy: float
    outer_steps: int
    rho: float
    rho_hat: float
    violation: float
    tightening: float
    inner_steps: int = 0
    multiplier: float = 0.0
    smoothness: float = 0.0
    calls_per_step: int = 2  # one of the objective, one of the rows

    @property
    def iterations(self) -> int:
        """N·T_in, the number that the corollaries print."""
        return self.outer_steps * self.inner_steps

    @property
    def calls(self) -> int:
        """Promised calls: every inner step looks at F1, F2 or both, every outer step at its result."""
        return self.calls_per_step * (self.iterations + self.outer_steps + 1)


@dataclass(frozen=True)
class BundleParameters:
    """(S-StarBL), or Algorithms 4 and 5 with `epochs` = N + 1 epochs of `steps` = T."""

    alpha: float
    beta: float
    tau: float
    steps: int
    epochs: int = 1
    multiplier: float = 0.0
    calls_per_step: int = 2  # one of the objective, one of the rows

    @property
    def iterations(self) -> int:
        return self.steps * self.epochs

    @property
    def calls(self) -> int:
        return self.calls_per_step * (self.iterations + 1)


def _ceil(count: float) -> int:
    """Up to the next whole number, and at least 1; a count that is whole but for rounding stays."""
    return max(1, math.ceil(count * (1.0 - DATA_ROUNDING)))


def _steps(rate: float, ratio: float) -> int:
    """⌈log(ratio)/rate⌉, and at least one."""
    return _ceil(math.log(max(ratio, 1.0)) / rate)


def theorem_1(
    tolerance: float, constants: Constants, delta0: float, violation: float | None = None
) -> IppmParameters:
    """Theorem 1, inexact proximal point, hidden convex, ε and τ (= ε when not given).

    ρ̂ = 2ρ,  α = min{1, 2μ²ε/(3ρ̂D²), μ²τ/(ρ̂D²)},  ε_in = α·min(ε, τ)/3,  N = log(3Δ0/ε)/α. Errata: ε_in is
    measured against the sub-problem tightened by ατ/3, in which x_α, with its slack ατ/2, still is.
    """
    rho, spread = constants.rho_and_geometry("Theorem 1")
    tau = tolerance if violation is None else violation
    rho_hat = 2.0 * rho
    alpha = min(1.0, 2.0 * tolerance / (3.0 * rho_hat * spread), tau / (rho_hat * spread))
    return IppmParameters(
        alpha=alpha,
        inner_accuracy=alpha * min(tolerance, tau) / 3.0,
        outer_steps=_steps(alpha, 3.0 * delta0 / tolerance),
        rho=rho,
        rho_hat=rho_hat,
        violation=tau,
        tightening=alpha * tau / 3.0,
    )


def strongly_convex_theorem(
    tolerance: float, constants: Constants, delta0: float
) -> IppmParameters:
    """Theorem of the appendix, inexact proximal point, F1 and F2 hidden strongly convex.

    α = μ²μ_H/(ρ̂ + μ²μ_H),  ε_in = α·min(ε, τ)/2,  N = log(2Δ0/ε)/α, with τ = ε. Here x_α has the
    slack ατ, so the rows are tightened by ατ/2.
    """
    rho, _ = constants.rho_and_geometry("the hidden strong convexity theorem")
    mu_c, mu_h = constants.need("the hidden strong convexity theorem", "mu_c", "mu_h")
    rho_hat = 2.0 * rho
    alpha = mu_c**2 * mu_h / (rho_hat + mu_c**2 * mu_h)
    return IppmParameters(
        alpha=alpha,
        inner_accuracy=alpha * tolerance / 2.0,
        outer_steps=_steps(alpha, 2.0 * delta0 / tolerance),
        rho=rho,
        rho_hat=rho_hat,
        violation=tolerance,
        tightening=alpha * tolerance / 2.0,
    )


def outer_parameters(tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
    """Algorithm 1 by the strongly convex theorem where μ_H is given, else by Theorem 1."""
    if constants.mu_h:
        return strongly_convex_theorem(tolerance, constants, delta0)
    return theorem_1(tolerance, constants, delta0)


def _switching_steps(outer: IppmParameters, squared: float, reach: float) -> int:
    """max{ 8·L0²/((ρ̂−ρ)ε_in), √2·6ρ̂·D_X/√((ρ̂−ρ)ε_in) } of Jia and Grimmer (2025), Corollary 3.3."""
    curvature = (outer.rho_hat - outer.rho) * outer.inner_accuracy
    slow = 8.0 * squared / curvature
    return _ceil(max(slow, 6.0 * outer.rho_hat * reach * math.sqrt(2.0 / curvature)))


def corollary_1(tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
    """Corollary 1, IPPM with switching sub-gradients, non-smooth, no constraint qualification.

    T_in = max{ 216(3G² − 4ρF2_low)D²/(μ² min(ε², τ²)), 51ρD_X D/(μ min(ε, τ)) }. This is the bound of Jia
    and Grimmer for L0² = 9G² − 6ρ̂F2_low, L1 = 6ρ̂ at ε_in of Theorem 1, or of the other one with μ_H.
    """
    gradient, lower = constants.need("Corollary 1", "G", "f2_lower")
    outer = outer_parameters(tolerance, constants, delta0)
    squared = 9.0 * gradient**2 - 6.0 * outer.rho_hat * min(lower, 0.0)
    return replace(outer, inner_steps=_switching_steps(outer, squared, constants.reach()))


def unconstrained_corollary(
    tolerance: float, constants: Constants, delta0: float
) -> IppmParameters:
    """Corollary of the appendix, IPPM with sub-gradients, no functional constraint (errata).

    α = min{1, 2μ²ε/(3ρ̂D²)},  ε_in = αε/3,  N = log(3Δ0/ε)/α; the printed ε_in = ε²
    fails, since ε²/α >= 2ε. T_in is that of Corollary 1 with F2 left out: L0² = 9G².
    """
    (gradient,) = constants.need("the unconstrained corollary", "G")
    if constants.mu_h:
        outer = strongly_convex_theorem(tolerance, constants, delta0)
    else:
        outer = theorem_1(tolerance, constants, delta0, violation=math.inf)
    steps = _switching_steps(outer, 9.0 * gradient**2, constants.reach())
    return replace(outer, inner_steps=steps, calls_per_step=1, violation=0.0, tightening=0.0)


def corollary_2(tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
    """Corollary 2, IPPM with accelerated constrained gradients, smooth, no constraint qualification.

    λ̄ = 6(F1_up − F1_low + ε)/(ατ),  Λ = (L+ρ̂)(2+λ̄),  κ = Λ/(ρ̂−ρ) (errata),
    T_in = (√κ + 1)·log(√(Λ(L+ρ̂))·D_X²/ε_in + 1) + 4.
    """
    upper, lower = constants.need("Corollary 2", "f1_upper", "f1_lower")
    outer = outer_parameters(tolerance, constants, delta0)
    # What x_α has left of its slack (ατ/2, or ατ under strong convexity) after the tightening.
    slack = outer.tightening if constants.mu_h else outer.tightening / 2.0
    return _accelerated(outer, constants, (upper - lower + tolerance) / slack)


def corollary_3(tolerance: float, constants: Constants, delta0: float) -> IppmParameters:
    """Corollary 3, as Corollary 2 with a Slater point of gap θ.

    β = min{1, μ²θ/(ρ̂D²)},  λ̄ = 6(F1_up − F1_low + θ)/(βθ). The tightening stays ατ/3 (errata); where
    ατ > βθ, or Corollary 2 has the smaller λ̄, that one is taken.
    """
    upper, lower, theta = constants.need("Corollary 3", "f1_upper", "f1_lower", "slater_gap")
    without = corollary_2(tolerance, constants, delta0)
    _, spread = constants.rho_and_geometry("Corollary 3")
    beta = min(1.0, theta / (without.rho_hat * spread))
    # Of the Slater point's slack βθ/2 the tightening has to leave at least βθ/6.
    if without.tightening > beta * theta / 3.0:
        return without
    multiplier = 6.0 * (upper - lower + theta) / (beta * theta)
    if multiplier >= without.multiplier:
        return without
    return _accelerated(without, constants, multiplier)


def _accelerated(outer: IppmParameters, constants: Constants, multiplier: float) -> IppmParameters:
    (smooth,) = constants.need("ACGD", "L")
    total = (smooth + outer.rho_hat) * (2.0 + multiplier)
    root = math.sqrt(total / (outer.rho_hat - outer.rho))
    size = math.sqrt(total * (smooth + outer.rho_hat)) * constants.reach() ** 2
    steps = _ceil((root + 1.0) * math.log(size / outer.inner_accuracy + 1.0) + 4.0)
    return replace(outer, inner_steps=steps, multiplier=multiplier, smoothness=total)


def theorem_2(tolerance: float, constants: Constants, merit0: float) -> BundleParameters:
    """Theorem 2, S-StarBL, F1* known; merit0 is v(x0) = max{F1(x0) − F1*, F2(x0)}.

    α = min{1, εμ²/((ρ+L)D²)},  τ = ρα²D²/(2μ²),  T = (ρ+L)D²/(μ²ε)·log(2v(x0)/ε).
    """
    (smooth,) = constants.need("Theorem 2", "L")
    rho, spread = constants.rho_and_geometry("Theorem 2")
    alpha = min(1.0, tolerance / ((rho + smooth) * spread))
    tau = rho * alpha**2 * spread / 2.0
    return BundleParameters(alpha, 1.0, tau, _steps(alpha, 2.0 * merit0 / tolerance))


def theorem_3(
    tolerance: float, constants: Constants, delta0: float, level_gap: float | None = None
) -> BundleParameters:
    """Theorem 3, S-BL with adaptive line search; delta0 is F1(x0) − η0, level_gap is F1* − η0.

    A = (ρ+L)D²/(2μ²),  ℓ = log(8(F1(x0) − η0)/ε),  α = min{ε/(16A), ε/(8λAℓ)},  τ = ρα²D²/(2μ²),  β = ½,
    T = 2ℓ/α,  N = log₂((F1* − η0)/ε), and N + 1 epochs (errata). Strong duality at the nearly feasible
    start gives F1* <= F1(x0) + ε/2, which stands in for F1* when that is unknown.
    """
    (smooth,) = constants.need("Theorem 3", "L")
    rho, spread = constants.rho_and_geometry("Theorem 3")
    multiplier = multiplier_bound(constants)
    gap = delta0 + tolerance / 2.0 if level_gap is None else level_gap
    size = (rho + smooth) * spread / 2.0
    logarithm = max(1.0, math.log(max(8.0 * delta0 / tolerance, 1.0)))
    alpha = min(1.0, tolerance / (16.0 * size), tolerance / (8.0 * multiplier * size * logarithm))
    return BundleParameters(
        alpha=alpha,
        beta=0.5,
        tau=rho * alpha**2 * spread / 2.0,
        steps=_ceil(2.0 * logarithm / alpha),
        epochs=1 + max(0, math.ceil(math.log2(max(gap / tolerance, 1.0)))),
        multiplier=multiplier,
    )


def multiplier_bound(constants: Constants) -> float:
    """λ >= λ*: as given, or (F1(y) − η0)/θ of a Slater point y, at most (F1_up − F1_low)/θ."""
    if constants.multiplier is not None:
        return max(constants.multiplier, SMALLEST_MULTIPLIER)
    if constants.slater_gap is None:
        raise ValueError("Theorem 3 needs the constants multiplier (or slater_gap)")
    upper, lower = constants.need("Theorem 3", "f1_upper", "f1_lower")
    return max((upper - lower) / constants.slater_gap, SMALLEST_MULTIPLIER)


def feasibility_phase(
    tolerance: float, constants: Constants, violation0: float
) -> BundleParameters:
    """The τ-feasible start: S-StarBL on F2 alone, whose level 0 is known, by Theorem 2."""
    return replace(theorem_2(tolerance, constants, violation0), calls_per_step=1)


def subgradient_phase(tolerance: float, constants: Constants, violation0: float) -> IppmParameters:
    """The τ-feasible start without smoothness: proximal sub-gradient steps on F2 alone."""
    return unconstrained_corollary(tolerance, replace(constants, mu_h=None), violation0)
