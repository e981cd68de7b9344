"""`max_calls` holds for all that a solve asks of a user's functions, counted in these functions."""

from collections.abc import Callable

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.user_code import KINKS
from hcmodel.solvers.methods import METHODS
from hcmodel.solving.strategy import start_only
from tests.extent import ALL

LIMITS = (1, 2, 3, 5, 10, 30) if ALL else (1, 3, 10)
METHOD_NAMES = ("auto", *(name for name, entry in METHODS.items() if entry.program is None))
START = np.array([3.0, 2.0])


class Counted:
    """A function, written with autograd.numpy, that counts its calls."""

    def __init__(self, function: Callable) -> None:
        self.function = function
        self.calls = 0

    def __call__(self, x: np.ndarray) -> float:
        self.calls += 1
        return self.function(x)


def kinked(x: np.ndarray) -> float:
    return anp.abs(anp.log(x[0])) + x[0] * x[1] + 1 / x[1]


def kinked_slope(x: np.ndarray) -> np.ndarray:
    return np.array([np.sign(np.log(x[0])) / x[0] + x[1], x[0] - 1 / x[1] ** 2])


def smooth(x: np.ndarray) -> float:
    return x[0] * x[1] + 4 / x[0] + 1 / x[1]


def smooth_slope(x: np.ndarray) -> np.ndarray:
    return np.array([x[1] - 4 / x[0] ** 2, x[0] - 1 / x[1] ** 2])


def area(x: np.ndarray) -> float:
    return x[0] * x[1]


def area_slope(x: np.ndarray) -> np.ndarray:
    return np.array([x[1], x[0]])


SLOPES = {kinked: kinked_slope, smooth: smooth_slope, area: area_slope}


def model(
    objective: Callable,
    gradient: str,
    *,
    rows: bool = False,
    mapped: bool = False,
    outer: bool = False,
) -> tuple[hc.Problem, list[Counted]]:
    """min f(x) with a row g(x) <= 1, and log(x) declared; `outer` has a kink that is seen."""
    x = hc.Variable(2, bounds=(0.1, 10), name="x", start=START)
    counted: list[Counted] = []

    def made(function: Callable) -> hc.Expression:
        counted.append(Counted(function))
        grad = {"given": SLOPES[function], "autograd": None}.get(gradient, gradient)
        return hc.function(counted[-1], x, grad=grad)

    cost = made(objective)
    constraints = [made(area) <= 1] if rows else []
    if outer:
        cost = hc.maximum(cost, 2.0)
    return hc.Problem(
        hc.Minimize(cost), constraints, hidden=[hc.log(x)] if mapped else None
    ), counted


def evaluations(gradient: str, outer: bool = False, **_: object) -> int:
    """The most calls of all functions that one oracle call may take, second derivatives aside.

    A maximum becomes rows, and all rows together are one call.
    """
    return (START.size + 2) * (1 + KINKS.tries) if gradient == "2-point" else 1 + outer


def refusal(
    method: str, rows: bool = False, mapped: bool = False, outer: bool = False, **_: object
) -> tuple[type[hc.HCError], str] | None:
    """Why a method does not take a model: it needs coordinates, or a model without rows."""
    if method == "auto":
        return None
    if METHODS[method].needs_coordinates and not mapped:
        return hc.NotHiddenConvexError, "works in hidden coordinates, and none are known"
    if METHODS[method].needs_no_rows and (rows or outer):
        return hc.ModelError, "takes no constraints"
    return None


KINDS = {
    "a kink": {"objective": kinked, "gradient": "given"},
    "a kink and a row": {"objective": kinked, "gradient": "given", "rows": True},
    "a kink and a map": {"objective": kinked, "gradient": "given", "mapped": True},
    "a map and a row": {"objective": smooth, "gradient": "given", "rows": True, "mapped": True},
    "autograd and a map": {"objective": smooth, "gradient": "autograd", "mapped": True},
    "autograd and a maximum": {
        "objective": smooth,
        "gradient": "autograd",
        "rows": True,
        "outer": True,
    },
    "differences": {"objective": smooth, "gradient": "2-point", "rows": True},
    "differences and a map": {"objective": kinked, "gradient": "2-point", "mapped": True},
}


PAIRS = {
    (method, kind): refusal(method, **KINDS[kind]) for method in METHOD_NAMES for kind in KINDS
}


def request(method: str, limit: int) -> dict:
    """The arguments of a solve with a limit."""
    return {"max_calls": limit, "optimal_value": 2.0 if "star" in method else None}


