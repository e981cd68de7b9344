"""Every example loads, solves to its known optimum, and is the same model as in Python.

Optima: tank, cnls and posynomial from the paper; box_volume and hyperbola from CVXPY's and GPkit's
suites, and in closed form; water_tank from GPkit, in closed form; power_control, gate_sizing and
cantilever from CVX's examples; transformer is problem 93 of Hock and Schittkowski; kelly, mixed,
linear_fractional, sharpe and rosenbrock in closed form or by a root. The applications are solved in
test_applications.py.
"""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import brentq

import hcmodel as hc
from hcmodel.frontend import format_file
from hcmodel.frontend.to_hc import hc_data, to_hc
from hcmodel.problem import parse
from tests.problems.examples import ALL, FOLDER, data_of, loaded


def _mixed():
    z = brentq(lambda z: math.exp(z / 3) + 2 * (z - 1), -5, 5)
    return 3 * math.exp(z / 3) + (z - 1) ** 2


EXCESS = np.array([0.0673, 0.0337, 0.0227])
COVARIANCE = np.array(
    [[0.02778, 0.00387, 0.00021], [0.00387, 0.01112, -0.0002], [0.00021, -0.0002, 0.00115]]
)


OUTSIDE, WORTH, PRICE = np.array([1, 0.5, 0.2]), np.array([1.0, 2, 3]), np.array([1, 1.5, 2])
NEXT = np.array([[0, 0.6, 0.2], [0.1, 0, 0.7], [0.3, 0, 0.1]])


def _sharpe():
    """The tangency portfolio and its ratio."""
    weight = np.linalg.solve(COVARIANCE, EXCESS)
    return weight / weight.sum(), math.sqrt(EXCESS @ weight)


def _queues():
    """Kleinrock's square roots: arrivals by the traffic equations, and what is left of the budget."""
    arrivals = np.linalg.solve(np.eye(3) - NEXT.T, OUTSIDE)
    return float(np.sqrt(PRICE * WORTH * arrivals).sum() ** 2 / (20 - PRICE @ arrivals))


OPTIMA = {
    "tank": 5.0,
    "linear_demand": 328.678571428571,
    "bradley_terry": -172.248175994716,
    # the linear program in the visits; the budget buys at 1 for 1
    "stages": 21.382,
    # scipy's solve_continuous_are
    "riccati": 37.78801636853511,
    # SLSQP on the areas alone, and CVXPY's matrix_frac
    "truss": 0.9141719738289125,
    # CVXPY in the covariances and the gains times these, to 1e-6; the digits are those of prox-linear
    "covariances": 3.842595354,
    # SLSQP from several starts
    "nested_logit": 1.95588358433,
    "cnls": 0.15,
    "posynomial": 0.07113650673303368,
    "box_volume": math.sqrt(6000),
    "water_tank": 6 * 0.1 ** (2 / 3),
    "power_control": 17.001363792695138,
    "gate_sizing": 32.2495844124153,
    "cantilever": 42.39654663448206,
    "rosenbrock": 0.0,
    "hyperbola": 2 * math.sqrt(2),
    "kelly": 0.6 * math.log(1.2) + 0.4 * math.log(0.8),
    "mixed": _mixed(),
    "transformer": 135.07596283160774,
    "linear_fractional": 9 / 7,
    "sharpe": _sharpe()[1],
    "queues": _queues(),
}
# Agresti, Categorical Data Analysis, table 10.11: logarithms, the last team's is 0.
TEAMS = np.exp([1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0.0])
POINTS = {
    "bradley_terry": {"w": TEAMS / TEAMS.sum()},
    "tank": {"x": [2, 0.5]},
    "cnls": {"x": [0.85, 0.85]},
    "kelly": {"stake": 0.2},
    "hyperbola": {"x": math.sqrt(2), "y": math.sqrt(0.5)},
    "linear_fractional": {"amount": [0, 3]},
    "sharpe": {"weight": _sharpe()[0]},
}
# An optimum of 0 has no relative error.
SOLVE: dict[str, dict[str, int]] = {}
CLOSE = {"rosenbrock": 1e-6}

# The other examples, which test_applications.py solves.
APPLICATIONS = {
    *("lqr", "lqr_direct", "lqr_energy", "lqr_discrete", "lqr_decentralised", "hinf"),
    *("cmdp", "exploration", "near_expert", "apprenticeship", "policy_value", "bellman"),
    *("pricing", "logit"),
}


