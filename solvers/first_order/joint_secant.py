"""The curvature that several steps show together.

BFGS updates, one after the other, keep only the last pair of a step s and a change y of the slope. All
pairs count alike in the matrix nearest to the one so far, in its own metric, which fits them in the sense
of least squares (the multi-secant condition of Schnabel, Quasi-Newton methods using multiple secant
equations, 1983):

    minimise   μ|H − I|² + Σ_k w_k |H s_k − y_k|² / |s_k|²      over symmetric H, in the metric of B = I.

It solves H A + A H = C + Cᵀ with A = μI + Σ w s sᵀ/|s|² and C = μI + Σ w y sᵀ/|s|². So n steps show a
quadratic function of n unknowns.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.updates import RULES as UPDATES
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]
Pair = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class JointRules:
    """*Black boxes*: measured with `python -m tests.benchmarks simulators`."""

    # The variance of a pair that fits exactly, relative to that of the matrix so far.
    exact: float = 1e-5  # black boxes
    # The error of a pair's curvature over that of the trapezoidal rule between the ends of its step.
    cubic: float = 2.0  # f‴/3 against f‴/6, both over f″
    # The share of the curvature so far that is left at the least, and as much the other way.
    left: float = UPDATES.damping  # Powell 1978


RULES = JointRules()


def joined(inverse: FloatArray, pairs: Sequence[Pair], missed: FloatArray) -> FloatArray:
    """The inverse matrix with all pairs; `missed` says how far the trapezoidal rule fails for each.

    An error that is small by chance is taken for what its step's length makes likely.
    """
    root = _root(inverse)
    if root is None or len(pairs) < 2:
        return inverse
    steps = solve_triangular(root, np.array([step for step, _ in pairs]).T, lower=True).T
    changes = np.array([change for _, change in pairs]) @ root
    lengths = np.linalg.norm(steps, axis=1)
    if not np.all(lengths > TINY):
        return inverse
    errors = RULES.cubic * lengths * float(np.max(missed / lengths))
    weights = RULES.exact / (RULES.exact + errors**2) / lengths**2
    prior = RULES.exact * np.eye(inverse.shape[0])
    right = (changes.T * weights) @ steps + prior
    values, vectors = np.linalg.eigh((steps.T * weights) @ steps + prior)
    inner = vectors.T @ (right + right.T) @ vectors / (values[:, None] + values)
    values, turned = np.linalg.eigh(inner)
    values = np.clip(values, RULES.left, 1.0 / RULES.left)
    half = root @ vectors @ turned / np.sqrt(values)
    return np.asarray(half @ half.T)


def surprise(inverse: FloatArray, step: FloatArray, change: FloatArray) -> float:
    """How much a change of the slope differs from what the matrix makes of the step, relative to it."""
    root = _root(inverse)
    if root is None:
        return np.inf
    seen = root.T @ change
    predicted = solve_triangular(root, step, lower=True)
    return float(np.linalg.norm(seen - predicted) / max(float(np.linalg.norm(seen)), TINY))


def _root(inverse: FloatArray) -> FloatArray | None:
    root, failed = dpotrf(inverse, lower=1, clean=1)
    return None if failed else np.asarray(root)
