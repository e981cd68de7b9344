"""Cone programs: both backends against each other, against closed forms, and by their own residuals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.algebra.symmetric import to_matrix, to_vector
from hcmodel.solvers.qp import (
    CONE_BACKENDS,
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    cone_program,
    cone_residuals,
    make_cone_backend,
    solve_cone,
)
from hcmodel.solvers.qp.cone_program import cone_violation

FloatArray = NDArray[np.float64]

# Along a curved minimum a value within 1e-10 fixes the point to its square root only.
FLAT = 1e-4

ZERO, NONNEGATIVE = ConeKind.ZERO, ConeKind.NONNEGATIVE


def random_linear_program(seed: int) -> ConeProgram:
    """Feasible and bounded by construction: a point with slack, and a dual point."""
    random = np.random.default_rng(seed)
    size, inequalities, equalities = 6, 9, 2
    A = random.normal(size=(inequalities + equalities, size))
    x = random.normal(size=size)
    slack = np.concatenate([np.zeros(equalities), random.exponential(size=inequalities)])
    z = np.concatenate([random.normal(size=equalities), random.exponential(size=inequalities)])
    cones = (ConeBlock(ZERO, equalities), ConeBlock(NONNEGATIVE, inequalities))
    return cone_program(-A.T @ z, A, A @ x + slack, cones)


def projection(point: FloatArray, block: ConeBlock) -> ConeSolution:
    """The point of the cone that is nearest to the given one: minimise ½‖x − point‖², x in K."""
    size = point.size
    identity = sp.identity(size)
    program = cone_program(-point, -identity, np.zeros(size), (block,), quadratic=identity)
    solution = solve_cone(program)
    assert solution.status is ConeStatus.SOLVED
    assert cone_residuals(program, solution).largest < 1e-7
    return solution


class TestLinearPrograms:
    @pytest.mark.parametrize("seed", range(5))
    def test_the_backends_agree(self, seed: int) -> None:
        program = random_linear_program(seed)
        answers = {name: solve_cone(program, name) for name in CONE_BACKENDS}
        values = {name: float(program.linear @ answer.primal) for name, answer in answers.items()}
        assert all(answer.status is ConeStatus.SOLVED for answer in answers.values())
        assert values["highs"] == pytest.approx(values["clarabel"], abs=1e-7)
        for part in ("primal", "slack", "dual"):  # a random program has one vertex
            one, other = (getattr(answer, part) for answer in answers.values())
            np.testing.assert_allclose(one, other, atol=1e-6)
        for answer in answers.values():
            assert cone_residuals(program, answer).largest < 1e-7

    @pytest.mark.parametrize("name", sorted(CONE_BACKENDS))
    def test_infeasible_rows_come_with_their_weights(self, name: str) -> None:
        """x + y <= 1, x >= 1, y >= 0.5 with weights proportional to (1, 1, 1); x = 0·y is not needed."""
        A = np.array([[1.0, -3.0], [1.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [0.0, 1.0]])
        cones = (ConeBlock(ZERO, 1), ConeBlock(NONNEGATIVE, 4))
        program = cone_program(np.ones(2), A, np.array([9.0, 1.0, -1.0, -0.5, 20.0]), cones)
        answer = solve_cone(program, name)
        assert answer.status is ConeStatus.INFEASIBLE
        assert program.offset @ answer.dual == pytest.approx(-1)
        assert cone_residuals(program, answer).largest < 1e-7

    @pytest.mark.parametrize("name", sorted(CONE_BACKENDS))
    def test_an_unbounded_objective_comes_with_a_direction(self, name: str) -> None:
        """minimise −x − y on x − y <= 1, x >= 0: (1, 1) and (0, 1) are directions."""
        A = np.array([[1.0, -1.0], [-1.0, 0.0]])
        program = cone_program(-np.ones(2), A, np.array([1.0, 0.0]), (ConeBlock(NONNEGATIVE, 2),))
        answer = solve_cone(program, name)
        assert answer.status is ConeStatus.UNBOUNDED
        assert program.linear @ answer.primal == pytest.approx(-1)
        assert cone_residuals(program, answer).largest < 1e-7

    @pytest.mark.parametrize("name", sorted(CONE_BACKENDS))
    def test_free_program_without_rows(self, name: str) -> None:
        program = cone_program(np.zeros(2), np.zeros((0, 2)), np.zeros(0), ())
        answer = solve_cone(program, name)
        assert answer.status is ConeStatus.SOLVED
        assert answer.dual.size == 0

    def test_blocks_may_come_in_any_order(self) -> None:
        A = np.array([[-1.0, 0.0], [1.0, 1.0], [0.0, -1.0]])
        cones = (ConeBlock(NONNEGATIVE, 1), ConeBlock(ZERO, 1), ConeBlock(NONNEGATIVE, 1))
        program = cone_program(np.array([1.0, 2.0]), A, np.array([0.0, 3.0, 0.0]), cones)
        for name in CONE_BACKENDS:
            answer = solve_cone(program, name)
            np.testing.assert_allclose(answer.primal, [3.0, 0.0], atol=1e-7)
            np.testing.assert_allclose(answer.dual, [0.0, -1.0, 1.0], atol=1e-7)

    def test_highs_refuses_what_is_not_linear(self) -> None:
        block = ConeBlock(ConeKind.SECOND_ORDER, 2)
        program = cone_program(np.ones(2), -np.eye(2), np.zeros(2), (block,))
        assert not program.is_linear
        with pytest.raises(ValueError, match="linear programs"):
            solve_cone(program, "highs")

    def test_an_unknown_backend_is_answered_with_the_known_ones(self) -> None:
        with pytest.raises(ValueError, match="clarabel, highs"):
            solve_cone(random_linear_program(0), "simplex")


class TestCones:
    def test_projection_onto_the_second_order_cone(self) -> None:
        """(t, v) with ‖v‖ > |t| goes to ½(1 + t/‖v‖)(‖v‖, v)."""
        point = np.array([1.0, 3.0, -4.0])
        nearest = projection(point, ConeBlock(ConeKind.SECOND_ORDER, 3)).primal
        np.testing.assert_allclose(nearest, 0.5 * 1.2 * np.array([5.0, 3.0, -4.0]), atol=1e-7)

    def test_projection_onto_the_semidefinite_cone(self) -> None:
        random = np.random.default_rng(3)
        matrix = random.normal(size=(4, 4))
        matrix = matrix + matrix.T
        values, vectors = np.linalg.eigh(matrix)
        nearest = projection(to_vector(matrix), ConeBlock(ConeKind.PSD_TRIANGLE, 10)).primal
        expected = (vectors * np.maximum(values, 0)) @ vectors.T
        np.testing.assert_allclose(to_matrix(nearest), expected, atol=1e-7)

    def test_the_exponential_cone_takes_logarithms(self) -> None:
        """Maximise x with exp(x) <= 5: log 5, and the multiplier of the bound is 1/5."""
        A = np.vstack([-np.eye(3), [[0.0, 1.0, 0.0]], [[0.0, 0.0, 1.0]]])
        cones = (ConeBlock(ConeKind.EXPONENTIAL, 3), ConeBlock(ZERO, 1), ConeBlock(NONNEGATIVE, 1))
        offset = np.array([0.0, 0.0, 0.0, 1.0, 5.0])
        program = cone_program(np.array([-1.0, 0.0, 0.0]), A, offset, cones)
        answer = solve_cone(program)
        assert answer.primal[0] == pytest.approx(np.log(5), abs=1e-8)
        assert answer.dual[4] == pytest.approx(1 / 5, abs=FLAT)
        assert cone_residuals(program, answer).largest < 1e-7

    def test_a_block_of_several_exponential_cones(self) -> None:
        """Minimise Σ z_k with exp(x_k) <= z_k, Σ x_k = 3: the mean, z = e."""
        count = 3
        variables = 2 * count  # x, then z
        rows = []
        for k in range(count):
            rows += [-np.eye(variables)[k], np.zeros(variables), -np.eye(variables)[count + k]]
        A = np.vstack([*rows, np.repeat([1.0, 0.0], count)])
        offset = np.concatenate([np.tile([0.0, 1.0, 0.0], count), [3.0]])
        cones = (ConeBlock(ConeKind.EXPONENTIAL, 3 * count), ConeBlock(ZERO, 1))
        program = cone_program(np.repeat([0.0, 1.0], count), A, offset, cones)
        answer = solve_cone(program)
        assert program.linear @ answer.primal == pytest.approx(count * np.e, abs=1e-7)
        np.testing.assert_allclose(answer.primal, np.repeat([1.0, np.e], count), atol=FLAT)
        assert cone_residuals(program, answer).largest < 1e-7

    def test_the_power_cone_takes_geometric_means(self) -> None:
        """Maximise w with x^0.3 y^0.7 >= w, x + y <= 1: x = 0.3, y = 0.7."""
        A = np.vstack([-np.eye(3), [[1.0, 1.0, 0.0]]])
        cones = (ConeBlock(ConeKind.POWER, 3, exponent=0.3), ConeBlock(NONNEGATIVE, 1))
        program = cone_program(np.array([0.0, 0.0, -1.0]), A, np.array([0.0, 0, 0, 1]), cones)
        answer = solve_cone(program)
        assert answer.primal[2] == pytest.approx(0.3**0.3 * 0.7**0.7, abs=1e-7)
        np.testing.assert_allclose(answer.primal[:2], [0.3, 0.7], atol=FLAT)
        assert cone_residuals(program, answer).largest < 1e-7

    def test_infeasible_exponential_rows_come_with_a_certificate(self) -> None:
        """exp(x) <= z, z <= 1 and x >= 2."""
        A = np.array([[-1.0, 0], [0, 0], [0, -1.0], [0, 1.0], [-1.0, 0]])
        cones = (ConeBlock(ConeKind.EXPONENTIAL, 3), ConeBlock(NONNEGATIVE, 2))
        program = cone_program(np.zeros(2), A, np.array([0.0, 1, 0, 1, -2]), cones)
        answer = solve_cone(program)
        assert answer.status is ConeStatus.INFEASIBLE
        assert cone_residuals(program, answer).largest < 1e-6

    @pytest.mark.parametrize(
        ("block", "inside", "outside", "amount"),
        [
            (ConeBlock(ZERO, 2), [0, 0], [0, -0.5], 0.5),
            (ConeBlock(NONNEGATIVE, 2), [0, 3], [4, -0.5], 0.5),
            (ConeBlock(ConeKind.SECOND_ORDER, 3), [5, 3, 4], [4, 3, 4], 1.0),
            (ConeBlock(ConeKind.PSD_TRIANGLE, 3), [1, np.sqrt(2), 1], [1, 2 * np.sqrt(2), 1], 1.0),
            (ConeBlock(ConeKind.EXPONENTIAL, 3), [0, 1, 1], [np.log(2), 1, 1], np.log(2)),
            (ConeBlock(ConeKind.EXPONENTIAL, 3), [-1, 0, 0], [1, 0, 9], 1.0),
            (ConeBlock(ConeKind.POWER, 3, exponent=0.5), [4, 1, -2], [4, 1, 3], 1.0),
        ],
    )
    def test_violation_is_measured_from_the_definition(
        self, block: ConeBlock, inside: list[float], outside: list[float], amount: float
    ) -> None:
        assert cone_violation([block], np.array(inside, dtype=float)) < 1e-15
        assert cone_violation([block], np.array(outside, dtype=float)) == pytest.approx(amount)

    @pytest.mark.parametrize(
        "block",
        [
            ConeBlock(ConeKind.SECOND_ORDER, 3),
            ConeBlock(ConeKind.EXPONENTIAL, 3),
            ConeBlock(ConeKind.POWER, 3, exponent=0.3),
            ConeBlock(ConeKind.PSD_TRIANGLE, 3),
        ],
    )
    def test_a_projection_leaves_a_member_of_the_dual_cone(self, block: ConeBlock) -> None:
        """Moreau: p − point is in K* and orthogonal to p."""
        random = np.random.default_rng(8)
        for point in random.normal(size=(5, 3)):
            nearest = projection(point, block).primal
            rest = nearest - point
            assert cone_violation([block], nearest) < 1e-7
            assert cone_violation([block], rest, dual=True) < 1e-7
            assert abs(nearest @ rest) < 1e-7

    @pytest.mark.parametrize(
        "make",
        [
            lambda: ConeBlock(ConeKind.EXPONENTIAL, 4),
            lambda: ConeBlock(ConeKind.POWER, 3),
            lambda: ConeBlock(ConeKind.POWER, 3, exponent=1.5),
            lambda: ConeBlock(ConeKind.PSD_TRIANGLE, 4),
            lambda: cone_program(np.ones(2), np.eye(2), np.ones(2), (ConeBlock(ZERO, 1),)),
            lambda: cone_program(np.ones(3), np.eye(2), np.ones(2), (ConeBlock(ZERO, 2),)),
        ],
    )
    def test_blocks_that_do_not_fit_are_refused(self, make: object) -> None:
        with pytest.raises(ValueError, match=r"\d|exponent|rows|shape"):
            make()  # type: ignore[operator]


class TestBackends:
    def test_a_new_number_goes_into_the_solver_that_is_set_up(self) -> None:
        program = random_linear_program(1)
        backend = make_cone_backend()
        backend.solve(program, ConeOptions())
        solver = backend._solver  # type: ignore[attr-defined]
        changed = replace(program, linear=1.1 * program.linear, offset=program.offset + 0.1)
        again = backend.solve(changed, ConeOptions())
        assert backend._solver is solver  # type: ignore[attr-defined]
        np.testing.assert_allclose(again.primal, solve_cone(changed).primal, atol=1e-7)

    def test_a_new_pattern_makes_a_new_solver(self) -> None:
        program = random_linear_program(1)
        backend = make_cone_backend()
        backend.solve(program, ConeOptions())
        matrix = program.matrix.tolil()
        matrix[0, 0] = 0.0
        changed = replace(program, matrix=sp.csc_matrix(matrix))
        again = backend.solve(changed, ConeOptions())
        np.testing.assert_allclose(again.primal, solve_cone(changed).primal, atol=1e-7)

    @pytest.mark.parametrize("name", sorted(CONE_BACKENDS))
    def test_a_time_limit_is_reported_as_such(self, name: str) -> None:
        random = np.random.default_rng(0)
        A = random.normal(size=(400, 200))
        program = cone_program(
            -A.T @ random.exponential(size=400), A, np.ones(400), (ConeBlock(NONNEGATIVE, 400),)
        )
        answer = solve_cone(program, name, ConeOptions(time_limit=1e-6))
        assert answer.status is ConeStatus.TIME_LIMIT

    def test_an_iteration_limit_is_reported_as_such(self) -> None:
        answer = solve_cone(random_linear_program(0), options=ConeOptions(max_iterations=2))
        assert answer.status is ConeStatus.ITERATION_LIMIT

    def test_residuals_of_a_wrong_certificate_are_infinite(self) -> None:
        program = random_linear_program(0)
        nothing = np.zeros(program.offset.size)
        wrong = ConeSolution(ConeStatus.INFEASIBLE, program.linear, nothing, nothing)
        assert cone_residuals(program, wrong).largest == np.inf


def test_products_with_the_transpose_are_those_of_scipy() -> None:
    program = random_linear_program(3)
    z = np.random.default_rng(4).normal(size=program.offset.size)
    np.testing.assert_allclose(program.pull(z), program.matrix.T @ z, rtol=1e-14)
    sizes = abs(program.matrix).T @ np.abs(z)
    np.testing.assert_allclose(program.pulled_sizes(z), sizes, rtol=1e-14)
    empty = replace(program, matrix=0.0 * program.matrix)
    assert not empty.pull(z).any()