@pytest.mark.parametrize(
    ("method", "kind"), [pair for pair, refused in PAIRS.items() if refused is not None]
)
def test_a_model_that_a_method_does_not_take_is_refused_without_a_call(
    method: str, kind: str
) -> None:
    error, words = PAIRS[method, kind]
    problem, counted = model(**KINDS[kind])
    with pytest.raises(error, match=words):
        problem.solve(method, **request(method, LIMITS[0]))
    assert not any(function.calls for function in counted)


@pytest.mark.parametrize(
    ("method", "kind"), [pair for pair, refused in PAIRS.items() if refused is None]
)
@pytest.mark.filterwarnings("ignore::hcmodel.HCWarning")
def test_functions_are_called_at_most_as_often_as_the_limit_says(method: str, kind: str) -> None:
    if method == "ipopt":
        pytest.importorskip("casadi")
    arguments = KINDS[kind]
    for limit in LIMITS:
        problem, counted = model(**arguments)
        problem.solve(method, **request(method, limit))
        solution = problem.solution
        assert solution.point["x"].shape == (2,)
        assert solution.value is not None
        allowed = max(limit, len(counted))  # one call gives a point: the start, with its rows
        each = evaluations(**arguments)
        second = 0 if arguments["gradient"] == "given" else 2 * solution.oracle_calls.hessians
        second *= each * START.size if arguments["gradient"] == "2-point" else 1
        called = sum(function.calls for function in counted)
        assert called <= allowed * each + second * len(counted), limit


def test_a_bound_of_declared_coordinates_needs_samples() -> None:
    """Half of the calls are kept for samples that test the map; few calls show no bound."""
    bounds = {}
    for limit in (8, 16):
        problem, counted = model(kinked, "given", mapped=True)
        problem.solve("hidden-bundle", max_calls=limit)
        assert problem.status == "user_limit"
        assert counted[0].calls <= limit
        bounds[limit] = problem.solution.certificate.lower_bound
    assert bounds[8] is None
    assert bounds[16] < 2.0


def test_a_point_is_not_called_stationary_where_nobody_has_looked_around_it() -> None:
    """The maximum of 1 − (x − 1)² is stationary; with one call nothing shows that it is no minimum."""
    x = hc.Variable(name="x", bounds=(0, 3), start=1.0)
    cost = hc.function(lambda z: 1 - (z - 1) ** 2, x, grad=lambda z: -2 * (z - 1))
    problem = hc.Problem(hc.Minimize(cost))
    problem.solve(max_calls=1)
    assert problem.status == "user_limit"
    assert problem.value == 1.0


def test_functions_are_asked_once_for_a_point() -> None:
    """As written, in hidden coordinates and for second derivatives."""
    seen: list[bytes] = []

    def cost(x: np.ndarray) -> float:
        seen.append(x.tobytes())
        return smooth(x)

    x = hc.Variable(2, bounds=(0.1, 10), name="x", start=START)
    problem = hc.Problem(
        hc.Minimize(hc.function(cost, x, grad=smooth_slope)), [], hidden=[hc.log(x)]
    )
    problem.solve("hidden-newton")
    assert problem.status == "optimal"
    assert len(seen) == len(set(seen))


def test_what_a_function_returned_in_one_solve_is_not_used_in_the_next() -> None:
    """The data that it reads may have changed."""
    target = [1.0]
    x = hc.Variable(name="x", bounds=(-5, 5), start=0.0)
    cost = hc.function(lambda z: (z - target[0]) ** 2, x, grad=lambda z: 2 * (z - target[0]))
    problem = hc.Problem(hc.Minimize(cost + x**2))
    assert problem.solve() == pytest.approx(0.5, abs=1e-6)
    target[0] = 2.0
    assert problem.solve() == pytest.approx(2.0, abs=1e-6)


def test_an_array_that_a_function_returns_and_changes_later_is_kept_as_it_was() -> None:
    buffer = np.zeros(1)

    def cost(x: np.ndarray) -> np.ndarray:
        buffer[0] = (x[0] - 1) ** 2
        return buffer

    x = hc.Variable(1, name="x", bounds=(-5, 5), start=[0.0])
    made = hc.function(cost, x, grad=lambda z: 2 * (z - 1).reshape(1, 1), shape=1)
    problem = hc.Problem(hc.Minimize(made[0]))
    assert problem.solve() == pytest.approx(0.0, abs=1e-9)
    assert x.value == pytest.approx([1.0], abs=1e-4)


def test_no_call_for_a_method_means_the_start() -> None:
    """A function that autograd takes apart is called again to judge a point in other coordinates."""
    problem, counted = model(smooth, "autograd", mapped=True)
    problem.solve("hidden-bundle", max_calls=1)
    assert counted[0].calls == 1
    assert problem.solution.point["x"] == pytest.approx(START)
    assert problem.value == pytest.approx(smooth(START))
    assert start_only(problem.forms()).entry.name in problem.solution.method
