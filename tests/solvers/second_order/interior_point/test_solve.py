"""The interior-point method on problems with known optima, peers' answers and closed forms."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.qp import ConeStatus, solve_cone
from hcmodel.solvers.second_order.interior_point import (
    FarkasCertificate,
    InteriorPointOptions,
    InteriorPointResult,
    InteriorPointStatus,
    LogSums,
    SmoothConvexProgram,
    Sums,
    solve,
    verified,
)
from tests.problems.smooth_programs import (
    CBLIB,
    GEOMETRIC_PROGRAMS,
    cblib,
    chain,
    cone_form,
    dense_program,
    gate_sizing,
    geometric_program,
    tank,
)

FloatArray = NDArray[np.float64]
Status = InteriorPointStatus
INF = np.inf


def check_optimality(
    program: SmoothConvexProgram, result: InteriorPointResult, accuracy: float = 1e-8
) -> None:
    """The optimality conditions, computed here from the program's values and gradients."""
    assert result.status is Status.SOLVED
    u, rows = result.point, result.row_multipliers
    functions = program.values(u)
    assert np.max(functions[1:], initial=0.0) <= accuracy
    assert np.all(u >= program.lower)
    assert np.all(u <= program.upper)
    assert np.min(rows, initial=0.0) >= 0
    assert np.min(result.lower_multipliers) >= 0
    assert np.min(result.upper_multipliers) >= 0
    slope = program.gradient(u, np.concatenate([[1.0], rows]))
    slope = slope - result.lower_multipliers + result.upper_multipliers
    if program.equality is not None:
        assert np.max(np.abs(program.equality @ u - program.equality_bound)) <= accuracy
        slope = slope + program.equality.T @ result.equality_multipliers
    size = 1 + np.max(np.abs(program.gradient(u, np.eye(1, rows.size + 1)[0])))
    assert np.max(np.abs(slope)) <= accuracy * size
    scale = accuracy * (1 + abs(functions[0]))
    assert np.abs(rows * functions[1:]).sum() <= scale
    with np.errstate(invalid="ignore"):
        low = result.lower_multipliers * np.where(np.isfinite(program.lower), u - program.lower, 0)
        high = result.upper_multipliers * np.where(np.isfinite(program.upper), u - program.upper, 0)
    assert np.abs(low).sum() + np.abs(high).sum() <= scale


def affine_program(
    objective: list[float],
    rows: list[list[float]],
    constants: list[float],
    lower: float = -INF,
    upper: float = INF,
    **more: object,
) -> SmoothConvexProgram:
    """Minimise objective·u s.t. rows·u + constants <= 0."""
    size = len(objective)
    return SmoothConvexProgram(
        np.array([objective, *rows], dtype=float),
        np.array([0.0, *constants]),
        np.full(size, lower),
        np.full(size, upper),
        **more,  # type: ignore[arg-type]
    )


