"""Which entries functions bound by 0, and which keep off that bound."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.reductions.steepness import entries_at_0


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (hc.log, True),
        (hc.sqrt, True),
        (hc.entr, True),
        (lambda x: hc.kl_div(x, 1.0), True),
        (lambda x: hc.entr(3 * x), True),
        (lambda x: x**0.5, True),
        (lambda x: 1 / x, True),
        (lambda x: x**1.5, False),
        (lambda x: hc.log(1 + x), False),
        (lambda x: hc.log(-x), False),
        (hc.exp, False),
    ],
)
def test_an_infinite_slope_at_0(
    function: Callable[[hc.Variable], hc.Expression], expected: bool
) -> None:
    x = hc.Variable(2, name="x", nonneg=True)
    _, steep = entries_at_0(Model.checked(hc.Minimize(hc.sum(function(x)))))
    assert steep[x].tolist() == [expected, expected]


def test_only_the_entries_that_are_arguments_count_and_only_with_a_bound_at_0() -> None:
    x = hc.Variable(3, name="x", bounds=([0, 0, -1], None))
    y = hc.Variable((2, 2), name="y", nonneg=True)
    _, steep = entries_at_0(
        Model.checked(hc.Minimize(hc.log(x[1]) + 1 / x[2] + hc.sum(hc.entr(y.T[0]))))
    )
    assert steep[x].tolist() == [False, True, False]
    assert steep[y].tolist() == [[True, False], [True, False]]


@pytest.mark.parametrize(
    ("function", "bounded", "steep"),
    [
        (hc.log, True, True),
        (hc.entr, True, True),
        (lambda x: hc.kl_div(2.0, 3 * x), True, True),
        (lambda x: x**0.5, True, True),
        (lambda x: x**1.5, True, False),
        (lambda x: x**2, False, False),
        (lambda x: 1 / x, False, False),  # it may be negative
        (lambda x: hc.log(1 + x), False, False),  # and here down to −1
        (lambda x: hc.log(-x), False, False),
        (hc.log1p, False, False),
        (hc.exp, False, False),
        # an array of exponents has entries that take negative numbers, too
        (lambda x: x ** np.array([0.5, 2.0]), False, False),
        # another value of the parameter would bound nothing, or something else
        (lambda x: x ** hc.Parameter(name="p", value=0.5), False, False),
        (lambda x: hc.log(hc.Parameter(name="p", value=2.0) * x), False, False),
        (lambda x: hc.kl_div(x, hc.Parameter(name="p", value=2.0)), True, True),
    ],
)
def test_what_a_function_says_of_entries_without_a_bound(
    function: Callable[[hc.Variable], hc.Expression], bounded: bool, steep: bool
) -> None:
    x, y = hc.Variable(2, name="x"), hc.Variable(name="y")
    problem = hc.Problem(hc.Minimize(hc.sum(function(x)) + y))
    domain = problem.canonical.domain
    assert domain.cone_rows().lower.tolist() == [0.0 if bounded else -np.inf] * 2 + [-np.inf]
    marks = entries_at_0(Model.checked(hc.Minimize(hc.sum(function(x)) + y)))[1]
    assert bool(marks and marks[x].all()) == steep
    assert not (marks and marks[y])


def test_bounds_that_leave_no_positive_number_stay_as_they_are() -> None:
    """No point lies in the domain, which is for others to say: an empty set has no middle."""
    x = hc.Variable(4, name="x", bounds=([-3, -3, -3, 1], [-1, 0, 2, 2]))
    rows = hc.Problem(hc.Minimize(hc.sum(hc.sqrt(x)))).canonical.domain.cone_rows()
    assert rows.lower.tolist() == [-3.0, -3.0, 0.0, 1.0]
    assert rows.upper.tolist() == [-1.0, 0.0, 2.0, 2.0]


Q = np.array([0.2, 0.3, 0.5])
ENTROPIES: dict[str, tuple[Callable[[hc.Variable], hc.Expression], list[float]]] = {
    # x = e^(−c) over its sum, x = q, and the largest entropy
    "cost": (
        lambda x: np.array([1.0, 2.0, 9.0]) @ x - hc.sum(hc.entr(x)),
        list(np.exp([-1.0, -2.0, -9.0]) / np.exp([-1.0, -2.0, -9.0]).sum()),
    ),
    "divergence": (lambda x: hc.sum(hc.kl_div(x, Q)), list(Q)),
    "relative": (lambda x: hc.sum(hc.rel_entr(x, Q)), list(Q)),
    "product": (lambda x: hc.sum(x * hc.log(x)), [1 / 3] * 3),
}


@pytest.mark.parametrize("method", ["hidden-newton", "interior-point"])
@pytest.mark.parametrize("name", ENTROPIES)
def test_entropies_of_variables_without_bounds(method: str, name: str) -> None:
    function, expected = ENTROPIES[name]
    x = hc.Variable(3, name="x")
    problem = hc.Problem(hc.Minimize(function(x)), [(hc.sum(x) == 1).named("total")])
    problem.solve(method)
    assert problem.status == "optimal"
    np.testing.assert_allclose(x.value, expected, atol=1e-3)
    duals = problem.solution.bound_duals["x"]
    assert not duals.lower.any()  # there is no such bound
    # the slope of the optimal value by the total, from the first entry's: c + 1 + log x for the cost
    slopes = {"cost": 2.0 + np.log(expected[0]), "divergence": 0.0, "relative": 1.0}
    slope = slopes.get(name, 1.0 + np.log(1 / 3))
    assert float(problem.solution.duals["total"]) == pytest.approx(-slope, abs=1e-3)


def test_two_free_arguments_of_a_divergence() -> None:
    """At the start that was 0, a derivative was infinite, which ended the solve."""
    x, y = hc.Variable(2, name="x"), hc.Variable(2, name="y")
    rows = [hc.sum(x) == 1, hc.sum(y) == 1, y[0] >= 0.4, x[0] <= 0.1]
    problem = hc.Problem(hc.Minimize(hc.sum(hc.kl_div(x, y))), rows)
    problem.solve("hidden-newton")
    assert problem.status == "optimal"
    expected = 0.1 * np.log(0.1 / 0.4) + 0.9 * np.log(0.9 / 0.6)
    assert problem.value == pytest.approx(expected, rel=1e-5)


def test_a_minimum_on_the_bound_is_reached_all_the_same() -> None:
    # of √x + y only the root is steep; y belongs on its bound, x far from it
    x, y = (hc.Variable(name=name, bounds=(0, 4)) for name in "xy")
    problem = hc.Problem(hc.Minimize(y + x - 2 * hc.sqrt(x)))
    assert problem.solve() == pytest.approx(-1.0, abs=1e-6)
    np.testing.assert_allclose([x.value, y.value], [1.0, 0.0], atol=1e-3)
