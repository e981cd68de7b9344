"""The applications reach reference values that were computed another way.

Regulators: Riccati equations, and CVXPY in the hidden variables (P, K P). Decision processes: linear
programs over occupancy measures (HiGHS), and CVXPY where they are not linear. Prices: CVXPY in
demands or shares. `tests/benchmarks/applications.py` is the long sweep.
"""

from __future__ import annotations

import importlib
import json
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy.linalg

import hcmodel as hc
from tests.extent import first, several
from tests.problems.applications import (
    DECISION_PROCESSES,
    EXAMPLES,
    REGULATORS,
    Plant,
    Process,
    example,
    published_plant,
    random_plant,
    random_process,
)


def data_of(name: str) -> dict[str, Any]:
    data = json.loads((EXAMPLES / f"{name}.json").read_text(encoding="utf-8"))
    return {key: np.array(value, dtype=float) for key, value in data.items()}


def solved(problem: hc.Problem, method: str = "auto", **options: Any) -> hc.Solution:
    problem.solve(method, **options)
    assert problem.solution is not None
    return problem.solution


# ---- regulators ---------------------------------------------------------------------------------


def assert_regulated(plant: Plant) -> None:
    """sbl-adals with no option, from K = 0 and P = I: the Riccati value, and a stable loop."""
    problem = example("lqr", **plant.data)
    n, m = plant.B.shape
    start = {"P": np.eye(n), "K": np.zeros((m, n))}
    solution = solved(problem, "sbl-adals", start=start)
    assert solution.value == pytest.approx(plant.optimum(), rel=1e-5)
    assert solution.certificate.violation <= 1e-6
    assert plant.abscissa(solution.point["K"]) < 0
    if n <= 4:
        assert solution.oracle_calls.total <= 12_000


@pytest.mark.parametrize("name", first(2, REGULATORS))
def test_a_published_plant_is_regulated_from_no_feedback(name: str) -> None:
    plant = published_plant(name)
    assert plant.optimum() == pytest.approx(REGULATORS[name]["optimal_value"])
    assert_regulated(plant)


@pytest.mark.parametrize(("n", "m"), first(2, [(2, 1), (4, 2), (3, 2), (5, 3), (6, 3)]))
def test_a_random_plant_is_regulated_from_no_feedback(n: int, m: int) -> None:
    plant = random_plant(n, m, 0)
    assert plant.abscissa(np.zeros((m, n))) > 0
    assert plant.fits()
    assert_regulated(plant)


@pytest.mark.parametrize(
    ("n", "m", "seed"),
    first(
        1,
        [
            # P of condition 1e4, at whose optimum the reduced Hessian is R ⊗ P
            (4, 1, 2),
            # the phase on the rows ends so near to them that they vanish in the QP's units
            (5, 1, 2),
            # the first step onto the rows is far too long, and the edge of the cone is near
            (5, 1, 3),
        ],
    ),
)
def test_plants_of_widely_different_scales_take_hundreds_of_calls(
    n: int, m: int, seed: int
) -> None:
    plant = random_plant(n, m, seed)
    assert plant.fits()
    solution = solved(example("lqr", **plant.data), "sbl-adals", max_calls=1500)
    assert solution.value == pytest.approx(plant.optimum(), rel=1e-4)
    assert solution.certificate.violation <= 1e-6
    assert plant.abscissa(solution.point["K"]) < 0


@pytest.mark.parametrize("method", first(1, ["sbl-star", "ippm-acgd"]))
def test_the_direct_form_approaches_the_riccati_value(method: str) -> None:
    plant = published_plant("lqr_compleib_he1")
    gain = np.array([[0, 0, 0.5, 0.5], [0, 0, 0, 0]])
    assert -0.1 < plant.abscissa(gain) < 0
    known = {"optimal_value": plant.optimum()} if method == "sbl-star" else {}
    solution = solved(example("lqr_direct", **plant.data), method, start={"K": gain}, **known)
    assert solution.value == pytest.approx(plant.optimum(), rel=1e-4)
    assert plant.abscissa(solution.point["K"]) < 0


def test_the_direct_form_of_the_example_reaches_the_riccati_value() -> None:
    data = data_of("lqr_direct")
    plant = Plant(**data, W=np.eye(4))
    assert solved(example("lqr_direct", **data)).value == pytest.approx(plant.optimum(), rel=1e-6)


