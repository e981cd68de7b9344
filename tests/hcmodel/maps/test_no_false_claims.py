"""What the catalogue must not claim: maps that lose a condition, or that are not invertible."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import hcmodel as hc
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.replacing import Replacing
from hcmodel.maps.algebra.rewriting import applied
from hcmodel.maps.map import symbol_sums
from hcmodel.reductions import discovery
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.substitution import functions_after


def test_a_circle_is_not_proven() -> None:
    """(x, x² + y²) makes it linear, and forgets that y² is not negative."""
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize(x[0]), [hc.sum(x**2) == 1])
    assert Forms(problem.model).discovery.substitution is None
    problem.solve()
    assert problem.status == "locally_optimal"


def test_coordinates_that_fold_certify_and_prove_no_more() -> None:
    """In x² the model is convex, and 0 is a KKT point all the same."""
    x = hc.Variable(name="x", bounds=(-2, 2))
    problem = hc.Problem(hc.Minimize((x**2 - 1) ** 2 + x**2))
    assert problem.solve() == pytest.approx(0.75)
    assert problem.status == "optimal"
    assert problem.is_hidden_convex() is False


def test_functions_of_the_user_are_not_asked_by_a_search() -> None:
    """A model with a black box is not looked at: each call may take an hour."""
    asked = []

    def simulator(value: float) -> float:
        asked.append(value)
        return value * value

    x = hc.Variable(name="x", bounds=(-2, 2))
    wrapped = hc.function(simulator, x, grad=lambda value: 2 * value)
    problem = hc.Problem(hc.Minimize(hc.exp(x) * wrapped))
    assert Forms(problem.model).discovery.substitution is None
    assert not asked


def test_what_a_row_is_multiplied_by_is_rewritten_too() -> None:
    """A second map takes out a symbol that is a factor of a row after the first one."""
    x = hc.Variable(name="x", bounds=(1, 2))
    new = hc.Variable(name="u", bounds=(1, 2))
    model = Expanded.of(hc.Problem(hc.Minimize(x), [x >= 1.5]).model)
    symbols = model.symbols
    old, u = (symbol_sums(symbols, symbols.of_variable(each)) for each in (x, new))
    multiplied = replace(model.rows[0], sums=model.rows[0].sums.times(old), factor=old)
    number = int(symbols.of_variable(x))
    after = applied(
        replace(model, rows=(multiplied,)), Replacing(symbols, {number: u}), gone=[x], new=[new]
    )
    assert isinstance(after, Expanded)
    assert after.rows[0].factor.equals(u)


def test_models_of_a_search_end_at_the_first_function_that_has_no_curvature(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Rows of a model are not made where its objective is convex in no coordinates."""
    made = []

    def watched(model: Any, steps: Any) -> Iterator[Any]:
        for function in functions_after(model, steps):
            made.append(function)
            yield function

    monkeypatch.setattr(discovery, "functions_after", watched)
    x, y, z = (hc.Variable(name=name, bounds=(0.1, 2)) for name in "xyz")
    rows = [x * y * z >= 0.5, x + y - z <= 1]
    problem = hc.Problem(hc.Minimize(x * y - y * z + 1 / x), rows)
    found = Forms(problem.model).discovery
    assert found.proof is None
    assert len(found.unproven) <= discovery.LIMITS.trials
    assert len(made) < (1 + len(rows)) * len(found.unproven)
    made.clear()
    assert found.near_misses
    assert len(made) > len(rows)
