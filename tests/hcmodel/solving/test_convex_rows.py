"""Models without a proof whose convex rows contradict each other (`hcmodel.solving.convex_rows`)."""

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from tests.extent import several

SLOPES = np.array([[1.0, 2, 3], [-1, -1, 2], [-3, 1, -1]])
LAST = np.array([2.0, -3, -4])


def wavy(x: hc.Variable) -> hc.Minimize:
    """An objective that no coordinates make convex."""
    return hc.Minimize(hc.sin(x[0]) * x[1] * x[2])


def straight() -> hc.Problem:
    x = hc.Variable(3, name="x")
    rows = [SLOPES @ x <= -1, LAST @ x <= -5, -(SLOPES.sum(0) + LAST) @ x <= 3]
    return hc.Problem(wavy(x), rows)


def a_ball_beside_a_wave() -> hc.Problem:
    x = hc.Variable(3, name="x")
    return hc.Problem(wavy(x), [hc.sin(x[0]) <= x[1] ** 3, hc.norm(x) <= 1, hc.sum(x) >= 4])


def posynomials_beside_a_signomial() -> hc.Problem:
    x = hc.Variable(3, name="x", pos=True)
    rows = [x[0] * x[1] <= 1, x[0] >= 2, x[1] >= 3, x[2] * x[0] - x[1] <= 5]
    return hc.Problem(hc.Minimize(x[0] * x[1] - x[2]), rows)


def a_matrix() -> hc.Problem:
    matrix = hc.Variable((2, 2), name="X", symmetric=True)
    rows = [matrix >> 2 * np.eye(2), hc.trace(matrix) <= 1]
    return hc.Problem(hc.Minimize(hc.sin(matrix[0, 0])), rows)


def with_bounds() -> hc.Problem:
    x = hc.Variable(3, name="x", nonneg=True)
    return hc.Problem(wavy(x), [x[0] * x[1] == 2, x[0] + x[2] <= -1])


@pytest.mark.parametrize(
    ("make", "conflict"),
    [
        (straight, ("c1[0]", "c1[1]", "c1[2]", "c2")),
        (a_ball_beside_a_wave, ("c2", "c3")),
        (posynomials_beside_a_signomial, ("c1", "c2", "c3")),
        (a_matrix, ("c1", "c2")),
        (with_bounds, ("c2", "x[0] >= 0", "x[2] >= 0")),
    ],
)
def test_convex_rows_without_a_common_point(
    make: Callable[[], hc.Problem], conflict: tuple[str, ...]
) -> None:
    problem = make()
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == conflict
    assert "convex by themselves" in problem.solution.certificate.conditions[0]


def test_rows_that_have_points_are_not_excluded() -> None:
    """Random straight rows and a ball through a known point, which a third row makes hard to find."""
    generator = np.random.default_rng(5)
    for _ in range(several(5, 60)):
        inside = generator.standard_normal(3)
        x = hc.Variable(3, name="x")
        slopes = generator.standard_normal((3, 3))
        rows = [
            slopes @ x <= slopes @ inside,
            hc.norm(x - inside) <= 1e-3,
            hc.sin(5 * x[0]) * x[1] == np.sin(5 * inside[0]) * inside[1],
        ]
        problem = hc.Problem(wavy(x), rows)
        problem.solve(max_calls=100)
        assert problem.status != "infeasible"