class TestKnownProblems:
    @pytest.mark.parametrize("logarithms", [True, False])
    @pytest.mark.parametrize("name", sorted(GEOMETRIC_PROGRAMS))
    def test_geometric_programs(self, name: str, logarithms: bool) -> None:
        program = geometric_program(name, logarithms=logarithms)
        result = solve(program)
        check_optimality(program, result)
        value = np.exp(result.value) if logarithms else result.value
        assert value == pytest.approx(GEOMETRIC_PROGRAMS[name]["optimal_value"], rel=2e-8)
        assert result.iterations <= 30

    @pytest.mark.parametrize("name", sorted(set(CBLIB) - {"isil01"}))
    def test_cblib(self, name: str) -> None:
        """varun has 19 pairs of opposite rows and a free direction; demb761 starts at 1e17."""
        program = cblib(name)
        result = solve(program)
        check_optimality(program, result)
        assert result.value == pytest.approx(CBLIB[name], rel=1e-8)
        assert result.iterations <= (60 if name == "varun" else 30)

    def test_the_infeasible_one_of_cblib_comes_with_a_certificate(self) -> None:
        program = cblib("isil01")
        result = solve(program)
        assert result.status is Status.INFEASIBLE
        assert result.certificate is not None
        assert verified(program, result.certificate).bound > 1e-4
        assert result.iterations <= 20

    def test_the_papers_example(self) -> None:
        """Optimum 5 at (2, 1/2) with multiplier 1 of x y <= 1, so 1/5 for the logarithm's row."""
        result = solve(tank())
        assert result.status is Status.SOLVED
        assert np.exp(result.value) == pytest.approx(5.0, rel=1e-9)
        np.testing.assert_allclose(np.exp(result.point), [2.0, 0.5], rtol=1e-6)
        np.testing.assert_allclose(result.row_multipliers, [0.2], rtol=1e-6)
        assert result.iterations <= 10

    @pytest.mark.parametrize(
        "program",
        [
            chain(60),
            chain(60, logarithms=False),
            chain(400),
            dense_program(30, 60),
            dense_program(120, 15),
            gate_sizing(40),
            gate_sizing(150),
        ],
        ids=["chain", "plain-chain", "long-chain", "dense", "low-rank", "gates", "more-gates"],
    )
    def test_clarabel_finds_the_same_value_on_the_cone_form(
        self, program: SmoothConvexProgram
    ) -> None:
        result = solve(program)
        check_optimality(program, result)
        peer = solve_cone(cone_form(program))
        assert peer.usable
        assert result.value == pytest.approx(peer.primal[program.dimension], rel=1e-7)
        assert result.iterations <= 25

    def test_the_answer_does_not_depend_on_the_form_of_the_matrices(self) -> None:
        sparse = cblib("fiac81a")
        assert sparse.log_sums is not None
        logs = replace(sparse.log_sums, exponents=sparse.log_sums.exponents.toarray())
        dense = replace(sparse, affine=sparse.affine.toarray(), log_sums=logs)
        np.testing.assert_allclose(solve(dense).point, solve(sparse).point, atol=1e-8)


