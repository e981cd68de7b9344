"""The verdict, and how it is shown."""

from __future__ import annotations

import functools
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis.analyze import Analysis
from tests.extent import several
from tests.hcmodel.proof.gallery import cosine, product, regulator, signomial
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

EXAMPLES = Path(__file__).parents[3] / "examples"
KEYS = {"verdict", "coordinates", "derivation", "counterexample", "constants"}


def analyze(problem: hc.Problem, *arguments: Any, **options: Any) -> Analysis:
    return problem.analyze(*arguments, **options)


@functools.cache
def seen(make: Callable[[], hc.Problem]) -> Analysis:
    """The analysis of a model that several tests look at."""
    return make().analyze(20)


def test_a_geometric_program_is_proven_without_a_declaration():
    problem, _ = geometric_program(next(iter(GEOMETRIC_PROGRAMS)))
    analysis = analyze(problem)
    assert analysis.verdict == "proven"
    assert analysis.coordinates == {"x": "log(x)"}
    assert analysis.derivation is not None
    assert analysis.counterexample is None
    assert analysis.failure is None


def test_declared_logarithms_are_proven_without_samples():
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(hc.Minimize(x[0] / x[1] + x[1]), hidden=[hc.log(x[::-1])])
    analysis = analyze(problem)
    assert (analysis.verdict, analysis.samples) == ("proven", 0)


def test_a_refuted_declaration_is_told_from_a_model_that_is_proven_without_it():
    analysis = seen(product)
    assert analysis.verdict == "refuted"
    assert any("proven, in log(x)" in condition for condition in analysis.conditions)
    assert seen(signomial).conditions == ()


def test_a_proof_in_other_coordinates_says_so():
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    twisted = [hc.log(x[0] * x[1]), hc.log(x[1])]
    analysis = analyze(hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0]), hidden=twisted), 20)
    assert analysis.verdict == "proven"
    assert analysis.coordinates == {"x": "log(x)"}
    assert "coordinates of its own" in analysis.conditions[0]


def test_what_sampling_saw_is_reported():
    analysis = seen(cosine)
    assert analysis.verdict == "not refuted"
    assert analysis.samples == 20
    assert analysis.smallest_eigenvalue is not None
    assert analysis.smallest_eigenvalue > 0
    assert analysis.failure is not None
    assert "samples       20" in str(analysis)
    assert "curvature" in str(analysis)


def test_a_variable_the_map_leaves_out_is_listed_as_its_own_coordinate():
    x, y = hc.Variable(name="x", bounds=(-0.9, 0.9)), hc.Variable(name="y", bounds=(-1, 1))
    objective = 1 - hc.cos(np.pi * x) + y**2
    problem = hc.Problem(hc.Minimize(objective), hidden=[hc.sin(np.pi * x / 2)])
    assert list(analyze(problem, 15).coordinates.values())[-1] == "y"


def test_the_text_of_a_refutation_shows_points_and_both_sides():
    text = str(analyze(regulator(True), 20))
    assert text.startswith("verdict       refuted: ")
    assert "satisfy the row blind" in text
    for label in ("at x: ", "at y: ", "at middle: ", "|lhs − rhs| at the middle = ", "allowed = 0"):
        assert label in text


def test_json_has_its_keys_and_survives_json():
    for make in (cosine, product):
        report = json.loads(json.dumps(seen(make).to_json()))
        assert set(report) == KEYS
    assert report["counterexample"]["points"]["middle"]["x"] != []
    assert report["constants"]["rho"]["kind"] == "estimate"


def test_html_escapes_what_it_shows():
    x = hc.Variable(name="x<b>", bounds=(0.5, 2))
    page = analyze(hc.Problem(hc.Minimize(x)))._repr_html_()
    assert "x&lt;b&gt;" in page
    assert "<b>" not in page


def test_the_place_of_what_breaks_a_proof_is_shown():
    text = "var x[2] in [-1, 1]\nminimize x[1]*x[2]\nhidden x[1] + x[2]^3, x[2]\n"
    analysis = analyze(hc.parse(text), 15)
    assert analysis.verdict == "refuted"
    assert analysis.coordinates == {"u1": "x[1] + x[2]^3", "u2": "x[2]"}
    assert "<model>:2:10" in str(analysis)
    assert "^~~" in str(analysis)


def test_analyses_are_deterministic_and_pickle():
    first, second = (analyze(signomial(), 5, seed=5) for _ in range(2))
    assert str(first) == str(second)
    assert str(pickle.loads(pickle.dumps(first))) == str(first)


