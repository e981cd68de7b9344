"""One Newton step on the optimality conditions, with what seems active held."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.solvers.second_order.polishing import _solution


def test_regular_systems_are_solved() -> None:
    system = np.array([[2.0, 1.0], [1.0, 0.0]])
    assert _solution(system, np.array([5.0, 1.0])).tolist() == pytest.approx([1.0, 3.0])


def test_of_dependent_rows_the_shortest_solution_is_taken() -> None:
    system = np.array([[1.0, 1.0], [1.0, 1.0]])
    assert _solution(system, np.array([2.0, 2.0])).tolist() == pytest.approx([1.0, 1.0])


def test_a_vertex_leaves_no_system_and_no_complaint_of_lapack(
    capfd: pytest.CaptureFixture[str],
) -> None:
    assert _solution(np.zeros((0, 0)), np.zeros(0)).size == 0
    assert capfd.readouterr() == ("", "")
