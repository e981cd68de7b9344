"""A declared map put to the test: all samples of a small model at once, and one by one for others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.optimize

import hcmodel as hc
from hcmodel.certify.declared import map_test
from hcmodel.certify.declared.samples import has_no_inverse


def variable(size: int, low: float = -1.0, high: float = 1.0) -> Any:
    return hc.Variable(size, name="x", bounds=(low, high), start=np.full(size, 0.1))


def convex(x: Any) -> Any:
    """Second derivatives at least 2 − 0.3·2, which no rule of the proof knows."""
    return hc.sum_squares(x) + 0.3 * hc.sin(hc.sum(x))


def turned(x: Any) -> Any:
    return x + 0.3 * hc.sin(x[::-1])


# Models with declared coordinates outside of the catalogue, and whether these are wrong.
MODELS: dict[str, tuple[Callable[[], tuple[Any, list[Any], Any]], bool]] = {}


def model(name: str, wrong: bool) -> Callable[[Any], Any]:
    def add(make: Any) -> Any:
        MODELS[name] = make, wrong
        return make

    return add


@model("coupled sines", wrong=False)
def _coupled() -> tuple[Any, list[Any], Any]:
    x = variable(3)
    cost = hc.sum(x**2 + 0.6 * x * hc.sin(x[::-1]) + 0.09 * hc.sin(x[::-1]) ** 2) + x[0]
    return cost + 0.3 * hc.sin(x[2]), [], turned(x)


@model("a row in cubes", wrong=False)
def _cubes() -> tuple[Any, list[Any], Any]:
    x = variable(2)
    return hc.sum(x**6 + 2 * x**4 + x**2), [hc.sum(x**3) + hc.sum(x) >= 1], x**3 + x


@model("plain coordinates of a convex function", wrong=False)
def _plain() -> tuple[Any, list[Any], Any]:
    x = variable(2)
    return convex(x), [], x


@model("a fixed entry in which the objective bends", wrong=False)
def _fixed() -> tuple[Any, list[Any], Any]:
    x = hc.Variable(2, name="x", bounds=([-1, 1], [1, 1]), start=np.array([0.1, 1.0]))
    return convex(x) - 3 * x[1] ** 2, [], x


@model("plain coordinates of a wave", wrong=True)
def _wave() -> tuple[Any, list[Any], Any]:
    x = variable(2)
    return hc.sum_squares(x) + 0.3 * hc.sin(9 * hc.sum(x)), [], x


@model("a map that bends the objective", wrong=True)
def _bends() -> tuple[Any, list[Any], Any]:
    x = variable(2)
    return convex(x), [], hc.hstack([x[0] + 0.9 * hc.sin(3 * x[1]), x[1]])


@model("a map that turns round", wrong=True)
def _turns() -> tuple[Any, list[Any], Any]:
    x = variable(2)
    return convex(x), [], hc.hstack([x[0], x[1] ** 3 - 0.1 * x[1]])


@model("a map that is singular along a line", wrong=True)
def _singular() -> tuple[Any, list[Any], Any]:
    x = variable(2, 0.0, 1.0)
    return convex(x), [], hc.hstack([x[0], hc.square(x[1] - 0.1)])


@pytest.mark.parametrize("name", MODELS)
def test_samples_in_a_batch_say_the_same_as_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, wrong = MODELS[name]
    cost, rows, entries = make()
    searches: list[Any] = []
    monkeypatch.setattr(map_test, "contradicted", lambda search: searches.append(search) or False)
    problem = hc.Problem(hc.Minimize(cost), rows, hidden=[entries])
    problem.solve(method="hidden-newton", max_calls=200)
    assert searches
    for search in searches:
        test = map_test._Test(search.form, search.oracle, search.chart, search.best)
        batch = map_test._EnclosedSamples.of(test)
        assert batch is not None
        assert batch.fails() == wrong
        one_by_one = test._bulges() or test._undercut()
        assert one_by_one == wrong


def test_batches_are_for_small_models_with_enclosures(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    searches: list[Any] = []
    monkeypatch.setattr(map_test, "contradicted", lambda search: searches.append(search) or False)

    def batch(size: int, cost: Any = lambda x: 0.0) -> Any:
        x = variable(size)
        convex = hc.sum_squares(x) + 0.3 / size * hc.sin(hc.sum(x))
        hc.Problem(hc.Minimize(convex + cost(x)), hidden=[x]).solve(method="hidden-newton")
        search = searches.pop()
        test = map_test._Test(search.form, search.oracle, search.chart, search.best)
        return map_test._EnclosedSamples.of(test)

    for size, count in ((4, 256), (5, 64), (8, 64)):
        found = batch(size)
        assert found is not None
        assert found.points.shape == (count, size)
    assert batch(9) is None
    assert batch(2, lambda x: 0.05 * hc.det(hc.vstack([x, x[::-1] + hc.sin(x)]))) is None


def test_coordinates_without_a_bound_are_looked_at_for_lower_points() -> None:
    """Samples refute them, and no bound is left; the boxes say where, and the deepest wave is found."""
    x = hc.Variable(name="x", bounds=(-1, 1), start=0.9)
    problem = hc.Problem(hc.Minimize(x**2 + 0.3 * hc.sin(12 * x)), hidden=[x])
    problem.solve()
    assert problem.status == "locally_optimal"
    grid = np.linspace(-1, 1, 100_001)
    assert problem.value == pytest.approx(np.min(grid**2 + 0.3 * np.sin(12 * grid)), abs=1e-7)
    assert problem.solution is not None
    assert "not convex in the declared coordinates, as at x = " in problem.solution.message


def test_maps_with_more_entries_than_unknowns_are_tested_one_by_one() -> None:
    x, P = variable(2), hc.Variable((2, 2), name="P", symmetric=True, bounds=(-1, 1))
    for cost, entries in (
        (convex(x), [x, x[0] + x[1]]),
        (hc.sum(P**2) + 0.1 * hc.sin(hc.sum(P)) + P[0, 0], [P + 0.1 * P**3]),
    ):
        problem = hc.Problem(hc.Minimize(cost), hidden=entries)
        problem.solve()
        assert problem.status == "optimal"
        assert problem.solution is not None
        assert "if the declared coordinates hold" in problem.solution.message


@pytest.mark.parametrize("mapped", [False, True])
def test_an_entry_between_equal_bounds_is_a_number(mapped: bool) -> None:
    """−3 x₁² bends, but x₁ is 1; what is left is x₀² + 0.3 sin(x₀ + 1) − 3, whose slope has one root."""
    x = hc.Variable(2, name="x", bounds=([-1, 1], [1, 1]))
    cost = x[0] ** 2 + 0.3 * hc.sin(x[0] + x[1]) - 3 * x[1] ** 2
    c = hc.hstack([x[0] + 0.1 * x[0] ** 3, x[1] + 0.1 * hc.sin(x[1])]) if mapped else x
    problem = hc.Problem(hc.Minimize(cost), hidden=[c])
    problem.solve()
    root = scipy.optimize.brentq(lambda t: 2 * t + 0.3 * np.cos(t + 1), -1, 1)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(root**2 + 0.3 * np.sin(root + 1) - 3)
    assert problem.solution is not None
    assert problem.solution.iterations < 20  # the bounds of x₁ are not left out


# ---- derivatives at samples


def test_a_map_has_no_inverse_if_it_is_singular_or_reverses_the_orientation() -> None:
    plus, minus, flat = (np.diag([1.0, each]) for each in (2.0, -2.0, 0.0))
    unknown = np.full((2, 2), np.inf)

    def none(*samples: tuple[np.ndarray, bool]) -> bool:
        derivatives, smooth = zip(*samples, strict=True)
        return has_no_inverse(np.array(derivatives), np.array(smooth))

    assert not none((plus, True), (plus, True))
    assert not none((minus, True), (minus, False))
    assert none((plus, True), (minus, True))
    assert none((plus, True), (minus, False))
    for each in (flat, unknown):  # where the model is not smooth they say nothing
        assert none((plus, True), (each, True))
        assert not none((plus, True), (each, False))
    assert not none((unknown, False))
