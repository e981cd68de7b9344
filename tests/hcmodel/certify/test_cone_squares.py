"""Ranges from squares in the objective and from equations: they hold all points of a level set."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse

import hcmodel as hc
from hcmodel.certify.duals.cone_ranges import ConePlaces, ranges
from hcmodel.solvers.loop import WholeProgram
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, cone_program

rng = np.random.default_rng(4)
A, b = rng.normal(size=(7, 4)), rng.normal(size=7)
LEAST = float(np.linalg.lstsq(A, b)[1][0])


def least_squares(matrix: np.ndarray) -> ConeProgram:
    """min |r|² + r₀, r = A x − b, in the unknowns (x, r)."""
    rows, columns = matrix.shape
    equations = scipy.sparse.csc_matrix(np.hstack([matrix, -np.eye(rows)]))
    quadratic = scipy.sparse.csc_matrix(np.diag(np.repeat([0.0, 2.0], [columns, rows])))
    linear = np.zeros(rows + columns)
    linear[columns] = 1.0
    return cone_program(linear, equations, b, [ConeBlock(ConeKind.ZERO, rows)], quadratic, 0.5)


def cost(x: np.ndarray) -> float:
    r = A @ x - b
    return float(r @ r + r[0] + 0.5)


def test_the_ranges_hold_the_points_of_the_level_set() -> None:
    program, level = least_squares(A), LEAST + 1.0
    found = ranges(program, ConePlaces.of(program), level)
    assert np.isfinite([found.lower, found.upper]).all()
    centre = np.linalg.lstsq(A, b)[0]
    inside = 0
    for _ in range(200):
        direction = rng.normal(size=4)
        x = centre + direction
        while cost(x) > level and np.abs(direction).max() > 1e-3:
            direction *= 0.9
            x = centre + direction
        if cost(x) <= level:
            inside += 1
            point = np.concatenate([x, A @ x - b])
            assert (point >= found.lower).all()
            assert (point <= found.upper).all()
    assert inside > 100
    # the longest r is reached: a bound half as far would be wrong
    assert found.upper[4:].max() < 3 * np.sqrt(level + 1)


def test_columns_that_depend_on_each_other_have_no_ranges() -> None:
    twice = np.hstack([A[:, :3], A[:, :1]])
    program = least_squares(twice)
    found = ranges(program, ConePlaces.of(program), LEAST + 1.0)
    assert np.isinf(found.upper[:4]).all()
    assert np.isfinite(found.upper[4:]).all()


@pytest.mark.parametrize("rows", [40, 30])
def test_least_squares_without_bounds_are_certified_without_a_search(
    rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search with half-spaces took 18 s with 400 unknowns, and no bound was found."""
    monkeypatch.setattr("hcmodel.certify.minorants.level_sets.level_ball", None)
    matrix, right = rng.normal(size=(rows, 30)), rng.normal(size=rows)
    x = hc.Variable(30, name="x")
    problem = hc.Problem(hc.Minimize(1 + hc.sum_squares(matrix @ x - right)))
    problem.solve()
    assert problem.status == "optimal"
    residual = matrix @ np.linalg.lstsq(matrix, right)[0] - right
    assert problem.value == pytest.approx(1 + residual @ residual, rel=1e-9)
    assert problem.solution.certificate.lower_bound <= 1 + residual @ residual + 1e-12


def test_entries_of_a_bounded_matrix_hold_the_unknowns_that_they_combine() -> None:
    """[[X, R Y], [(R Y)ᵀ, P]] >> 0 with tr X + tr P <= level: no entry of the block has one y alone."""
    weights = np.array([[2.0, 1.0], [1.0, 3.0]])
    P, Y = hc.Variable((2, 2), name="P", PSD=True), hc.Variable((2, 2), name="Y")
    cost = hc.trace(P) + hc.matrix_frac((weights @ Y).T, P)
    form = hc.Problem(hc.Minimize(cost), [P[0, 0] + Y[0, 0] >= 3]).forms().hidden()
    assert form is not None
    whole = form.whole("cone")
    assert isinstance(whole, WholeProgram)
    found = ranges(whole.program, ConePlaces.of(whole.program), 10.0)
    assert np.isfinite([found.lower, found.upper]).all()
    layout = form.canonical.layout
    own = layout.slice(next(each for each in layout.variables if each.name == "Y"))
    # |R Y| <= tr X + tr P <= 10 in every entry, so that |Y| <= 10·‖R⁻¹‖·2
    assert found.upper[own].max() <= 10 * np.linalg.norm(np.linalg.inv(weights), 2) * 4
    assert found.upper[own].min() >= 10 / 3 / 2


@pytest.mark.parametrize("seed", [59, 78])
def test_a_regulator_with_full_weights_and_without_bounds_is_certified(seed: int) -> None:
    generator = np.random.default_rng(seed)
    plant, inputs = generator.normal(size=(4, 4)), generator.normal(size=(4, 2))
    Q, R, W = (
        (half @ half.T + 0.1 * np.eye(len(half)))
        for half in (generator.normal(size=(size, size)) for size in (4, 2, 4))
    )
    P, K = hc.Variable((4, 4), name="P", PSD=True), hc.Variable((2, 4), name="K")
    closed = plant + inputs @ K
    rows = [closed @ P + P @ closed.T + W << 0, P >> 1e-6 * np.eye(4)]
    problem = hc.Problem(hc.Minimize(hc.trace((Q + K.T @ R @ K) @ P)), rows)
    problem.solve()
    assert problem.status == "optimal"
    best = np.trace(scipy.linalg.solve_continuous_are(plant, inputs, Q, R) @ W)
    assert problem.value == pytest.approx(best, rel=1e-7)
    assert problem.solution is not None
    assert problem.solution.method == "auto: cone (proven convex in P, K @ P)"
