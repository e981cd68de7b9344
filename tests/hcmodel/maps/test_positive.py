"""Entries that cannot be 0, and entries of one array with coordinates of their own."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.facts.nonzero import Nonzero
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.positive import positivity
from hcmodel.reductions.forms import Forms

Case = Callable[[], tuple[hc.Problem, float]]


def _by_rows() -> tuple[hc.Problem, float]:
    """By the inequality of means all sides of the box are 2."""
    x = hc.Variable(3, name="x", nonneg=True)
    surface = x[0] * x[1] + x[1] * x[2] + x[0] * x[2]
    return hc.Problem(hc.Minimize(surface), [hc.prod(x) >= 8]), 12.0


def _by_functions() -> tuple[hc.Problem, float]:
    """x·y + 1/x + 1/y is least at 1, where all terms are equal."""
    x = hc.Variable(2, name="x", bounds=(0, 10))
    return hc.Problem(hc.Minimize(x[0] * x[1] + hc.sum(1 / x))), 3.0


def _by_logarithms_of_free_variables() -> tuple[hc.Problem, float]:
    """x·y − log(x·y) is least at x·y = 1."""
    x, y = hc.Variable(name="x"), hc.Variable(name="y")
    return hc.Problem(hc.Minimize(x * y - hc.log(x) - hc.log(y)), [x + y <= 4]), 1.0


def _one_after_the_other() -> tuple[hc.Problem, float]:
    """x·y >= z excludes 0 as z > 0 follows from z·w >= 2; the least x + y is 2·√z, with z = 1."""
    x, y, z, w = (hc.Variable(name=name, nonneg=True) for name in "xyzw")
    return hc.Problem(hc.Minimize(x + y), [x * y >= z, z * w >= 2, w <= 2]), 2.0


def _maximised() -> tuple[hc.Problem, float]:
    """The largest box with half a surface of 6 has sides √2."""
    x = hc.Variable(3, name="x", nonneg=True)
    surface = x[0] * x[1] + x[1] * x[2] + x[0] * x[2]
    return hc.Problem(hc.Maximize(hc.prod(x)), [surface <= 6]), 2 * np.sqrt(2)


def _beside_a_constant() -> tuple[hc.Problem, float]:
    """The same, minimised beside a constant."""
    x, y, z = (hc.Variable(name=name, nonneg=True) for name in "xyz")
    problem = hc.Problem(hc.Minimize(7 - 2 * x * y * z), [x * y + y * z + x * z <= 6])
    return problem, 7 - 4 * np.sqrt(2)


def _parts_of_an_array() -> tuple[hc.Problem, float]:
    """x₃ does not exclude 0 and stays as it is; x₁·x₂ = 2/x₂ with x₂ <= 4."""
    x = hc.Variable(3, name="x", nonneg=True)
    rows = [x[0] * x[1] ** 2 >= 2, x[1] <= 4]
    return hc.Problem(hc.Minimize(x[0] * x[1] + (x[2] - 0.5) ** 2), rows), 0.5


def _entries_of_different_kinds() -> tuple[hc.Problem, float]:
    """Given x₃, x₁ = e^(x₃/2)/√x₂ at 2·√(x₂·e^x₃) + 1/x₂, and 3·e^(x₃/3) is left where x₂ is best."""
    x = hc.Variable(3, name="x", bounds=([0.1, 0.1, -5], [10, 10, 5]))
    objective = x[0] * x[1] + hc.exp(x[2]) / x[0] + (x[2] - 1) ** 2 + 1 / x[1]
    grid = np.linspace(-1, 1, 200_001)
    return hc.Problem(hc.Minimize(objective)), float((3 * np.exp(grid / 3) + (grid - 1) ** 2).min())


CASES: list[Case] = [
    _by_rows,
    _by_functions,
    _by_logarithms_of_free_variables,
    _one_after_the_other,
    _maximised,
    _beside_a_constant,
    _parts_of_an_array,
    _entries_of_different_kinds,
]


@pytest.mark.parametrize("case", CASES)
def test_models_that_exclude_zero_are_proven(case: Case) -> None:
    problem, value = case()
    problem.solve()
    assert (problem.status, problem.is_hidden_convex()) == ("optimal", True)
    assert problem.value == pytest.approx(value, rel=1e-6)


def _marks(problem: hc.Problem) -> list[str]:
    found = positivity(Expanded.of(Forms(problem.model).bounds.after))
    return [] if found is None else [each.name for each in found.marks]


x, y, z = (hc.Variable(name=name, nonneg=True) for name in "xyz")
ZERO_IS_ALLOWED = {
    "an entropy": hc.Problem(hc.Maximize(hc.entr(x) + hc.log(1 + x))),
    "a divergence": hc.Problem(hc.Minimize(hc.kl_div(x, y) + x)),
    "a divergence of a sum": hc.Problem(hc.Minimize(hc.rel_entr(x + y, z) + x * y)),
    "a sum over a level": hc.Problem(hc.Minimize(x * y), [x + y >= 2]),
    "a product over a product": hc.Problem(hc.Minimize(x + y), [x * y >= x * z]),
    "a root of a sum": hc.Problem(hc.Minimize(1 / hc.sqrt(x + y) + x * y)),
    "a product that is minimised": hc.Problem(hc.Minimize(2 * x * y - 3), [x + y >= 1]),
    "a difference that is maximised": hc.Problem(hc.Maximize(x * y - x * z), [x + z <= 1]),
}


@pytest.mark.parametrize("name", ZERO_IS_ALLOWED)
def test_what_may_be_zero_is_not_excluded(name: str) -> None:
    assert not _marks(ZERO_IS_ALLOWED[name])


def test_a_product_that_can_only_be_zero() -> None:
    """No point has x > 0: that is not infeasible, and the bound for x > 0 is none for x = 0."""
    problem = hc.Problem(hc.Maximize(x * y), [x + y <= 1, y >= 3 * x, x >= 2 * y])
    problem.solve()
    assert problem.status not in ("infeasible", "infeasible_inaccurate")
    assert problem.value == pytest.approx(0.0, abs=1e-6)
    bound = problem.solution.certificate.lower_bound
    assert bound is not None
    assert bound >= -1e-9


def test_rows_that_contradict_each_other_without_the_factor() -> None:
    """z > 0 is for the objective alone; the rows of x and y exclude each other whatever z is."""
    problem = hc.Problem(hc.Maximize(x * y * z), [x * y >= 3, x + y <= 3, z <= 1])
    problem.solve()
    assert problem.status == "infeasible"


def test_a_parameter_decides_whether_zero_is_excluded() -> None:
    """x·y >= c excludes 0 for c > 0 only; the proof follows the parameter."""
    level = hc.Parameter(name="level", value=3.0)
    problem = hc.Problem(hc.Minimize(x + 2 * y), [x * y >= level])
    assert problem.solve() == pytest.approx(2 * np.sqrt(6), rel=1e-6)
    assert _marks(problem) == ["x", "y"]
    level.value = 0.0
    assert not _marks(problem)
    level.value = 1.0
    assert problem.solve() == pytest.approx(2 * np.sqrt(2), rel=1e-6)


def test_multipliers_of_rows_and_bounds() -> None:
    """At x = 2·c, y = c/x of the bound x <= 2: min x·y² with x²·y >= c has dF/dc by hand."""
    row = x**2 * y >= 3
    cap = x <= 2
    problem = hc.Problem(hc.Minimize(x * y**2), [row, cap])
    problem.solve()
    # y = 3/4 at x = 2; F(c) = 2·(c/4)², so that the multiplier is c/4
    assert problem.value == pytest.approx(9 / 8, rel=1e-6)
    assert float(row.dual_value) == pytest.approx(3 / 4, rel=1e-4)
    # F(x) = c²/x³: −dF/dx at x = 2 is 3·9/16
    assert float(cap.dual_value) == pytest.approx(27 / 16, rel=1e-4)


def test_pairs_of_terms_and_candidates_are_those_of_the_definition() -> None:
    """Each term with each candidate that makes it 0, powers and repeated factors among them, once."""
    x, y = hc.Variable(3, name="x", nonneg=True), hc.Variable(name="y", bounds=(-1, 1))
    rows = [x[0] * x[1] ** 1.5 + hc.square(x[2]) * y + x[0] * hc.sqrt(x[0]) + y <= 1]
    model = hc.Problem(hc.Minimize(hc.sum(x)), rows).model
    expanded = Expanded.of(model)
    sums, symbols = expanded.rows[0].sums, expanded.symbols
    own = symbols.of_variable(model.variables[0])
    nonzero = Nonzero(symbols, np.ravel(own))
    wanted = {
        (term, each)
        for term, digits in enumerate(sums.digits.tolist())
        for each in nonzero._vanishing(digits)
    }
    found = list(zip(*(part.tolist() for part in nonzero._vanishing_terms(sums)), strict=True))
    assert len(wanted) >= 4
    assert len(found) == len(set(found))
    assert set(found) == wanted
