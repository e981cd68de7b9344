"""Models in which only ratios count, written with a normalisation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.forms import Forms
from tests.extent import several

WINS = np.array([[0, 3, 2, 4], [2, 0, 1, 2], [1, 2, 0, 3], [3, 1, 1, 0]])
GAINS = np.array([[1.0, 0.4, 0.2], [0.3, 2.0, 0.5], [0.6, 0.1, 1.5]])
PAIRS = [(i, j) for i in range(4) for j in range(4) if i != j]
ROWS = np.arange(4).reshape(4, 1)


def strengths() -> np.ndarray:
    """The maximum of the likelihood by the iteration of Zermelo and Ford, which converges to it."""
    w = np.full(4, 0.25)
    for _ in range(300):
        played = (WINS + WINS.T) / (w[:, None] + w)
        w = WINS.sum(axis=1) / played.sum(axis=1)
        w = w / w.sum()
    return w


def difference(w: Any) -> Any:
    return sum(WINS[i, j] * (hc.log(w[i]) - hc.log(w[i] + w[j])) for i, j in PAIRS)


def ratio(w: Any) -> Any:
    return sum(WINS[i, j] * hc.log(w[i] / (w[i] + w[j])) for i, j in PAIRS)


def reciprocal(w: Any) -> Any:
    return -sum(WINS[i, j] * hc.log(1 + w[j] / w[i]) for i, j in PAIRS)


def arrays(w: Any) -> Any:
    column, line = hc.reshape(w, (4, 1)), hc.reshape(w, (1, 4))
    return hc.sum(WINS * (hc.log(column) - hc.log(column + line)))


NOTATIONS = {each.__name__: each for each in (difference, ratio, reciprocal, arrays)}
SETS: dict[str, tuple[dict[str, Any], Any]] = {
    "positive, sum": ({"pos": True}, lambda w: [hc.sum(w) == 1]),
    "simplex": ({"simplex": True}, lambda w: []),
    "box from 0, mean": ({"bounds": (0, 4)}, lambda w: [hc.mean(w) == 1]),
    "weights": ({"nonneg": True}, lambda w: [2 * w[0] + w[1] + 3 * w[2] - 5 == -w[3]]),
    "squares": ({"pos": True}, lambda w: [w @ w == 9]),
    "least strengths": ({"bounds": (0.01, 1)}, lambda w: [hc.sum(w) == 1, w >= 0.02]),
}


@pytest.mark.parametrize("name", SETS)
def test_likelihoods_of_comparisons_are_proven(name: str) -> None:
    """The strengths up to their scale, in all ways to write likelihood and normalisation."""
    options, rows = SETS[name]
    place = list(SETS).index(name)
    for notation in list(NOTATIONS.values())[
        :: several(2, 1) * (-1) ** place
    ]:  # two for each set, in turn
        w = hc.Variable(4, name="w", **options)
        problem = hc.Problem(hc.Maximize(notation(w)), rows(w))
        assert Forms(problem.model).discovery.proof is not None
    problem.solve()
    assert problem.status == "optimal"
    np.testing.assert_allclose(w.value / w.value.sum(), strengths(), atol=1e-5)


def test_rows_of_one_degree_and_a_normalisation_without_a_price() -> None:
    """The strengths are scaled back, and the normalisation has the multiplier 0."""
    w = hc.Variable(4, name="w", nonneg=True)
    total = (hc.sum(w) == 100).named("total")
    rows = [total, w[0] >= 3 * w[1], w[2] >= 20, 10 * w[3] * w[0] <= w[1] * w[2]]
    problem = hc.Problem(hc.Maximize(difference(w)), rows)
    problem.solve()
    assert problem.status == "optimal"
    assert w.value.sum() == pytest.approx(100)
    assert 10 * w.value[3] * w.value[0] == pytest.approx(w.value[1] * w.value[2])
    assert total.dual_value == pytest.approx(0.0, abs=1e-7)


def test_the_root_of_perron() -> None:
    """A x <= r x with positive x that sum to 1: r is at least the spectral radius."""
    radius = max(abs(np.linalg.eigvals(GAINS)))
    x, r = hc.Variable(3, name="x", pos=True), hc.Variable(name="r", pos=True)
    rows = hc.Problem(hc.Minimize(r), [GAINS @ x <= r * x, hc.sum(x) == 1])
    largest = hc.Problem(hc.Minimize(hc.max(GAINS @ x / x)), [hc.sum(x) == 1])
    for problem in (rows, largest):
        assert problem.solve() == pytest.approx(radius)
        assert problem.status == "optimal"


def test_priorities_from_comparisons_by_least_squares_of_logarithms() -> None:
    """The geometric means of the lines of the comparisons (Crawford and Williams 1985)."""
    comparisons = np.array([[1, 3, 0.5], [1 / 3, 1, 0.25], [2, 4, 1]])
    w = hc.Variable(3, name="w", pos=True)
    errors = [
        hc.log(w[i]) - hc.log(w[j]) - np.log(comparisons[i, j]) for i in range(3) for j in range(i)
    ]
    problem = hc.Problem(hc.Minimize(sum(each**2 for each in errors)), [hc.sum(w) == 1])
    problem.solve()
    assert problem.status == "optimal"
    means = np.prod(comparisons, axis=1) ** (1 / 3)
    np.testing.assert_allclose(w.value, means / means.sum(), atol=1e-6)


def test_the_coordinates_are_named() -> None:
    problem = hc.Problem(
        hc.Maximize(difference(w := hc.Variable(4, name="w", nonneg=True))), [hc.sum(w) == 1]
    )
    assert problem.analyze(samples=None).coordinates == {"w_ratio": "log(w / w[0])"}


LIMITED = hc.Variable(4, name="w", pos=True)
NOT_CLAIMED = {
    # an upper bound is a monomial below a posynomial
    "an upper bound": ([hc.sum(LIMITED) == 1, LIMITED[0] <= 0.2], difference(LIMITED), ()),
    "two normalisations": ([hc.sum(LIMITED) == 1, LIMITED @ LIMITED == 0.3], ratio(LIMITED), ()),
    "another degree": (
        [hc.sum(LIMITED) == 1],
        difference(LIMITED) - LIMITED[0] ** 2,
        (),
    ),
    "a function of a size": (
        [hc.sum(LIMITED) == 1, hc.sin(LIMITED[0]) <= 0.5],
        difference(LIMITED),
        ("normalised map: c2 is not of one degree in the scaled entries",),
    ),
}


@pytest.mark.parametrize("name", NOT_CLAIMED)
def test_other_models_are_not_claimed(name: str) -> None:
    rows, objective, reasons = NOT_CLAIMED[name]
    found = Forms(hc.Problem(hc.Maximize(objective), rows).model).discovery
    assert found.substitution is None
    assert set(reasons) <= set(found.near_misses)


def test_strengths_that_may_be_zero_are_not_claimed() -> None:
    """The last one never wins: its strength goes to 0, where a ratio has no logarithm."""
    w = hc.Variable(4, name="w", simplex=True)
    never = sum(
        n * (hc.log(w[i]) - hc.log(w[i] + w[j])) for n, i, j in [(2, 0, 1), (1, 1, 0), (1, 2, 3)]
    )
    found = Forms(hc.Problem(hc.Maximize(never)).model).discovery
    assert found.substitution is None
    assert "normalised map: w[3] may be 0" in found.near_misses


@pytest.mark.parametrize("method", ["auto", "hidden-newton"])
def test_a_start_with_a_weight_of_0_has_no_image(method: str) -> None:
    """Ratios to it do not exist there: another start is taken."""
    w = hc.Variable(4, name="w", simplex=True, start=np.array([0.0, 1.0, 0.0, 0.0]))
    problem = hc.Problem(hc.Maximize(difference(w)))
    with pytest.warns(hc.HCWarning, match="another start"):
        problem.solve(method)
    assert problem.status == "optimal"
    np.testing.assert_allclose(w.value, strengths(), atol=1e-5)
