"""What CVXPY accepts as DCP or DGP is proven; mixed problems that it refuses are proven too."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.hcmodel.proof.both_tools import Model, ours, theirs

rng = np.random.default_rng(5)
A, b = rng.normal(size=(4, 3)), rng.normal(size=4)
ROOT = rng.normal(size=(3, 3))
P = ROOT @ ROOT.T + 0.1 * np.eye(3)
c = np.array([1.0, 2.0, 0.5])

DISCIPLINED_CONVEX: dict[str, Model] = {}
GEOMETRIC: dict[str, Model] = {}


def convex(model: Model) -> Model:
    DISCIPLINED_CONVEX[model.__name__] = model
    return model


def geometric(model: Model) -> Model:
    GEOMETRIC[model.__name__] = model
    return model


# ---- the rules of disciplined convex programming ------------------------------------------------


@convex
def linear_program(t: Any) -> Any:
    x = t.variable(3, low=0)
    return t.Minimize(c @ x), [A @ x <= b + 5, t.sum(x) == 1]


@convex
def linear_program_in_a_positive_box(t: Any) -> Any:
    x = t.variable(3, low=0.5, high=4)
    return t.Minimize(c @ x), [t.sum(x) >= 2, x[0] - x[1] == 0.25]


@convex
def least_squares(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.sum(t.square(A @ x - b))), [x <= 1]


@convex
def quadratic_program(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.quad_form(x, P) + c @ x), [A @ x <= b]


@convex
def concave_quadratic(t: Any) -> Any:
    x = t.variable(3)
    return t.Maximize(t.quad_form(x, -P) + c @ x), [t.sum(x) == 1]


@convex
def lasso(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.sum(t.square(A @ x - b)) + 0.1 * t.norm(x, 1)), []


@convex
def least_norm(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.norm(x, 2)), [A[:2] @ x == b[:2]]


@convex
def chebyshev_approximation(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.norm(A @ x - b, "inf")), []


@convex
def norm_of_order_three(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.norm(A @ x - b, 3)), [t.abs(x) <= 2]


@convex
def sums_of_exponentials(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.sum(t.exp(A @ x))), [t.sum(x) == 1]


@convex
def logarithmic_utility(t: Any) -> Any:
    x = t.variable(3, low=0)
    return t.Maximize(t.sum(t.log(1 + x))), [c @ x <= 2]


@convex
def analytic_centre(t: Any) -> Any:
    x = t.variable(3)
    return t.Maximize(t.sum(t.log(b + 5 - A @ x))), []


@convex
def maximal_entropy(t: Any) -> Any:
    x = t.variable(3, low=0)
    return t.Maximize(t.sum(t.entr(x))), [t.sum(x) == 1, c @ x <= 1]


@convex
def relative_entropy(t: Any) -> Any:
    x, y = t.variable(3, low=0), t.variable(3, low=0)
    return t.Minimize(t.sum(t.kl_div(x, y))), [t.sum(x) == 1, x + y <= 1]


@convex
def soft_maximum(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.logsumexp(A @ x - b)), [t.norm(x, 2) <= 1]


@convex
def logistic_regression(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.sum(t.softplus(A @ x)) + t.norm(x, 1)), []


@convex
def square_roots(t: Any) -> Any:
    x = t.variable(3, low=0)
    return t.Maximize(t.sum(t.sqrt(x))), [t.sum(x) <= 1]


@convex
def reciprocals(t: Any) -> Any:
    x = t.variable(3, low=0)
    return t.Minimize(t.sum(t.inv_pos(x))), [c @ x <= 4]


@convex
def powers(t: Any) -> Any:
    x = t.variable(low=0)
    y = t.variable()
    return t.Minimize(x**1.5 + x**3 + (y - 1) ** 4 + t.inv_pos(x + 1)), [x**0.5 >= 0.3 * y]


@convex
def quadratic_over_linear(t: Any) -> Any:
    x, y = t.variable(3), t.variable(low=0)
    return t.Minimize(t.quad_over_lin(A @ x - b, y) + y), [y <= 3]


@convex
def quadratic_over_concave(t: Any) -> Any:
    x, y = t.variable(2), t.variable(low=0)
    return t.Minimize(t.quad_over_lin(x - 1, t.sqrt(y))), [y + t.sum(x) <= 1]


@convex
def matrix_fraction(t: Any) -> Any:
    x, X = t.variable(2), t.variable((2, 2), PSD=1e-3)
    return t.Minimize(t.matrix_frac(x - 1, X)), [t.trace(X) <= 1]


@convex
def determinant_maximisation(t: Any) -> Any:
    X = t.variable((3, 3), PSD=1e-3)
    return t.Maximize(t.logdet(X)), [t.trace(P @ X) <= 1]


@convex
def optimal_design(t: Any) -> Any:
    X = t.variable((3, 3), PSD=1e-3)
    return t.Minimize(t.tr_inv(X)), [t.trace(X) <= 1]


@convex
def experiment_design_with_weights(t: Any) -> Any:
    weights = t.variable(4, low=0)
    information = A.T @ t.diag(weights) @ A
    return t.Maximize(t.logdet(information)), [t.sum(weights) == 1]


@convex
def minimax(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.max(A @ x - b)), [t.min(x) >= -1]


@convex
def support_vectors(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.sum(t.maximum(1 - A @ x, 0)) + t.sum(t.square(x))), []


@convex
def smallest_of_several(t: Any) -> Any:
    x, y = t.variable(3), t.variable(low=0)
    return t.Maximize(t.minimum(c @ x, t.sqrt(y), 3)), [t.norm(x, 2) + y <= 2]


@convex
def convex_of_convex(t: Any) -> Any:
    x = t.variable(2)
    objective = t.exp(t.norm(x, 2) + t.square(x[0])) + t.square(t.maximum(x[1] - 1, 0))
    return t.Minimize(objective), [t.softplus(t.abs(x[0])) <= 5]


@convex
def concave_of_concave(t: Any) -> Any:
    x = t.variable(2, low=0)
    objective = t.log(t.sqrt(x[0]) + t.minimum(x[1], 2)) - t.inv_pos(t.sqrt(x[1]))
    return t.Maximize(objective), [t.sum(x) <= 4, t.log1p(x[0]) >= 0.1]


@convex
def squared_norm(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.square(t.norm(A @ x - b, 2)) + t.norm(x, 2) ** 3), []


@convex
def running_sums(t: Any) -> Any:
    x = t.variable(3)
    return t.Minimize(t.max(t.cumsum(t.square(x))) - 2 * t.sum(x) / 3), [t.cumsum(x) <= 2]


@convex
def stacked(t: Any) -> Any:
    x, y = t.variable(), t.variable(low=0.1, high=8)
    return t.Minimize(t.norm(t.hstack([x - y, 2 * x, y]), 2) - t.log(y)), [t.exp(x) <= y]


@convex
def tracking_with_weights(t: Any) -> Any:
    x, y = t.variable(3), t.variable((3, 3))
    misfit = t.sum(t.square(y @ c - x)) + 0.5 * t.max(t.abs(x - c))
    return t.Minimize(misfit + t.norm(x - 1, 1) / 2), [t.trace(y) == 1, y <= 2]


# ---- the rules of disciplined geometric programming ---------------------------------------------


@geometric
def largest_box(t: Any) -> Any:
    h, w, d = (t.variable(low=0.1, high=100) for _ in range(3))
    walls = 2 * h * w + 2 * h * d <= 100
    return t.Maximize(h * w * d), [walls, w * d <= 10, h / w >= 0.5, h / w <= 2, d / w >= 0.5]


@geometric
def posynomial(t: Any) -> Any:
    x, y = t.variable(low=0.1), t.variable(low=0.1)
    return t.Minimize(x * y + 4 / x + 1 / y), [x * y <= 1]


@geometric
def unbounded_positive_variables(t: Any) -> Any:
    x, y = (t.variable(low=1e-9) for _ in range(2))
    return t.Minimize(1 / (x * y)), [x + 2 * y <= 3, x <= y**2]


@geometric
def product_below_a_variable(t: Any) -> Any:
    x, y, z = (t.variable(low=0.1, high=10) for _ in range(3))
    return t.Minimize(z + 1 / x + 1 / y), [x * y <= z]


@geometric
def monomial_equality(t: Any) -> Any:
    x, y = t.variable(low=0.01), t.variable(low=0.01)
    return t.Minimize(x + 2 * y), [x * y == 1]


@geometric
def fractional_powers(t: Any) -> Any:
    x, y = t.variable(low=0.01), t.variable(low=0.01)
    return t.Minimize(x**0.3 * y**-1.7 + x ** (-0.5)), [x**2.2 + y**1.1 <= 5]


@geometric
def power_of_a_sum(t: Any) -> Any:
    x, y = t.variable(low=0.01), t.variable(low=0.01)
    return t.Minimize((x + y) ** 1.7 / x), [(x * y + 1 / y) ** 0.5 <= 4]


@geometric
def reciprocal_of_a_sum(t: Any) -> Any:
    x, y = t.variable(low=0.01), t.variable(low=0.01)
    return t.Maximize(1 / (x + y + 1 / x)), [x * y >= 2]


@geometric
def product_of_sums(t: Any) -> Any:
    x, y = t.variable(low=0.01), t.variable(low=0.01)
    return t.Minimize((x + y) * (1 / x + y**2)), [x * (x + 2 * y) <= 3]


@geometric
def largest_entry(t: Any) -> Any:
    x = t.variable(3, low=0.1, high=5)
    return t.Minimize(t.max(x) / t.min(x)), [t.prod(x) >= 2]


@geometric
def largest_of_several(t: Any) -> Any:
    x, y = t.variable(low=0.1), t.variable(low=0.1)
    return t.Minimize(t.maximum(x * y, 1 / x, 2 / y)), [t.minimum(x, y) >= 0.5]


@geometric
def smallest_of_products(t: Any) -> Any:
    x, y = t.variable(low=0.1), t.variable(low=0.1)
    return t.Maximize(t.minimum(x * y, 1 / x)), [x + y <= 3]


@geometric
def geometric_mean(t: Any) -> Any:
    x = t.variable(3, low=0.1, high=9)
    return t.Maximize(t.geo_mean(x)), [t.sum(x) <= 4]


@geometric
def square_root(t: Any) -> Any:
    x, y = t.variable(low=0.1), t.variable(low=0.1)
    return t.Minimize(t.sqrt(x * y + x) + 1 / y), [t.sqrt(y) / x <= 2]


@geometric
def exponential(t: Any) -> Any:
    x, y = t.variable(low=0.1), t.variable(low=0.1)
    return t.Minimize(t.exp(x * y) + 1 / x), [t.exp(x) * y <= 10]


@geometric
def exponential_of_itself(t: Any) -> Any:
    x = t.variable(low=0.1)
    return t.Minimize(t.xexp(x) / x**2), [t.xexp(x) <= 20]


@geometric
def logarithm_from_below(t: Any) -> Any:
    x, y = t.variable(low=1.1, high=20), t.variable(low=0.1, high=5)
    return t.Minimize(x / y), [t.log(x) >= 2 * y]


@geometric
def norms(t: Any) -> Any:
    x = t.variable(3, low=0.1, high=9)
    return t.Minimize(t.norm(x, 2) + t.norm(x, 1)), [t.prod(x) >= 1, t.norm(x, 3) <= 20]


@geometric
def one_minus_something(t: Any) -> Any:
    x = t.variable(low=0.05, high=0.9)
    return t.Maximize(x * t.one_minus(x)), []


@geometric
def reciprocal_of_one_minus(t: Any) -> Any:
    x, y = t.variable(low=0.05, high=0.9), t.variable(low=0.1)
    return t.Minimize(1 / (y * t.one_minus(x)) + y), [y * x >= 0.2]


@geometric
def difference_from_below(t: Any) -> Any:
    x, y = t.variable(low=3, high=9), t.variable(low=0.1, high=2)
    return t.Minimize(x / y), [t.difference(x, y) >= 2 * y]


@geometric
def matrix_of_monomials(t: Any) -> Any:
    x = t.variable(3, low=0.1, high=9)
    return t.Minimize(t.sum(t.monomials(A, x))), [t.prod(x) == 1]


@geometric
def matrix_products(t: Any) -> Any:
    X, Y = t.variable((2, 2), low=0.1, high=9), t.variable((2, 2), low=0.1, high=9)
    return t.Minimize(t.trace(X @ Y)), [t.mul(X, Y) >= 1, t.sum(X) <= 9]


@geometric
def nonnegative_quadratic_form(t: Any) -> Any:
    x = t.variable(2, low=0.1, high=9)
    weights = np.array([[1.0, 2.0], [2.0, 1.0]])
    return t.Minimize(t.quad_form(x, weights)), [x[0] * x[1] >= 1]


@geometric
def gate_delays(t: Any) -> Any:
    size = t.variable(4, low=1, high=20)
    delay = t.sum(0.69 * (1 + size[1:] / size[:-1]))
    return t.Minimize(t.sum(size)), [delay + 3 / size[3] <= 9]


@geometric
def interference(t: Any) -> Any:
    p = t.variable(3, low=0.1, high=5)
    rows = [(0.1 * p[i - 1] + 0.2 * p[i - 2] + 0.5) / p[i] <= 0.9 for i in range(3)]
    return t.Minimize(t.sum(p)), rows


@geometric
def running_totals(t: Any) -> Any:
    x = t.variable(3, low=0.1, high=5)
    return t.Minimize(t.max(t.hstack([x[0], x[0] + x[1], t.sum(x)])) / x[0]), [t.prod(x) == 2]


@geometric
def mean_of_quotients(t: Any) -> Any:
    x, y = t.variable(3, low=0.1, high=5), t.variable(low=0.1, high=5)
    return t.Minimize(t.sum(x / y) / 3 + y), [t.min(x) >= y**0.5]


@geometric
def inverse_positive(t: Any) -> Any:
    x, y = t.variable(low=0.1, high=5), t.variable(low=0.1, high=5)
    return t.Minimize(t.inv_pos(x) + t.inv_pos(x + y) ** -2), [x**2 / y <= 3]


@geometric
def floor_planning(t: Any) -> Any:
    w, h = t.variable(3, low=0.1, high=9), t.variable(3, low=0.1, high=9)
    total_width, total_height = t.variable(low=0.1), t.variable(low=0.1)
    rows = [t.mul(w, h) == c, t.sum(w) <= total_width, t.max(h) <= total_height]
    return t.Minimize(total_width * total_height), rows


@pytest.mark.parametrize("name", DISCIPLINED_CONVEX)
def test_what_is_disciplined_convex_is_proven(name: str) -> None:
    model = DISCIPLINED_CONVEX[name]
    assert theirs(model).is_dcp()
    proof = ours(model)
    assert proof.proven, str(proof.failure)
    assert set(proof.coordinates.values()) == {"identity"}


@pytest.mark.parametrize("name", GEOMETRIC)
def test_what_is_disciplined_geometric_is_proven(name: str) -> None:
    model = GEOMETRIC[name]
    assert theirs(model).is_dgp()
    proof = ours(model)
    assert proof.proven, str(proof.failure)


# ---- neither: some coordinates logarithmic, others not ------------------------------------------


def mixed_variables(t: Any) -> Any:
    x, y = t.variable(low=0.1, high=10), t.variable(low=0.1, high=10)
    return x, y, t.variable(low=-2, high=2)


def product_and_square(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(x * y + t.exp(z) / x + (z - 1) ** 2), [x * y**2 + z**2 <= 4]


def product_below_an_exponential(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(1 / (x * y) + t.abs(z)), [x * y <= t.exp(z)]


def volume_and_angle(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(t.maximum(x * y, 1 / x) + t.norm(t.hstack([z - 1, 2 * z]), 2)), [x / y <= 3]


def power_and_quadratic(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(x**1.5 / y + (x * y) ** -0.5 + t.square(z + 1)), [x * y + t.abs(z) <= 5]


def monomial_equality_and_line(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(x + y + z**2), [x * y**2 == 2, x * t.exp(-z) <= 3]


def logarithmic_distance(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(t.square(t.log(x) - z) + 1 / (x * y)), [x * y <= 4]


def soft_maximum_of_products(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(t.logsumexp(t.hstack([x * y, z, 1 / x])) - z), [y * x**2 >= 0.5]


def exponential_growth(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    return t.Minimize(x * t.exp(z**2) + y / x), [t.exp(z) / y + 1 / x <= 4, x * y >= 1]


def fit_with_a_scale(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    misfit = t.sum(t.square(A[:, 0] * z - b)) + t.softplus(z)
    return t.Minimize(misfit + x * y), [1 / (x * y**2) <= 4, x / y + z**4 <= 6]


def two_kinds_of_budget(t: Any) -> Any:
    x, y, z = mixed_variables(t)
    w = t.variable(low=0.1, high=10)
    rows = [x * y * w >= 1, t.sqrt(x * y) + t.abs(z - 1) <= 4, x / w - 3 * z <= 2]
    return t.Minimize(x + y * w + t.maximum(z, -z)), rows


MIXED: list[Model] = [
    product_and_square,
    product_below_an_exponential,
    volume_and_angle,
    power_and_quadratic,
    monomial_equality_and_line,
    logarithmic_distance,
    soft_maximum_of_products,
    exponential_growth,
    fit_with_a_scale,
    two_kinds_of_budget,
]


@pytest.mark.parametrize("model", MIXED, ids=lambda model: model.__name__)
def test_mixed_problems_that_cvxpy_refuses_are_proven(model: Model) -> None:
    refused = theirs(model)
    assert not refused.is_dcp()
    assert not refused.is_dgp()
    assert not refused.is_dqcp()
    proof = ours(model)
    assert proof.proven, str(proof.failure)
    assert set(proof.coordinates.values()) == {"log", "identity"}


def test_there_are_thirty_of_each() -> None:
    assert len(DISCIPLINED_CONVEX) >= 30
    assert len(GEOMETRIC) >= 30