def test_a_cap_on_the_energy_gives_the_value_of_the_convex_form() -> None:
    data = data_of("lqr")
    A, B, Q, R = (data[key] for key in "ABQR")
    P, Y, Z = cp.Variable((4, 4), PSD=True), cp.Variable((2, 4)), cp.Variable((2, 2), PSD=True)
    drift = A @ P + P @ A.T + B @ Y + Y.T @ B.T + np.eye(4)
    schur = cp.bmat([[Z, Y], [Y.T, P]])  # Z is at least Y P⁻¹ Yᵀ
    constraints = [drift == 0, schur >> 0, cp.trace(R @ Z) <= 0.5]
    reference = cp.Problem(cp.Minimize(cp.trace(Q @ P)), constraints).solve(solver="CLARABEL")
    solution = solved(example("lqr_energy", **data, cap=0.5))
    assert solution.value == pytest.approx(reference, rel=1e-5)
    K, P_found = solution.point["K"], solution.point["P"]
    assert np.trace(R @ K @ P_found @ K.T) == pytest.approx(0.5, abs=1e-6)
    assert solution.duals["energy"] > 0


def test_discrete_time_reaches_the_riccati_value_with_and_without_a_stabilising_start() -> None:
    data = data_of("lqr_discrete")
    A, B = data["A"], data["B"]
    assert np.abs(np.linalg.eigvals(A)).max() > 1
    X = scipy.linalg.solve_discrete_are(A, B, np.eye(2), np.eye(1))
    lifted = solved(example("lqr_discrete", **data))
    assert lifted.value == pytest.approx(np.trace(X), rel=1e-6)
    np.testing.assert_allclose(lifted.point["S"], 0, atol=1e-6)
    K = hc.Variable((1, 2), name="K", start=[[-12, -6]])
    cost = hc.trace((np.eye(2) + K.T @ K) @ hc.dlyap(A + B @ K, np.eye(2)))
    direct = solved(hc.Problem(hc.Minimize(cost)))
    assert direct.value == pytest.approx(np.trace(X), rel=1e-6)
    np.testing.assert_allclose(direct.point["K"], lifted.point["K"], rtol=1e-3)


def test_the_worst_disturbance_is_held_at_the_closed_form() -> None:
    """γ is attained while (1/γ² − 1)·max |G(iω)|² < 1, G the plant without control.

    Input and disturbance act alike, so that the Hamiltonian has no imaginary eigenvalue just then; with
    damping d the peak of |G|² is 1/(d² − d⁴/4).
    """
    damping = 0.2
    expected = 1 / np.sqrt(1 + damping**2 - damping**4 / 4)
    solution = solved(example("hinf"))
    assert solution.value == pytest.approx(expected, rel=1e-6)
    assert solution.status == "optimal"
    K = solution.point["K"]
    closed = np.array([[0.0, 1.0], [-1.0, -damping]]) + np.array([[0.0], [1.0]]) @ K
    frequencies = 1j * np.linspace(0, 5, 2001)
    outputs = np.vstack([[1.0, 0.0], K])
    gains = [
        np.linalg.norm(outputs @ np.linalg.solve(s * np.eye(2) - closed, [[0.0], [1.0]]))
        for s in frequencies
    ]
    assert max(gains) <= solution.value * (1 + 1e-6)


def test_decentralised_regulation_has_two_minima_and_is_therefore_not_hidden_convex() -> None:
    """Each of two boxes of the gains has a minimum inside of it."""
    data = data_of("lqr_decentralised")
    values = []
    for low, high in ((-1.0, 1.0), (-8.0, -4.0)):
        box = np.array([low, -3.0]), np.array([high, 0.0])
        seen = hc.Variable(2, name="seen", bounds=box)
        gain = hc.diag(seen) @ np.eye(2, 3)
        covariance = hc.lyap(np.asarray(data["A"]) + np.asarray(data["B"]) @ gain, np.eye(3))
        cost = hc.trace((np.eye(3) + gain.T @ gain) @ covariance)
        problem = hc.Problem(hc.Minimize(cost))
        values.append(problem.solve("sbl-adals"))
        assert (seen.value > box[0] + 0.05).all()
        assert (seen.value < box[1] - 0.05).all()
    assert values == pytest.approx([6.50299, 20.56254], rel=1e-4)  # by Nelder–Mead on J(K)