class TestPlainPrograms:
    @pytest.mark.parametrize("seed", range(4))
    def test_linear_programs_as_highs(self, seed: int) -> None:
        from scipy.optimize import linprog

        random = np.random.default_rng(seed)
        A, c = random.normal(size=(8, 5)), random.normal(size=5)
        b = np.abs(random.normal(size=8))
        program = affine_program(list(c), A.tolist(), list(-b), lower=-3.0, upper=2.0)
        result = solve(program)
        check_optimality(program, result)
        peer = linprog(c, A_ub=A, b_ub=b, bounds=(-3, 2))
        assert result.value == pytest.approx(peer.fun, abs=1e-7)
        np.testing.assert_allclose(result.row_multipliers, -peer.ineqlin.marginals, atol=1e-6)

    def test_no_rows_and_no_bounds(self) -> None:
        """Minimise log(exp(u) + exp(−u)): log 2 at 0."""
        logs = LogSums(np.array([[1.0], [-1.0]]), np.zeros(2), np.array([0, 0]), np.array([0]))
        free = np.array([INF])
        result = solve(SmoothConvexProgram(np.zeros((1, 1)), np.zeros(1), -free, free, logs))
        assert result.status is Status.SOLVED
        assert result.value == pytest.approx(np.log(2), abs=1e-10)

    def test_only_bounds(self) -> None:
        """Minimise u − v on [1, 2] × [3, 5]; a bound's multiplier is the slope there."""
        program = SmoothConvexProgram(
            np.array([[1.0, -1.0]]), np.zeros(1), np.array([1.0, 3.0]), np.array([2.0, 5.0])
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, [1.0, 5.0], atol=1e-7)
        np.testing.assert_allclose(result.lower_multipliers, [1.0, 0.0], atol=1e-7)
        np.testing.assert_allclose(result.upper_multipliers, [0.0, 1.0], atol=1e-7)

    def test_fixed_variables_have_multipliers_too(self) -> None:
        """Minimise exp(u + v) with v = 1 and u >= 0: slope e in both."""
        sums = Sums(np.array([[1.0, 1.0]]), np.zeros(1), np.ones((1, 1)))
        program = SmoothConvexProgram(
            np.zeros((1, 2)), np.zeros(1), np.array([0.0, 1.0]), np.array([INF, 1.0]), sums=sums
        )
        result = solve(program)
        assert result.status is Status.SOLVED
        np.testing.assert_allclose(result.point, [0.0, 1.0], atol=1e-8)
        np.testing.assert_allclose(result.lower_multipliers, [np.e, np.e], rtol=1e-6)
        np.testing.assert_allclose(result.upper_multipliers, [0.0, 0.0], atol=1e-7)

    def test_every_variable_fixed(self) -> None:
        program = affine_program([1.0, 1.0], [[1.0, 0.0]], [-3.0], lower=2.0, upper=2.0)
        result = solve(program)
        assert result.status is Status.SOLVED
        assert result.value == 4.0

    @pytest.mark.parametrize("sparse", [False, True])
    def test_dependent_equalities(self, sparse: bool) -> None:
        """Minimise Σ exp(u) s.t. u1 + u2 = 1 (twice, once doubled), u3 = u4: multiplier −√e at last."""
        matrix = np.array(
            [[1.0, 1.0, 0, 0], [2.0, 2.0, 0, 0], [0, 0, 1.0, -1.0], [1.0, 1.0, 1.0, -1.0]]
        )
        bound = np.array([1.0, 2.0, 0.0, 1.0])
        sums = Sums(np.eye(4), np.zeros(4), np.ones((1, 4)))
        program = SmoothConvexProgram(
            np.zeros((1, 4)),
            np.zeros(1),
            np.full(4, -5.0),
            np.full(4, 5.0),
            sums=sums,
            equality=sp.csr_array(matrix) if sparse else matrix,
            equality_bound=bound,
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, [0.5, 0.5, -5.0, -5.0], atol=1e-6)

    def test_opposite_rows_are_an_equality(self) -> None:
        """u + v <= 1 and −2u − 2v <= −2 have no interior; min exp(u) + exp(v) at (½, ½)."""
        sums = Sums(np.eye(2), np.zeros(2), np.array([[1.0, 1.0], [0, 0], [0, 0]]))
        program = SmoothConvexProgram(
            np.array([[0.0, 0.0], [1.0, 1.0], [-2.0, -2.0]]),
            np.array([0.0, -1.0, 2.0]),
            np.full(2, -INF),
            np.full(2, INF),
            sums=sums,
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, [0.5, 0.5], atol=1e-7)
        np.testing.assert_allclose(result.row_multipliers, [0.0, np.exp(0.5) / 2], atol=1e-7)

    def test_a_row_without_interior_is_almost_solved(self) -> None:
        """x/2 + 1/(2x) <= 1 holds at x = 1 only, and has no finite multiplier."""
        logs = LogSums(
            np.array([[1.0], [-1.0]]), np.log([0.5, 0.5]), np.array([0, 0]), np.array([1])
        )
        program = SmoothConvexProgram(
            np.array([[1.0], [0.0]]), np.zeros(2), np.array([-INF]), np.array([INF]), logs
        )
        result = solve(program)
        assert result.status in (Status.SOLVED, Status.ALMOST_SOLVED)
        assert abs(result.point[0]) < 1e-3
        assert program.values(result.point)[1] < 1e-6

    def test_a_term_in_the_objective_and_in_a_row(self) -> None:
        """Minimise exp(u) − 2u with exp(u) <= 1: u = 0 and multiplier 1."""
        sums = Sums(np.array([[1.0]]), np.zeros(1), np.array([[1.0], [1.0]]))
        program = SmoothConvexProgram(
            np.array([[-2.0], [0.0]]), np.array([0.0, -1.0]), -np.ones(1), np.ones(1), sums=sums
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.row_multipliers, [1.0], atol=1e-7)

    @pytest.mark.parametrize("sparse", [False, True])
    def test_terms_with_coefficient_zero_change_nothing(self, sparse: bool) -> None:
        """Minimise exp(u) + 0·exp(9v) s.t. exp(−u) <= ½: 2 at u = log 2, which is not the start."""
        weights = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
        exponents = np.array([[1.0, 0.0], [0.0, 9.0], [-1.0, 0.0]])
        sums = Sums(exponents, np.zeros(3), sp.csr_array(weights) if sparse else weights)
        program = SmoothConvexProgram(
            np.zeros((2, 2)), np.array([0.0, -0.5]), np.full(2, -3.0), np.full(2, 3.0), sums=sums
        )
        result = solve(program)
        check_optimality(program, result)
        assert result.value == pytest.approx(2.0, rel=1e-7)

    def test_several_logarithms_and_an_affine_part_in_one_row(self) -> None:
        """log cosh(u) + log cosh(v) + u + v <= log 4 (without the halves): symmetric."""
        exponents = np.array([[1.0, 0], [-1.0, 0], [0, 1.0], [0, -1.0]])
        logs = LogSums(exponents, np.zeros(4), np.array([0, 0, 1, 1]), np.array([1, 1]))
        program = SmoothConvexProgram(
            np.array([[-1.0, -1.0], [1.0, 1.0]]),
            np.array([0.0, -2.0]),
            np.full(2, -9.0),
            np.full(2, 9.0),
            logs,
        )
        result = solve(program)
        check_optimality(program, result)
        # 2u + 2 log(exp(u) + exp(−u)) = 2, so exp(2u) = e − 1
        np.testing.assert_allclose(result.point, np.full(2, 0.5 * np.log(np.e - 1)), atol=1e-7)

    def test_a_dense_row_among_sparse_ones(self) -> None:
        """Minimise log Σ exp(−u_i), Σ u_i <= 0 over 1,000 variables: log 1000 at 0."""
        size = 1000
        logs = LogSums(
            -sp.eye_array(size, format="csr"),
            np.zeros(size),
            np.zeros(size, dtype=int),
            np.array([0]),
        )
        affine = sp.csr_array(np.vstack([np.zeros(size), np.ones(size)]))
        bound = np.full(size, 5.0)
        program = SmoothConvexProgram(affine, np.zeros(2), -bound, bound, logs)
        result = solve(program)
        check_optimality(program, result)
        assert result.value == pytest.approx(np.log(size), abs=1e-8)
        np.testing.assert_allclose(result.row_multipliers, [1 / size], rtol=1e-5)


