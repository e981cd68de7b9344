"""Where declared coordinates are looked at, and what derivatives of a map at several points show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import MAP_TEST
from hcmodel.solvers.algebra.marks import some
from hcmodel.solvers.coordinates.tangent import orientations
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


def samples_around(domain: Domain, here: FloatArray, count: int) -> Iterator[FloatArray]:
    """Points of the whole domain, and in turn of neighbourhoods of a point, from large to small ones."""
    generator = np.random.default_rng(0)
    for number in range(count):
        there = domain.sample(generator)
        if number % 2:
            halvings = number % MAP_TEST.neighbourhoods
            there = domain.project(here + (there - here) * 2.0**-halvings)
        yield there


def has_no_inverse(derivatives: FloatArray, smooth: NDArray[np.bool_]) -> bool:
    """Whether a map with these derivatives at some points, one matrix for each, cannot be inverted.

    It cannot if it is undefined or singular where the model is `smooth`. If it keeps the orientation at
    some points and reverses it at others, two points have one image.
    """
    known = np.isfinite(derivatives).all(axis=(-2, -1))
    found = orientations(derivatives[known])
    undefined = some(smooth & ~known) or some(smooth[known] & (found == 0))
    return undefined or (some(found > 0) and some(found < 0))
