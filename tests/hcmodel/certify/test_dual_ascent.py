"""Duals along the central path: no residual, inside the cone, near the optimal value, never above it."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse

import hcmodel as hc
from hcmodel.certify import cone_duality
from hcmodel.certify.cone_ranges import ConePlaces
from hcmodel.certify.dual_ascent import ascended
from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram

ORDER, UNKNOWNS, NUMBERS = 4, 5, 3


def semidefinite(seed: int) -> tuple[ConeProgram, np.ndarray, float]:
    """A program with unknowns of any size, a dual inside, and its value by CVXPY."""
    generator = np.random.default_rng(seed)
    blocks = generator.normal(size=(UNKNOWNS, ORDER, ORDER))
    blocks = blocks + blocks.transpose(0, 2, 1)
    rows = generator.normal(size=(NUMBERS, UNKNOWNS))
    root = generator.normal(size=(ORDER, ORDER))
    matrix = np.vstack([rows, np.array([to_vector(each) for each in blocks]).T])
    offset = np.concatenate([np.ones(NUMBERS), to_vector(root @ root.T + np.eye(ORDER))])
    inside = root.T @ root + 0.1 * np.eye(ORDER)
    z = np.concatenate([generator.uniform(0.5, 1, NUMBERS), to_vector(inside)])
    program = ConeProgram(
        scipy.sparse.csc_array((UNKNOWNS, UNKNOWNS)),
        -matrix.T @ z,
        scipy.sparse.csc_array(matrix),
        offset,
        (
            ConeBlock(ConeKind.NONNEGATIVE, NUMBERS),
            ConeBlock(ConeKind.PSD_TRIANGLE, z.size - NUMBERS),
        ),
        0.0,
    )
    x = cp.Variable(UNKNOWNS)
    slack = to_matrix(offset[NUMBERS:]) - sum(x[i] * blocks[i] for i in range(UNKNOWNS))
    own = cp.Problem(cp.Minimize(program.linear @ x), [rows @ x <= 1, slack >> 0])
    return program, z, float(own.solve(solver="CLARABEL"))


@pytest.mark.parametrize("seed", range(8))
def test_duals_come_up_to_the_optimal_value_from_inside(seed: int) -> None:
    program, z, value = semidefinite(seed)
    first = -float(program.offset @ z)
    size = max(1.0, abs(value))
    found = list(ascended(program, ConePlaces.of(program), z, value - first))
    values = [-float(program.offset @ each) for each in found]
    for each in found:
        assert np.abs(program.linear + program.matrix.T @ each).max() <= 1e-12 * np.abs(z).max()
        assert (each[:NUMBERS] > 0).all()
        assert np.linalg.eigvalsh(to_matrix(each[NUMBERS:]))[0] > 0
    assert max(values) <= value + 1e-7 * size
    assert max(values) == pytest.approx(value, abs=1e-6 * size)


def test_what_it_does_not_know_is_left_alone() -> None:
    program, z, value = semidefinite(0)
    own = ConePlaces.of(program)
    assert not list(ascended(program, own, z, 0.0))  # nothing is missing
    outside = z.copy()
    outside[0] = -1.0
    assert not list(ascended(program, own, outside, 1.0))
    cones = (ConeBlock(ConeKind.SECOND_ORDER, NUMBERS), program.cones[1])
    other = ConeProgram(program.quadratic, program.linear, program.matrix, program.offset, cones)
    assert not list(ascended(other, ConePlaces.of(other), z, value))


def regulator(seed: int) -> tuple[hc.Problem, float]:
    """H∞ control by state feedback without bounds, and its value by CVXPY."""
    generator = np.random.default_rng(seed)
    n, m, w = (int(generator.integers(*ends)) for ends in ((2, 6), (1, 3), (1, 3)))
    plant, inputs = generator.normal(size=(n, n)), generator.normal(size=(n, m))
    noise = generator.normal(size=(n, w))
    outputs = np.vstack([np.eye(n)[:1], np.zeros((m, n))])
    direct = np.vstack([np.zeros((1, m)), np.eye(m)])

    def rows(package, state, own, gamma):
        f, g = plant @ state + inputs @ own, outputs @ state + direct @ own
        zero = np.zeros((1 + m, w))
        blocks = [[f + f.T, noise, g.T], [noise.T, -gamma * np.eye(w), zero.T]]
        return package.bmat([*blocks, [g, zero, -gamma * np.eye(1 + m)]]) << 0

    P, K = hc.Variable((n, n), name="P", PSD=True), hc.Variable((m, n), name="K")
    gamma = hc.Variable(name="gamma", nonneg=True)
    state, own, level = cp.Variable((n, n), PSD=True), cp.Variable((m, n)), cp.Variable(nonneg=True)
    value = cp.Problem(cp.Minimize(level), [rows(cp, state, own, level)]).solve(solver="CLARABEL")
    return hc.Problem(hc.Minimize(gamma), [rows(hc, P, K @ P, gamma)]), float(value)


def test_a_regulator_whose_duals_are_thin_is_certified(monkeypatch: pytest.MonkeyPatch) -> None:
    problem, value = regulator(28)
    assert problem.solve() == pytest.approx(value, rel=1e-5)
    assert problem.status == "optimal"
    assert problem.solution.lower_bound <= problem.value
    monkeypatch.setattr(cone_duality, "_best_inside", lambda *_: -np.inf)
    again, _ = regulator(28)
    again.solve("cone")
    assert again.status != "optimal"
