"""Every map of the catalogue passes `check_map`, and broken maps do not."""

from __future__ import annotations

import functools
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.facts.polynomials import Sums, TooLargeError
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.rewriting import Rewriting, applied, substituted
from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.reductions.forms import Forms
from hcmodel.testing import check_map
from tests.problems.examples import ALL, loaded

# Models of the catalogue that are no files of `examples/`, by the names of their maps.
OWN = {each.name: each.example for each in MAPS if not each.example.endswith(".hc")}
MODELS = (*ALL, *(f"map {name}" for name in OWN))


def model(name: str) -> hc.Problem:
    if name in ALL:
        return loaded(name)
    return hc.parse(textwrap.dedent(OWN[name.removeprefix("map ")]))


@functools.cache
def proposing(name: str) -> tuple[Map, ...]:
    """The maps that propose a step for a model."""
    expanded = Expanded.of(Forms(model(name).model).bounds.after)
    return tuple(each for each in MAPS if _proposes(each, expanded))


def _proposes(each: Map, expanded: Expanded) -> bool:
    try:
        return any(isinstance(found, Step) for found in each.propose(expanded))
    except TooLargeError:
        return False


@pytest.mark.parametrize("name", MODELS)
def test_what_the_maps_of_the_catalogue_make_of_a_model_passes(name: str) -> None:
    for each in proposing(name):
        assert check_map(each, [model(name)]) >= 1


def test_every_map_of_the_catalogue_is_checked_on_some_model() -> None:
    checked = {each.name for name in MODELS for each in proposing(name)}
    assert checked == {each.name for each in MAPS}


# ---- a map of one's own, and broken ones


class Mirrored(Step):
    name = "mirror"

    def __init__(self, old: hc.Variable, new: hc.Variable, after: Expanded) -> None:
        self.gone, self.new, self.after = (old,), (new,), after
        self.texts = {new: f"-{old.name}"}

    def forward(self, point: Points) -> None:
        point[self.new[0]] = -point[self.gone[0]]

    def back(self, point: Points) -> None:
        point[self.gone[0]] = -point[self.new[0]]

    def tangent_back(self, point: Points, moves: Points) -> None:
        self.back(moves)


class Negation(Rewriting):
    sign = -1.0

    def __init__(self, symbols, old: hc.Variable, new: hc.Variable) -> None:
        super().__init__(symbols, symbols.of_variable(old).reshape(-1))
        pairs = zip(symbols.of_variable(old).flat, symbols.of_variable(new).flat, strict=True)
        self.changes = {
            int(x): symbol_sums(symbols, np.array(u)).scaled(self.sign) for x, u in pairs
        }

    def terms(self, sums: Sums) -> Sums:
        return substituted(sums, self.changes)


class Mirror(Map):
    """u = −x: what users of `docs/architecture.md` write."""

    name, summary, literature = "mirror", "u = -x; back: x = -u", "folklore"
    step: type[Step] = Mirrored
    rewriting: type[Rewriting] = Negation
    upper = 0.0

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for old in model.variables:
            box = (-old.upper, self.upper - old.lower)
            new = hc.Variable(old.shape, name=fresh_name(model, "u"), bounds=box)
            rewriting = self.rewriting(model.symbols, old, new)
            yield self.step(old, new, applied(model, rewriting, gone=[old], new=[new]))


def small() -> hc.Problem:
    p, q = hc.Variable(2, name="p", bounds=(0.1, 4)), hc.Variable(name="q", bounds=(-1, 2))
    cost = p[0] * p[1] + hc.exp(p[0]) + q * p[1]
    return hc.Problem(hc.Minimize(cost), [hc.sum(p) >= 1, q <= p[0]])


def test_a_map_passes_and_its_steps_are_counted() -> None:
    assert check_map(Mirror(), [small(), small().model]) == 4


class Plus(Negation):
    sign = 1.0


class Shifted(Mirrored):
    def back(self, point: Points) -> None:
        point[self.gone[0]] = 1e-3 - point[self.new[0]]


class Wrong(Mirrored):
    def tangent_back(self, point: Points, moves: Points) -> None:
        moves[self.gone[0]] = moves[self.new[0]]


class Scaled(Mirrored):
    def value_back(self, value: float) -> float:
        return 1.5 * value


class Misshapen(Mirrored):
    def forward(self, point: Points) -> None:
        point[self.new[0]] = np.zeros(7)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rewriting": Plus}, "the rewriting changed the objective"),
        ({"step": Shifted}, r"point_back\(point\(x\)\)"),
        ({"step": Wrong}, "tangent_back differs"),
        ({"step": Scaled}, "the rewriting changed the objective"),
        ({"upper": -2.5}, "image of a point of `before` lies outside"),
        ({"step": Misshapen}, "ValueError"),
    ],
)
def test_a_broken_map_fails_with_the_model_the_step_and_the_reason(
    changes: dict[str, object], said: str
) -> None:
    broken = type("Broken", (Mirror,), changes)()
    place = r"map 'mirror' on model 1 \(minimize .*step 'mirror' with u = -p"
    with pytest.raises(AssertionError, match=f"(?s){place}.*{said}"):
        check_map(broken, [small()])


class Silent(Mirror):
    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        yield Obstacle("mirror", "q is no mirror")


class Raising(Mirror):
    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        raise KeyError("no such symbol")
        yield


def test_a_map_that_proposes_nothing_says_what_is_in_the_way() -> None:
    said = "map 'mirror' on model 1 .*it proposes nothing; in the way: mirror map: q is no mirror"
    with pytest.raises(AssertionError, match=f"(?s){said}"):
        check_map(Silent(), [small()])


def test_a_map_that_raises_is_named_with_the_error() -> None:
    with pytest.raises(AssertionError, match=r"(?s)map 'mirror' on model 1 .*KeyError: 'no such"):
        check_map(Raising(), [small()])


def test_a_check_without_models_is_none() -> None:
    with pytest.raises(AssertionError, match="there is no model to check it on"):
        check_map(Mirror(), [])
