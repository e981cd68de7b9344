"""Ratios: fractional and Sharpe-like models are proven however they are written, and nothing else is.

Values are those of the linear or cone program in (y, t) written by hand, or closed forms.
"""

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

import hcmodel as hc
from hcmodel.facts.polynomials import Sums
from hcmodel.maps import fractional
from hcmodel.maps.algebra import scaled_sets, scaling
from hcmodel.maps.algebra.expanded import Row
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

A = np.array([[1.0, 2, 1], [2, 0.5, 1]])
B = np.array([3.0, 2.5])
ABOVE = np.array([-2.0, 1, 0.5])
BELOW = np.array([0.5, 1, 0.2])
EXCESS = np.array([0.07, 0.03, 0.05])
ROOT = np.array([[0.2, 0.0, 0.0], [0.05, 0.1, 0.0], [0.02, -0.03, 0.15]])
COVARIANCE = ROOT @ ROOT.T


def claims(problem: hc.Problem) -> bool:
    return discover(Forms(problem.model).bounds.after).substitution is not None


def assert_proven(problem: hc.Problem, value: float, maps: str = "t * ") -> None:
    assert problem.solve() == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert problem.status == "optimal"
    assert "proven convex in" in problem.solution.method
    assert maps.replace("t *", "t2 *") in problem.solution.method or maps in problem.solution.method


# ---- linear-fractional programs


def linear_fractional() -> float:
    """Charnes and Cooper by hand: the linear program in (y, t)."""
    rows = np.vstack([np.column_stack([A, -B]), np.column_stack([np.eye(3), -2 * np.ones(3)])])
    equation = np.append(BELOW, 2.0)[None, :]
    found = linprog(np.append(ABOVE, 1.0), rows, np.zeros(5), equation, [1.0])
    return float(found.fun)


def variable(upper: float = 2.0) -> hc.Variable:
    return hc.Variable(3, name="x", bounds=(0, upper))


def as_written() -> hc.Problem:
    x = variable()
    return hc.Problem(hc.Minimize((ABOVE @ x + 1) / (BELOW @ x + 2)), [A @ x <= B])


def split() -> hc.Problem:
    x = variable()
    below = 2 + x[2] * BELOW[2] + x[0] * BELOW[0] + BELOW[1] * x[1]
    parts = [ABOVE[i] * x[i] / below for i in (2, 0, 1)]
    return hc.Problem(hc.Minimize(sum(parts, 1 / below)), [-3 * (A @ x) >= -3 * B])


def by_powers() -> hc.Problem:
    x = variable()
    ratio = (7 * (ABOVE @ x) + 7) * hc.power(7 * (BELOW @ x) + 14, -1)
    return hc.Problem(hc.Minimize(ratio), [(A @ x)[i] <= B[i] for i in range(2)])


def negated() -> hc.Problem:
    x = variable()
    ratio = (ABOVE @ x + 1) / (-(BELOW @ x) - 2)
    return hc.Problem(hc.Maximize(ratio), [A @ x <= B])


def in_tens() -> hc.Problem:
    x = variable(20.0)
    return hc.Problem(hc.Minimize((ABOVE @ x / 10 + 1) / (BELOW @ x / 10 + 2)), [A @ x <= 10 * B])


def with_parameters() -> hc.Problem:
    x = variable()
    above, one = hc.Parameter(3, name="above", value=ABOVE), hc.Parameter(name="one", value=1.0)
    below = hc.Parameter(3, name="below", value=BELOW)
    return hc.Problem(hc.Minimize((above @ x + one) / (below @ x + 2 * one)), [A @ x <= B])


def in_the_language() -> hc.Problem:
    text = """
        param A[2,3], b[2], above[3], below[3]
        var x[3] in [0, 2]
        let cost = 2 + sum(below[i] * x[i] for i in 1..3)
        minimize sum(above[i] * x[i] / cost for i in 1..3) + 1 / cost
        subject to
            row[k in 1..2]: sum(A[k,i] * x[i] for i in 1..3) <= b[k]
    """
    return hc.parse(text, {"A": A, "b": B, "above": ABOVE, "below": BELOW})


def with_a_ratio_in_a_row() -> hc.Problem:
    """The row holds at the optimum, and says nothing more."""
    x = variable()
    ratio = (ABOVE @ x + 1) / (BELOW @ x + 2)
    return hc.Problem(hc.Minimize(ratio), [A @ x <= B, ratio <= 10, x[0] / (x[1] + 1) <= 50])


