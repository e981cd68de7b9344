"""The paper's formulas against values worked out by hand; the arithmetic stands beside each.

Throughout ρ = ½ (so ρ̂ = 1), μ_c = 1, D_U = 2 (so D²/μ² = 4), D_X = 3, G = 1, L = 3, F2 >= −1 and
0 <= F1 <= 2.
"""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from hcmodel.solvers.theory.budget import RULES, budget
from hcmodel.solvers.theory.theorems import (
    SMALLEST_RHO,
    BundleParameters,
    Constants,
    IppmParameters,
    corollary_1,
    corollary_2,
    corollary_3,
    feasibility_phase,
    multiplier_bound,
    strongly_convex_theorem,
    theorem_1,
    theorem_2,
    theorem_3,
    unconstrained_corollary,
)

CONSTANTS = Constants(
    rho=0.5,
    L=3.0,
    G=1.0,
    mu_c=1.0,
    diameter_u=2.0,
    diameter_x=3.0,
    f1_lower=0.0,
    f1_upper=2.0,
    f2_lower=-1.0,
)

# No value of these is 1 or makes two terms of a formula equal, and F1_low is not 0: a factor that stands
# on the wrong side of a fraction shows. ρ̂ = 0.6 and D²/μ² = 7.5625.
PLAIN = Constants(
    rho=0.3,
    L=2.5,
    G=1.7,
    mu_c=0.8,
    diameter_u=2.2,
    diameter_x=3.3,
    f1_lower=0.4,
    f1_upper=2.9,
    f2_lower=-0.7,
)
SPREAD = (2.2 / 0.8) ** 2


def test_theorem_1() -> None:
    # α = min(2·0.6/(3·1·4), 0.6/(1·4)) = min(0.1, 0.15); ε_in = 0.1·0.6/3; N = log(3·2/0.6)/0.1 = 23.03
    rule = theorem_1(0.6, CONSTANTS, delta0=2.0)
    assert rule.alpha == pytest.approx(0.1)
    assert rule.inner_accuracy == pytest.approx(0.02)
    assert rule.tightening == pytest.approx(0.02)
    assert (rule.rho_hat, rule.outer_steps) == (1.0, 24)


def test_theorem_1_with_another_violation_budget() -> None:
    # τ = 0.2: α = min(0.1, 0.2/4) = 0.05; ε_in = 0.05·0.2/3; N = log(10)/0.05 = 46.05
    rule = theorem_1(0.6, CONSTANTS, delta0=2.0, violation=0.2)
    assert rule.alpha == pytest.approx(0.05)
    assert rule.inner_accuracy == pytest.approx(0.01 / 3)
    assert rule.outer_steps == 47


def test_corollary_1_is_what_the_paper_prints() -> None:
    # 216(3·1 + 4·½·1)·4/0.36 = 12000 > 51·½·3·2/0.6 = 255; N = 24: 288000 steps, 2(288000 + 25) calls
    rule = corollary_1(0.6, CONSTANTS, delta0=2.0)
    assert rule.inner_steps == 12_000
    assert rule.iterations == 288_000
    assert rule.calls == 576_050


def test_corollary_1_where_the_second_bound_is_the_larger() -> None:
    # G = 0, F2 >= 0: 51·½·D_X·2/0.6 with 36√2 for 51 and D_X = 300: 36·1.41421·½·300·2/0.6 = 25455.8
    flat = replace(CONSTANTS, G=0.0, f2_lower=0.0, diameter_x=300.0)
    assert corollary_1(0.6, flat, delta0=2.0).inner_steps == 25_456


@pytest.mark.parametrize(("reach", "second"), [(3.3, False), (3300.0, True)])
def test_corollary_1_for_constants_without_special_values(reach: float, second: bool) -> None:
    # the two bounds as the paper prints them, with 36√2 for its 51
    slow = 216 * (3 * 1.7**2 + 4 * 0.3 * 0.7) * SPREAD / 0.5**2
    far = 36 * math.sqrt(2) * 0.3 * reach * math.sqrt(SPREAD) / 0.5
    assert (far > slow) == second
    rule = corollary_1(0.5, replace(PLAIN, diameter_x=reach), delta0=2.0)
    assert rule.inner_steps == math.ceil(max(slow, far))
    # without rows F2 is left out: 9G² for 9G² − 6ρ̂F2_low, that is 3G² for 3G² − 4ρF2_low
    alone = unconstrained_corollary(0.5, replace(PLAIN, diameter_x=reach), delta0=2.0)
    assert alone.inner_steps == math.ceil(max(216 * 3 * 1.7**2 * SPREAD / 0.5**2, far))


