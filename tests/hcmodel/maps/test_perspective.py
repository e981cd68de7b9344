"""Products with a common positive factor are proven however they are written, and nothing else is.

Values are those of the program in (s, u) written by hand in CVXPY.
"""

import cvxpy as cp
import numpy as np
import pytest
from scipy.optimize import brentq

import hcmodel as hc
from hcmodel.maps.algebra import scaling
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

RATES = np.array([1.0, -2.0, 0.5])


def claims(problem: hc.Problem) -> bool:
    return discover(Forms(problem.model).bounds.after).substitution is not None


def assert_proven(problem: hc.Problem, value: float) -> None:
    assert problem.solve() == pytest.approx(value, rel=1e-6, abs=1e-8)
    assert problem.status == "optimal"
    assert "proven convex in" in problem.solution.method
    assert " * " in problem.solution.method


def size_and_rates() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable(name="s", bounds=(0.5, 3)), hc.Variable(3, name="x", bounds=(-1, 2))


def by_hand() -> float:
    s, u = cp.Variable(), cp.Variable(3)
    rows = [s >= 0.5, s <= 3, u >= -s, u <= 2 * s, u[0] + u[1] >= 0.2, u[0] + u[2] <= 1.5 * s]
    program = cp.Problem(cp.Minimize(RATES @ u + s**2), rows)
    return program.solve(solver="CLARABEL")


def as_written() -> hc.Problem:
    s, x = size_and_rates()
    return hc.Problem(
        hc.Minimize(s * (RATES @ x) + s * s), [s * x[0] + s * x[1] >= 0.2, x[0] + x[2] <= 1.5]
    )


def reordered() -> hc.Problem:
    s, x = size_and_rates()
    parts = [x[i] * RATES[i] * s for i in (2, 0, 1)]
    rows = [-3 * (x[2] + x[0]) >= -4.5, -(x[1] + x[0]) * s <= -0.2]
    return hc.Problem(hc.Minimize(sum(parts, s**2)), rows)


def in_the_language() -> hc.Problem:
    text = """
        param rate[3]
        var s in [0.5, 3]
        var x[3] in [-1, 2]
        minimize sum(rate[i] * s * x[i] for i in 1..3) + s^2
        subject to
            flow: sum(s * x[i] for i in 1..2) >= 0.2
            mean: (x[1] + x[3]) / 2 <= 0.75
    """
    return hc.parse(text, {"rate": RATES})


@pytest.mark.parametrize("problem", [as_written, reordered, in_the_language])
def test_a_size_times_rates_is_proven_however_it_is_written(problem):
    assert_proven(problem(), by_hand())


def test_a_size_times_convex_functions_of_rates():
    s, x = size_and_rates()
    y = hc.Variable(2, name="y", bounds=(0.1, 2))
    objective = s * hc.sum_squares(x - 0.3) + s * hc.norm(x) + s * hc.sum(1 / y) - hc.log(s)
    rows = [s * x[0] >= 0.4, s * hc.sum(y) <= 3, hc.sum_squares(x) + y[0] <= 4]
    size, u, v = cp.Variable(), cp.Variable(3), cp.Variable(2)
    value = cp.quad_over_lin(u - 0.3 * size, size) + cp.norm(u) - cp.log(size)
    value += cp.quad_over_lin(size, v[0]) + cp.quad_over_lin(size, v[1])
    hand = [size >= 0.5, size <= 3, u >= -size, u <= 2 * size, v >= 0.1 * size, v <= 2 * size]
    hand += [u[0] >= 0.4, cp.sum(v) <= 3, cp.quad_over_lin(u, size) + v[0] <= 4 * size]
    best = cp.Problem(cp.Minimize(value), hand).solve(solver="CLARABEL")
    assert_proven(hc.Problem(hc.Minimize(objective), rows), best)


def test_each_entry_may_have_a_factor_of_its_own():
    """A size that may be 0: what it multiplies is then of no use, and any number will do."""
    v, x = hc.Variable(3, name="v", bounds=(0, 2)), hc.Variable(3, name="x", bounds=(-1, 2))
    rows = [hc.sum(v) == 2, hc.sum(v * x) >= 0.5]
    problem = hc.Problem(hc.Minimize(hc.sum(RATES * v) + hc.sum(v * x * x) - 0.1 * v @ x), rows)
    size, u = cp.Variable(3, nonneg=True), cp.Variable(3)
    squares = sum(cp.quad_over_lin(u[i], size[i]) for i in range(3))
    hand = [cp.sum(size) == 2, size <= 2, cp.sum(u) >= 0.5, u >= -size, u <= 2 * size]
    best = cp.Problem(cp.Minimize(RATES @ size + squares - 0.1 * cp.sum(u)), hand)
    assert_proven(problem, best.solve(solver="CLARABEL"))


def test_logarithms_of_rates_are_relative_entropies():
    s, y = hc.Variable(name="s", bounds=(0.5, 2)), hc.Variable(3, name="y", bounds=(0.1, 2))
    problem = hc.Problem(hc.Maximize(s * hc.sum(hc.log(y))), [s * hc.sum(y) <= 4])
    size, u = cp.Variable(), cp.Variable(3)
    hand = [size >= 0.5, size <= 2, cp.sum(u) <= 4, u >= 0.1 * size, u <= 2 * size]
    best = cp.Problem(cp.Maximize(-cp.sum(cp.rel_entr(size, u))), hand)
    assert_proven(problem, best.solve(solver="CLARABEL"))