def test_a_mode_that_no_input_reaches_is_reported() -> None:
    problem = example("lqr", A=[[1, 0], [0, -1]], B=[[0], [1]])
    solution = solved(problem)
    assert solution.status == "infeasible"
    assert solution.value == np.inf


# ---- decision processes -------------------------------------------------------------------------


def assert_as_good_as_the_linear_program(process: Process, slack: float = 0.0) -> None:
    solution = solved(example("cmdp", **process.data), "sbl-adals")
    assert solution.value == pytest.approx(process.optimum(slack), rel=1e-5)
    assert_policy(solution.point["policy"])
    assert solution.certificate.violation <= 1e-6


def assert_policy(policy: np.ndarray) -> None:
    np.testing.assert_allclose(policy.sum(axis=1), 1, atol=1e-9)
    assert policy.min() >= 0


def published_process(name: str) -> Process:
    data = DECISION_PROCESSES[name]
    transition, reward, mu = (np.array(data[key]) for key in ("P", "r", "mu"))
    return Process(transition, mu, data["gamma"], reward, np.zeros((0, *reward.shape)), np.zeros(0))


def test_the_forest_is_managed_as_its_source_says() -> None:
    process = published_process("mdp_forest")
    published = -DECISION_PROCESSES["mdp_forest"]["optimal_value"] * (1 - process.gamma)
    assert process.optimum() == pytest.approx(published)
    assert_as_good_as_the_linear_program(process)


def test_the_river_is_explored_as_evenly_as_published() -> None:
    published = DECISION_PROCESSES["cmdp_riverswim_maxent"]
    data = data_of("exploration")
    np.testing.assert_array_equal(data["transition"], published["P"])
    solution = solved(example("exploration", **data), "sbl-adals")
    assert solution.value == pytest.approx(-published["optimal_value"], rel=1e-6)
    assert_policy(solution.point["policy"])


def test_the_machine_is_kept_as_the_linear_program_says() -> None:
    process = Process(**data_of("cmdp"))
    assert_as_good_as_the_linear_program(process)


@pytest.mark.parametrize("seed", first(1, range(2)))
def test_twenty_states_five_actions_and_two_costs(seed: int) -> None:
    assert_as_good_as_the_linear_program(random_process(seed))


@pytest.mark.parametrize("seed", first(1, [1, 0]))
def test_no_slater_point_is_needed(seed: int) -> None:
    process = random_process(seed, costs=1, share=0.0)
    assert process.limit[0] == pytest.approx(process.least_cost(0), abs=1e-12)
    assert_as_good_as_the_linear_program(process, slack=1e-9)


def occupancies(data: dict[str, Any]) -> tuple[cp.Variable, list[cp.Constraint]]:
    """The polytope of occupancy measures."""
    states, actions, _ = data["transition"].shape
    occupancy = cp.Variable((states, actions), nonneg=True)
    arriving = sum(occupancy[:, a] @ data["transition"][:, a, :] for a in range(actions))
    first = (1 - data["gamma"]) * data["mu"]
    return occupancy, [cp.sum(occupancy, axis=1) == first + data["gamma"] * arriving]


def test_the_policy_near_an_expert_has_the_value_of_the_convex_form() -> None:
    data = data_of("near_expert")
    occupancy, flow = occupancies(data)
    near = cp.norm(occupancy - data["expert"], "fro") <= data["radius"]
    reward = cp.sum(cp.multiply(data["reward"], occupancy))
    reference = cp.Problem(cp.Maximize(reward), [*flow, near]).solve(solver="CLARABEL")
    solution = solved(example("near_expert", **data))
    assert solution.value == pytest.approx(reference, rel=1e-6)
    assert_policy(solution.point["policy"])
    assert solution.certificate.violation <= 1e-6


def test_the_apprentice_comes_as_near_as_the_convex_form() -> None:
    data = data_of("apprenticeship")
    occupancy, flow = occupancies(data)
    mine = cp.hstack([cp.sum(cp.multiply(each, occupancy)) for each in data["feature"]])
    distance = cp.sum_squares(mine - data["seen"])
    reference = cp.Problem(cp.Minimize(distance), flow).solve(solver="CLARABEL")
    solution = solved(example("apprenticeship", **data))
    assert solution.value == pytest.approx(reference, rel=1e-5)
    assert_policy(solution.point["policy"])