@pytest.mark.parametrize("name", OPTIMA)
@pytest.mark.filterwarnings("ignore:.*made for smooth rows")
def test_an_example_solves_to_its_known_optimum(name):
    problem = loaded(name)
    value = problem.solve(**SOLVE.get(name, {}))
    assert value == pytest.approx(OPTIMA[name], rel=1e-5, abs=CLOSE.get(name, 1e-5))
    for variable in problem.variables:
        expected = POINTS.get(name, {}).get(variable.name)
        if expected is not None:
            np.testing.assert_allclose(variable.value, expected, atol=2e-3)


def test_there_are_examples_enough_and_each_is_listed():
    assert len(ALL) >= 14
    assert {*OPTIMA, *APPLICATIONS} == set(ALL)


@pytest.mark.parametrize("name", ALL)
def test_an_example_is_laid_out_as_the_formatter_does_and_fits_one_screen(name):
    before, after = format_file(FOLDER / f"{name}.hc")
    assert before == after
    assert before.startswith("# ")
    assert before.count("\n") <= 25


@pytest.mark.parametrize("name", ALL)
def test_an_example_survives_to_hc(name):
    problem = loaded(name)
    model = problem.model
    again = parse(to_hc(model), hc_data(model))
    without_text = replace(model, source=None)
    from_graph = parse(to_hc(without_text), hc_data(without_text))
    for twin in (again, from_graph):
        assert_same(problem, twin)


def excess(constraint):
    """What a constraint wants below 0, or at it."""
    difference = constraint.lhs - constraint.rhs
    return -difference if constraint.sense == ">=" else difference


def random_value(variable, random):
    """An array within the bounds of a variable, symmetric where the variable is."""
    low = np.maximum(variable.lower, -3)
    drawn = random.uniform(low, np.minimum(variable.upper, low + 6))
    symmetric = variable.set.is_symmetric
    return (drawn + drawn.T) / 2 if symmetric else drawn


def assert_same(first, second):
    """Equal values of objective, constraints and coordinates at random points of the box."""
    twins = {variable.name: variable for variable in second.variables}
    assert set(twins) == {variable.name for variable in first.variables}
    assert len(first.constraints) == len(second.constraints)
    random = np.random.default_rng(0)
    for _ in range(3):
        for variable in first.variables:
            variable.value = random_value(variable, random)
            twins[variable.name].value = variable.value
        pairs = [(first.objective.expression, second.objective.expression)]
        pairs += [
            (excess(one), excess(other))
            for one, other in zip(first.constraints, second.constraints, strict=True)
        ]
        pairs += list(zip(first.hidden or (), second.hidden or (), strict=True))
        for one, other in pairs:
            np.testing.assert_allclose(np.ravel(one.value), np.ravel(other.value), rtol=1e-9)


# ---- the same models in Python ------------------------------------------------------------------


def tank():
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    objective = x[0] * x[1] + 4 / x[0] + 1 / x[1]
    return hc.Problem(hc.Minimize(objective), [x[0] * x[1] <= 1], [hc.log(x)])


def cnls():
    x = hc.Variable(2, name="x", bounds=(-1, 2.5))
    c = hc.hstack(x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1)
    near = hc.norm(c - np.array([-0.5, -0.6]), 1) <= 0.8
    return hc.Problem(hc.Minimize(hc.norm(c, np.inf)), [near], [c])


def posynomial():
    data = {name: np.array(value) for name, value in data_of("posynomial").items()}
    x = hc.Variable(100, name="x", bounds=(0.5, 2))

    def total(coefficients, exponents):
        return hc.sum(coefficients * hc.prod(x**exponents, axis=1))

    budget = total(data["q"], data["r"]) <= 1
    return hc.Problem(hc.Minimize(total(data["b"], data["a"])), [budget], [hc.log(x)])


def box_volume():
    height, width, depth = (
        hc.Variable(name=name, bounds=(0.1, 100)) for name in ("height", "width", "depth")
    )
    constraints = [
        2 * height * width + 2 * height * depth <= 100,
        width * depth <= 10,
        height / width >= 0.5,
        height / width <= 2,
        depth / width >= 0.5,
        depth / width <= 2,
    ]
    hidden = [hc.log(hc.hstack(height, width, depth))]
    return hc.Problem(hc.Maximize(height * width * depth), constraints, hidden)


def water_tank():
    area = hc.Variable(name="area", bounds=(0.001, 100))
    side = hc.Variable(3, name="side", bounds=(0.001, 100))
    faces = side[0] * side[1] + side[0] * side[2] + side[1] * side[2]
    constraints = [area >= 2 * faces, side[0] * side[1] * side[2] == 0.1]
    return hc.Problem(hc.Minimize(area), constraints, [hc.log(area), hc.log(side)])