@pytest.mark.parametrize(
    "problem",
    [
        *(as_written, split, by_powers, negated, in_tens, with_parameters, in_the_language),
        with_a_ratio_in_a_row,
    ],
)
def test_a_linear_fractional_program_is_proven_however_it_is_written(problem):
    made = problem()
    sign = 1.0 if made.model.sign > 0 else -1.0
    assert_proven(made, sign * linear_fractional())


def test_a_denominator_is_positive_where_rows_say_so():
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize((x[0] + 2) / (x[0] + x[1])), [x[0] + x[1] >= 0.5])
    assert_proven(problem, 1.5)  # at (1, 1); at the other vertices 6, 5 and 3


def test_a_quadratic_over_an_affine_function_with_a_quadratic_row():
    x, y, t = variable(), cp.Variable(3), cp.Variable()
    above = hc.sum_squares(x - 1.5) - 0.5 * x[0]
    problem = hc.Problem(hc.Minimize(above / (BELOW @ x + 2)), [hc.sum_squares(x) <= 2])
    rows = [BELOW @ y + 2 * t == 1, cp.quad_over_lin(y, t) <= 2 * t, y >= 0, y <= 2 * t]
    by_hand = cp.Problem(cp.Minimize(cp.quad_over_lin(y - 1.5 * t, t) - 0.5 * y[0]), rows)
    assert_proven(problem, by_hand.solve(solver="CLARABEL"))


@pytest.mark.parametrize("logarithm", [lambda x: hc.log(x + 1), hc.log1p])
def test_a_concave_function_over_an_affine_one(logarithm):
    """log(x + 1)/(x + 2) is largest where (x + 2)/(x + 1) = log(x + 1)."""
    x = hc.Variable(name="x", bounds=(0, 50))
    problem = hc.Problem(hc.Maximize(logarithm(x) / (x + 2)))
    best = minimize_scalar(
        lambda v: -np.log(v + 1) / (v + 2), bounds=(0, 50), options={"xatol": 1e-9}
    )
    assert_proven(problem, -best.fun)


def test_a_convex_function_over_a_concave_one():
    x = hc.Variable(name="x", bounds=(0, 9))
    problem = hc.Problem(hc.Minimize((hc.abs(x - 5) + 1) / (hc.sqrt(x + 1) + 1)))
    best = minimize_scalar(
        lambda v: (abs(v - 5) + 1) / (np.sqrt(v + 1) + 1),
        bounds=(4.5, 5.5),
        options={"xatol": 1e-9},
    )
    assert_proven(problem, best.fun)


def test_matrices_and_distributions_are_scaled_with_their_sets():
    cost = np.array([[1.0, 0.5, 0], [0.5, -1, 0.3], [0, 0.3, 2]])
    P, w = hc.Variable((3, 3), name="P", PSD=(0.1, 2)), hc.Variable(3, name="w", simplex=True)
    ratio = (hc.trace(cost @ P) + EXCESS @ w + 3) / (hc.trace(P) + w[0] + 1)
    problem = hc.Problem(hc.Minimize(ratio), [P[0, 0] + w[1] <= 1])
    Y, y, t = cp.Variable((3, 3), symmetric=True), cp.Variable(3, nonneg=True), cp.Variable()
    rows = [Y >> 0.1 * t * np.eye(3), Y << 2 * t * np.eye(3), cp.sum(y) == t]
    rows += [Y[0, 0] + y[1] <= t, cp.trace(Y) + y[0] + t == 1]
    by_hand = cp.Problem(cp.Minimize(cp.trace(cost @ Y) + EXCESS @ y + 3 * t), rows)
    assert_proven(problem, by_hand.solve(solver="CLARABEL"))


def test_a_regression_with_an_unknown_deviation_is_a_ratio():
    """In closed form: least squares, and the deviation of its residuals."""
    generator = np.random.default_rng(1)
    data, noise = generator.normal(size=(12, 2)), 0.3 * generator.normal(size=12)
    target = data @ np.array([1.0, -2.0]) + noise
    residual = target - data @ np.linalg.lstsq(data, target, rcond=None)[0]
    deviation = np.sqrt(residual @ residual / 12)
    beta, sigma = hc.Variable(2, name="beta"), hc.Variable(name="sigma", bounds=(0.01, 10))
    squares = hc.sum_squares(target - data @ beta)
    problem = hc.Problem(hc.Minimize(12 * hc.log(sigma) + squares / (2 * sigma**2)))
    assert_proven(problem, 12 * np.log(deviation) + 6, "1 / sigma, t * beta")
    assert float(sigma.value) == pytest.approx(deviation, rel=1e-6)