def not_of_this_kind() -> dict[str, hc.Problem]:
    s, x = size_and_rates()
    z = hc.Variable(3, name="z", bounds=(-1, 1))
    return {
        "a factor that changes its sign": hc.Problem(hc.Minimize(x[0] * z[0] + x[1] * z[1])),
        "rates alone": hc.Problem(hc.Minimize(s * (RATES @ x) + RATES @ x + x[0] * x[0])),
        "a concave function": hc.Problem(hc.Minimize(s * x[0] - s * hc.sum_squares(x))),
        "two factors": hc.Problem(hc.Minimize(s * x[0] - s * s * x[1] * x[2])),
    }


@pytest.mark.parametrize("name", not_of_this_kind())
def test_other_products_are_not_claimed(name):
    assert not claims(not_of_this_kind()[name])


def test_bounds_of_random_products_are_below_the_values_of_random_points():
    generator, feasible = np.random.default_rng(3), 0
    for _ in range(3):
        s, x = size_and_rates()
        rates, row = generator.normal(size=(2, 3))
        objective = s * (rates @ x) + 0.3 * s * hc.sum_squares(x) - s
        problem = hc.Problem(hc.Minimize(objective), [row @ x <= 0.5, s * x[0] >= -1])
        problem.solve()
        assert problem.status == "optimal"
        for _ in range(100):
            s.value, x.value = generator.uniform(0.5, 3), generator.uniform(-1, 2, size=3)
            if row @ x.value <= 0.5 and s.value * x.value[0] >= -1:
                feasible += 1
                assert objective.value >= problem.solution.certificate.lower_bound - 1e-9
    assert feasible > 100


def test_a_wrong_product_is_caught(monkeypatch):
    true = scaling.Scaling._divided
    monkeypatch.setattr(
        scaling.Scaling, "_divided", lambda self, sums: true(self, sums).scaled(1.001)
    )
    assert not claims(as_written())


@pytest.mark.parametrize("cost", [lambda y: -1 / y, lambda y: y, lambda y: (y - 0.05) ** 2])
def test_a_factor_that_may_be_zero_leaves_the_rest_free(cost) -> None:
    """With s = 0 the row holds for every y, so that y >= 0.2 must not be concluded from it."""
    s, y = hc.Variable(name="s", bounds=(0, 2)), hc.Variable(name="y", bounds=(0.01, 2))
    problem = hc.Problem(hc.Minimize(cost(y)), [s * (y - 0.2) >= 0])
    problem.solve()
    least = min(cost(0.01), cost(0.05), key=float)
    assert problem.value == pytest.approx(least, abs=1e-6)


def test_multipliers_where_a_factor_of_a_row_is_not_in_the_model() -> None:
    """The row is multiplied by a variable that nothing else needs; its multiplier is found."""
    s, y = hc.Variable(name="s", bounds=(0.1, 2)), hc.Variable(name="y", bounds=(0.01, 2))
    row = s * (y - 0.2) >= 0
    problem = hc.Problem(hc.Minimize((y - 0.05) ** 2), [row])
    problem.solve()
    assert problem.value == pytest.approx(0.0225, rel=1e-5)
    assert float(s.value * row.dual_value) == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("bounds", [None, (0.05, 20)])
def test_the_likelihood_of_weibull_in_the_shape_and_its_product_with_a_logarithm(
    bounds: tuple[float, float] | None,
) -> None:
    """The shape k solves the equation of its profile: Σ tᵏ log t / Σ tᵏ − 1/k is the mean of log t."""
    times = np.random.default_rng(5).weibull(1.5, size=12)
    logs = np.log(times)

    def profile(k: float) -> float:
        powers = times**k
        return float(powers @ logs / powers.sum() - 1 / k - logs.mean())

    shape = brentq(profile, 0.1, 20)
    k = hc.Variable(name="k", pos=True, bounds=bounds)
    theta = hc.Variable(name="theta", pos=True, bounds=bounds)
    density = hc.log(k) - k * hc.log(theta) + (k - 1) * logs - hc.exp(k * (logs - hc.log(theta)))
    problem = hc.Problem(hc.Maximize(hc.sum(density)))
    problem.solve()
    assert problem.status == "optimal"
    assert float(k.value) == pytest.approx(shape, rel=1e-5)
    assert float(theta.value) == pytest.approx((times**shape).mean() ** (1 / shape), rel=1e-5)
    coordinates = problem.analyze(samples=None).coordinates
    assert coordinates == {"k": "k", "u_scaled": "k * (log(theta))"}


def test_shares_of_time_as_a_distribution_are_proven() -> None:
    """Rates of channels that take turns, against random schedules with the best powers for each.

    With shares s the powers are those of water filling, 1/p − 1/h as high for all.
    """
    gains, wanted, budget = np.array([1.0, 2.0, 0.5]), np.array([0.2, 0.3, 0.5]), 2.0
    shares = hc.Variable(3, name="shares", simplex=True)
    power = hc.Variable(3, name="power", nonneg=True)
    rate = hc.sum(shares * hc.log(1 + gains * power)) - hc.sum_squares(shares - wanted)
    problem = hc.Problem(hc.Maximize(rate), [hc.sum(shares * power) <= budget])
    best = problem.solve()
    assert problem.status == "optimal"

    def value(each: np.ndarray) -> float:
        low, high = 0.0, 100.0
        for _ in range(100):
            level = (low + high) / 2
            used = np.maximum(level - 1 / gains, 0.0)
            low, high = (low, level) if each @ used > budget else (level, high)
        return float(each @ np.log1p(gains * used) - np.sum((each - wanted) ** 2))

    samples = np.random.default_rng(0).dirichlet(np.ones(3), size=2000)
    assert max(map(value, samples)) <= best + 1e-6
    assert value(shares.value) == pytest.approx(best, rel=1e-6)
