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


OBJECTIVES: dict[str, Callable[[hc.Variable], hc.Minimize | hc.Maximize]] = {
    "an entry": lambda x: hc.Minimize(x[0]),
    "a product": lambda x: hc.Maximize((x[0] + 0.6) * (9 - hc.sum(x)) * (x[1] + 0.5)),
    "a wave": wavy,
    "a difference of squares": lambda x: hc.Minimize(x[0] ** 2 - 2 * x[1] ** 2),
}


@pytest.mark.parametrize("seed", range(several(4, 20)))
@pytest.mark.parametrize("objective", OBJECTIVES)
def test_whether_ratios_contradict_each_other_does_not_depend_on_the_objective(
    objective: str, seed: int
) -> None:
    """Their denominators are positive, so that a linear program says whether there is a point."""
    rng = np.random.default_rng(seed)
    above, below = rng.uniform(-1, 1, size=3), rng.uniform(0, 2, size=3)
    slopes = above - 0.12 * below
    lowest = float(slopes.min()) + 0.88  # of the numerator less 0.12 times the denominator
    infeasible = seed % 2 == 0
    shift = lowest - 0.1 if infeasible else lowest + 0.1
    x = hc.Variable(3, name="x", bounds=(0, 3))
    ratio = (above @ x + 1 - shift) / (below @ x + 1) <= 0.12
    problem = hc.Problem(OBJECTIVES[objective](x), [ratio.named("ratio"), hc.sum(x) == 1])
    problem.solve()
    assert problem.solution is not None
    assert (problem.status == "infeasible") == infeasible
    if infeasible:
        assert problem.solution.conflict[:2] == ("ratio", "c2")
    else:
        assert problem.status in ("optimal", "locally_optimal", "optimal_inaccurate")
