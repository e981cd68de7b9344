"""Monotone maps: models in u = φ(x) are proven with nothing declared, and end at closed forms."""

import numpy as np
import pytest
from scipy.optimize import brentq

import hcmodel as hc
from hcmodel.maps import monotone
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.forms import Forms

SIZE = np.array([120.0, 80.0, 60.0])
SENSITIVITY = np.array([0.02, 0.01, 0.015])
SEATS = 70.0


def closed_form() -> tuple[float, np.ndarray]:
    """Revenue and prices: p = 1/b + λ, where λ >= 0 is the price of a seat (a KKT point in demand)."""

    def excess(multiplier: float) -> float:
        return float(demand(1 / SENSITIVITY + multiplier).sum() - SEATS)

    price = 1 / SENSITIVITY + brentq(excess, 0.0, 1000.0, xtol=1e-12)
    return float(price @ demand(price)), price


def demand(price: np.ndarray) -> np.ndarray:
    return SIZE * np.exp(-SENSITIVITY * price)


def plain() -> hc.Problem:
    price = hc.Variable(3, name="price", bounds=(1, 1000))
    sold = SIZE * hc.exp(-SENSITIVITY * price)
    return hc.Problem(hc.Maximize(hc.sum(price * sold)), [hc.sum(sold) <= SEATS])


def reordered() -> hc.Problem:
    """Sums split up, constants inside of the exponential, the row scaled and turned around."""
    price = hc.Variable(3, name="price", bounds=(1, 1000))
    sold = [hc.exp(np.log(SIZE[i]) - price[i] * SENSITIVITY[i]) for i in (2, 0, 1)]
    row = -0.01 * (sold[0] + sold[2]) >= 0.01 * sold[1] - 0.01 * SEATS
    revenue = sold[1] * price[0] + price[1] * sold[2] + sold[0] * price[2]
    return hc.Problem(hc.Minimize(-3 * revenue / 3), [row])


def in_hundreds() -> hc.Problem:
    """A scaled variable, and the reciprocal of an exponential."""
    price = hc.Variable(3, name="hundreds", bounds=(0.01, 10))
    sold = SIZE / hc.exp(100 * SENSITIVITY * price)
    return hc.Problem(hc.Maximize(100 * (price @ sold)), [hc.sum(sold) / SEATS <= 1])


def by_parameters() -> hc.Problem:
    price = hc.Variable(3, name="price", bounds=(1, 1000))
    size, slope = hc.Parameter(3, value=SIZE), hc.Parameter(3, value=SENSITIVITY)
    seats = hc.Parameter(value=SEATS)
    sold = size * hc.exp(-slope * price)
    return hc.Problem(hc.Maximize(hc.sum(price * sold)), [hc.sum(sold) <= seats])


def of_scalars() -> hc.Problem:
    prices = [hc.Variable(name=f"p{i}", bounds=(1, 1000)) for i in range(3)]
    sold = [SIZE[i] * hc.exp(-SENSITIVITY[i] * each) for i, each in enumerate(prices)]
    revenue = sum(p * d for p, d in zip(prices, sold, strict=True))
    return hc.Problem(hc.Maximize(revenue), [sold[0] + sold[1] + sold[2] <= SEATS])


LANGUAGE = """
param n = 3
param size[n], slope[n], seats
var price[n] in [1, 1000]
let sold[i in 1..n] = size[i] * exp(-slope[i] * price[i])
maximize sum(price[i] * sold[i] for i in 1..n)
subject to
    flight: sum(size[i] * exp(-slope[i] * price[i]) for i in 1..n) <= seats
"""


def in_the_language() -> hc.Problem:
    data = {"size": SIZE.tolist(), "slope": SENSITIVITY.tolist(), "seats": SEATS}
    return hc.parse(LANGUAGE, data=data)


@pytest.mark.parametrize(
    "written", [plain, reordered, in_hundreds, by_parameters, of_scalars, in_the_language]
)
def test_prices_are_proven_by_demand_however_they_are_written(written):
    problem = written()
    problem.solve()
    value, _ = closed_form()
    assert problem.status == "optimal"
    assert "proven convex in exp(" in problem.solution.method
    assert abs(problem.value) == pytest.approx(value, rel=1e-6)


def test_prices_come_back_and_declared_demand_is_explained():
    price = hc.Variable(3, name="price", bounds=(1, 1000))
    sold = SIZE * hc.exp(-SENSITIVITY * price)
    problem = hc.Problem(hc.Maximize(hc.sum(price * sold)), [hc.sum(sold) <= SEATS], hidden=[sold])
    problem.solve()
    assert problem.status == "optimal"
    assert "proven" in problem.solution.method
    assert price.value == pytest.approx(closed_form()[1], rel=1e-3)


def test_a_box_that_holds_stays_a_box():
    """With p <= 70 at most, two of the prices end there; the third follows from the seats."""
    price = hc.Variable(3, name="price", bounds=(1, 70))
    sold = SIZE * hc.exp(-SENSITIVITY * price)
    problem = hc.Problem(hc.Maximize(hc.sum(price * sold)), [])
    problem.solve()
    best = np.minimum(1 / SENSITIVITY, 70.0)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(float(best @ demand(best)), rel=1e-7)


def chemistry(declared: bool) -> hc.Problem:
    log_moles = hc.Variable(3, name="y", bounds=(-3, 3))
    moles = hc.exp(log_moles)
    energy = np.array([-1.0, 0.5, -2.0])
    atoms = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    gibbs = hc.sum(moles * (energy + log_moles - hc.log(hc.sum(moles))))
    hidden = [moles] if declared else None
    return hc.Problem(hc.Minimize(gibbs), [atoms @ moles == np.array([1.0, 2.0])], hidden=hidden)


