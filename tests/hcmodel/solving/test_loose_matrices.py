"""Semidefinite matrices that cost nothing and may grow: their dual is 0, and rounding leaves 1e-10."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.certificate_options import CONE_DUALITY
from hcmodel.certify.duals.cone_duality import into_dual_cone, with_room
from hcmodel.certify.duals.cone_ranges import ConePlaces
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, cone_program
from hcmodel.solving import conclude
from hcmodel.solving.judge import Status
from tests.extent import first
from tests.hcmodel.solving.test_evidence import MINIMISED, known

Rows = Callable[[hc.Variable, hc.Variable], list[hc.Constraint]]
# Each of them holds at every u for some X.
LOOSE: dict[str, Rows] = {
    "an entry off the diagonal": lambda X, u: [X[0, 1] == u[0]],
    "an entry on it": lambda X, u: [X[0, 0] >= u[0]],
    "a sum": lambda X, u: [X[0, 1] + X[1, 1] == u[0] - 2 * u[1]],
    "a difference and a limit": lambda X, u: [X[0, 0] - X[1, 1] == u[0], X[0, 1] <= u[1]],
    "eigenvalues": lambda X, u: [X >> np.eye(2), hc.trace(X) >= u[0]],
}


@pytest.mark.parametrize("rows", LOOSE)
@pytest.mark.parametrize("kind", ["exponentials", "squares", "sizes"])
@pytest.mark.parametrize("seed", first(2, range(10)))
def test_a_matrix_without_a_weight_takes_no_certificate_away(
    rows: str, kind: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    X, u = hc.Variable((2, 2), "X", PSD=True), hc.Variable(2, "u")
    slopes = rng.uniform(0.1, 2.0, size=2)
    objective, least = {
        "exponentials": (hc.sum(hc.exp(u)) - slopes @ u, slopes @ (1 - np.log(slopes))),
        "squares": (1 + hc.sum_squares(u - slopes), 1.0),
        "sizes": (1 + hc.norm1(u - slopes), 1.0),
    }[kind]
    problem = hc.Problem(hc.Minimize(objective), LOOSE[rows](X, u))
    assert problem.solve() == pytest.approx(least, rel=1e-6)
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert problem.solution.certificate.conditions != (conclude.HIDDEN_CONVEX,)


def test_beside_a_kink_too() -> None:
    X, u = hc.Variable((2, 2), "X", PSD=True), hc.Variable(2, "u")
    rows = [hc.max(u) <= 0.5, X[0, 1] == u[0]]
    problem = hc.Problem(hc.Minimize(hc.sum_squares(u - 1)), rows)
    assert problem.solve() == pytest.approx(0.5, rel=1e-6)
    assert problem.status == "optimal"


def test_a_dual_with_room_stays_in_its_cone_with_the_same_weight() -> None:
    program = cone_program(
        np.zeros(1), np.zeros((6, 1)), np.zeros(6), [ConeBlock(ConeKind.EXPONENTIAL, 6)]
    )
    places = ConePlaces.of(program)
    z = np.array([-0.2, -0.5, 1.0, 0.0, 0.3, 0.4])  # 0.2·exp(2.5 − 1) <= 1, and u = 0
    for room in CONE_DUALITY.rooms:
        found = with_room(places, z, room)
        assert found[[0, 2, 3, 4, 5]].tolist() == z[[0, 2, 3, 4, 5]].tolist()
        assert found[1] >= -0.5 + 0.2 * room
    outside = np.array([-0.2, -0.9, 1.0, 0.0, 0.3, 0.4])
    found = with_room(places, outside, 1e-8)
    assert found[1] == pytest.approx(-0.2 * (1 + np.log(5.0)), abs=1e-8)
    assert np.array_equal(into_dual_cone(places, found), found)


def test_what_is_proven_does_not_rest_on_being_hidden_convex() -> None:
    x = hc.Variable(name="x")
    proven = hc.Problem(hc.Minimize(x**2), [x >= 1]).model

    hidden = Forms(proven).hidden()
    status = Status.LOCALLY_OPTIMAL
    found = conclude._certificate(status, MINIMISED, known(), True, hidden)
    assert found.conditions == ("proven convex in x",)
    relaxed = conclude._certificate(status, MINIMISED, known(relaxed=True), True, hidden)
    assert relaxed.conditions == (conclude.HIDDEN_CONVEX,)
    bare = conclude._certificate(status, MINIMISED, known(), True)
    assert bare.conditions == (conclude.HIDDEN_CONVEX,)
