"""Hessians with structure against the arrays that they stand for, alone and in quadratic programs."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers import function_oracle
from hcmodel.solvers.algebra import hessians
from hcmodel.solvers.algebra.hessians import (
    SparseHessian,
    as_dense,
    convexified,
    has_negative,
    with_squares,
)
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.loop import Task
from hcmodel.solvers.qp import QuadraticProgram, make_backend, residuals, solve_program
from hcmodel.solvers.qp.program import Cone, StepRows
from hcmodel.solvers.second_order import quasi_newton
from hcmodel.solvers.second_order.quasi_newton import BfgsCurvature, LimitedMemoryCurvature
from hcmodel.solvers.sets.box import Box

FloatArray = NDArray[np.float64]


def structured(generator: np.random.Generator, size: int = 12) -> SparseHessian:
    """Positive definite, with columns of both signs."""
    band = sp.diags_array(
        [np.full(size - 1, -1.0), np.full(size, 4.0), np.full(size - 1, -1.0)], offsets=[-1, 0, 1]
    )
    plus = generator.standard_normal((size, 2))
    minus = 0.3 * generator.standard_normal((size, 1)) / np.sqrt(size)
    return SparseHessian(sp.csr_array(band), plus, minus)


def test_products_and_scales_are_those_of_the_array() -> None:
    generator = np.random.default_rng(0)
    hessian = structured(generator)
    array, w = hessian.toarray(), generator.standard_normal(12)
    scale = generator.uniform(0.5, 2, 12)
    np.testing.assert_allclose(hessian @ w, array @ w, rtol=1e-12)
    np.testing.assert_allclose(hessian.diagonal(), np.diag(array), rtol=1e-12)
    np.testing.assert_allclose((hessian * 3.0).toarray(), 3 * array, rtol=1e-12)
    np.testing.assert_allclose(
        hessian.scaled(scale).toarray(), array * np.outer(scale, scale), rtol=1e-12
    )
    np.testing.assert_allclose(hessian.shifted(0.5).toarray(), array + 0.5 * np.eye(12), rtol=1e-12)


def test_a_diagonal_is_added_where_the_pattern_has_none() -> None:
    hollow = SparseHessian(sp.csr_array(np.eye(4, k=1) + np.eye(4, k=-1)))
    expected = np.eye(4, k=1) + np.eye(4, k=-1) + np.diag([1.0, 2.0, 3.0, 4.0])
    np.testing.assert_array_equal(hollow.shifted(np.arange(1.0, 5.0)).toarray(), expected)


def test_short_gradients_go_into_the_matrix_and_long_ones_beside_it() -> None:
    generator = np.random.default_rng(1)
    size = 200
    short = np.zeros((2, size))
    short[0, :3], short[1, 50:52] = 1.0, -2.0
    rows = np.vstack([short, generator.standard_normal((2, size))])
    weights = np.array([0.5, -0.25, 2.0, -3.0])
    found = with_squares(sp.eye_array(size, format="csr"), [(weights, rows)])
    assert isinstance(found, SparseHessian)
    assert found.plus.shape == found.minus.shape == (size, 1)
    assert found.sparse.nnz <= size + 9 + 4
    expected = np.eye(size) + rows.T @ (weights[:, None] * rows)
    np.testing.assert_allclose(found.toarray(), expected, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(with_squares(np.eye(size), [(weights, rows)]), expected, rtol=1e-10)


@pytest.mark.parametrize("largest", [hessians.RULES.largest_dense, 0])
def test_indefinite_matrices_are_made_semidefinite_and_others_left(
    monkeypatch: pytest.MonkeyPatch, largest: int
) -> None:
    rules = hessians.HessianRules(largest_dense=largest)
    monkeypatch.setattr(hessians, "RULES", rules)
    good = structured(np.random.default_rng(2))
    assert convexified(good) is good
    assert not has_negative(good, 1e-6)
    bad = good.shifted(-3.5 * np.ones(12))
    assert np.linalg.eigvalsh(bad.toarray())[0] < -0.1
    assert has_negative(bad, 1e-6)
    mended = as_dense(convexified(bad))
    assert np.linalg.eigvalsh(mended)[0] > -1e-9
    # directions in which it was convex stay curved at least as much
    values, vectors = np.linalg.eigh(bad.toarray())
    top = vectors[:, -1]
    assert top @ mended @ top >= values[-1] - 1e-9


def test_undefined_second_derivatives_count_as_none() -> None:
    undefined = SparseHessian(sp.csr_array(np.diag([1.0, np.nan])))
    np.testing.assert_array_equal(as_dense(convexified(undefined)), np.zeros((2, 2)))


def programs(generator: np.random.Generator, quadratic: SparseHessian) -> QuadraticProgram:
    size = quadratic.size
    matrix, equal = generator.standard_normal((3, size)), generator.standard_normal((1, size))
    ball = Cone("zero", sp.csr_array(np.ones((1, size))), np.zeros(1))
    return QuadraticProgram(
        quadratic,
        3 * generator.standard_normal(size),
        matrix,
        generator.uniform(0.1, 0.5, 3),
        equal,
        np.array([0.1]),
        StepRows(np.full(size, -0.6), np.full(size, 0.6), (ball,)),
    )


@pytest.mark.parametrize("signs", [(True, True), (True, False), (False, True), (False, False)])
def test_a_program_with_structure_has_the_solution_of_the_plain_one(
    signs: tuple[bool, bool],
) -> None:
    generator = np.random.default_rng(3)
    full, none = structured(generator), np.zeros((12, 0))
    quadratic = SparseHessian(
        full.sparse, full.plus if signs[0] else none, full.minus if signs[1] else none
    )
    program = programs(generator, quadratic)
    plain = QuadraticProgram(
        quadratic.toarray(), *(getattr(program, name) for name in list(vars(program))[1:])
    )
    found = solve_program(make_backend("clarabel"), program)
    expected = solve_program(make_backend("clarabel"), plain)
    assert found.usable
    np.testing.assert_allclose(found.step, expected.step, atol=1e-7)
    for name in ("inequality_multipliers", "equality_multipliers", "bound_multipliers"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-5)
    free = QuadraticProgram(
        *(list(vars(program).values())[:-1]), StepRows(*[np.full(12, -9.0), np.full(12, 9.0)], ())
    )
    assert max(residuals(free, solve_program(make_backend("clarabel"), free))) < 1e-6


def walked(curvature: BfgsCurvature | LimitedMemoryCurvature, steps: int) -> FloatArray:
    """B after some steps on a quadratic function, in a box whose natural units differ."""
    generator = np.random.default_rng(4)
    root = generator.standard_normal((6, 6))
    matrix = root @ root.T + np.eye(6)
    domain = Box(np.zeros(6), np.full(6, 10.0), np.zeros(6, dtype=bool))
    oracle = function_oracle(6, lambda x: (0.5 * x @ matrix @ x, matrix @ x))
    task = Task(oracle, domain, 1e-6)
    old = oracle.at(np.full(6, 5.0))
    none = np.zeros(0)
    curvature.at(task, PlainCoordinates(domain), old, none)
    for _ in range(steps):
        new = oracle.at(old.point + generator.uniform(-1, 1, 6))
        curvature.moved(old, new, none)
        step, change = new.point - old.point, matrix @ (new.point - old.point)
        old = new
    found = as_dense(curvature.at(task, PlainCoordinates(domain), old, none))
    # the secant equation: the last change of the gradient is reproduced
    np.testing.assert_allclose(found @ step, change, rtol=1e-8)
    assert np.linalg.eigvalsh(found)[0] > 0
    return found


@pytest.mark.parametrize("steps", [1, 4, 15])
def test_limited_memory_keeps_the_last_secants(steps: int) -> None:
    walked(LimitedMemoryCurvature(), steps)
    walked(BfgsCurvature(), steps)


def test_limited_memory_is_the_recursion_from_its_own_scale() -> None:
    generator = np.random.default_rng(5)
    pairs = []
    for _ in range(4):
        step = generator.standard_normal(8)
        pairs.append((step, step * generator.uniform(0.5, 2, 8)))
    matrix = 1.7 * np.eye(8)
    for step, change in pairs:
        product = matrix @ step
        matrix -= np.outer(product, product) / (step @ product)
        matrix += np.outer(change, change) / (step @ change)
    found = quasi_newton._low_rank(1.7, pairs, 8)
    np.testing.assert_allclose(found.toarray(), matrix, rtol=1e-10, atol=1e-12)
    core = found.sparse.toarray() - found.minus @ found.minus.T
    assert np.linalg.eigvalsh(core)[0] > -1e-12


def test_damping_keeps_limited_memory_definite_on_a_concave_function() -> None:
    domain = Box(np.full(3, -5.0), np.full(3, 5.0), np.zeros(3, dtype=bool))
    oracle = function_oracle(3, lambda x: (-0.5 * x @ x, -x))
    task, curvature, none = Task(oracle, domain, 1e-6), LimitedMemoryCurvature(), np.zeros(0)
    old = oracle.at(np.ones(3))
    curvature.at(task, PlainCoordinates(domain), old, none)
    for step in np.eye(3):
        new = oracle.at(old.point + step)
        curvature.moved(old, new, none)
        old = new
    found = curvature.at(task, PlainCoordinates(domain), old, none)
    assert np.linalg.eigvalsh(as_dense(found))[0] > 0
