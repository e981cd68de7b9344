"""Declared maps: right ones are not refuted, wrong ones are, with points that can be checked."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.analysis.counterexample import Counterexample
from hcmodel.analysis.hidden_map import HiddenMap
from hcmodel.analysis.refutation import Findings, refute
from hcmodel.maps.declared import complete
from tests.extent import first, several
from tests.hcmodel.proof.gallery import NOT_REFUTED, REFUTED, folded, regulator

SAMPLES = several(20, 60)


def findings(problem: hc.Problem, samples: int = SAMPLES, seed: int = 0) -> Findings:
    assert problem.hidden is not None
    return refute(
        HiddenMap(problem.forms(), complete(problem.hidden, problem.variables)), samples, seed
    )


def at(problem: hc.Problem, point: dict[str, np.ndarray]) -> None:
    for variable in problem.variables:
        variable.value = point[variable.name]


def image(problem: hc.Problem, point: dict[str, np.ndarray]) -> np.ndarray:
    at(problem, point)
    assert problem.hidden is not None
    parts = complete(problem.hidden, problem.variables)
    return np.concatenate([np.ravel(part.value) for part in parts])


def check_halfway(problem: hc.Problem, example: Counterexample) -> None:
    """The middle is the middle in u, by the expressions' own values."""
    ends = [image(problem, dict(example.points[name])) for name in ("x", "y")]
    middle = image(problem, dict(example.points["middle"]))
    assert middle == pytest.approx(0.5 * (ends[0] + ends[1]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("name", NOT_REFUTED)
def test_a_right_map_is_not_refuted(name):
    found = findings(NOT_REFUTED[name]())
    assert found.counterexample is None
    assert found.samples == SAMPLES
    assert found.smallest_eigenvalue is not None
    assert found.smallest_eigenvalue > -1e-6


@pytest.mark.parametrize("name", REFUTED)
def test_a_wrong_map_is_refuted_by_points_that_can_be_checked(name):
    make, kind, function = REFUTED[name]
    problem = make()
    example = findings(problem).counterexample
    assert example is not None
    assert (example.kind, example.function) == (kind, function)
    check_halfway(problem, example)
    values = {}
    for label, point in example.points.items():
        at(problem, dict(point))
        if kind == "objective":
            value = problem.objective.expression.value
            assert value is not None
            values[label] = problem.objective.sign * float(value)
        else:
            row = next(c for c in problem.constraints if c.name == function)
            values[label] = float(np.max(row.violation()))
    mean = 0.5 * (values["x"] + values["y"])
    if kind == "objective":
        assert values["middle"] > mean + 1e-7 * abs(mean)
        assert example.left == pytest.approx(values["middle"], rel=1e-9)
        assert example.right == pytest.approx(mean, rel=1e-9)
    else:
        assert max(values["x"], values["y"]) <= 1e-11
        assert values["middle"] > 1e-7


def test_a_row_that_is_a_convex_set_is_not_refuted_by_its_difference_form():
    x = hc.Variable(2, name="x", bounds=(0.2, 4))
    problem = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] * x[1] >= 1], hidden=[x])
    assert findings(problem).counterexample is None


def test_the_same_seed_gives_the_same_counterexample():
    make = REFUTED["a GP with a negative coefficient"][0]
    first, second = (findings(make(), seed=3).counterexample for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.left == second.left
    assert first.points["x"]["x"].tolist() == second.points["x"]["x"].tolist()


@pytest.mark.parametrize(
    ("problem", "name"), [(regulator(False), "K"), (folded(), "x")], ids=["LQR", "Ex-CNLS"]
)
def test_bounds_that_are_not_convex_are_a_condition_and_no_refutation(problem, name):
    found = findings(problem)
    assert found.counterexample is None
    assert any(
        f"the bounds of {name} are not convex" in condition for condition in found.conditions
    )


def test_boxes_under_separable_maps_stay_convex():
    x = hc.Variable(2, name="x", bounds=(0.2, 4))
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0]), hidden=[hc.log(x)])
    assert findings(problem).conditions == ()


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        (lambda x: [hc.sum(x)], "does not change"),
        (lambda x: [x[0], x[1] ** 2], "same image"),
        (lambda x: [x, x[0] ** 2], "c(X) is curved"),
    ],
)
def test_maps_that_are_no_coordinates_are_refuted(entries, words):
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    example = findings(hc.Problem(hc.Minimize(hc.sum(x**2)), hidden=entries(x))).counterexample
    assert example is not None
    assert example.kind == "map"
    assert words in example.statement
    assert example.left > example.right


def random_map(x: hc.Variable, generator: np.random.Generator) -> hc.Expression:
    """An invertible map: each entry rises in its own variable and bends with the ones before."""
    entries = [generator.uniform(0.5, 2) * x[0] + x[0] ** 3]
    for i in range(1, x.size):
        bent = [x[i - 1] ** 2, hc.cos(x[i - 1]), x[0] * x[i - 1]][int(generator.integers(3))]
        entries.append(generator.uniform(0.5, 2) * x[i] + generator.uniform(-1, 1) * bent)
    return hc.hstack(entries)


def random_model(seed: int, wrong: bool) -> hc.Problem:
    generator = np.random.default_rng(seed)
    size = int(generator.integers(2, 4))
    x = hc.Variable(size, name="x", bounds=(-1.5, 1.5))
    u = random_map(x, generator)
    frame, _ = np.linalg.qr(generator.normal(size=(size, size)))
    values = generator.uniform(0.05, 2, size=size)
    if wrong:
        values[0] = -0.3
    rows = [hc.logsumexp(generator.normal(size=(3, size)) @ u) <= 2]
    rows.append(generator.normal(size=size) @ u == 0.1)
    objective = hc.quad_form(u, (frame * values) @ frame.T) + generator.normal(size=size) @ u
    return hc.Problem(hc.Minimize(objective), rows, hidden=[u])


@pytest.mark.parametrize("seed", first(2, range(5)))
def test_random_models_are_refuted_just_when_their_hidden_form_is_not_convex(seed):
    assert findings(random_model(seed, wrong=False), 30).counterexample is None
    example = findings(random_model(seed, wrong=True), 30).counterexample
    assert example is not None
    assert example.kind == "objective"