# ---- Sharpe's ratio


def tangency() -> tuple[np.ndarray, float]:
    """The weights and the ratio without bounds."""
    weight = np.linalg.solve(COVARIANCE, EXCESS)
    return weight / weight.sum(), float(np.sqrt(EXCESS @ weight))


def weights() -> hc.Variable:
    return hc.Variable(3, name="w", bounds=(0, 1))


def by_a_form() -> tuple[hc.Variable, hc.Expression, list]:
    w = weights()
    return w, EXCESS @ w / hc.sqrt(hc.quad_form(w, COVARIANCE)), [hc.sum(w) == 1]


def by_a_norm() -> tuple[hc.Variable, hc.Expression, list]:
    w = weights()
    return w, (3 * EXCESS @ w) / hc.norm(3 * (ROOT.T @ w)), [2 * hc.sum(w) == 2]


def by_a_power() -> tuple[hc.Variable, hc.Expression, list]:
    w = hc.Variable(3, name="w", simplex=True)
    return w, hc.sum(EXCESS * w) * (w @ COVARIANCE @ w) ** -0.5, []


def by_returns() -> tuple[hc.Variable, hc.Expression, list]:
    """Returns less a rate, and short positions that do not pay."""
    w = hc.Variable(3, name="w", bounds=(-1, 2))
    rate = hc.Parameter(name="rate", value=0.01)
    risk = hc.sum_squares(ROOT.T @ w)
    return w, ((EXCESS + 0.01) @ w - rate) / hc.sqrt(risk), [hc.sum(w) == 1]


@pytest.mark.parametrize("model", [by_a_form, by_a_norm, by_a_power, by_returns])
def test_the_largest_sharpe_ratio_is_proven_however_it_is_written(model):
    w, ratio, rows = model()
    best, value = tangency()
    assert_proven(hc.Problem(hc.Maximize(ratio), rows), value)
    np.testing.assert_allclose(w.value, best, atol=1e-5)


def test_risk_over_return_is_a_ratio_with_an_affine_denominator():
    w = hc.Variable(3, name="w", bounds=(-1, 2))
    risk = hc.norm(ROOT.T @ w)
    problem = hc.Problem(hc.Minimize(risk / (EXCESS @ w)), [hc.sum(w) == 1, EXCESS @ w >= 0.001])
    assert_proven(problem, 1 / tangency()[1])


def test_a_ratio_without_any_row_is_homogeneous():
    """Any multiple of the weights will do."""
    w = hc.Variable(2, name="w")
    assert_proven(hc.Problem(hc.Maximize((w[0] + 2 * w[1]) / hc.norm(w))), np.sqrt(5))


def test_no_positive_return_is_not_claimed():
    w = weights()
    ratio = -(EXCESS @ w) / hc.norm(ROOT.T @ w)
    problem = hc.Problem(hc.Maximize(ratio), [hc.sum(w) == 1])
    found = discover(Forms(problem.model).bounds.after)
    assert found.substitution is None
    assert any("nowhere positive" in each.reason for each in found.obstacles)


# ---- rows


def test_rows_with_different_denominators_are_multiplied_out():
    x = variable()
    rows = [(x[0] + 1) / (x[1] + 1) <= 2, (x[1] - 1) / (x[0] + x[2] + 1) >= -0.5, x[0] >= 0.2]
    linear = linprog(
        [-1, 1, 0.5],
        [[1, -2, 0], [-0.5, -1, -0.5]],
        [1, -0.5],
        bounds=[(0.2, 2), (0, 2), (0, 2)],
    )
    problem = hc.Problem(hc.Minimize(x[1] - x[0] + 0.5 * x[2]), rows)
    assert_proven(problem, float(linear.fun), "")


# ---- what is not of this kind


