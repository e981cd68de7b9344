"""Sums that are multiplied with what they are divided by."""

from __future__ import annotations

import numpy as np
import pytest

from hcmodel.facts.polynomials import Coding, Sums
from hcmodel.maps.algebra.cancelling import divided

CODING = Coding.of(10)
V = [Sums.symbols(np.array(k), CODING) for k in range(4)]


def test_a_multiple_of_a_sum_is_divided_without_a_remainder() -> None:
    below = V[0] + V[1].scaled(3.0)
    factor = V[0].times(V[2]) - V[3].scaled(2.0) + V[1]
    quotient, rest = divided(factor.times(below), below)
    assert quotient.equals(factor)
    assert not rest.key.size


def test_what_is_no_multiple_leaves_a_remainder_that_adds_up() -> None:
    below = V[0] + V[1]
    above = V[0].times(V[2]) + V[3]
    quotient, rest = divided(above, below)
    assert rest.key.size
    assert (quotient.times(below) + rest).equals(above)


@pytest.mark.parametrize("shape", [(3,), (1, 3)])
def test_each_entry_is_divided_by_itself(shape: tuple[int, ...]) -> None:
    below = V[0] + V[1]
    entries = Sums.symbols(np.array([2, 3, 2]), CODING).times(below.broadcast((3,)))
    broken = entries + Sums.constant(np.array([0.0, 1.0, 0.0]), CODING)
    quotient, rest = divided(broken.reshaped(shape), below)
    assert rest.entry.tolist() == [1]
    assert quotient.reshaped((3,)).equals(Sums.symbols(np.array([2, 3, 2]), CODING))
