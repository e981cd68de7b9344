"""Positive functions far below 1 that are maximised: a residual that is absolute is small everywhere."""

from __future__ import annotations

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.forms import Forms
from tests.extent import first


def preferences(wins: np.ndarray) -> np.ndarray:
    """The Bradley–Terry model's maximum of the likelihood, by D. Hunter's MM algorithm (2004)."""
    games = wins + wins.T
    weights = np.full(wins.shape[0], 1.0 / wins.shape[0])
    for _ in range(2000):
        sums = games / (weights[:, None] + weights)
        weights = wins.sum(axis=1) / (sums.sum(axis=1) - np.diag(sums))
        weights /= weights.sum()
    return weights


def likelihood(wins: np.ndarray, w: hc.Variable, scale: float = 1.0) -> hc.Problem:
    pairs = [(i, j) for i in range(len(wins)) for j in range(len(wins)) if i != j]
    factors = [(w[i] / (w[i] + w[j])) ** wins[i, j] for i, j in pairs]
    return hc.Problem(hc.Maximize(scale * hc.prod(hc.hstack(factors))))


@pytest.mark.parametrize("scale", first(2, [1.0, 1e10, 1e-30, 1e-100]))
@pytest.mark.parametrize("seed", first(2, range(6)))
def test_a_likelihood_of_any_size_is_maximised(seed: int, scale: float) -> None:
    wins = np.random.default_rng(seed).integers(1, 9, size=(4, 4))
    np.fill_diagonal(wins, 0)
    w = hc.Variable(4, "w", simplex=True)
    problem = likelihood(wins, w, scale)
    problem.solve()
    assert problem.status == "locally_optimal"
    assert w.value == pytest.approx(preferences(wins), abs=1e-5)


def test_a_point_that_is_not_stationary_for_the_logarithm_is_not_called_optimal() -> None:
    """The method asked for stops at the start, where the slope is 1e-20."""
    wins = np.array([[0, 5, 8, 2], [7, 0, 4, 6], [3, 8, 0, 5], [6, 2, 7, 0]])
    w = hc.Variable(4, "w", simplex=True)
    problem = likelihood(wins, w)
    problem.solve(method="prox-linear")
    assert problem.status == "optimal_inaccurate"
    problem.solve()
    assert problem.status == "locally_optimal"
    assert np.log(problem.value) == pytest.approx(-43.4703302, abs=1e-6)


def test_only_what_is_nowhere_negative_and_maximised_has_a_size_of_its_own() -> None:
    x = hc.Variable(2, "x", bounds=(0.1, 1))
    level = hc.Parameter(name="level", value=1.0)

    def sized(objective: hc.Minimize | hc.Maximize) -> object:
        return Forms(hc.Problem(objective).model).in_own_size()

    assert sized(hc.Maximize(hc.prod(x) * hc.sin(x[0]) ** 2)) is not None
    assert sized(hc.Maximize(hc.prod(x) - 1)) is None
    assert sized(hc.Minimize(hc.prod(x))) is None
    assert sized(hc.Minimize(hc.sum_squares(x))) is None
    forms = Forms(hc.Problem(hc.Maximize(level * hc.prod(x))).model)
    form = forms.in_own_size()
    assert form is not None
    assert forms.in_own_size() is form
    middle = form.oracle().at(form.domain.middle())  # the geometric mean of the bounds, 10^(−1/2)
    assert form.chain.value_back(middle.objective) == pytest.approx(-0.1)
    level.value = -1.0
    assert forms.in_own_size() is None
    level.value = None
    assert forms.in_own_size() is None
