"""What is known of a matrix that is affine in the entries of variables, however it is written.

A sum of w_i v_i v_iᵀ, or Vᵀ(w·V) with w beside the rows of V, is symmetric, and positive semidefinite for
w >= 0, though none of its operations says so. Multiplied out it is M₀ + Σ x_i M_i with matrices that are
numbers. It is symmetric where these are. Where each M_i, or its negative, is positive semidefinite, the
matrix is least, in the order of such matrices, at the ends of the ranges of x_i:

    M₀ + Σ x_i M_i  ⪰  M₀ + Σ l_i M_i  for x_i >= l_i and M_i ⪰ 0
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import MatrixKind
from hcmodel.expressions.leaves import Variable
from hcmodel.facts.definiteness import MAX_ORDER, of_value
from hcmodel.facts.polynomials import ONE, Sums

if TYPE_CHECKING:
    from hcmodel.facts.symbols import Symbols

FloatArray = NDArray[np.float64]

# Operations of the eigenvalues of all matrices, at most: a second.
MOST_EFFORT = 1e9


def affine_definiteness(matrix: Sums, symbols: Symbols) -> MatrixKind:
    """What is proven of a square matrix that is affine in variables; others are general."""
    order = matrix.shape[0]
    if order > MAX_ORDER or not _is_affine(matrix, symbols) or not _is_symmetric(matrix):
        return MatrixKind.GENERAL
    used = matrix.symbols_used()
    if used.size * float(order) ** 3 > MOST_EFFORT:
        return MatrixKind.SYMMETRIC
    least = matrix.value.copy()
    for symbol in used.tolist():
        part = _coefficient(matrix, symbol)
        kind, turned = of_value(part), of_value(-part)
        end = symbols.lower_of(symbol) if kind >= turned else symbols.upper_of(symbol)
        if max(kind, turned) < MatrixKind.SEMIDEFINITE or not np.isfinite(end):
            return MatrixKind.SYMMETRIC
        least += end * part
    return of_value(least)


def _is_affine(matrix: Sums, symbols: Symbols) -> bool:
    used = matrix.symbols_used().tolist()
    entries = all(isinstance(symbols.source(each)[0], Variable) for each in used)
    return entries and int(matrix.degrees.max(initial=0)) <= 1


def _is_symmetric(matrix: Sums) -> bool:
    """Whether the number and the coefficient of each symbol are symmetric, to rounding."""
    places = np.arange(matrix.size).reshape(matrix.shape).T.reshape(-1)
    return (matrix - matrix.taken(places, matrix.shape)).key.size == 0


def _coefficient(matrix: Sums, symbol: int) -> FloatArray:
    found = np.zeros(matrix.size)
    own = (matrix.key != ONE) & (matrix.digits[:, 0] == symbol + 1)
    found[matrix.entry[own]] = matrix.weight[own]
    return found.reshape(matrix.shape)
