"""Plants with a mode that no input moves: `infeasible`, by the first method, and none that is near."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.duals.cone_ranges import ConePlaces
from hcmodel.certify.duals.farkas_rays import refined_ray
from hcmodel.solvers.algebra.symmetric import to_matrix
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, cone_program
from tests.extent import first, pairs

FORMS = ("==", "<<", ">>")
LIMITS = ("", "energy", "variance")


def plant(
    states: int, seed: int, discrete: bool, gap: float = 0.0, parallel: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """A plant in general position, one unstable mode of which the inputs move by `gap`."""
    rng = np.random.default_rng(seed)
    A, B = np.zeros((states, states)), rng.normal(size=(states, 2))
    A[:-1, :-1] = rng.normal(size=(states - 1, states - 1)) * (0.5 if discrete else 1.0)
    A[:-1, -1] = rng.normal(size=states - 1)
    A[-1, -1] = 1.2 if discrete else 0.5
    if parallel:
        B[:, 1] = 2.0 * B[:, 0]
    B[-1] *= gap
    turn = np.eye(states)
    while np.linalg.cond(turn) > 30 or (turn == np.eye(states)).all():
        turn = rng.normal(size=(states, states))
    return turn @ A @ np.linalg.inv(turn), turn @ B


def regulator(
    A: np.ndarray, B: np.ndarray, form: str, discrete: bool, limit: str = ""
) -> hc.Problem:
    states, inputs = B.shape
    P = hc.Variable((states, states), name="P", PSD=True)
    K = hc.Variable((inputs, states), name="K")
    closed, noise = A + B @ K, np.eye(states)
    left = closed @ P @ closed.T - P if discrete else closed @ P + P @ closed.T
    rows = [
        {"==": left + noise == 0, "<<": left + noise << 0, ">>": -left - noise >> 0}[form],
    ]
    if limit == "energy":
        rows.append(hc.trace(K @ P @ K.T) <= 50)
    if limit == "variance":
        rows.append(P[0, 0] <= 20)
    return hc.Problem(hc.Minimize(hc.trace(P) + hc.trace(K @ P @ K.T)), rows)


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(
    ("states", "seed", "form", "limit"),
    [
        *((3, 0, *each) for each in itertools.product(FORMS, LIMITS)),
        *((4, 1, *each) for each in pairs(FORMS, LIMITS)),
    ],
)
def test_the_first_method_shows_that_there_is_no_point(
    states: int, seed: int, discrete: bool, form: str, limit: str
) -> None:
    problem = regulator(*plant(states, seed, discrete, parallel=seed == 1), form, discrete, limit)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert ", then" not in problem.solution.method
    assert any(name.startswith("c1") for name in problem.solution.conflict)


def turned_plant(states: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """One in coordinates that are as ill-conditioned as random ones are, by up to a few hundred."""
    rng = np.random.default_rng(seed)
    A, B = np.zeros((states, states)), np.zeros((states, 2))
    A[:-1, :-1] = rng.normal(size=(states - 1, states - 1))
    A[:-1, -1], A[-1, -1] = rng.normal(size=states - 1), 0.5
    B[:-1] = rng.normal(size=(states - 1, 2))
    turn = rng.normal(size=(states, states))
    return turn @ A @ np.linalg.inv(turn), turn @ B


@pytest.mark.parametrize(("states", "seed"), first(3, [(5, 0), (8, 3), (6, 0), (8, 0), (5, 2)]))
def test_plants_in_random_coordinates_with_limits_of_covariances(states: int, seed: int) -> None:
    """Duals of a solver give weights to limits that are not needed, and hide the eigenvector."""
    A, B = turned_plant(states, seed)
    P = hc.Variable((states, states), name="P", PSD=(1e-4, 1e4))
    K = hc.Variable((2, states), name="K")
    closed = A + B @ K
    lyapunov = closed @ P + P @ closed.T + np.eye(states) == 0
    problem = hc.Problem(hc.Minimize(hc.trace((np.eye(states) + K.T @ K) @ P)), [lyapunov])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert ", then" not in problem.solution.method


@pytest.mark.parametrize("discrete", [False, True])
def test_plants_with_more_states(discrete: bool) -> None:
    problem = regulator(*plant(7, 2, discrete), "<<", discrete, "variance")
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert ", then" not in problem.solution.method


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_entries_of_a_matrix_inequality_are_one_part_of_a_conflict(
    form: str, discrete: bool
) -> None:
    problem = regulator(*plant(3, 3, discrete), form, discrete)
    problem.solve()
    assert problem.solution is not None
    rows = [name for name in problem.solution.conflict if name.startswith("c1")]
    assert len(rows) == (6 if form == "==" else 1)


@pytest.mark.parametrize(
    ("gap", "form"), pairs(first(3, [1e-6, 1e-2, 1e-4, 1e-5, 1e-3, 1e-1]), ["<<", "=="])
)
@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize(("states", "seed"), first(1, [(3, 3), (5, 5)]))
def test_plants_near_them_are_not_said_to_be_infeasible(
    states: int, seed: int, discrete: bool, gap: float, form: str
) -> None:
    problem = regulator(*plant(states, seed, discrete, gap), form, discrete)
    problem.solve(method="cone")
    assert problem.status != "infeasible"


@pytest.mark.parametrize("discrete", [False, True])
@pytest.mark.parametrize("form", FORMS)
def test_simple_numbers_show_it_for_points_of_any_size(form: str, discrete: bool) -> None:
    A, B = np.diag([2.0, 0.5]), np.array([[0.0], [1.0]])
    problem = regulator(A, B, form, discrete)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert problem.solution.message == "shown to have no feasible point"


# ---- rays


def turned(gap: float) -> tuple[object, np.ndarray]:
    """⟨v vᵀ − gap·w wᵀ, X⟩ = −1 and ⟨v wᵀ, X⟩ = 0.1 with X ⪰ 0, v and w orthonormal; and v."""
    angle = 0.3
    v = np.array([np.cos(angle), np.sin(angle)])
    w = np.array([-np.sin(angle), np.cos(angle)])

    def entries(matrix: np.ndarray) -> np.ndarray:
        return np.array([matrix[0, 0], 2.0 * matrix[0, 1], matrix[1, 1]])

    first = entries(np.outer(v, v) - gap * np.outer(w, w))
    mixed = entries((np.outer(v, w) + np.outer(w, v)) / 2)
    cone = np.diag([-1.0, -np.sqrt(2.0), -1.0])
    blocks = [ConeBlock(ConeKind.ZERO, 2), ConeBlock(ConeKind.PSD_TRIANGLE, 3)]
    offset = np.array([-1.0, 0.1, 0.0, 0.0, 0.0])
    return cone_program(np.zeros(3), np.vstack([first, mixed, cone]), offset, blocks), v


def test_a_ray_is_refined_to_the_last_digit() -> None:
    program, v = turned(0.0)
    rough = np.outer(v, v) + 1e-5 * np.array([[1.0, -2.0], [-2.0, 0.5]])
    z = np.array([1.0, 1e-6, rough[0, 0], np.sqrt(2.0) * rough[0, 1], rough[1, 1]])
    found = refined_ray(program, ConePlaces.of(program), z)
    assert found is not None
    assert np.abs(program.pull(found)).max() < 1e-15
    assert program.offset @ found == pytest.approx(-1.0, abs=1e-15)
    values = np.linalg.eigvalsh(to_matrix(found[2:]))
    assert values[0] == pytest.approx(0.0, abs=1e-15)


@pytest.mark.parametrize("gap", [1e-12, 1e-9, 1e-6])
def test_what_is_nearly_a_ray_is_none(gap: float) -> None:
    program, v = turned(gap)
    rough = np.outer(v, v)
    z = np.array([1.0, 0.0, rough[0, 0], np.sqrt(2.0) * rough[0, 1], rough[1, 1]])
    assert refined_ray(program, ConePlaces.of(program), z) is None