def power_control():
    gains = np.array(data_of("power_control")["G"])
    p = hc.Variable(5, name="p", bounds=(0.1, 5))
    others = gains - np.diag(np.diag(gains))
    signal = np.diag(gains) * p >= 2 * (0.5 + others @ p)
    return hc.Problem(hc.Minimize(hc.sum(p)), [signal], [hc.log(p)])


def gate_sizing():
    size = hc.Variable(8, name="size", bounds=(1, 20))
    load_of_wire = np.array([1, 1, 1, 80, 1, 1, 1])
    delay = hc.sum(0.69 * (1 + load_of_wire * size[1:] / size[:-1])) + 0.69 * (1 + 20 / size[7])
    return hc.Problem(hc.Minimize(hc.sum(size)), [delay <= 20], [hc.log(size)])


def cantilever():
    w = hc.Variable(8, name="w", bounds=(0.1, 100))
    h = hc.Variable(8, name="h", bounds=(0.1, 6))
    i = np.arange(1.0, 9.0)
    constraints = [
        h / w >= 0.2,
        h / w <= 5,
        6 * i / (w * h**2) <= 1,
        hc.sum(0.4 * (3 * i**2 - 3 * i + 1) / (w * h**3)) <= 1,
    ]
    return hc.Problem(hc.Minimize(hc.sum(w * h)), constraints, [hc.log(w), hc.log(h)])


def rosenbrock():
    x = hc.Variable(3, name="x", bounds=(-3, 3), start=[-1, 1, 1])
    first = hc.Variable(name="first", bounds=(0, 4))
    rest = hc.Variable(2, name="rest", bounds=(0, 30))
    residual = x[1:] - 2 * x[:2] ** 2 + 1
    near = [(-first <= x[0] - 1).named("near.lower"), (x[0] - 1 <= first).named("near.upper")]
    valley = [(-rest <= residual).named("valley.lower"), (residual <= rest).named("valley.upper")]
    hidden = [x[0], residual, first, rest]
    return hc.Problem(hc.Minimize(first / 4 + hc.sum(rest)), [*near, *valley], hidden=hidden)


def hyperbola():
    x, y = (hc.Variable(name=name, bounds=(0.001, 1000)) for name in "xy")
    return hc.Problem(hc.Minimize(x + 2 * y), [x * y == 1], [hc.log(x), hc.log(y)])


def kelly():
    stake = hc.Variable(name="stake", bounds=(0, 0.95))
    return hc.Problem(hc.Maximize(0.6 * hc.log(1 + stake) + 0.4 * hc.log(1 - stake)))


def mixed():
    x, y = (hc.Variable(name=name, bounds=(0.01, 100)) for name in "xy")
    z = hc.Variable(name="z", bounds=(-5, 5))
    objective = x * y + hc.exp(z) / x + 1 / y + (z - 1) ** 2
    return hc.Problem(hc.Minimize(objective), hidden=[hc.log(x), hc.log(y), z])


def transformer():
    x = hc.Variable(6, name="x", bounds=(0.1, 100))
    core = x[0] * x[3] * (x[0] + x[1] + x[2])
    coil = x[1] * x[2] * (x[0] + 1.57 * x[1] + x[3])
    objective = (
        0.0204 * core + 0.0187 * coil + 0.0607 * core * x[4] ** 2 + 0.0437 * coil * x[5] ** 2
    )
    constraints = [
        hc.prod(x) >= 2070,
        0.00062 * core * x[4] ** 2 + 0.00058 * coil * x[5] ** 2 <= 1,
    ]
    return hc.Problem(hc.Minimize(objective), constraints, [hc.log(x)])


WINS = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ]
)


def bradley_terry():
    w = hc.Variable(7, name="w", pos=True)
    one, two = np.nonzero(~np.eye(7, dtype=bool))
    likelihood = hc.sum(WINS[one, two] * (hc.log(w[one]) - hc.log(w[one] + w[two])))
    return hc.Problem(hc.Maximize(likelihood), [hc.sum(w) == 1])


def stages():
    move = np.array(
        [
            [[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]],
            [[0.0, 0.6, 0.4], [0.9, 0.1, 0.0]],
            [[0.0, 0.0, 1.0], [0.6, 0.4, 0.0]],
        ]
    )
    profit = np.array([[10, 7], [8, 4], [0, -2]])
    policy = hc.Variable((3, 3, 2), name="policy", simplex=True)
    visits, often = np.array([0.2, 0.5, 0.3]), 0.0
    for week in range(3):
        both = hc.reshape(visits, (3, 1)) * policy[week]
        often = often + both
        visits = hc.einsum("sa,saz->z", both, move)
    return hc.Problem(hc.Maximize(hc.sum(profit * often)), [hc.sum(often[:, 1]) <= 0.9])