def test_unconstrained_corollary_as_corrected() -> None:
    # α = 2·0.6/(3·4) = 0.1, ε_in = 0.1·0.6/3, N = 24, T_in = 72·1/(½·0.02) = 7200; calls 24·7200 + 25
    rule = unconstrained_corollary(0.6, CONSTANTS, delta0=2.0)
    assert (rule.outer_steps, rule.inner_steps, rule.calls) == (24, 7200, 172_825)
    assert rule.alpha == pytest.approx(0.1)
    assert rule.inner_accuracy == pytest.approx(0.02)
    # The recursion's fixed point, ε_in/α + ρ̂D²α/(2μ²) = 0.2 + 0.2, leaves ε/3 for (1−α)^N Δ0.
    left = (1 - rule.alpha) ** rule.outer_steps * 2.0
    assert left + rule.inner_accuracy / rule.alpha + 4 * rule.alpha / 2 <= 0.6


def test_strongly_convex_theorem() -> None:
    # α = 1/(1 + 1) = ½; ε_in = ½·0.6/2 = 0.15; N = log(2·2/0.6)/½ = 3.79
    rule = strongly_convex_theorem(0.6, replace(CONSTANTS, mu_h=1.0), delta0=2.0)
    assert rule.alpha == 0.5
    assert rule.inner_accuracy == pytest.approx(0.15)
    assert rule.tightening == pytest.approx(0.15)
    assert rule.outer_steps == 4


def test_strongly_convex_theorem_for_constants_without_special_values() -> None:
    # μ²μ_H = 0.64·0.7; ε = τ = 0.5
    rule = strongly_convex_theorem(0.5, replace(PLAIN, mu_h=0.7), delta0=2.0)
    alpha = 0.448 / (0.6 + 0.448)
    assert rule.alpha == pytest.approx(alpha)
    assert rule.inner_accuracy == pytest.approx(alpha * 0.5 / 2)
    assert rule.tightening == pytest.approx(alpha * 0.5 / 2)
    assert rule.outer_steps == math.ceil(math.log(2 * 2.0 / 0.5) / alpha)


def test_a_start_within_the_tolerance_takes_one_step() -> None:
    # 3Δ0/ε < 1, whose logarithm counts as 0
    assert theorem_1(0.6, CONSTANTS, delta0=0.1).outer_steps == 1


def test_corollaries_take_the_strongly_convex_theorem_where_mu_h_is_given() -> None:
    # T_in = 8·15/(½·0.15) = 1600
    rule = corollary_1(0.6, replace(CONSTANTS, mu_h=1.0), delta0=2.0)
    assert (rule.outer_steps, rule.inner_steps) == (4, 1600)
    # λ̄ = (2 + 0.6)/(ατ/2) = 2.6/0.15
    accelerated = corollary_2(0.6, replace(CONSTANTS, mu_h=1.0), delta0=2.0)
    assert accelerated.multiplier == pytest.approx(2.6 / 0.15)


def test_corollary_2() -> None:
    # λ̄ = 6(2 + 0.6)/(0.1·0.6) = 260; Λ = 4·262 = 1048; √κ = √2096 = 45.782;
    # √(1048·4)·9 = 582.71; log(582.71/0.02 + 1) = 10.2798; T_in = 46.782·10.2798 + 4 = 484.9
    rule = corollary_2(0.6, CONSTANTS, delta0=2.0)
    assert rule.multiplier == pytest.approx(260.0)
    assert rule.smoothness == pytest.approx(1048.0)
    assert rule.inner_steps == 485


def test_corollary_3() -> None:
    # θ = ½: β = ½/4, βθ = 0.0625, ατ/3 = 0.02 <= βθ/3; λ̄ = 6·2.5/0.0625 = 240; Λ = 4·242 = 968;
    # √κ = √1936 = 44; √(968·4)·9 = 560.03; log(28002.5) = 10.2400; T_in = 45·10.24 + 4 = 464.8
    rule = corollary_3(0.6, replace(CONSTANTS, slater_gap=0.5), delta0=2.0)
    assert rule.multiplier == pytest.approx(240.0)
    assert rule.inner_steps == 465
    assert rule.tightening == pytest.approx(0.02)


