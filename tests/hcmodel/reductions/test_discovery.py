"""The search for maps: it ends, whatever maps propose."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import hcmodel as hc
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.map import Map, Points, Step
from hcmodel.reductions import discovery


class Again(Step):
    """The model as it is, to be searched before anything else."""

    name = "again"
    first = True

    def __init__(self, model: Expanded, number: int) -> None:
        self.after, self.new, self.gone, self.choice = model, (), (), number

    def forward(self, point: Points) -> None:
        pass

    def back(self, point: Points) -> None:
        pass


class Repeating(Map):
    name, summary, literature = "repeating", "always one step more", "none"

    def __init__(self) -> None:
        self.asked = 0

    def propose(self, model: Expanded) -> Iterator[Step]:
        self.asked += 1
        yield Again(model, self.asked)


def test_a_map_that_always_proposes_one_more_step_does_not_recurse_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A shift of a matrix that was found again after each shift ended in a RecursionError."""
    repeating = Repeating()
    monkeypatch.setattr(discovery, "MAPS", (repeating,))
    x = hc.Variable(2, name="x", bounds=(-1, 1))
    model = hc.Problem(hc.Minimize(x[0] * x[1] - hc.sin(x[0]))).model
    assert discovery.discover(model).proof is None
    assert 1 < repeating.asked <= 2 * (discovery.LIMITS.depth + 1)
