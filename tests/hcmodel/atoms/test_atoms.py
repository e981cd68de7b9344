"""Every atom of the table: value, derivatives and all declared facts, by `hcmodel.testing.check_atom`."""

from __future__ import annotations

import math

import numpy as np
import pytest

from hcmodel.expressions.table import ATOMS
from hcmodel.testing import Sample, check_atom
from hcmodel.testing.atoms import POINTS
from hcmodel.testing.samples import ALL_SAMPLES, SAMPLES, definite
from tests.extent import several


def test_every_atom_has_a_sample() -> None:
    assert sorted(ATOMS) == sorted(SAMPLES)


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=str)
def test_value_derivatives_and_facts_hold(sample: Sample) -> None:
    # the samples of an atom are in the same situations, and share the pairs of points in each
    shared = math.ceil(POINTS / len(SAMPLES[sample.name]))
    check_atom(ATOMS[sample.name], [sample], points=several(shared, POINTS))


@pytest.mark.parametrize("exponent", [-3.0, -2.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0])
def test_powers_hold_for_every_kind_of_exponent(exponent: float) -> None:
    base = np.array([0.7, 1.6])
    sample = Sample("power", (base, np.array(exponent)), np.power, constant=(1,))
    check_atom(ATOMS["power"], [sample], seed=5)


@pytest.mark.parametrize("scale", [1.0, -1.0])
def test_quadratic_forms_hold_for_definite_matrices(scale: float) -> None:
    matrix = scale * definite(3)
    sample = Sample("quad_form", (np.ones(3), matrix), lambda x, P: x @ P @ x, constant=(1,))
    check_atom(ATOMS["quad_form"], [sample], seed=5)
