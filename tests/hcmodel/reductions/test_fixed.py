"""Variables that a row fixes become numbers, and come back with their rows and multipliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.reductions.fixed import Fixed
from hcmodel.testing import check_reduction


def pair(**kind: Any) -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable(name="x", **kind), hc.Variable(name="y", **kind)


def reduction(objective: Any, *rows: hc.Constraint) -> Fixed | None:
    return Fixed.of(Model.checked(hc.Minimize(objective), list(rows)))


KINDS: list[dict[str, Any]] = [{}, {"nonneg": True}, {"bounds": (-1, 1)}, {"bounds": (0, 2)}]


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("sense", [hc.Minimize, hc.Maximize])
def test_a_product_with_0_is_0(kind: dict[str, Any], sense: Any) -> None:
    """They ended `locally_optimal`, or with x at the tolerance and y at 1e14."""
    x, y = pair(**kind)
    row = x == 0
    problem = hc.Problem(sense(x * y), [row])
    assert problem.solve() == 0.0
    assert problem.status == "optimal"
    assert x.value == 0.0
    slope = float(y.value)  # of x·y by x; a bound x >= 0 may hold a part of it back
    assert abs(float(row.dual_value)) <= abs(slope) + 1e-9
    assert problem.is_hidden_convex()


def test_multipliers_of_fixing_rows_are_slopes_of_the_lagrangian() -> None:
    """minimize x y² + x·y with Σ y = 1, x = (1, 2, 3): the slope by x is y² + y."""
    x, y = (hc.Variable(3, name=name) for name in "xy")
    fixing, total = x == np.array([1.0, 2.0, 3.0]), hc.sum(y) == 1
    problem = hc.Problem(hc.Minimize(hc.sum(x * y**2) + x @ y), [fixing, total])
    problem.solve()
    assert problem.status == "optimal"
    y_star = y.value
    assert fixing.dual_value == pytest.approx(-(y_star**2 + y_star), abs=1e-7)
    weight = float(total.dual_value)
    assert 2 * np.arange(1, 4) * y_star + np.arange(1, 4) + weight == pytest.approx(0, abs=1e-6)


def test_points_and_multipliers_walk_there_and_back() -> None:
    x, y = pair(bounds=(-3, 3))
    z = hc.Variable(2, name="z")
    found = reduction(x * y + hc.sum(z * z), x == 2, x * y >= 1, z == np.array([1.0, -1.0]))
    assert found is not None
    assert found.positions == (0, 2)
    assert found.after.variables == (y,)
    check_reduction(found)


def test_a_conflict_has_the_rows_that_fix_its_variables_and_no_others() -> None:
    x, y = pair(bounds=(-3, 3))
    z = hc.Variable(name="z")
    rows = [x == 2, x * y >= 7, z == 1]
    problem = hc.Problem(hc.Minimize(y**2 + z * y), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("c1", "c2", "y <= 3")


def test_what_is_no_number_of_the_set_fixes_nothing() -> None:
    x, y = pair(bounds=(1, 2))
    cap = hc.Parameter(name="cap", value=1.5)
    free = hc.Variable(name="w")
    for row in (x == 3, x == cap, x + y == 2, 2 * x == 3):
        assert reduction(x * y, row) is None, row
    assert reduction(free * y, free == 1, free == 2) is None
    assert reduction(free, free == 1) is None  # nothing is left
    assert reduction(free * y, free == 1, free == 1) is not None


def test_functions_that_are_not_defined_at_the_number_keep_the_variable() -> None:
    x, y = pair()
    for function in (y / x, hc.log(x) + y, hc.log(x * y), y + 1 / x):
        assert reduction(function, x == 0) is None, function
    assert reduction(x / y, x == 0) is not None  # 0 but for the pole


def test_a_user_s_function_keeps_its_variable() -> None:
    x, y = pair()
    assert reduction(hc.function(lambda v: v**2, x) + y, x == 1) is None


def test_parameters_elsewhere_are_read_anew() -> None:
    x, y = pair(bounds=(-3, 3))
    price = hc.Parameter(name="price", value=1.0)
    problem = hc.Problem(hc.Minimize(-price * x * y + y**2 / 4), [x == 2])
    assert problem.solve() == pytest.approx(-6 + 9 / 4)
    price.value = 0.5
    assert problem.solve() == pytest.approx(-1.0)
    assert problem.status == "optimal"


def test_the_analysis_says_which_variables_are_numbers() -> None:
    x, y = pair()
    found = hc.Problem(hc.Minimize(x * y + y**2), [x == 1]).analyze()
    assert found.verdict == "proven"
    assert any("rows fix x" in each for each in found.conditions)
