"""The sets of variables: storage, domain, facts and text agree with each other, for every kind of set."""

from __future__ import annotations

import inspect
import pickle

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.rules import MatrixKind, Sign
from hcmodel.expressions import variable_sets
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.variable_sets import (
    BoxSet,
    SemidefiniteSet,
    SimplexSet,
    SymmetricSet,
    VariableSet,
    make_domain,
)
from hcmodel.facts.node_facts import Facts
from hcmodel.problem import parse
from hcmodel.solvers.sets.box import Box
from hcmodel.solvers.sets.product import Product

BOUNDS = ([[0.0, -1.0], [-2.0, 0.5]], [[3.0, 4.0], [4.0, np.inf]])


def variables() -> dict[str, Variable]:
    return {
        "number": Variable(name="x"),
        "box": Variable((2, 3), name="x", bounds=(-1, [1, 2, 3])),
        "positive": Variable(3, name="x", pos=True),
        "positive box": Variable(2, name="x", bounds=(0.5, 4)),
        "simplex": Variable((2, 3), name="x", simplex=True),
        "bounded simplex": Variable(3, name="x", simplex=True, bounds=(0.1, 0.7)),
        "symmetric": Variable((3, 3), name="x", symmetric=True),
        "bounded symmetric": Variable((2, 2), name="x", symmetric=True, bounds=BOUNDS),
        "psd": Variable((3, 3), name="x", PSD=True),
        "psd between": Variable((2, 2), name="x", PSD=(0.5, 4)),
        "bounded psd": Variable((2, 2), name="x", PSD=1e-3, bounds=BOUNDS),
    }


VARIABLES = variables()
every_kind = pytest.mark.parametrize("kind", VARIABLES)


def points(variable: Variable) -> list[np.ndarray]:
    """Arrays of the set."""
    domain, generator = variable.set.domain(), np.random.default_rng(0)
    stored = [domain.middle(), *(domain.sample(generator) for _ in range(5))]
    return [np.asarray(variable.set.expand(np, point)) for point in stored]


def test_every_set_is_in_the_table() -> None:
    classes = {
        each
        for _, each in inspect.getmembers(variable_sets, inspect.isclass)
        if issubclass(each, VariableSet) and not inspect.isabstract(each)
    }
    assert classes == {type(variable.set) for variable in VARIABLES.values()}
    assert classes == {BoxSet, SimplexSet, SymmetricSet, SemidefiniteSet}


@every_kind
def test_storing_is_the_inverse_of_expanding(kind: str) -> None:
    values = VARIABLES[kind].set
    stored = np.random.default_rng(0).normal(size=values.stored_size)
    array = values.expand(np, stored)
    assert array.shape == values.shape
    assert values.store(array) == pytest.approx(stored, abs=1e-14)
    assert values.storing() @ np.ravel(array) == pytest.approx(stored, abs=1e-14)
    # the norm of the stored vector is that of the array
    assert np.linalg.norm(stored) == pytest.approx(np.linalg.norm(array))
    # an entry depends on the place that is named for it, and on no other
    for entry, place in enumerate(values.places()):
        unit = np.zeros(values.stored_size)
        unit[place] = 1.0
        assert np.ravel(values.expand(np, unit))[entry] != 0
        assert np.ravel(values.expand(np, 1.0 - unit))[entry] == 0


@every_kind
def test_the_domain_is_that_of_the_stored_entries(kind: str) -> None:
    values = VARIABLES[kind].set
    domain = values.domain()
    assert domain.dimension == values.stored_size
    for array in points(VARIABLES[kind]):
        assert domain.contains(values.store(array), 1e-9)
        assert (array >= values.lower - 1e-9).all()
        assert (array <= values.upper + 1e-9).all()


@every_kind
def test_what_is_known_of_the_values_is_true(kind: str) -> None:
    variable = VARIABLES[kind]
    values, node = variable.set, Facts()[variable]
    low, high = values.interval
    for array in points(variable):
        assert (array >= low - 1e-9).all()
        assert (array <= high + 1e-9).all()
        assert (array > 0).all() or not (values.positive or node.sign is Sign.POSITIVE)
        assert (array >= -1e-12).all() or node.sign is not Sign.NONNEGATIVE
        assert values.fitting(array, "the value") == pytest.approx(array, abs=1e-12)
        if values.is_symmetric:
            assert array == pytest.approx(array.T)
            smallest, largest = values.eigenvalue_bounds or (-np.inf, np.inf)
            found = np.linalg.eigvalsh(array)
            assert found[0] >= smallest - 1e-9
            assert found[-1] <= largest + 1e-9
        if values.is_distribution:
            assert array.sum(axis=-1) == pytest.approx(np.ones(array.shape[:-1]))


def test_what_is_known_is_enough_for_the_proofs() -> None:
    facts = Facts()
    signs = {kind: facts[variable].sign for kind, variable in VARIABLES.items()}
    assert signs["positive"] is signs["positive box"] is Sign.POSITIVE
    assert signs["simplex"] is Sign.NONNEGATIVE
    assert signs["box"] is signs["psd"] is Sign.UNKNOWN
    definite = {kind: facts[variable].definiteness for kind, variable in VARIABLES.items()}
    assert definite["box"] is MatrixKind.GENERAL
    assert definite["symmetric"] is MatrixKind.SYMMETRIC
    assert definite["psd"] is MatrixKind.SEMIDEFINITE
    assert definite["psd between"] is MatrixKind.DEFINITE
    logarithms = [kind for kind, variable in VARIABLES.items() if variable.set.has_logarithm]
    assert logarithms == ["positive", "positive box"]


@every_kind
def test_a_declaration_reads_back_as_the_same_set(kind: str) -> None:
    variable = VARIABLES[kind]
    text = hc.Problem(hc.Minimize(hc.sum(variable))).to_hc()
    (twin,) = parse(text).variables
    assert type(twin.set) is type(variable.set)
    assert (twin.pos, twin.shape) == (variable.pos, variable.shape)
    assert twin.eigenvalue_bounds == variable.eigenvalue_bounds
    np.testing.assert_array_equal(twin.lower, variable.lower)
    np.testing.assert_array_equal(twin.upper, variable.upper)


@pytest.mark.parametrize(
    ("kind", "summary"),
    [
        ("number", "[-inf, inf]"),
        ("box", "[-1, 1…3]"),
        ("simplex", "simplex"),
        ("symmetric", "symmetric"),
        ("psd", "psd"),
    ],
)
def test_texts(kind: str, summary: str) -> None:
    assert VARIABLES[kind].set.summary() == summary


def test_neighbouring_boxes_are_one_box() -> None:
    x, y = Variable(2, bounds=(0, 1)), Variable(3, pos=True)
    simplex, z = Variable(2, simplex=True), Variable(bounds=(1, None))
    alone = make_domain([x, y])
    assert isinstance(alone, Box)
    assert alone.positive.tolist() == [False, False, True, True, True]
    mixed = make_domain([x, y, simplex, z])
    assert isinstance(mixed, Product)
    assert [factor.dimension for factor in mixed.factors] == [5, 2, 1]
    steep = make_domain([x], {x: np.array([True, False])})
    assert isinstance(steep, Box)
    assert steep.positive.tolist() == [True, False]


def test_sets_and_layouts_survive_a_pickle() -> None:
    known = list(variables().values())
    layout, twins = pickle.loads(pickle.dumps((Layout(known), known)))
    assert layout.size == Layout(known).size
    for number, twin in enumerate(twins):
        assert layout.position(twin) == number
        assert type(twin.set) is type(known[number].set)
        assert layout.blocks[number].set is twin.set