def test_parameters_are_named_as_a_condition():
    x = hc.Variable(name="x", bounds=(0.5, 2))
    weight = hc.Parameter(name="weight", value=1.0)
    analysis = analyze(hc.Problem(hc.Minimize(weight * x + 1 / x)))
    assert any("parameters" in condition for condition in analysis.conditions)


@pytest.mark.parametrize("declared", [True, False])
def test_functions_that_are_defined_nowhere_are_told(declared):
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    objective = hc.Minimize(hc.log(x[0] - 5) * x[1])
    analysis = analyze(hc.Problem(objective, hidden=[x + x**3] if declared else None), 20)
    assert (analysis.verdict, analysis.samples) == ("not refuted", 0)
    assert "no sample was found" in analysis.conditions[0]


def test_variables_that_cannot_move_are_no_trouble():
    x = hc.Variable(2, name="x", bounds=([1, 2], [1, 2]))
    problem = hc.Problem(hc.Minimize(x[0] * hc.sin(x[1])), hidden=[x + x**3])
    assert analyze(problem, 20).verdict == "not refuted"


def test_a_black_box_with_its_own_gradient_is_tested_by_middles():
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    for sign, verdict in ((1.0, "not refuted"), (-1.0, "refuted")):
        square = hc.function(
            lambda v, s=sign: s * float(np.sum(np.asarray(v) ** 2)),
            x,
            grad=lambda v, s=sign: 2 * s * v,
        )
        assert analyze(hc.Problem(hc.Minimize(square), hidden=[x]), 20).verdict == verdict


@pytest.mark.parametrize("arguments", [(0, 0), (10, -1), (2.5, 0), (True, 0)])
def test_samples_and_seed_are_checked(arguments):
    with pytest.raises(hc.ModelError, match="whole number"):
        analyze(cosine(), *arguments)


def test_a_general_map_that_is_right_is_not_refuted():
    c = hc.Variable(2, name="c", bounds=(-0.9, 0.9))
    wave = hc.Minimize(hc.sum(1 - hc.cos(np.pi * c)))
    problem = hc.Problem(wave, hidden=[hc.sin(np.pi * c / 2)])
    assert analyze(problem, several(8, 30)).verdict == "not refuted"


@pytest.mark.parametrize("name", ["lqr", "cmdp", "cnls"])
def test_the_examples_of_the_catalogue_are_proven(name):
    data = EXAMPLES / f"{name}.json"
    analysis = analyze(hc.load(EXAMPLES / f"{name}.hc", str(data) if data.exists() else None), None)
    assert analysis.verdict == "proven"
    assert analysis.model in analysis.to_json()["derivation"]


def test_coordinates_that_are_not_invertible_are_said_to_certify_a_solve():
    a, u = hc.Variable(2, name="a", nonneg=True), hc.Variable(2, name="u")
    bars, load = np.array([[1.0, 0.0], [1.0, 1.0]]), np.array([1.0, 2.0])
    rows = [bars.T @ hc.diag(a) @ bars @ u == load, hc.sum(a) <= 3]
    problem = hc.Problem(hc.Minimize(load @ u), rows)
    found = problem.analyze()
    assert found.verdict == "not refuted"
    assert any("solve() certifies it" in condition for condition in found.conditions)
    problem.solve()
    assert problem.status == "optimal"


def _product_of_open_sign(radius: float) -> hc.Problem:
    x, y = (hc.Variable(name=name, bounds=(-5, 5)) for name in "xy")
    rows = [x**2 + y**2 <= radius**2, x >= -2]
    return hc.Problem(hc.Maximize((x - 2) * (x + 2.2)), rows)


def _ratio_of_open_sign(radius: float) -> hc.Problem:
    w = hc.Variable(2, name="w", bounds=(-3, 3))
    spread = hc.sqrt(hc.sum_squares(np.array([[0.2, 0.0], [0.05, 0.1]]) @ w) + 1)
    return hc.Problem(hc.Maximize((w[0] - w[1] - 3) / spread), [hc.sum_squares(w) <= radius**2])


@pytest.mark.parametrize(
    ("make", "inside", "outside"), [(_product_of_open_sign, 4, 1), (_ratio_of_open_sign, 2.5, 2)]
)
def test_points_without_an_image_are_not_proven_anything_about(
    make: Callable[[float], hc.Problem], inside: float, outside: float
) -> None:
    """The map has a variable for what is positive; in the smaller disc nothing is."""
    assert make(inside).analyze().verdict == "proven"
    assert make(outside).analyze().verdict != "proven"
    assert make(outside).is_hidden_convex() is not True
