"""Coordinates u = c(x) on a set X: the one concept that methods, certificate and analysis share.

With F = H∘c, derivatives by u follow from those by x on the tangent space of X:

    slope            s = ∇H(u),   from Jᵀs = ∇F
    hidden Hessian   B = ∇²[F − s·c](x) = Jᵀ ∇²H(u) J,   s held fixed

Methods take steps in x that are measured in u, and follow them along the hidden straight line. There are
three kinds: x itself (`plain`), logarithms of some entries (`logarithmic`), a general map (`general`).
`hcmodel.testing.check_coordinates` compares all of it with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import Hessian
from hcmodel.solvers.coordinates.frame import Frame
from hcmodel.solvers.coordinates.tangent import Tangent
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain

FloatArray: TypeAlias = NDArray[np.float64]
# w ↦ ∇²(F + w·c) over x, c being the map of a general kind; the others pass None.
SecondDerivatives: TypeAlias = Callable[[FloatArray | None], Hessian]


class Coordinates(Protocol):
    """Coordinates of a set X."""

    @property
    def domain(self) -> Domain:
        """X."""

    # ---- the map and its derivatives

    def image(self, x: FloatArray) -> FloatArray:
        """c(x)."""

    def tangent(self, x: FloatArray) -> Tangent:
        """Directions of X and the derivatives of c along them."""

    def slopes(self, x: FloatArray, gradients: FloatArray) -> FloatArray | None:
        """Rows of derivatives by u, from rows of derivatives by x.

        None where u does not determine x to first order, so that there are none.
        """

    def hidden_hessian(
        self, x: FloatArray, gradient: FloatArray, second: SecondDerivatives
    ) -> Hessian:
        """B of a function with this gradient, as a matrix over x."""

    def inverse(
        self, image: FloatArray, start: FloatArray, *, thorough: bool = True
    ) -> FloatArray | None:
        """A point near `start`, not necessarily in X, that c sends to `image`; None if none is found.

        Unless `thorough`, the search ends after a few steps, for callers that try a nearer image then.
        """

    # ---- steps

    def frame(self, evaluation: Evaluation, curvature: Hessian | None = None) -> Frame:
        """Units for a step; `curvature`, a Hessian over x, may be used to choose them."""

    def hessian(self, oracle: Oracle, evaluation: Evaluation, multipliers: FloatArray) -> Hessian:
        """The hidden Hessian of the Lagrangian, as methods use it."""

    def retract(self, x: FloatArray, step: FloatArray) -> FloatArray:
        """The point of X that a step leads to along the hidden straight line."""

    def bends(self, x: FloatArray) -> bool:
        """Whether x is on a bound that is curved in these coordinates."""

    def plain(self) -> Coordinates:
        """The coordinates to continue with where such a bound blocks the steps: x itself."""