def inner_steps(multiplier: float, inner_accuracy: float) -> int:
    """T_in of Corollary 2 for `PLAIN`: L + ρ̂ = 3.1, ρ̂ − ρ = 0.3, D_X = 3.3."""
    total = 3.1 * (2 + multiplier)
    logarithm = math.log(math.sqrt(total * 3.1) * 3.3**2 / inner_accuracy + 1)
    return math.ceil((math.sqrt(total / 0.3) + 1) * logarithm + 4)


def test_corollaries_2_and_3_for_constants_without_special_values() -> None:
    # α = 2·0.5/(3·0.6·7.5625), λ̄ = 6(2.9 − 0.4 + ε)/(ατ)
    alpha = 1.0 / (1.8 * SPREAD)
    rule = corollary_2(0.5, PLAIN, delta0=2.0)
    assert rule.multiplier == pytest.approx(6 * 3.0 / (alpha * 0.5))
    assert rule.inner_steps == inner_steps(6 * 3.0 / (alpha * 0.5), alpha * 0.5 / 3)
    # β = θ/(0.6·7.5625), λ̄ = 6(2.5 + θ)/(βθ); ατ <= βθ for θ = 0.9
    beta = 0.9 / (0.6 * SPREAD)
    with_slater = corollary_3(0.5, replace(PLAIN, slater_gap=0.9), delta0=2.0)
    assert with_slater.multiplier == pytest.approx(6 * 3.4 / (beta * 0.9))
    assert with_slater.inner_steps == inner_steps(6 * 3.4 / (beta * 0.9), alpha * 0.5 / 3)


def test_the_logarithm_of_corollary_2_stays_positive_for_a_small_set() -> None:
    # D_X = 1e-3: √(Λ(L + ρ̂))·D_X²/ε_in = 1.9e-3, so that log(… + 1) = 1.9e-3 and T_in = 4.1
    rule = corollary_2(0.5, replace(PLAIN, diameter_x=1e-3), delta0=2.0)
    assert rule.inner_steps == 5


def test_corollary_3_leaves_a_slater_gap_alone_that_the_tightening_uses_up() -> None:
    # θ = 0.4: βθ/3 = 0.04/3 < 0.02
    constants = replace(CONSTANTS, slater_gap=0.4)
    assert corollary_3(0.6, constants, 2.0) == corollary_2(0.6, constants, 2.0)


def test_corollary_3_tightens_no_more_than_a_slater_point_admits() -> None:
    # Δ = 0.01, θ = ¾ε: λ̄ would be 6·0.46/(βθ) = 54.5, below the 61 of Corollary 2, but with βθ = 0.0506
    # the tightening ατ/3 = 0.02 leaves less than βθ/6 of the slack βθ/2
    constants = replace(CONSTANTS, f1_upper=0.01, slater_gap=0.45)
    assert 6 * 0.46 / (0.45**2 / 4) < 6 * 0.61 / 0.06
    assert corollary_3(0.6, constants, 2.0) == corollary_2(0.6, constants, 2.0)


def test_a_large_slater_gap_counts_whole() -> None:
    # θ = 10: β = 1, λ̄ = 6(2.5 + 10)/10
    rule = corollary_3(0.5, replace(PLAIN, slater_gap=10.0), 2.0)
    assert rule.multiplier == pytest.approx(7.5)


def test_theorem_2() -> None:
    # (ρ+L)D²/μ² = 14; α = 0.7/14; τ = ½·0.05²·4/2; T = log(2·3.5/0.7)/0.05 = 46.05; calls 2·48
    rule = theorem_2(0.7, CONSTANTS, merit0=3.5)
    assert rule.alpha == pytest.approx(0.05)
    assert rule.tau == pytest.approx(0.0025)
    assert (rule.beta, rule.steps, rule.calls) == (1.0, 47, 96)
    assert feasibility_phase(0.7, CONSTANTS, 3.5).calls == 48