def not_ratios() -> dict[str, hc.Problem]:
    x, w = variable(), weights()
    free = hc.Variable(3, name="free", bounds=(-1, 1))
    one, two = BELOW @ x + 2, x[0] + 1
    return {
        "different denominators": hc.Problem(hc.Minimize((ABOVE @ x) / one + x[1] / two)),
        "a product of ratios": hc.Problem(hc.Minimize((ABOVE @ x) / one * (x[1] - 1) / two)),
        "a sign that is not known": hc.Problem(hc.Minimize((ABOVE @ free) / (BELOW @ free))),
        "beside the ratio": hc.Problem(hc.Minimize((ABOVE @ x) / one + BELOW @ x * ABOVE @ x)),
        "a concave numerator": hc.Problem(hc.Minimize((1 - hc.sum_squares(x - 1)) / one)),
        "a row that is not convex": hc.Problem(
            hc.Minimize((ABOVE @ x) / one), [hc.sum_squares(x) >= 1]
        ),
        "the smallest Sharpe ratio": hc.Problem(
            hc.Minimize(EXCESS @ w / hc.norm(ROOT.T @ w)), [hc.sum(w) == 1]
        ),
    }


@pytest.mark.parametrize("name", not_ratios())
def test_other_models_are_not_claimed(name):
    assert not claims(not_ratios()[name])


def test_a_near_miss_is_said_in_words():
    problem = not_ratios()["different denominators"]
    found = discover(Forms(problem.model).bounds.after)
    assert any("different denominators" in each for each in found.near_misses)


def test_rows_that_contradict_each_other_are_infeasible():
    x = variable()
    problem = hc.Problem(hc.Minimize((ABOVE @ x + 1) / (BELOW @ x + 2)), [hc.sum(x) >= 7])
    problem.solve()
    assert problem.status == "infeasible"


def test_bounds_of_random_ratios_are_below_the_values_of_random_points():
    generator, feasible = np.random.default_rng(5), 0
    for _ in range(3):
        above, below = generator.normal(size=(2, 3))
        x = hc.Variable(3, name="x", bounds=(-1, 1))
        risk = hc.sqrt(1 + hc.sum_squares(generator.normal(size=(3, 3)) @ x))
        for objective in (
            (above @ x + 0.3) / (below @ x + np.abs(below).sum() + 0.1),
            (above @ x - 0.2) / risk,
        ):
            problem = hc.Problem(hc.Minimize(objective), [hc.sum(x) <= 0.5])
            problem.solve()
            assert problem.status == "optimal"
            lower = problem.solution.certificate.lower_bound
            for _ in range(100):
                x.value = generator.uniform(-1, 1, size=3)
                if x.value.sum() <= 0.5:
                    feasible += 1
                    assert objective.value >= lower - 1e-9
    assert feasible > 200


# ---- broken rules are caught


def test_a_wrong_power_of_t_is_caught(monkeypatch):
    true = scaling.Scaling._power_of
    monkeypatch.setattr(
        scaling.Scaling, "_power_of", lambda self, s, power: true(self, s, power).scaled(1.01)
    )
    x = variable()
    assert not claims(hc.Problem(hc.Minimize(hc.sqrt(x @ x + 1) / (BELOW @ x + 2))))


def test_a_wrong_sum_times_a_power_of_t_is_caught(monkeypatch):
    true = scaling.Scaling._cleared

    def wrong(self, base):
        cleared, scale, power = true(self, base)
        return cleared.scaled(1.01 if power else 1.0), scale, power

    monkeypatch.setattr(scaling.Scaling, "_cleared", wrong)
    x = variable()
    assert not claims(hc.Problem(hc.Maximize(hc.log(x[0] + 1) / (BELOW @ x + 2))))


@pytest.mark.parametrize("size", [150, 200])
def test_ratios_of_many_assets_are_proven(size: int) -> None:
    """A term of x'Sx is cleared of 1/t before it is multiplied, else the products are too long."""
    generator = np.random.default_rng(size)
    factors, returns = generator.normal(size=(size, size)), generator.random(size)
    covariance = factors @ factors.T / size + 0.1 * np.eye(size)
    x = hc.Variable(size, name="x", simplex=True)
    risk = hc.quad_form(x, covariance)
    problem = hc.Problem(hc.Maximize(returns @ x / hc.sqrt(risk)))
    problem.solve()
    assert problem.status == "optimal"
    squared = hc.Problem(hc.Minimize(risk / (returns @ x) ** 2))
    squared.solve()
    assert squared.status == "optimal"
    assert squared.value == pytest.approx(problem.value**-2, rel=1e-6)


def shifted(row: Row) -> Row:
    """A row that asks for more."""
    return replace(row, sums=row.sums + Sums.constant(0.5, row.sums.coding))


def test_a_set_that_is_too_small_is_caught(monkeypatch):
    true = scaled_sets._bound
    monkeypatch.setattr(scaled_sets, "_bound", lambda *arguments: shifted(true(*arguments)))
    assert not claims(as_written())


