"""Models of the smooth pieces of functions with kinks."""

from __future__ import annotations

import autograd
import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Termination, function_oracle, minimize
from hcmodel.solvers.first_order.pieces import Piece, Pieces
from hcmodel.solvers.qp import make_backend
from tests.extent import ALL
from tests.problems.kinks import eigenvalue, fit, rosenbrock

FloatArray = NDArray[np.float64]
BOUNDLESS = (np.full(2, -np.inf), np.full(2, np.inf))
CURVED = np.array([[2.0, 0.5], [0.5, -1.0]])  # indefinite
OTHER = np.array([-3.0, 1.0])


def piece(y: FloatArray, slope: FloatArray, hessian: FloatArray) -> Piece:
    """½ yᵀHy + slope·y, seen at y."""
    value = float(slope @ y + y @ hessian @ y / 2)
    return Piece(y, value, slope + hessian @ y, np.zeros((2, 2)))


def test_evaluations_of_a_piece_show_its_second_derivatives() -> None:
    zero = np.zeros(2)
    found = Pieces((piece(zero, zero + 1.0, CURVED), piece(zero, OTHER, CURVED)))
    generator = np.random.default_rng(0)
    for _ in range(40):
        y = generator.uniform(-0.1, 0.1, 2)
        value = float(np.sum(y) + y @ CURVED @ y / 2)
        found, was = found.noted(y, value, 1.0 + CURVED @ y)
        assert was is not None
    last = found.active[-1]
    assert last.hessian == pytest.approx(CURVED, abs=1e-3)
    assert found.active[0].hessian == pytest.approx(np.zeros((2, 2)))


def test_a_gradient_unlike_all_others_opens_a_piece() -> None:
    zero = np.zeros(2)
    known = Pieces((piece(zero, zero + 1.0, CURVED), piece(zero, OTHER, CURVED)))
    found, was = known.noted(np.array([0.01, 0.0]), 0.05, np.array([5.0, -5.0]))
    assert was is None
    assert len(found.active) == 3


def test_a_piece_comes_back_with_its_second_derivatives() -> None:
    zero = np.zeros(2)
    known = Pieces((piece(zero, zero + 1.0, CURVED), Piece(zero, 0.0, OTHER, CURVED)))
    away = known.without([known.active[1]])
    y = np.array([0.1, -0.1])
    found, was = away.noted(y, float(OTHER @ y + y @ CURVED @ y / 2), OTHER + CURVED @ y)
    assert was is None
    assert found.active[-1].hessian == pytest.approx(CURVED)
    assert not found.dormant


def test_the_least_value_of_the_model_lies_where_curved_pieces_meet() -> None:
    """max(y₁, y₂² − y₁): least where y₁ = y₂²/2, at 0."""
    bent = Piece(np.zeros(2), 0.0, np.array([-1.0, 0.0]), np.diag([0.0, 2.0]))
    flat = Piece(np.zeros(2), 0.0, np.array([1.0, 0.0]), np.zeros((2, 2)))
    start = np.array([0.5, 1.0])
    step = Pieces((bent, flat)).least(start, 5.0, BOUNDLESS, make_backend())
    assert step is not None
    assert start + step.step == pytest.approx(np.zeros(2), abs=1e-3)
    assert step.shares == pytest.approx([0.5, 0.5], abs=1e-3)


def test_a_piece_beyond_a_concave_kink_is_put_aside() -> None:
    """−|y₁|: the slope of one side exceeds the function on the other."""
    left = Piece(np.array([-0.1, 0.0]), -0.1, np.array([1.0, 0.0]), np.zeros((2, 2)))
    right = Piece(np.array([0.1, 0.0]), -0.1, np.array([-1.0, 0.0]), np.zeros((2, 2)))
    found = Pieces((left, right)).below(np.array([0.1, 0.0]), -0.1)
    assert found.active == (right,)
    assert found.dormant == (left,)


# Points that a run may take. Nesterov's functions: from the published start, which is on all kinks.
RUNS = [
    (rosenbrock(2, "square"), 150),
    (rosenbrock(3, "sharp"), 300),
    (rosenbrock(2, "folded"), 200),
    (fit("max", 1), 45),
]
if ALL:
    RUNS += [(rosenbrock(4, kind), 2500) for kind in ("sharp", "square", "folded")]
    RUNS += [(eigenvalue(1), 60), (fit("L1", 0), 70)]


@pytest.mark.parametrize(("case", "most"), RUNS, ids=lambda value: getattr(value, "name", ""))
def test_kinks_without_structure_are_solved_in_few_points(case, most) -> None:
    size = case.start.size
    slopes = autograd.value_and_grad(case.function)
    result = minimize(
        function_oracle(size, slopes, smooth=False),
        Box(np.full(size, -np.inf), np.full(size, np.inf)),
        case.start,
        method="gradient-sampling",
    )
    assert result.termination is Termination.HULL_STATIONARY
    assert result.evaluation.objective - case.optimum <= 1e-6 * max(1.0, abs(case.optimum))
    assert result.calls.points <= most
