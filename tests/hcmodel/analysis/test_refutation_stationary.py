"""Without a map: KKT points that are shown to be such, with a better point elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis.multistart import refute_by_kkt
from tests.extent import first, several

SAMPLES = several(15, 60)


def inconsistent() -> hc.Problem:
    """Fig. 2 of Fatkhullin et al. (2025): the constraint's map does not suit the objective."""
    x = hc.Variable(2, name="x", bounds=(-1, 2.5), start=(0.5, 0.5))
    c1, c2 = x[0] - 1, 2 * hc.abs(x[0]) - x[1] - 1
    row = (hc.abs(c1 + 0.5) + hc.abs(c2 + 0.6) <= 0.8).named("diamond")
    return hc.Problem(hc.Minimize(hc.sqrt(x[0] ** 2 + (x[1] - 2) ** 2)), [row])


def test_the_papers_inconsistent_maps_are_refuted_by_its_two_points():
    # the errata's points: (0.55, 1.45) is the optimum, (−0.3, 0.2) a local one on a kink
    example, _ = refute_by_kkt(inconsistent().forms(), SAMPLES, 0)
    assert example is not None
    assert example.kind == "stationary point"
    assert example.points["x"]["x"] == pytest.approx([-0.3, 0.2], abs=1e-7)
    assert example.points["y"]["x"] == pytest.approx([0.55, 1.45], abs=1e-6)
    assert example.left == pytest.approx(np.hypot(0.3, 1.8), rel=1e-9)
    assert example.right == pytest.approx(0.77782, abs=1e-5)


def test_two_valleys_are_refuted_by_a_kkt_point_with_its_multiplier():
    x, y = hc.Variable(name="x", bounds=(-2, 2)), hc.Variable(name="y")
    row = (y >= (x**2 - 1) ** 2).named("valleys")
    problem = hc.Problem(hc.Minimize(y + x / 5), [row])
    example, _ = refute_by_kkt(problem.forms(), SAMPLES, 0)
    assert example is not None
    at = float(example.points["x"]["x"])
    assert 4 * at * (at**2 - 1) == pytest.approx(-0.2, abs=1e-9)  # the slope along the valley
    assert float(example.multipliers["valleys"]) == pytest.approx(1, abs=1e-9)
    assert example.residual is not None
    assert example.residual <= 1e-9
    assert example.left > example.right + 0.1


@pytest.mark.parametrize(
    ("objective", "at"),
    [
        (lambda x: x[0] * x[1], [0, 0]),
        (lambda x: -(x[0] ** 2) - 2 * x[1] ** 2, [0, 0]),
    ],
    ids=["a saddle point", "a maximum"],
)
def test_saddle_points_and_maxima_refute_too(objective, at):
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    example, _ = refute_by_kkt(hc.Problem(hc.Minimize(objective(x))).forms(), SAMPLES, 0)
    assert example is not None
    assert example.points["x"]["x"] == pytest.approx(at, abs=1e-9)


def test_a_maximisation_reports_values_in_its_own_sign():
    x = hc.Variable(name="x", bounds=(-3, 3))
    example, _ = refute_by_kkt(
        hc.Problem(hc.Maximize(hc.cos(np.pi * x) - 0.1 * x)).forms(), SAMPLES, 0
    )
    assert example is not None
    assert example.left < example.right
    assert "higher" in example.statement


@pytest.mark.parametrize(
    "make",
    [
        # hidden convex by u = tanh x, but flat to rounding far from 0
        lambda x: hc.Problem(hc.Minimize(hc.tanh(x) ** 2)),
        # the bound at 25 is almost a KKT point: the slope there is 1e-21
        lambda x: hc.Problem(hc.Minimize(hc.tanh(x) ** 2), [x >= -18]),
        # degenerate: x³ is stationary at 0
        lambda x: hc.Problem(hc.Minimize(x**3)),
        # convex, with a minimum of fourth order
        lambda x: hc.Problem(hc.Minimize((x - 1) ** 4)),
        # it rises throughout, and is its own hidden coordinate, with a concave kink at 3
        lambda x: hc.Problem(hc.Minimize(hc.maximum(x, 2 * x) - hc.abs(x - 3))),
    ],
    ids=["saturated", "saturated at a bound", "inflection", "quartic", "kinks"],
)
def test_points_in_doubt_refute_nothing(make):
    x = hc.Variable(name="x", bounds=(-25, 25), start=20)
    example, _ = refute_by_kkt(make(x).forms(), SAMPLES, 0)
    assert example is None


@pytest.mark.parametrize("seed", first(1, range(3)))
def test_models_that_are_hidden_convex_by_construction_are_not_refuted(seed):
    generator = np.random.default_rng(seed)
    x = hc.Variable(2, name="x", bounds=(-1.5, 1.5))
    u = hc.hstack([x[0] + x[0] ** 3, 2 * x[1] + generator.uniform(-1, 1) * x[0] ** 2])
    frame = generator.normal(size=(2, 2))
    objective = hc.quad_form(u, frame @ frame.T + 0.1 * np.eye(2)) + generator.normal(size=2) @ u
    rows = [hc.sum(u**2) <= 1.5, generator.normal(size=2) @ u == 0.1]
    example, seen = refute_by_kkt(hc.Problem(hc.Minimize(objective), rows).forms(), SAMPLES, seed)
    assert example is None
    assert seen == SAMPLES
