"""The components of a second-order step, each alone: model, step, penalty, acceptance, detour, rest."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from hcmodel.solvers import Box, Oracle, function_oracle
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.loop import Task
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import make_backend
from hcmodel.solvers.result import Termination
from hcmodel.solvers.second_order.acceptance import (
    accepted_region,
    multipliers_changed,
    rejected_region,
    trial_of,
)
from hcmodel.solvers.second_order.detour import Detour
from hcmodel.solvers.second_order.model import QuadraticModel
from hcmodel.solvers.second_order.options import AcceptanceOptions, DetourOptions, Options
from hcmodel.solvers.second_order.penalty import Penalty
from hcmodel.solvers.second_order.rest import at_rest, cannot_repair, without_step
from hcmodel.solvers.second_order.state import Proposal, Region, TrustRegionState
from hcmodel.solvers.second_order.step import solve_step
from tests.solvers.models import linear_rows, quadratic

FloatArray = NDArray[np.float64]
OPTIONS = Options()
CENTRE = np.array([3.0, 4.0])


def problem(bound: float) -> tuple[Oracle, Box]:
    """½‖x − (3, 4)‖² with x1 + x2 <= bound, for |x| <= 10: the multiplier is (7 − bound)/2 or 0."""
    rows = linear_rows(np.array([[1.0, 1.0]]), np.array([bound]))
    oracle = function_oracle(2, quadratic(CENTRE), inequalities=rows, sizes=(1, 0))
    return oracle, Box.of(2, -10.0, 10.0)


def model_at(oracle: Oracle, domain: Box, point: FloatArray, hessian: FloatArray) -> QuadraticModel:
    evaluation = oracle.at(point)
    frame = PlainCoordinates(domain).frame(evaluation)
    return QuadraticModel.at(evaluation, domain, frame, hessian)


def proposal_at(
    oracle: Oracle, domain: Box, point: FloatArray, radius: float, hessian: FloatArray | None = None
) -> Proposal:
    hessian = np.eye(2) if hessian is None else hessian
    model = model_at(oracle, domain, point, hessian)
    found = solve_step(model, radius, make_backend())
    assert found is not None
    penalty = Penalty(np.zeros(model.rows.size)).after(model, found)
    promised = penalty.predicted(model, found.w)
    return Proposal(PlainCoordinates(domain), hessian, model, found, penalty, promised)


def state_at(evaluation: Evaluation, radius: float = 1.0) -> TrustRegionState:
    zeros = np.zeros(evaluation.rows.size)
    region = Region(radius, OPTIONS.acceptance.reach)
    return TrustRegionState(evaluation, zeros, region=region, penalty=Penalty(zeros))


def test_the_step_of_an_exact_model_is_the_minimiser_with_its_multiplier() -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, np.zeros(2), 100.0)
    step = proposal.model.frame.step(proposal.step.w)
    np.testing.assert_allclose(step, CENTRE - 1.0, atol=1e-8)
    np.testing.assert_allclose(proposal.step.multipliers, [1.0], atol=1e-7)
    assert proposal.step.relaxed == 0
    assert not proposal.step.on_edge


def test_a_short_step_ends_at_the_edge_of_the_trust_region() -> None:
    oracle, domain = problem(5.0)
    model = model_at(oracle, domain, np.zeros(2), np.eye(2))
    found = solve_step(model, 0.01, make_backend())
    assert found is not None
    assert found.on_edge
    assert found.length == pytest.approx(0.01, rel=1e-6)


def test_a_part_of_a_step_repairs_that_part_of_the_violation() -> None:
    # From (3, 4) the row x1 + x2 <= −3 is violated by 10, and no step within the region repairs it.
    oracle, domain = problem(-3.0)
    model = model_at(oracle, domain, CENTRE, np.eye(2))
    found = solve_step(model, 0.01, make_backend())
    assert found is not None
    assert found.length == pytest.approx(0.01, rel=1e-9)
    after = model.violations(model.change(found.w)[1])[0]
    whole = solve_step(model, 1e3, make_backend())
    assert whole is not None
    share = found.length / whole.length
    assert after == pytest.approx(10.0 * (1 - share), rel=1e-6)


def test_contradicting_rows_are_relaxed_by_the_least_amount() -> None:
    # x1 <= −1 and x1 >= 2 cannot hold together: the least sum of relaxations is 3, whatever the step.
    rows = linear_rows(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -2.0]))
    oracle = function_oracle(2, quadratic(CENTRE), inequalities=rows, sizes=(2, 0))
    model = model_at(oracle, Box.of(2), np.zeros(2), np.eye(2))
    found = solve_step(model, 10.0, make_backend())
    assert found is not None
    assert found.relaxed * model.row_scales[0] == pytest.approx(3.0, rel=1e-6)


def test_weights_exceed_the_multipliers_and_decrease_gradually() -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, np.zeros(2), 100.0)
    needed = proposal.step.multipliers
    for before, after in ((0.0, 2.0), (3.0, 3.0), (100.0, 10.0)):
        weights = Penalty(np.array([before])).after(proposal.model, proposal.step).weights
        np.testing.assert_allclose(weights, np.maximum(after, 2 * needed), rtol=1e-6)


def test_a_step_that_repairs_rows_at_a_cost_is_one_of_descent() -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, CENTRE, 100.0)
    assert proposal.model.change(proposal.step.w)[0] > 0
    assert proposal.promised > 0


def test_an_exact_model_gives_the_ratio_one() -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, np.zeros(2), 100.0)
    task = Task(oracle, domain, 1e-6)
    trial = trial_of(task, proposal, 100.0, make_backend(), OPTIONS)
    assert trial.ratio == pytest.approx(1.0, abs=1e-9)


def circle(x: FloatArray) -> tuple[FloatArray, FloatArray]:
    return np.array([x @ x - 1.0]), 2.0 * x[None, :]


def test_a_second_order_correction_saves_a_step_along_a_curved_row() -> None:
    """Maratos' example: 2(‖x‖² − 1) − x1 on the circle, from a point of it, B that of the Lagrangian."""

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return 2.0 * (x @ x - 1.0) - x[0], 4.0 * x - np.array([1.0, 0.0])

    oracle = function_oracle(2, objective, equalities=circle, sizes=(0, 1))
    domain, angle = Box.of(2), 0.3
    start = np.array([np.cos(angle), np.sin(angle)])
    proposal = proposal_at(oracle, domain, start, 10.0)  # ∇²L = I at the multiplier −3/2
    task = Task(oracle, domain, 1e-6)
    plain = oracle.at(start + proposal.model.frame.step(proposal.step.w))
    penalty = proposal.penalty
    assert penalty.merit(plain) > penalty.merit(proposal.model.evaluation)
    trial = trial_of(task, proposal, 10.0, make_backend(), OPTIONS)
    assert trial.ratio > OPTIONS.acceptance.accepted
    assert np.linalg.norm(trial.evaluation.point - [1.0, 0.0]) < 0.5 * angle


