"""Matrices of linear atoms are those that columns, one after the other, would show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.rules import Argument
from hcmodel.reductions import linear_maps

MOVEMENTS: dict[str, Callable[[Any], Any]] = {
    "an entry": lambda X: X[1, 2],
    "a row": lambda X: X[-1],
    "entries twice": lambda X: X[[0, 1, 0], [2, 2, 2]],
    "transposed": lambda X: X.T,
    "reshaped": lambda X: hc.reshape(X, (9,)),
    "a diagonal with zeros around it": lambda X: hc.diag(X[0]),
    "the diagonal": hc.diag,
}


@pytest.mark.parametrize("name", MOVEMENTS)
def test_entries_that_are_moved(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    expression = MOVEMENTS[name](hc.Variable((3, 3), name="X"))
    facts = [Argument(argument.shape) for argument in expression.args]
    expected = linear_maps._probed(expression, 0, [None])
    monkeypatch.setattr(linear_maps, "_probed", None)  # it takes a column for each entry
    found = linear_maps.coefficients(expression, 0, [None], facts)
    x = np.random.default_rng(0).normal(size=expected.shape[1])
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found @ x, expected @ x)
