"""Constants: bounds where the map is separable on boxes, labelled estimates elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis import hidden_map
from hcmodel.analysis.constants import estimate_constants
from hcmodel.solvers.limits import TimeExhausted
from tests.hcmodel.proof.gallery import folded
from tests.problems.library import tank


def test_logarithms_on_a_box_give_bounds_of_the_map():
    # Ex-CGP: μ_c = 1/3 and D_U = √2 log 7.5 (errata of the paper)
    constants, labels = estimate_constants(tank()[0].forms())
    assert constants.mu_c == pytest.approx(1 / 3, rel=1e-12)
    assert constants.diameter_u == pytest.approx(np.sqrt(2) * np.log(7.5), rel=1e-12)
    assert constants.diameter_x == pytest.approx(np.sqrt(2) * 2.6, rel=1e-12)
    assert labels["mu_c"] == labels["diameter_u"] == labels["diameter_x"] == "bound"
    assert labels["rho"] == labels["L"] == labels["G"] == "estimate"


def test_sampled_constants_stay_on_their_side_of_the_truth():
    # Ex-CGP over [0.4, 3]²: ∇²F = [[8/x1³, 1], [1, 2/x2³]] is largest at (0.4, 0.4) and the row x1 x2
    # has the eigenvalue −1, so that ρ = 1
    constants, _ = estimate_constants(tank()[0].forms(), samples=100)
    largest = float(np.linalg.eigvalsh([[8 / 0.4**3, 1], [1, 2 / 0.4**3]])[-1])
    assert constants.rho == pytest.approx(1, rel=1e-9)
    assert 0.2 * largest < constants.L <= largest * (1 + 1e-12)
    assert 5 < constants.G <= np.hypot(4 / 0.16, 1 / 0.16)


def test_a_general_map_is_sampled():
    # Ex-CNLS: the smallest singular value of J_c is √2 − 1 (errata of the paper)
    constants, labels = estimate_constants(folded().forms())
    assert constants.mu_c == pytest.approx(np.sqrt(2) - 1, rel=1e-9)
    assert labels["mu_c"] == labels["diameter_u"] == "estimate"
    assert constants.diameter_u is not None
    assert constants.L is None  # kinks


def test_without_coordinates_there_is_no_map_to_measure():
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    constants, labels = estimate_constants(hc.Problem(hc.Minimize(x[0] * x[1])).forms())
    assert constants.mu_c is None
    assert constants.diameter_u is None
    assert "mu_c" not in labels
    assert constants.rho == pytest.approx(1, rel=1e-9)


def test_unbounded_boxes_give_no_infinite_constants():
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0] + 1 / x[1]))
    constants, labels = estimate_constants(problem.forms())
    assert constants.mu_c is None
    assert constants.diameter_u is None
    assert constants.diameter_x is None
    assert set(labels) == {"rho", "L", "G"}


def test_many_unknowns_are_looked_at_by_differences():
    x = hc.Variable(60, name="x", bounds=(-1, 1))
    weights = np.linspace(1, 2, 60)
    constants, _ = estimate_constants(
        hc.Problem(hc.Minimize(hc.sum(weights * x**2))).forms(), samples=20
    )
    assert 2 <= constants.L <= 4  # ∇² = 2 diag(weights)
    assert constants.rho == 0


def test_a_time_limit_holds_between_the_gradients_of_rows(monkeypatch):
    """3,000 rows of 6,000 numbers took minutes whatever the limit; the verdict stays."""

    def late():
        raise TimeExhausted

    monkeypatch.setattr(hidden_map, "check_time", late)
    analysis = tank()[0].analyze(time_limit=1e6)
    assert analysis.verdict == "proven"
    assert "no time for estimates of the constants" in " ".join(analysis.conditions)