@pytest.mark.parametrize(
    ("ratio", "radius", "expected"),
    [(0.1, 1.0, 0.5), (0.5, 1.0, 1.0), (0.9, 1.0, 1.0), (0.9, 0.01, 0.04), (0.1, 1e-9, 1e-6)],
)
def test_the_radius_after_an_accepted_step(ratio: float, radius: float, expected: float) -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, np.zeros(2), 100.0)
    edge = radius < 0.1
    step = replace(proposal.step, w=np.array([min(radius, 1.0), 0.0]), on_edge=edge)
    proposal = replace(proposal, step=step)
    region = accepted_region(Region(radius, 0.7), proposal, ratio, AcceptanceOptions())
    assert region.radius == pytest.approx(expected)
    assert region.reach == pytest.approx(0.91 if ratio > 0.75 else 0.7)


def test_the_radius_after_a_rejected_step() -> None:
    oracle, domain = problem(5.0)
    proposal = proposal_at(oracle, domain, np.zeros(2), 100.0)
    options = AcceptanceOptions()
    region = rejected_region(Region(100.0, 0.7), proposal, oracle.at(np.zeros(2)), options)
    assert region.radius == pytest.approx(0.25 * proposal.step.length)
    outside = oracle.at(np.full(2, np.nan))
    region = rejected_region(Region(100.0, 0.7), proposal, outside, options)
    assert region.radius == pytest.approx(0.1 * proposal.step.length)


def test_multipliers_that_change_by_a_tenth_ask_for_another_hessian() -> None:
    old, options = np.array([1.0, 2.0]), AcceptanceOptions()
    assert not multipliers_changed(old + 0.15, old, options)
    assert multipliers_changed(old + 0.3, old, options)


def test_detours_grow_threefold_up_to_the_longest() -> None:
    options, detour, lengths = DetourOptions(), Detour(), []
    for _ in range(7):
        detour = detour.begun(options)
        lengths.append(detour.left)
        while detour.active:
            detour = detour.after_step(blocked=False)
    assert lengths == [1, 3, 9, 27, 81, 81, 81]


def test_a_step_that_ends_off_the_bound_clears_the_count_of_blocked_ones() -> None:
    detour = Detour(blocked=1)
    assert detour.is_due(DetourOptions())
    assert detour.after_step(blocked=True).blocked == 1
    assert detour.after_step(blocked=False).blocked == 0


def test_rest_at_a_minimum_is_convergence_and_elsewhere_a_stall() -> None:
    oracle, domain = problem(5.0)
    task = Task(oracle, domain, 1e-6)
    for point, expected in (
        (CENTRE - 1.0, Termination.CONVERGED),
        (np.zeros(2), Termination.STALLED),
    ):
        proposal = proposal_at(oracle, domain, point, 1.0)
        ended = at_rest(task, state_at(proposal.model.evaluation), proposal, OPTIONS)
        assert ended.stop is expected


def test_a_conflict_is_looked_at_in_wider_regions_and_then_named() -> None:
    rows = linear_rows(np.array([[1.0, 0.0], [-1.0, 0.0]]), np.array([-1.0, -2.0]))
    oracle = function_oracle(2, quadratic(CENTRE), inequalities=rows, sizes=(2, 0))
    domain = Box.of(2)
    task = Task(oracle, domain, 1e-6)
    proposal = proposal_at(oracle, domain, np.array([0.5, 4.0]), 10.0)
    assert cannot_repair(task, proposal, OPTIONS)
    state, radii = state_at(proposal.model.evaluation, 10.0), []
    for _ in range(4):
        state = at_rest(task, replace(state, region=Region(10.0, 0.7)), proposal, OPTIONS)
        radii.append(state.region.radius)
    assert radii == [1e4, 1e4, 1e4, 10.0]
    assert state.stop is Termination.INFEASIBLE_STATIONARY
    assert state.conflict is not None
    assert (state.conflict > 0.5).all()


def test_a_backend_without_answers_ends_the_run() -> None:
    oracle, _ = problem(5.0)
    state = state_at(oracle.at(np.zeros(2)))
    for _ in range(4):
        state = without_step(state, OPTIONS)
        assert state.stop is None
    assert state.region.radius == pytest.approx(1e-4)
    assert without_step(state, OPTIONS).stop is Termination.BACKEND_FAILED