def test_theorem_3() -> None:
    # A = 7, λ = 2, 8Δ/ε = e²: ℓ = 2; α = min(0.7/112, 0.7/(8·2·7·2)) = 0.003125; T = 4/α = 1280;
    # N = log₂(2.8/0.7) = 2, so 3 epochs; τ = ½·α²·4/2 = α²
    constants = replace(CONSTANTS, multiplier=2.0)
    rule = theorem_3(0.7, constants, delta0=0.7 * math.e**2 / 8, level_gap=2.8)
    assert rule.alpha == pytest.approx(0.003125)
    assert rule.tau == pytest.approx(0.003125**2)
    assert (rule.beta, rule.epochs) == (0.5, 3)
    assert rule.steps in (1280, 1281)
    # F1* unknown: (0.6465 + 0.35)/0.7 = 1.42 for the gap, so N = 1
    assert theorem_3(0.7, constants, delta0=0.7 * math.e**2 / 8).epochs == 2


@pytest.mark.parametrize("multiplier", [0.05, 3.0])
def test_theorem_3_for_constants_without_special_values(multiplier: float) -> None:
    # A = 2.8·7.5625/2; a small λ leaves ε/(16A), a large one ε/(8λAℓ)
    size, logarithm = 2.8 * SPREAD / 2, math.log(8 * 2.0 / 0.5)
    alpha = min(0.5 / (16 * size), 0.5 / (8 * multiplier * size * logarithm))
    assert (alpha < 0.5 / (16 * size)) == (multiplier == 3.0)
    rule = theorem_3(0.5, replace(PLAIN, multiplier=multiplier), delta0=2.0)
    assert rule.alpha == pytest.approx(alpha)
    assert rule.tau == pytest.approx(0.3 * alpha**2 * SPREAD / 2)
    assert rule.steps == math.ceil(2 * logarithm / alpha)
    # (2.0 + 0.25)/0.5 = 4.5 for the gap: N = 3 and 4 epochs
    assert rule.epochs == 4
    assert rule.iterations == 4 * rule.steps
    assert rule.calls == 2 * (4 * rule.steps + 1)


def test_the_gap_of_an_unknown_optimum_is_that_of_the_start_and_half_the_tolerance() -> None:
    # (0.85 + 0.25)/0.5 = 2.2: N = 2; with a quarter of the tolerance it would be 1.95 and N = 1
    constants = replace(PLAIN, multiplier=1.0)
    assert theorem_3(0.5, constants, delta0=0.85).epochs == 3
    assert theorem_3(0.5, constants, delta0=1.74).epochs == 3  # 3.98; with a whole tolerance 4.48
    # a level within the tolerance of F1*: N = 0
    assert theorem_3(0.5, constants, delta0=0.85, level_gap=0.3).epochs == 1


def test_a_start_near_the_level_still_counts_a_logarithm_of_one() -> None:
    # 8·0.01/0.5 < e: ℓ = 1, and T = 2/α
    rule = theorem_3(0.5, replace(PLAIN, multiplier=3.0), delta0=0.01)
    alpha = 0.5 / (8 * 3 * 2.8 * SPREAD / 2)
    assert rule.alpha == pytest.approx(alpha)
    assert rule.steps == math.ceil(2 / alpha)


@pytest.mark.parametrize("wrong", [{"mu_c": 0.0}, {"diameter_u": -1.0}, {"rho": -0.1}])
def test_constants_of_the_wrong_sign_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="mu_c > 0, diameter_u > 0 and rho >= 0"):
        theorem_1(0.5, replace(PLAIN, **wrong), 2.0)


def test_multiplier_from_a_slater_gap() -> None:
    # (F1_up − F1_low)/θ = 2/0.5
    assert multiplier_bound(replace(CONSTANTS, slater_gap=0.5)) == 4.0
    assert multiplier_bound(replace(PLAIN, slater_gap=0.5)) == 5.0  # (2.9 − 0.4)/0.5
    with pytest.raises(ValueError, match="multiplier"):
        multiplier_bound(CONSTANTS)


def test_alpha_never_exceeds_one() -> None:
    mild = replace(CONSTANTS, rho=1e-4, L=1e-3)
    assert theorem_1(0.6, mild, 2.0).alpha == 1.0
    assert theorem_2(0.6, mild, 2.0).alpha == 1.0
    assert theorem_3(0.6, replace(mild, multiplier=1.0), 2.0).alpha <= 1.0