class Quadratic:
    """½ (u − center)ᵀ H (u − center) − offset, added to one row."""

    def __init__(self, row: int, matrix: FloatArray, center: FloatArray, offset: float) -> None:
        self.rows = np.array([row])
        self.matrix, self.center, self.offset = matrix, center, offset

    def values(self, u: FloatArray) -> FloatArray:
        away = u - self.center
        return np.array([0.5 * away @ self.matrix @ away - self.offset])

    def jacobian(self, u: FloatArray) -> FloatArray:
        return np.asarray((self.matrix @ (u - self.center))[None, :])

    def hessian(self, u: FloatArray, weights: FloatArray) -> FloatArray:
        return np.asarray(weights[0] * self.matrix)


class Entropy:
    """Σ u log u in the objective, on u > 0."""

    rows = np.array([0])

    def values(self, u: FloatArray) -> FloatArray:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.array([np.sum(np.where(u > 0, u * np.log(u), np.inf))])

    def jacobian(self, u: FloatArray) -> FloatArray:
        return np.asarray((np.log(u) + 1)[None, :])

    def hessian(self, u: FloatArray, weights: FloatArray) -> sp.csr_array:
        return sp.csr_array(sp.diags_array(weights[0] / u))


class TestSmoothParts:
    def test_projection_onto_a_disc(self) -> None:
        """Minimise ½‖u − (3, 4)‖² in the unit disc: (0.6, 0.8), multiplier 4."""
        program = SmoothConvexProgram(
            np.zeros((2, 2)),
            np.zeros(2),
            np.full(2, -INF),
            np.full(2, INF),
            smooth=(
                Quadratic(0, np.eye(2), np.array([3.0, 4.0]), 0.0),
                Quadratic(1, np.eye(2), np.zeros(2), 0.5),
            ),
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, [0.6, 0.8], atol=1e-7)
        np.testing.assert_allclose(result.row_multipliers, [4.0], rtol=1e-6)

    def test_entropy_on_the_simplex(self) -> None:
        """Minimise Σ u log u + c·u on the simplex: softmax(−c)."""
        c = np.array([0.3, -1.0, 2.0, 0.0])
        program = SmoothConvexProgram(
            c[None, :],
            np.zeros(1),
            np.zeros(4),
            np.full(4, INF),
            smooth=(Entropy(),),
            equality=np.ones((1, 4)),
            equality_bound=np.ones(1),
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, np.exp(-c) / np.exp(-c).sum(), atol=1e-8)

    def test_many_variables_with_a_sparse_hessian(self) -> None:
        """Minimise Σ u log u s.t. Σ u_i >= 1 in pairs, 4,000 variables: ½ log ½ in each."""
        size = 4000
        i = np.arange(size // 2)
        rows = sp.csr_array(
            (-np.ones(size), (np.repeat(1 + i, 2), np.arange(size))), shape=(size // 2 + 1, size)
        )
        constants = np.concatenate([[0.0], np.ones(size // 2)])
        program = SmoothConvexProgram(
            rows, constants, np.full(size, 1e-9), np.full(size, 9.0), smooth=(Entropy(),)
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, 0.5, atol=1e-6)

    def test_smooth_and_exponential_parts_together(self) -> None:
        """Minimise ½ u² + exp(u): u = −W(1), Lambert's function."""
        sums = Sums(np.array([[1.0]]), np.zeros(1), np.array([[1.0]]))
        program = SmoothConvexProgram(
            np.zeros((1, 1)),
            np.zeros(1),
            np.array([-INF]),
            np.array([INF]),
            sums=sums,
            smooth=(Quadratic(0, np.eye(1), np.zeros(1), 0.0),),
        )
        result = solve(program)
        check_optimality(program, result)
        np.testing.assert_allclose(result.point, [-0.5671432904], atol=1e-8)


class TestScale:
    @pytest.mark.parametrize("power", [-100.0, -30.0, 30.0, 100.0])
    def test_coefficients_of_any_size(self, power: float) -> None:
        """Ex-CGP in units that make every x 10^power times as large: the same problem, shifted."""
        shift = power * np.log(10)
        program = tank()
        assert program.log_sums is not None
        offsets = program.log_sums.offsets - program.log_sums.exponents @ np.full(2, shift)
        moved = replace(
            program,
            log_sums=replace(program.log_sums, offsets=offsets),
            lower=program.lower + shift,
            upper=program.upper + shift,
        )
        result = solve(moved)
        assert result.status is Status.SOLVED
        np.testing.assert_allclose(result.point - shift, np.log([2.0, 0.5]), atol=1e-6)

    @pytest.mark.parametrize("power", [-100.0, 100.0])
    def test_an_optimum_far_away_from_every_start(self, power: float) -> None:
        """Minimise x + a²/x without bounds: x = a, value 2a."""
        shift = power * np.log(10)
        logs = LogSums(
            np.array([[1.0], [-1.0]]), np.array([0.0, 2 * shift]), np.array([0, 0]), np.array([0])
        )
        free = np.array([INF])
        result = solve(SmoothConvexProgram(np.zeros((1, 1)), np.zeros(1), -free, free, logs))
        assert result.status is Status.SOLVED
        assert result.value == pytest.approx(np.log(2) + shift, rel=1e-9)

    @pytest.mark.parametrize("factor", [1e-6, 1e6])
    def test_rows_may_be_multiplied(self, factor: float) -> None:
        """The multiplier is divided by what the row is multiplied by."""
        first = geometric_program("hs072", logarithms=False)
        assert first.sums is not None
        scale = np.full(first.row_count + 1, factor)
        scale[0] = 1.0
        second = replace(
            first,
            constants=scale * first.constants,
            sums=replace(first.sums, weights=scale[:, None] * first.sums.weights),
        )
        one, other = solve(first), solve(second)
        assert other.status is Status.SOLVED
        assert other.value == pytest.approx(one.value, rel=1e-7)
        np.testing.assert_allclose(other.row_multipliers * factor, one.row_multipliers, rtol=1e-4)


class TestInfeasible:
    def check(self, program: SmoothConvexProgram) -> InteriorPointResult:
        result = solve(program)
        assert result.status is Status.INFEASIBLE
        assert result.certificate is not None
        again = verified(program, result.certificate)
        assert again.bound > 0
        assert again.bound == pytest.approx(result.certificate.bound)
        return result

    def test_rows_against_each_other(self) -> None:
        """u >= 2, u <= 1 and a third row that does not matter: weights ½, ½, 0 and bound ½."""
        result = self.check(affine_program([1.0], [[-1.0], [1.0], [1.0]], [2.0, -1.0, -9.0]))
        assert result.certificate is not None
        np.testing.assert_allclose(result.certificate.row_weights, [0.5, 0.5, 0], atol=1e-2)

    def test_a_row_against_a_bound(self) -> None:
        self.check(affine_program([1.0], [[-1.0]], [2.0], lower=0.0, upper=1.0))

    def test_posynomials_against_each_other(self) -> None:
        """x + 1/x <= 1.9, whose least value is 2."""
        logs = LogSums(
            np.array([[1.0], [-1.0]]), np.full(2, -np.log(1.9)), np.array([0, 0]), np.array([1])
        )
        free = np.array([INF])
        self.check(SmoothConvexProgram(np.array([[1.0], [0.0]]), np.zeros(2), -free, free, logs))

    def test_plain_sums_against_each_other(self) -> None:
        sums = Sums(np.array([[1.0], [-1.0]]), np.zeros(2), np.array([[1.0, 0], [1.0, 1.0]]))
        free = np.array([INF])
        self.check(
            SmoothConvexProgram(np.zeros((2, 1)), np.array([0.0, -1.9]), -free, free, sums=sums)
        )

    def test_equalities_against_each_other(self) -> None:
        program = affine_program(
            [1.0, 1.0],
            [],
            [],
            lower=-9.0,
            upper=9.0,
            equality=np.array([[1.0, 1.0], [2.0, 2.0]]),
            equality_bound=np.array([1.0, 3.0]),
        )
        self.check(program)

    def test_smooth_rows_against_each_other(self) -> None:
        """Two discs of radius 1 whose centres are 3 apart."""
        program = SmoothConvexProgram(
            np.zeros((3, 2)),
            np.zeros(3),
            np.full(2, -9.0),
            np.full(2, 9.0),
            smooth=(
                Quadratic(1, np.eye(2), np.zeros(2), 0.5),
                Quadratic(2, np.eye(2), np.array([3.0, 0.0]), 0.5),
            ),
        )
        self.check(program)

    def test_a_lower_bound_above_its_upper_bound(self) -> None:
        program = affine_program([1.0], [], [])
        empty = replace(program, lower=np.array([2.0]), upper=np.array([1.0]))
        result = solve(empty)
        assert result.status is Status.INFEASIBLE
        assert result.certificate is not None
        assert result.certificate.proves

    @pytest.mark.parametrize("seed", range(12))
    def test_random_geometric_programs(self, seed: int) -> None:
        """A row is tightened by e^0.2 below the least value that the others allow."""
        program = _random_geometric_program(seed)
        assert program.log_sums is not None
        logs = program.log_sums
        last = len(logs.rows) - 1
        objective = replace(
            logs,
            rows=np.concatenate([logs.rows[:-1], [0]]),
        )
        smallest = solve(replace(program, affine=np.zeros_like(program.affine), log_sums=objective))
        assert smallest.status is Status.SOLVED
        offsets = np.where(logs.groups == last, logs.offsets - smallest.value + 0.2, logs.offsets)
        self.check(replace(program, log_sums=replace(logs, offsets=offsets)))
        offsets = np.where(logs.groups == last, logs.offsets - smallest.value - 0.2, logs.offsets)
        feasible = replace(program, log_sums=replace(logs, offsets=offsets))
        check_optimality(feasible, solve(feasible))


def _random_geometric_program(seed: int) -> SmoothConvexProgram:
    """Posynomials in four variables with bounds, objective a monomial; feasible at 1."""
    random = np.random.default_rng(seed)
    size, rows = 4, 5
    counts = random.integers(1, 5, size=rows)
    groups = np.repeat(np.arange(rows), counts)
    exponents = random.normal(size=(groups.size, size)).round(1)
    coefficients = random.exponential(size=groups.size)
    sums = np.bincount(groups, coefficients)
    offsets = np.log(0.8 * coefficients / sums[groups])
    affine = np.zeros((rows + 1, size))
    affine[0] = random.normal(size=size)
    bound = np.full(size, 4.0)
    logs = LogSums(exponents, offsets, groups, 1 + np.arange(rows))
    return SmoothConvexProgram(affine, np.zeros(rows + 1), -bound, bound, logs)


class TestUnbounded:
    def check(self, program: SmoothConvexProgram) -> None:
        result = solve(program)
        assert result.status is Status.UNBOUNDED
        assert result.direction is not None
        far = [program.values(result.point + t * result.direction) for t in (1e3, 2e3)]
        assert far[1][0] < far[0][0] - 1

    def test_a_linear_objective_without_rows(self) -> None:
        self.check(affine_program([1.0, 0.0], [], []))

    def test_a_cone_of_directions(self) -> None:
        self.check(affine_program([-1.0, -1.0], [[1.0, -1.0]], [-1.0], lower=0.0))

    def test_a_monomial_that_goes_to_zero(self) -> None:
        """Minimise log x + log y with x + 1 <= 3: y goes to 0."""
        logs = LogSums(
            np.array([[1.0, 0.0], [0.0, 0.0]]),
            np.log([1 / 3, 1 / 3]),
            np.array([0, 0]),
            np.array([1]),
        )
        free = np.full(2, INF)
        self.check(
            SmoothConvexProgram(np.array([[1.0, 1.0], [0, 0]]), np.zeros(2), -free, free, logs)
        )

    def test_a_failure_without_rows_and_bounds_ends_in_a_result(self) -> None:
        """No columns to fit multipliers to: scipy's nnls would end the process."""
        sums = Sums(np.array([[1.0]]), np.zeros(1), np.ones((1, 1)))
        free = np.array([INF])
        program = SmoothConvexProgram(np.zeros((1, 1)), np.zeros(1), -free, free, sums=sums)
        result = solve(program, InteriorPointOptions(max_iterations=1))
        assert result.status is Status.ITERATION_LIMIT

    def test_an_infimum_that_is_not_attained_is_solved(self) -> None:
        """inf exp(u) is 0: no direction falls for ever, and small is good enough."""
        sums = Sums(np.array([[1.0]]), np.zeros(1), np.ones((1, 1)))
        free = np.array([INF])
        result = solve(SmoothConvexProgram(np.zeros((1, 1)), np.zeros(1), -free, free, sums=sums))
        assert result.status is Status.SOLVED
        assert 0 <= result.value < 1e-8


class TestRun:
    def test_two_runs_give_the_same_numbers(self) -> None:
        program = cblib("car")
        one, other = solve(program), solve(program)
        np.testing.assert_array_equal(one.point, other.point)
        np.testing.assert_array_equal(one.row_multipliers, other.row_multipliers)

    def test_a_start_is_used_and_not_changed(self) -> None:
        program = tank()
        start = np.log([2.0, 0.5])
        kept = start.copy()
        result = solve(program, start=start)
        np.testing.assert_array_equal(start, kept)
        assert result.status is Status.SOLVED

    def test_the_deadline_is_asked_between_iterations(self) -> None:
        left = itertools.count(2, -1)
        result = solve(cblib("car"), deadline=lambda: float(next(left)))
        assert result.status is Status.TIME_LIMIT
        assert result.iterations == 2
        assert np.isfinite(result.point).all()

    def test_the_iteration_limit(self) -> None:
        result = solve(cblib("car"), InteriorPointOptions(max_iterations=3))
        assert result.status is Status.ITERATION_LIMIT
        assert result.iterations == 3

    def test_the_residuals_are_those_of_the_functions(self) -> None:
        program = cblib("rijc787")
        result = solve(program)
        functions = program.values(result.point)
        assert result.residuals.primal == pytest.approx(max(0.0, functions[1:].max()), abs=1e-12)
        assert result.value == functions[0]

    def test_peers_and_the_method_agree_that_isil01_is_infeasible(self) -> None:
        assert solve_cone(cone_form(cblib("isil01"))).status is ConeStatus.INFEASIBLE

    @pytest.mark.parametrize(
        "change",
        [
            {"constants": np.zeros(5)},
            {"lower": np.zeros(3)},
            {"equality": np.ones((1, 2))},
            {"equality": np.ones((1, 3)), "equality_bound": np.ones(1)},
            {"affine": np.zeros((2, 3)), "lower": np.zeros(3), "upper": np.ones(3)},
        ],
    )
    def test_shapes_that_do_not_fit_are_refused(self, change: dict[str, FloatArray]) -> None:
        with pytest.raises(ValueError, match="need"):
            replace(tank(), **change)  # type: ignore[arg-type]

    def test_groups_have_to_be_in_order(self) -> None:
        with pytest.raises(ValueError, match="ascending"):
            LogSums(np.eye(2), np.zeros(2), np.array([1, 0]), np.array([0, 1]))
        with pytest.raises(ValueError, match="none empty"):
            LogSums(np.eye(2), np.zeros(2), np.array([0, 0]), np.array([0, 1]))
        with pytest.raises(ValueError, match="nonnegative"):
            Sums(np.eye(2), np.zeros(2), np.array([[1.0, -1.0]]))


def test_only_logarithms_have_a_largest_size_in_certificates() -> None:
    """u >= 1000 is feasible; |u| <= 700 would refute it."""
    affine, constants = np.array([[1.0], [-1.0]]), np.array([0.0, 1000.0])
    free = np.full(1, np.inf)
    weights = (np.ones(1), np.zeros(0), np.zeros(0), np.zeros(0), np.zeros(1), 700.0)
    for logarithms, proves in ((None, True), (np.array([True]), True), (np.array([False]), False)):
        program = SmoothConvexProgram(affine, constants, -free, free, logarithms=logarithms)
        assert bool(verified(program, FarkasCertificate(*weights)).proves) is proves
    result = solve(program)
    assert result.status is InteriorPointStatus.SOLVED
    assert result.value == pytest.approx(1000.0)