def test_the_robot_crosses_as_the_linear_program_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLES / "python"))
    world = importlib.import_module("grid_world")
    problem, policy, visits = world.model(limit=0.05)
    states, actions = policy.shape
    process = Process(
        transition=world.transitions(),
        mu=0.9 * world.marked("s") + 0.1 / states,
        gamma=world.GAMMA,
        reward=np.repeat(world.marked("g")[:, None], actions, axis=1),
        cost=np.repeat(world.marked("#")[None, :, None], actions, axis=2),
        limit=np.array([0.05]),
    )
    solution = solved(problem, "sbl-adals")
    assert solution.value == pytest.approx(process.optimum(), rel=1e-5)
    assert world.marked("#") @ visits.value <= 0.05 + 1e-6


# ---- prices -------------------------------------------------------------------------------------


def far_starts(size: int, low: float, high: float) -> list[np.ndarray]:
    """Prices in a corner of the box, and random ones."""
    generator = np.random.default_rng(0)
    return [np.full(size, high), *generator.uniform(low, high, size=(several(1, 3), size))]


def test_prices_of_a_network_reach_the_optimum_over_demands_from_far_starts() -> None:
    data = data_of("pricing")
    size, sensitivity = data["size"], data["sensitivity"]
    demand = cp.Variable(len(size))
    revenue = cp.sum(
        cp.multiply(1 / sensitivity, cp.entr(demand) + cp.multiply(np.log(size), demand))
    )
    seats = data["uses"] @ demand <= data["seats"]
    reference = cp.Problem(cp.Maximize(revenue), [seats]).solve(solver="CLARABEL")
    problem = example("pricing", **data)
    for start in far_starts(len(size), 10, 1000):
        solution = solved(problem, start={"price": start})
        assert solution.value == pytest.approx(reference, rel=1e-6)
    np.testing.assert_allclose(solution.duals["flight"], seats.dual_value, rtol=1e-3)


def test_prices_under_a_logit_reach_the_optimum_over_shares_from_far_starts() -> None:
    data = data_of("logit")
    count = len(data["appeal"])
    share, nothing = cp.Variable(count), cp.Variable()
    utility = cp.multiply(data["appeal"], share) - cp.rel_entr(share, np.ones(count) * nothing)
    profit = data["buyers"] * (utility @ (1 / data["sensitivity"]) - data["cost"] @ share)
    stock = data["buyers"] * (data["parts"] @ share) <= data["stock"]
    constraints = [stock, cp.sum(share) + nothing == 1]
    reference = cp.Problem(cp.Maximize(profit), constraints).solve(solver="CLARABEL")
    problem = example("logit", **data)
    for start in far_starts(count, 0, 500):
        solution = solved(problem, start={"price": start})
        assert solution.value == pytest.approx(reference, rel=1e-6)
    np.testing.assert_allclose(solution.duals["part"], stock.dual_value, rtol=1e-3, atol=1e-3)


# ---- values of policies


REPAIR = np.array(
    [
        [[0.7, 0.25, 0.05], [0.9, 0.1, 0.0], [0.95, 0.05, 0.0]],
        [[0.0, 0.6, 0.4], [0.7, 0.25, 0.05], [0.95, 0.05, 0.0]],
        [[0.0, 0.0, 1.0], [0.4, 0.4, 0.2], [0.95, 0.05, 0.0]],
    ]
)
REWARD = np.array([[8.0, 5, 2], [5, 3, 1], [0, -2, -1]])
DOWNTIME = np.array([[0.0, 1, 0.2], [0.3, 1, 0.2], [1, 1.5, 0.4]])


@pytest.mark.parametrize(("name", "cap"), [("policy_value", 1.6), ("bellman", 1e9)])
def test_values_of_policies_are_those_of_the_linear_program(name: str, cap: float) -> None:
    balance = np.kron(np.eye(3), np.ones((1, 3))) - 0.9 * REPAIR.reshape(9, 3).T
    found = scipy.optimize.linprog(
        -REWARD.ravel(), A_ub=[DOWNTIME.ravel()], b_ub=[cap], A_eq=balance, b_eq=[1, 0, 0]
    )
    problem = example(name)
    assert problem.solve() == pytest.approx(-found.fun, rel=1e-7)
    assert problem.status == "optimal"