def test_a_convex_problem_gets_a_small_positive_rho() -> None:
    assert theorem_1(0.6, replace(CONSTANTS, rho=0.0), 2.0).rho_hat == 2 * SMALLEST_RHO


def test_diameter_of_x_may_be_left_to_the_map() -> None:
    # ‖x − y‖ <= D_U/μ_c = 2
    assert replace(CONSTANTS, diameter_x=None).reach() == 2.0
    assert replace(PLAIN, diameter_x=None).reach() == pytest.approx(2.2 / 0.8)


@pytest.mark.parametrize("method", sorted(RULES))
def test_missing_constants_are_named(method: str) -> None:
    with pytest.raises(ValueError, match=r"needs the constants .*(rho|L|G|multiplier|f1_upper)"):
        budget(method, 0.1, Constants(), delta0=1.0)


def test_every_missing_constant_is_named_at_once() -> None:
    with pytest.raises(ValueError, match="rho, mu_c, diameter_u"):
        theorem_1(0.1, Constants(), 1.0)


def test_budget_of_the_papers_example() -> None:
    """Ex-CGP at ε = 0.1: 4e5 steps for S-StarBL and 3e13 for SwSG, from F1 − F1* = 3.25."""
    tank = Constants(
        rho=1.0, L=126.0, G=25.286, mu_c=1 / 3, diameter_u=2.8495, diameter_x=3.677, f2_lower=-0.84
    )
    star = budget("sbl-star", 0.1, tank, delta0=3.2517, violation0=-0.04).parameters
    # (127·8.1197·9/0.1)·log(65.03) = 92808·4.1749
    assert isinstance(star, BundleParameters)
    assert star.steps == pytest.approx(387_464, rel=1e-3)
    switching = budget("ippm-swsg", 0.1, tank, delta0=3.2517).parameters
    assert isinstance(switching, IppmParameters)
    assert switching.iterations == pytest.approx(3.04e13, rel=0.01)


def test_budget_counts_the_phase_on_the_rows() -> None:
    # S-StarBL on F2 alone: α = 0.6/14, T = log(2·3/0.6)·14/0.6 = 53.7, one call a step and one before
    promise = budget("ippm-acgd", 0.6, CONSTANTS, delta0=2.0, violation0=3.0)
    assert promise.feasibility is not None
    assert promise.feasibility.calls == 55
    assert promise.calls == promise.parameters.calls + 55
    assert budget("ippm-acgd", 0.6, CONSTANTS, delta0=2.0).feasibility is None


def test_sbl_adals_asks_for_a_start_that_satisfies_a_part_of_the_tolerance() -> None:
    # the start has to be feasible to ε/(2λ) = 0.6/8 with λ = 4: 0.1 is not, 0.07 is
    constants = replace(CONSTANTS, multiplier=4.0)
    assert budget("sbl-adals", 0.6, constants, delta0=2.0, violation0=0.1).feasibility is not None
    assert budget("sbl-adals", 0.6, constants, delta0=2.0, violation0=0.07).feasibility is None


def test_a_budget_starts_from_the_gap_or_from_the_range_of_the_objective() -> None:
    # F1_up − F1_low = 2.5 where no gap is given; the merit of S-StarBL is max{F1 − F1*, F2}
    assert budget("ippm-sm", 0.5, PLAIN) == budget("ippm-sm", 0.5, PLAIN, delta0=2.5)
    for gap, violation in ((1.0, 3.0), (3.0, 1.0)):
        star = budget("sbl-star", 0.5, PLAIN, delta0=gap, violation0=violation)
        assert star.parameters == theorem_2(0.5, PLAIN, 3.0)
        other = budget("ippm-sm", 0.5, PLAIN, delta0=gap, violation0=violation)
        assert other.parameters == unconstrained_corollary(0.5, PLAIN, gap)


def test_budget_refuses_what_has_no_theorem() -> None:
    with pytest.raises(ValueError, match="no theory rule"):
        budget("prox-linear", 0.1, CONSTANTS, delta0=1.0)
    with pytest.raises(ValueError, match="above 0"):
        budget("sbl-star", 0.0, CONSTANTS, delta0=1.0)
    with pytest.raises(ValueError, match="f1_lower"):
        budget("ippm-sm", 0.1, replace(CONSTANTS, f1_lower=None))
