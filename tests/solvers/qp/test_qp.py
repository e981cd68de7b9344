"""Every backend against scipy, closed forms and the residuals of its answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import LinearConstraint, minimize

from hcmodel.solvers.qp import (
    BACKENDS,
    QPBackend,
    QPStatus,
    QuadraticProgram,
    make_backend,
    residuals,
)
from hcmodel.solvers.qp.active_set import ActiveSetBackend
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from hcmodel.solvers.qp.program import Cone, StepRows

FloatArray = NDArray[np.float64]
INF = np.inf


def program(
    quadratic: FloatArray,
    linear: FloatArray,
    *,
    inequality: tuple[FloatArray, FloatArray] | None = None,
    equality: tuple[FloatArray, FloatArray] | None = None,
    bounds: tuple[FloatArray, FloatArray] | None = None,
    cones: tuple[Cone, ...] = (),
) -> QuadraticProgram:
    size = linear.size
    none = (np.zeros((0, size)), np.zeros(0))
    lower, upper = bounds or (np.full(size, -INF), np.full(size, INF))
    return QuadraticProgram(
        quadratic,
        linear,
        *(inequality or none),
        *(equality or none),
        StepRows(lower, upper, cones),
    )


def random_program(
    generator: np.random.Generator, size: int = 6, *, diagonal: bool = False
) -> QuadraticProgram:
    """Feasible by construction: an inner point is drawn first."""
    inside = generator.uniform(-0.5, 0.5, size)
    root = generator.standard_normal((size, size))
    quadratic = generator.uniform(0.5, 2, size) if diagonal else root @ root.T + np.eye(size)
    matrix, equal = generator.standard_normal((4, size)), generator.standard_normal((2, size))
    return program(
        quadratic,
        3 * generator.standard_normal(size),
        inequality=(matrix, matrix @ inside + generator.uniform(0.05, 0.5, 4)),
        equality=(equal, equal @ inside),
        bounds=(np.full(size, -1.0), np.full(size, 1.0)),
    )


def by_scipy(qp: QuadraticProgram) -> FloatArray:
    constraints = [LinearConstraint(qp.equality, qp.equality_bound, qp.equality_bound)]
    constraints.append(LinearConstraint(qp.inequality, -INF, qp.inequality_bound))
    answer = minimize(
        lambda s: 0.5 * s @ qp.times_quadratic(s) + qp.linear @ s,
        np.zeros(qp.dimension),
        jac=lambda s: qp.times_quadratic(s) + qp.linear,
        method="SLSQP",
        bounds=list(zip(qp.domain.lower, qp.domain.upper, strict=True)),
        constraints=constraints,
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert answer.success
    return np.asarray(answer.x)


Fresh = Callable[[], QPBackend]


@pytest.fixture(params=list(BACKENDS))
def fresh_backend(request: pytest.FixtureRequest) -> Fresh:
    return BACKENDS[str(request.param)]


@pytest.mark.parametrize("seed", range(6))
def test_random_programs_agree_with_scipy(fresh_backend: Fresh, seed: int) -> None:
    qp = random_program(np.random.default_rng(seed), diagonal=seed % 2 == 0)
    solution = fresh_backend().solve(qp)
    assert solution.status is QPStatus.SOLVED
    np.testing.assert_allclose(solution.step, by_scipy(qp), atol=2e-6)
    assert max(residuals(qp, solution)) < 1e-6
    assert (solution.inequality_multipliers >= 0).all()


def test_multipliers_have_the_signs_of_the_closed_form(fresh_backend: Fresh) -> None:
    # min ½(s0² + s1²) s.t. s0 + s1 <= −2: s = (−1, −1), multiplier 1.
    row = (np.array([[1.0, 1.0]]), np.array([-2.0]))
    solution = fresh_backend().solve(program(np.ones(2), np.zeros(2), inequality=row))
    np.testing.assert_allclose(solution.step, [-1, -1], atol=1e-8)
    np.testing.assert_allclose(solution.inequality_multipliers, [1.0], atol=1e-7)
    # as an equality 2 s0 == −2 the multiplier is ½: s0 + 2ν = 0
    row = (np.array([[2.0, 0.0]]), np.array([-2.0]))
    solution = fresh_backend().solve(program(np.ones(2), np.zeros(2), equality=row))
    np.testing.assert_allclose(solution.equality_multipliers, [0.5], atol=1e-7)


def test_bounds_are_met_exactly_and_their_multipliers_push_back(fresh_backend: Fresh) -> None:
    # min ½‖s‖² − 3 s0 + 3 s1 over [−1, 1]²: s = (1, −1), what is left of the gradient is −2 and 2.
    box = (-np.ones(3), np.ones(3))
    solution = fresh_backend().solve(program(np.ones(3), np.array([-3.0, 3.0, 0.0]), bounds=box))
    assert solution.step[0] == 1.0
    assert solution.step[1] == -1.0
    assert abs(solution.step[2]) < 1e-8
    np.testing.assert_allclose(solution.bound_multipliers, [2.0, -2.0, 0.0], atol=1e-6)


def test_a_bound_that_is_only_near_is_not_snapped_to(fresh_backend: Fresh) -> None:
    box = (np.array([-1.0]), np.array([1.0]))
    near = 1 - 1e-4
    solution = fresh_backend().solve(program(np.ones(1), np.array([-near]), bounds=box))
    assert solution.step[0] == pytest.approx(near, abs=1e-5)
    assert solution.step[0] < 1.0


def test_infeasible_rows_are_told_from_an_unbounded_model(fresh_backend: Fresh) -> None:
    clash = (np.array([[1.0], [-1.0]]), np.array([-1.0, -1.0]))  # s <= −1 and s >= 1
    solution = fresh_backend().solve(program(np.ones(1), np.zeros(1), inequality=clash))
    assert solution.status is QPStatus.INFEASIBLE
    assert not solution.usable
    solution = fresh_backend().solve(program(np.zeros(1), np.ones(1)))
    assert solution.status is QPStatus.UNBOUNDED
    assert not solution.usable


def test_numbers_that_are_none_fail_without_an_exception(fresh_backend: Fresh) -> None:
    row = (np.array([[np.nan]]), np.array([1.0]))
    solution = fresh_backend().solve(program(np.ones(1), np.ones(1), inequality=row))
    assert solution.status is QPStatus.FAILED
    assert not solution.usable


def test_a_failure_does_not_spoil_the_next_program(fresh_backend: Fresh) -> None:
    backend = fresh_backend()
    broken = program(np.ones(1), np.ones(1), inequality=(np.array([[np.nan]]), np.ones(1)))
    sound = program(np.ones(1), np.ones(1), inequality=(np.array([[1.0]]), np.array([-2.0])))
    assert not backend.solve(broken).usable
    solution = backend.solve(sound)
    assert solution.usable
    np.testing.assert_allclose(solution.step, [-2.0], atol=1e-8)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_reused_solver_answers_like_a_fresh_one_when_the_numbers_change(sparse: bool) -> None:
    generator = np.random.default_rng(10)
    backend = ClarabelBackend()
    solvers = set()
    for _ in range(5):
        qp = random_program(generator, diagonal=True)
        if sparse:
            mask = np.tile([1.0, 0.0, 1.0], (4, 2))
            matrix = sp.csr_array(np.asarray(qp.inequality) * mask)
            bound = np.full(4, 1.0)
            qp = program(qp.quadratic, qp.linear, inequality=(matrix, bound), bounds=BOX6)
        reused, fresh = backend.solve(qp), ClarabelBackend().solve(qp)
        assert reused.status is fresh.status is QPStatus.SOLVED
        np.testing.assert_allclose(reused.step, fresh.step, atol=1e-7)
        np.testing.assert_allclose(
            reused.inequality_multipliers, fresh.inequality_multipliers, atol=1e-5
        )
        assert max(residuals(qp, reused)) < 1e-6
        solvers.add(id(backend._solver))
    assert len(solvers) == 1  # one object did them all


BOX6 = (np.full(6, -1.0), np.full(6, 1.0))


def test_a_reused_solver_answers_like_a_fresh_one_when_the_pattern_changes(
    fresh_backend: Fresh,
) -> None:
    generator = np.random.default_rng(11)
    backend = fresh_backend()
    first = random_program(generator)
    wider = random_program(generator, size=8)
    diagonal = random_program(generator, diagonal=True)
    rows = (np.asarray(first.inequality), first.inequality_bound)
    half_open = program(
        first.quadratic,
        first.linear,
        inequality=rows,
        bounds=(np.array([-1.0, -INF, -1, -1, -1, -1]), np.array([1.0, 1, INF, 1, 1, 1])),
    )
    for qp in (first, wider, half_open, diagonal, first, half_open):
        reused, fresh = backend.solve(qp), fresh_backend().solve(qp)
        assert reused.status is QPStatus.SOLVED
        np.testing.assert_allclose(reused.step, fresh.step, atol=1e-7)


def test_an_infeasible_program_between_feasible_ones_leaves_no_trace(fresh_backend: Fresh) -> None:
    backend = fresh_backend()

    def shifted(bound: float) -> QuadraticProgram:
        rows = (np.array([[1.0], [-1.0]]), np.array([bound, 0.5]))  # −0.5 <= s <= bound
        return program(np.ones(1), np.zeros(1), inequality=rows)

    assert backend.solve(shifted(1.0)).usable
    assert backend.solve(shifted(-1.0)).status is QPStatus.INFEASIBLE
    solution = backend.solve(shifted(-0.25))
    assert solution.usable
    np.testing.assert_allclose(solution.step, [-0.25], atol=1e-8)


def test_a_psd_cone_gives_the_smallest_eigenvalue(fresh_backend: Fresh) -> None:
    # min −t s.t. M − t I ⪰ 0 has t = λ_min(M) (Rayleigh); the triangle is √2-scaled, columns upper.
    generator = np.random.default_rng(12)
    root = generator.standard_normal((3, 3))
    matrix = root + root.T
    offset = np.array(
        [(np.sqrt(2) if i < j else 1.0) * matrix[i, j] for j in range(3) for i in range(j + 1)]
    )
    column = np.array([-1.0 if i == j else 0.0 for j in range(3) for i in range(j + 1)])
    cone = Cone("psd", sp.csr_array(column.reshape(-1, 1)), offset)
    solution = fresh_backend().solve(program(np.zeros(1), -np.ones(1), cones=(cone,)))
    assert solution.usable
    assert solution.step[0] == pytest.approx(np.linalg.eigvalsh(matrix)[0], abs=1e-7)


def test_a_zero_cone_is_an_equality(fresh_backend: Fresh) -> None:
    # the projection of 0 onto s0 + s1 == 1 is (½, ½)
    cone = Cone("zero", sp.csr_array(np.array([[1.0, 1.0]])), np.array([-1.0]))
    solution = fresh_backend().solve(program(np.ones(2), np.zeros(2), cones=(cone,)))
    np.testing.assert_allclose(solution.step, [0.5, 0.5], atol=1e-8)


def test_an_unknown_cone_is_refused(fresh_backend: Fresh) -> None:
    # once wrong: every kind but "psd" is taken for the zero cone, also a misspelt one.
    cone = Cone("second-order", sp.csr_array(np.eye(2)), np.zeros(2))
    with pytest.raises(ValueError, match="second-order"):
        fresh_backend().solve(program(np.ones(2), np.ones(2), cones=(cone,)))


def test_bounds_as_large_as_other_solvers_infinity_change_nothing(fresh_backend: Fresh) -> None:
    # once wrong: bounds of 1e20, which mean "none" to IPOPT, SNOPT and their users, go to Clarabel as
    # numbers; the run ends at its start.
    row = (np.array([[1.0, 1.0]]), np.array([-2.0]))
    box = (np.full(2, -1e20), np.full(2, 1e20))
    solution = fresh_backend().solve(program(np.ones(2), np.zeros(2), inequality=row, bounds=box))
    assert solution.usable
    np.testing.assert_allclose(solution.step, [-1, -1], atol=1e-6)


def test_no_rows_at_all_are_a_normal_case(fresh_backend: Fresh) -> None:
    solution = fresh_backend().solve(program(np.ones(2), np.array([1.0, -2.0])))
    np.testing.assert_allclose(solution.step, [-1.0, 2.0], atol=1e-8)
    assert solution.inequality_multipliers.size == 0


def test_residuals_notice_a_wrong_step_and_wrong_multipliers(fresh_backend: Fresh) -> None:
    qp = random_program(np.random.default_rng(13))
    solution = fresh_backend().solve(qp)
    primal, stationarity, _ = residuals(qp, replace(solution, step=solution.step + 0.1))
    assert primal > 1e-3
    assert stationarity > 1e-3
    _, stationarity, complementarity = residuals(
        qp, replace(solution, inequality_multipliers=solution.inequality_multipliers + 1)
    )
    assert stationarity > 0.1
    assert complementarity > 1e-3


def test_the_table_names_its_backends() -> None:
    assert isinstance(make_backend("clarabel"), ClarabelBackend)
    assert make_backend("clarabel") is not make_backend("clarabel")
    with pytest.raises(ValueError, match=f"'osqp'; there are: {', '.join(sorted(BACKENDS))}"):
        make_backend("osqp")


class NoClarabel:
    """In place of Clarabel behind active sets: they have to settle by themselves."""

    def solve(self, qp: QuadraticProgram) -> None:
        raise AssertionError("Clarabel was asked")


@pytest.mark.parametrize("size", [3, 8, 60])
def test_active_sets_follow_a_series_of_programs(size: int) -> None:
    """A box, a row and a level, as in the bundle-level methods; scaled data, bounds that hold."""
    generator, backend = np.random.default_rng(size), ActiveSetBackend()
    root = generator.standard_normal((size, size))
    matrix, slope = root @ root.T + np.eye(size), generator.standard_normal(size)
    rows = generator.standard_normal((2, size))
    backend._clarabel = NoClarabel()  # type: ignore[assignment]
    for _ in range(4):
        slope = slope + 0.1 * generator.standard_normal(size)
        box = (np.full(size, -0.05), np.full(size, 0.1))
        qp = program(matrix, slope, inequality=(rows, np.array([0.3, 0.4])), bounds=box)
        solution = backend.solve(qp)
        assert solution.status is QPStatus.SOLVED
        assert max(residuals(qp, solution)) < 1e-10
        held = solution.bound_multipliers != 0
        assert np.isin(solution.step[held], (-0.05, 0.1)).all()


def test_active_sets_show_that_a_level_is_out_of_reach() -> None:
    # s0 + s1 >= 3 over [−1, 1]²; and with weights (1, 2) two rows that exclude each other
    backend = ActiveSetBackend()
    backend._clarabel = NoClarabel()  # type: ignore[assignment]
    box = (-np.ones(2), np.ones(2))
    far = (np.array([[-1.0, -1.0]]), np.array([-3.0]))
    qp = program(np.array([1.0, 2.0]), np.zeros(2), inequality=far, bounds=box)
    solution = backend.solve(qp)
    assert solution.status is QPStatus.INFEASIBLE
    assert solution.inequality_multipliers[0] > 0
    assert backend.trials == 0  # the row alone shows it
    near = replace(qp, inequality_bound=np.array([-1.9]))
    np.testing.assert_allclose(backend.solve(near).step, [1.0, 0.9], atol=1e-12)


def test_active_sets_of_programs_that_alternate_are_kept_apart() -> None:
    """The row holds both unknowns at the top, without it they are at lower bounds: one trial each."""
    backend = ActiveSetBackend()
    backend._clarabel = NoClarabel()  # type: ignore[assignment]
    box = (-np.ones(2), np.ones(2))
    free = program(np.ones(2), np.array([5.0, 5.0]), bounds=box)
    level = (np.array([[-1.0, -1.0]]), np.array([-1.9999]))
    held = program(np.array([1.0, 1.1]), np.array([5.0, 5.0]), inequality=level, bounds=box)
    for _ in range(2):
        highest, lowest = backend.solve(held), backend.solve(free)
        np.testing.assert_allclose(lowest.step, [-1.0, -1.0], atol=1e-12)
        assert highest.step.sum() == pytest.approx(1.9999)
    backend.solve(held)
    assert backend.trials == 1
    backend.solve(free)
    assert backend.trials == 1
