"""Programs whose points are farther inside of their cones, and what they are for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp import ConeBlock, ConeKind, cone_program, solve_cone
from hcmodel.solvers.qp.deeper import deeper


def test_every_cone_has_an_element_inside_of_it() -> None:
    blocks = [
        ConeBlock(ConeKind.ZERO, 1),
        ConeBlock(ConeKind.NONNEGATIVE, 2),
        ConeBlock(ConeKind.SECOND_ORDER, 3),
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        ConeBlock(ConeKind.EXPONENTIAL, 6),
        ConeBlock(ConeKind.POWER, 3, 0.3),
    ]
    program = cone_program(np.ones(1), np.zeros((18, 1)), np.full(18, 5.0), blocks)
    e = (program.offset - deeper(program, 0.5).offset) / 0.5
    assert e[:3].tolist() == [0.0, 1.0, 1.0]
    assert e[3] > np.linalg.norm(e[4:6])
    assert np.linalg.eigvalsh(to_matrix(e[6:9])).min() > 0
    for x, y, z in (e[9:12], e[12:15]):
        assert y * np.exp(x / y) < z
    x, y, z = e[15:]
    assert x**0.3 * y**0.7 > abs(z)


def test_points_are_inside_by_the_amount() -> None:
    """x >= 1, at a distance of 1/4."""
    program = cone_program(
        np.ones(1), -np.ones((1, 1)), -np.ones(1), [ConeBlock(ConeKind.NONNEGATIVE, 1)]
    )
    assert solve_cone(deeper(program, 0.25)).primal == pytest.approx([1.25])


# The optimum is at the edge of a domain; 0 is not in it.
EDGES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], list[Any]], float]] = {
    "entropy": (lambda x: x @ [1.05, 0.92], lambda x: [hc.sum(hc.entr(2 * x - 1)) >= -1], 0.985),
    "root": (lambda x: x @ [1.05, 0.92], lambda x: [hc.sum((2 * x - 1) ** 0.25) >= 0], 0.985),
    "power": (lambda x: x[0] + x[1] ** 2, lambda x: [(x - 1) ** 1.5 <= 8], 2.0),
    "power in the objective": (lambda x: hc.sum((x - 1) ** 2.5 + x), lambda x: [], 2.0),
    "relative entropy": (
        lambda x: hc.sum(x),
        lambda x: [hc.sum(hc.rel_entr(x - 1, [1.0, 2.0])) <= 3],
        2.0,
    ),
}


@pytest.mark.parametrize("name", EDGES)
def test_optima_at_edges_of_domains(name: str) -> None:
    """Cone programs end 1e-12 outside, where functions have no value; power cones bound |a|^p."""
    cost, rows, value = EDGES[name]
    x = hc.Variable(2, name="x")
    problem = hc.Problem(hc.Minimize(cost(x)), rows(x))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, abs=1e-6)
    assert problem.solution is not None
    assert ", then" not in problem.solution.method