def test_a_chemical_equilibrium_on_a_box_is_proven():
    """The rows leave one unknown, n2 = t: the minimum over it, by a scan of a convex function."""

    def energy(t: np.ndarray) -> np.ndarray:
        moles = np.array([1 - t, t, (2 - t) / 2])
        return np.sum(moles * (np.array([[-1.0], [0.5], [-2.0]]) + np.log(moles / moles.sum(0))), 0)

    t = np.linspace(np.exp(-3), 1 - np.exp(-3), 200_001)
    for declared in (False, True):
        problem = chemistry(declared)
        problem.solve()
        assert problem.status == "optimal"
        assert "proven convex in exp(y)" in problem.solution.method
        assert problem.value == pytest.approx(float(energy(t).min()), rel=1e-8)


TARGET = np.array([0.4, 0.7])


@pytest.mark.parametrize(
    ("function", "bounds"),
    [
        (lambda x: hc.tanh(2 * x + 0.1), (-2, 2)),
        (lambda x: hc.softplus(x), (-4, 4)),
        (lambda x: 1 / x, (0.2, 9)),
        (lambda x: hc.sqrt(x), (0, 5)),
        (lambda x: hc.log(1 + x), (0, 5)),
        (lambda x: x**2, (-1, 5)),
        (lambda x: x**3, (0, 5)),
        (lambda x: hc.exp(-x), (-2, 5)),
        (lambda x: hc.sigmoid(x), (-5, 5)),
    ],
    ids=["tanh", "softplus", "reciprocal", "sqrt", "log", "square", "cube", "exp", "sigmoid"],
)
def test_a_function_that_stands_for_its_argument_is_a_coordinate(function, bounds):
    """min |u − target|² with u0 <= u1 − 0.4 ends at the projection: both move by 0.05."""
    x = hc.Variable(2, name="x", bounds=bounds)
    u = function(x)
    problem = hc.Problem(hc.Minimize(hc.sum_squares(u - TARGET)), [u[0] - u[1] <= -0.4])
    problem.solve()
    assert problem.status == "optimal"
    assert "proven convex in" in problem.solution.method
    assert problem.value == pytest.approx(0.005, abs=1e-7)


def test_prices_by_demand_and_capacities_by_logarithms_in_one_model():
    """Against CVXPY in the demand u and the logarithms of width and height."""
    cvxpy = pytest.importorskip("cvxpy")
    price = hc.Variable(3, name="price", bounds=(1, 1000))
    width = hc.Variable(name="width", bounds=(0.1, 100))
    height = hc.Variable(name="height", bounds=(0.1, 100))
    sold = SIZE * hc.exp(-SENSITIVITY * price)
    problem = hc.Problem(
        hc.Maximize(hc.sum(price * sold) - width * height),
        [hc.sum(sold) + 20 / width + 30 / (width * height) <= SEATS],
    )
    problem.solve()
    u, v, w = cvxpy.Variable(3), cvxpy.Variable(), cvxpy.Variable()
    revenue = cvxpy.sum(cvxpy.multiply(SIZE / SENSITIVITY, cvxpy.entr(u)))
    rows = [
        SIZE @ u + 20 * cvxpy.exp(-v) + 30 * cvxpy.exp(-v - w) <= SEATS,
        u <= np.exp(-SENSITIVITY),
        v <= np.log(100),
        w <= np.log(100),
        v >= np.log(0.1),
        w >= np.log(0.1),
    ]
    reference = cvxpy.Problem(cvxpy.Maximize(revenue - cvxpy.exp(v + w)), rows).solve("CLARABEL")
    assert problem.status == "optimal"
    assert "exp(" in problem.solution.method
    assert "log(width)" in problem.solution.method
    assert problem.value == pytest.approx(reference, rel=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_models_that_demand_does_not_make_convex_are_not_claimed(seed):
    """Revenue with its sign turned, products of demands, or a lower bound on revenue from above."""
    generator = np.random.default_rng(seed)
    slope = generator.uniform(0.5, 2.0, size=2)
    p = hc.Variable(2, name="p", bounds=(0.1, 5))
    sold = hc.exp(-slope * p)
    revenue = hc.sum(p * sold)
    models = [
        hc.Problem(hc.Minimize(revenue), [hc.sum(sold) >= 0.4]),
        hc.Problem(hc.Maximize(hc.sum(p)), [revenue <= 0.3]),
        hc.Problem(hc.Maximize(revenue + p[0] * sold[1]), [hc.sum(sold) <= 0.8]),
    ]
    assert discover(Forms(models[seed % 3].model).bounds.after).substitution is None


def test_a_wrong_inverse_is_caught_by_the_comparison(monkeypatch):
    true = monotone._solved

    def wrong(*arguments):
        return {entry: sums.scaled(1.01) for entry, sums in true(*arguments).items()}

    monkeypatch.setattr(monotone, "_solved", wrong)
    found = discover(Forms(plain().model).bounds.after)
    assert found.substitution is None
    assert any("the rewriting changed" in each.reason for each in found.obstacles)


def test_a_function_that_is_not_monotone_is_named():
    x = hc.Variable(name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(hc.exp(x) * (x + 0.5) ** 4 - x))
    found = discover(Forms(problem.model).bounds.after)
    assert any("not monotone" in each.reason for each in found.obstacles)