def test_a_wrong_tie_of_t_is_caught(monkeypatch):
    true = fractional._tie
    monkeypatch.setattr(fractional, "_tie", lambda *arguments: shifted(true(*arguments)))
    assert not claims(as_written())


def test_entries_are_counted_as_in_the_front_end() -> None:
    text = "var x[2] in [0, 5]\nmaximize (3*x[1] + 1) / (x[1] + 2*x[2] + 2)"
    x = hc.Variable(2, name="x", bounds=(0, 5))
    written = hc.Problem(hc.Maximize((3 * x[0] + 1) / (x[0] + 2 * x[1] + 2)))
    for problem, names in ((hc.parse(text), ("x[1]", "x[2]")), (written, ("x[0]", "x[1]"))):
        told = problem.analyze(samples=None).coordinates["t"]
        assert all(name in told for name in names)


def test_the_sign_of_a_denominator_by_the_range_of_a_logarithm() -> None:
    """log(1 + x) is not negative where x is not; the optimum is at (½, 1)."""
    x = hc.Variable(2, name="x", bounds=(0, 1))
    problem = hc.Problem(hc.Minimize((hc.square(x[0] - 0.5) + 1) / (hc.log(1 + x[1]) + 0.5)))
    assert problem.solve() == pytest.approx(1 / (np.log(2) + 0.5), rel=1e-7)
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method


def test_a_ratio_that_falls_for_ever_is_unbounded() -> None:
    """Along a direction that keeps the denominator, the numerator falls; by the linear program too."""
    x = hc.Variable(4, name="x", nonneg=True)
    above, below = np.array([0.3, -0.27, -0.89, -0.45]), np.array([0.06, 1.34, -0.49, -0.62])
    rows = np.array(
        [[0.36, 0.11, -0.93, -0.03], [0.7, -1.34, -0.46, -1.9], [0.27, 0.16, -0.19, -2.52]]
    )
    ends = np.array([0.46, 0.95, -0.53])
    ratio = (above @ x - 0.99) / (below @ x + 0.49)
    problem = hc.Problem(hc.Minimize(ratio), [rows @ x <= ends, below @ x + 0.49 >= 0.1])
    problem.solve()
    assert problem.status == "unbounded"
    assert "proven convex" in problem.solution.method
    tied = np.append(below, 0.49)[None]  # the unknowns are y and t
    ahead = np.hstack([rows, -ends[:, None]])
    by_hand = linprog(np.append(above, -0.99), A_ub=ahead, b_ub=np.zeros(3), A_eq=tied, b_eq=[1.0])
    assert by_hand.status == 3  # unbounded


def far_out(last: float) -> tuple[hc.Problem, float]:
    """A ratio of which no point attains the infimum, with an equation; `last` moves its constant."""
    x = hc.Variable(4, name="x", nonneg=True)
    above, below = np.array([-0.56, 0.59, 0.04, -1.57]), np.array([-0.1, 0.62, 1.84, 0.27])
    rows = np.array(
        [[-0.68, 1.02, -1.46, 0.26], [0.38, -1.15, 0.17, 0.56], [-0.77, -0.48, 0.54, -1.3]]
    )
    ends, tied = np.array([-0.88, 0.95, 0.09]), np.array([1.94, -1.51, 0.82, 0.76])
    ratio = (above @ x + last) / (below @ x - 1.07)
    problem = hc.Problem(
        hc.Minimize(ratio), [rows @ x <= ends, below @ x - 1.07 >= 0.1, tied @ x == -0.18]
    )
    by_hand = linprog(
        np.append(above, last),
        A_ub=np.hstack([rows, -ends[:, None]]),
        b_ub=np.zeros(3),
        A_eq=[np.append(below, -1.07), np.append(tied, 0.18)],
        b_eq=[1.0, 0.0],
    )
    assert by_hand.x[-1] == pytest.approx(0.0, abs=1e-9)
    return problem, by_hand.fun


@pytest.mark.parametrize("last", [1.0, 2.5])
def test_an_infimum_far_out_is_approached_within_the_tolerance(last: float) -> None:
    problem, infimum = far_out(last)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(infimum, rel=1e-6)
    assert problem.solution.certificate.violation <= 1e-6
    assert "no point attains the best value" in problem.solution.message
    problem.solve(tol=1e-4)  # which allows a point that is nearer
    assert np.max(problem.variables["x"].value) < 1e5
