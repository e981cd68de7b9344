"""A point beside a minimum at which a matrix is singular (`hcmodel.solvers.qp.nonsingular`)."""

import functools

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.records import replace
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp import ConeOptions, ConeProgram, ConeSolution, make_cone_backend
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, cone_program
from hcmodel.solvers.qp.nonsingular import nonsingular

MATRIX = slice(1, 4)


def diagonal(least: float = 0.0, total: float = 1.0) -> ConeProgram:
    """Minimise p + q where p = total, q >= least and [[p, r], [r, q]] ⪰ 0; unknowns (p, r, q)."""
    matrix = np.vstack([[1.0, 0.0, 0.0], -np.eye(3), [0.0, 0.0, -1.0]])
    cones = [
        ConeBlock(ConeKind.ZERO, 1),
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
    ]
    return cone_program(
        np.array([1.0, 0.0, 1.0]), matrix, np.array([total, 0.0, 0.0, 0.0, -least]), cones
    )


def solved(program: ConeProgram) -> ConeSolution:
    return make_cone_backend("clarabel").solve(program, ConeOptions(1e-10, 200))


def test_the_objective_is_given_up_as_far_as_allowed_and_the_matrix_is_regular() -> None:
    program = diagonal()
    minimum = solved(program)
    found = nonsingular(program, minimum, (MATRIX,), 1e-4, solved)
    assert found is not None
    assert found.beside
    assert program.linear @ found.primal == pytest.approx(1.0 + 1e-4, abs=1e-8)
    assert np.linalg.eigvalsh(to_matrix(found.slack[MATRIX]))[0] == pytest.approx(1e-4, rel=1e-3)
    assert np.array_equal(found.dual, minimum.dual)
    assert found.iterations > minimum.iterations


@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_a_matrix_is_singular_relative_to_its_size(scale: float) -> None:
    """An eigenvalue of 1e-6 times the other one is regular; one of rounding is not."""
    program = diagonal(total=scale)
    minimum = solved(program)
    slack = np.array([0.0, scale, 0.0, 1e-6 * scale, 1e-6 * scale])
    regular = replace(minimum, primal=slack[MATRIX], slack=slack)
    assert nonsingular(program, regular, (MATRIX,), 1e-4 * scale, solved) is None
    found = nonsingular(program, minimum, (MATRIX,), 1e-4 * scale, solved)
    assert found is not None
    least = np.linalg.eigvalsh(to_matrix(found.slack[MATRIX]))[0]
    assert least == pytest.approx(1e-4 * scale, rel=1e-3)


@pytest.mark.parametrize(
    ("least", "allowed", "matrices"),
    [(1e-2, 1e-4, (MATRIX,)), (0.0, 0.0, (MATRIX,)), (0.0, 1e-4, ())],
    ids=["regular", "nothing allowed", "no matrix"],
)
def test_a_minimum_stays_where_nothing_is_to_be_gained(
    least: float, allowed: float, matrices: tuple[slice, ...]
) -> None:
    program = diagonal(least)
    assert nonsingular(program, solved(program), matrices, allowed, solved) is None


def test_a_matrix_that_stays_singular_is_left_as_it_is() -> None:
    """q <= 1e-12 is attained: no point within the tolerance has a larger eigenvalue."""
    program = diagonal()
    tight = cone_program(
        program.linear,
        np.vstack([program.matrix.toarray(), [[0.0, 0.0, 1.0]]]),
        np.append(program.offset, 1e-12),
        (*program.cones, ConeBlock(ConeKind.NONNEGATIVE, 1)),
    )
    minimum = solved(program)
    exact = ConeSolution(
        minimum.status,
        np.array([1.0, 0.0, 1e-12]),
        np.array([0.0, 1.0, 0.0, 1e-12, 1e-12, 0.0]),
        np.append(minimum.dual, 0.0),
    )
    assert nonsingular(tight, exact, (MATRIX,), 1e-4, solved) is None


# ---- the gains of H∞ control, of which none attains the least norm


@functools.cache
def worst_case(tol: float) -> hc.Solution:
    """An unstable plant with two states, two inputs and two disturbances; the least norm is 2.0487321."""
    generator = np.random.default_rng(14)
    generator.integers(2, 6), generator.integers(1, 3), generator.integers(1, 3)
    A, B, E = (generator.standard_normal((2, 2)) for _ in range(3))
    C, D = np.vstack([[[1.0, 0.0]], np.zeros((2, 2))]), np.vstack([np.zeros((1, 2)), np.eye(2)])
    P, K = hc.Variable((2, 2), PSD=True, name="P"), hc.Variable((2, 2), name="K")
    gamma = hc.Variable(nonneg=True, name="gamma")
    F, G = (A + B @ K) @ P, (C + D @ K) @ P
    blocks = [
        [F + F.T, E, G.T],
        [E.T, -gamma * np.eye(2), np.zeros((2, 3))],
        [G, np.zeros((3, 2)), -gamma * np.eye(3)],
    ]
    problem = hc.Problem(hc.Minimize(gamma), [hc.bmat(blocks) << 0])
    problem.solve(tol=tol)
    assert problem.solution is not None
    return problem.solution


@pytest.mark.parametrize("tol", [1e-6, 1e-3])
def test_of_the_gains_within_the_tolerance_a_small_one_is_given(tol: float) -> None:
    solution = worst_case(tol)
    assert solution.status is hc.Status.OPTIMAL
    assert solution.lower_bound == pytest.approx(2.04873213, rel=1e-6)
    assert solution.value == pytest.approx(2.04873213 * (1 + tol / 2), rel=tol / 10)
    assert "P becomes singular" in solution.message


def test_the_gain_is_as_small_as_the_tolerance_is_large() -> None:
    """The least eigenvalue of P is proportional to what the norm may be worse by."""
    sizes = [float(np.abs(worst_case(tol).point["K"]).max()) for tol in (1e-6, 1e-3)]
    assert sizes[0] / sizes[1] == pytest.approx(1e3, rel=0.1)


def number(target: float = 0.0) -> ConeProgram:
    """Minimise y + 2 t where y − t >= 1, y + t >= 1 and y + z = 2 + target t; unknowns (y, z, t)."""
    matrix = [[1.0, 1.0, -target], [-1.0, 0.0, 1.0], [-1.0, 0.0, -1.0], [0.0, 0.0, -1.0]]
    cones = [ConeBlock(ConeKind.ZERO, 1), ConeBlock(ConeKind.NONNEGATIVE, 3)]
    return cone_program(np.array([1.0, 0, 2.0]), matrix, np.array([2.0, -1.0, -1.0, 0.0]), cones)


def test_a_number_is_kept_from_zero_and_rows_hold_after_a_division_by_it() -> None:
    program, zero = number(target=3.0), slice(3, 4)
    found = nonsingular(program, solved(program), (zero,), 3e-7, solved)
    assert found is not None
    y, z, t = found.primal
    assert t == pytest.approx(1e-7, rel=0.1)  # y = 1 + t, so that the objective is 1 + 3 t
    assert abs(y + z - 2 - 3 * t) <= 1e-15
    assert y - t >= 1.0


def test_a_number_is_small_relative_to_all_unknowns() -> None:
    program, zero = number(), slice(3, 4)
    minimum = solved(program)
    far = replace(minimum, slack=np.array([0.0, 0.0, 0.0, 1e-6]))
    assert nonsingular(program, far, (zero,), 3e-7, solved) is None
