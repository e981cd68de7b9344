"""Quadratic forms among sums: their matrices, and these as plus or minus a product LᵀL."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.facts.polynomials import Coding, Sums
from hcmodel.solvers.algebra.definite import is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING, PRODUCT_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


def is_square_form(sums: Sums) -> bool:
    """Whether a scalar is a quadratic function that is nowhere negative."""
    if int(sums.degrees.max(initial=0)) > 2:
        return False
    sign, factor = quadratic(sums)[:2]
    return factor is not None and sign > 0


def quadratic(sums: Sums) -> tuple[float, FloatArray | None, Numbers]:
    """A quadratic function of one entry as sign·|L x|² with the digits of x, of which 0 is 1."""
    pair = np.zeros((sums.key.size, 2), dtype=np.int64)
    pair[:, : sums.digits.shape[1]] = sums.digits[:, :2]
    used = np.unique(np.append(pair, 0))
    return *factored(form_of(np.searchsorted(used, pair), sums.weight, used.size)), used


def combined(factor: FloatArray, digits: Numbers, coding: Coding) -> Sums:
    """A matrix times a vector of symbols, given by digits, of which 0 stands for 1."""
    rows, columns = np.nonzero(factor)
    return Sums.merged((factor.shape[0],), rows, digits[columns], factor[rows, columns], coding)


def form_of(places: NDArray[np.intp], weight: FloatArray, size: int) -> FloatArray:
    """The symmetric matrix of a sum of products of two symbols."""
    matrix = np.zeros((size, size))
    np.add.at(matrix, (places[:, 0], places[:, 1]), weight / 2)
    np.add.at(matrix, (places[:, 1], places[:, 0]), weight / 2)
    return matrix


def factored(matrix: FloatArray) -> tuple[float, FloatArray | None]:
    """The sign of a quadratic form and a matrix L, such that it is sign·|L x|²; None: indefinite."""
    diagonal = matrix.diagonal()
    lone = (diagonal == 0) & matrix.any(axis=1)
    if lone.any() or (diagonal.min(initial=0.0) < 0 < diagonal.max(initial=0.0)):
        return 1.0, None  # seen without eigenvalues
    for sign in (1.0, -1.0):
        if is_semidefinite(sign * matrix):
            values, vectors = np.linalg.eigh(matrix)
            size = float(np.abs(values).max(initial=0.0))
            kept = sign * values > DATA_ROUNDING * size
            factor = (vectors[:, kept] * np.sqrt(np.abs(values[kept]))).T
            factor[np.abs(factor) <= PRODUCT_ROUNDING * np.sqrt(size)] = 0.0
            return sign, factor
    return 1.0, None