def riccati():
    A = np.array([[0, 1, 0, 0], [0, 0, -1, 0], [0, 0, 0, 1], [0, 0, 11, 0]])
    B = np.array([[0], [1], [0], [-1]])
    X, K = hc.Variable((4, 4), name="X", PSD=True), hc.Variable((1, 4), name="K")
    closed = A + B @ K
    weight = np.diag([1, 0.1, 1, 0.1]) + 0.1 * K.T @ K
    return hc.Problem(hc.Minimize(hc.trace(X)), [X @ closed + closed.T @ X + weight << 0])


def covariances():
    A, B = np.array([[1, 0.5], [0, 1]]), np.array([[0.125], [0.5]])
    noise, begin = np.diag([0.01, 0.02]), np.array([[1, 0.2], [0.2, 0.5]])
    K = [hc.Variable((1, 2), name=f"K{t}") for t in range(4)]
    S = [begin, *(hc.Variable((2, 2), name=f"S{t + 1}", PSD=True) for t in range(4))]
    rows = []
    for t in range(4):
        closed = A + B @ K[t]
        rows.append(S[t + 1] == closed @ S[t] @ closed.T + noise)
    energy = sum(hc.trace(K[t] @ S[t] @ K[t].T) for t in range(4))
    return hc.Problem(hc.Minimize(energy), [*rows, S[4] << 0.1 * np.eye(2)])


def nested_logit():
    appeal, slope = np.array([2.0, 1.5, 1.8, 2.2, 1.2]), np.array([1.0, 1.0, 1.0, 0.8, 0.8])
    price = hc.Variable(5, name="price", bounds=(0, 20))
    value = hc.exp(appeal - slope * price)
    margin = (price - np.array([0.3, 0.2, 0.4, 0.1, 0.5])) * value
    first, second = hc.sum(value[:3]), hc.sum(value[3:])
    below = 1 + first**0.6 + second**0.8
    above = hc.sum(margin[:3]) * first**-0.4 + hc.sum(margin[3:]) * second ** (0.8 - 1)
    return hc.Problem(hc.Maximize(above / below), [first**0.6 / below <= 0.2])


def linear_demand():
    price, base = hc.Variable(2, name="price", nonneg=True), np.array([50, 40])
    demand = base - np.array([[4, -1], [-1.5, 3]]) @ price
    margin = (price - np.array([2, 3])) @ demand
    return hc.Problem(hc.Maximize(margin), [demand >= 0, hc.sum(demand) <= 30])


def linear_fractional():
    amount = hc.Variable(2, name="amount", nonneg=True)
    ratio = (amount @ np.array([5, 3])) / (amount @ np.array([5, 2]) + 1)
    machines = [3 * amount[0] + 5 * amount[1] <= 15, 5 * amount[0] + 2 * amount[1] <= 10]
    return hc.Problem(hc.Maximize(ratio), machines)


def sharpe():
    weight = hc.Variable(3, name="weight", bounds=(0, 1))
    ratio = EXCESS @ weight / hc.sqrt(hc.quad_form(weight, COVARIANCE))
    return hc.Problem(hc.Maximize(ratio), [hc.sum(weight) == 1])


def queues():
    lam, mu = (hc.Variable(3, name=name, bounds=(0.01, 100)) for name in ("lam", "mu"))
    traffic = lam >= OUTSIDE + NEXT.T @ lam
    customers = hc.sum(WORTH * lam / (mu - lam))
    return hc.Problem(hc.Minimize(customers), [traffic, lam <= 0.95 * mu, PRICE @ mu <= 20])


def truss():
    length = np.array([1, 1, 1, 1.414213562, 1.414213562])
    half = 0.7071067812
    stretch = np.zeros((5, 4))
    stretch[[0, 1, 2, 2], [0, 2, 1, 3]] = [1, 1, -1, 1]
    stretch[3, 2:], stretch[4, :2] = half, [half, -half]
    load = np.array([0.0, -1, 0, 0])
    area, u = hc.Variable(5, name="area", bounds=(0.1, None)), hc.Variable(4, name="u")
    balance = stretch.T @ (area / length * (stretch @ u)) == load
    return hc.Problem(hc.Minimize(load @ u), [balance, length @ area <= 10])


@pytest.mark.parametrize("name", OPTIMA)
def test_an_example_is_the_same_model_in_python(name):
    assert_same(loaded(name), globals()[name]())
