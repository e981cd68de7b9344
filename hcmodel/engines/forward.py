"""One forward pass over a stack: its values, and derivatives by sweeps back along its tape."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import Pull, Pullback, is_traced, taped
from hcmodel.engines import sparsity
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape

FloatArray: TypeAlias = NDArray[np.float64]

# Matrices with this many rows, and at most this share of entries that are not 0, are stored as sparse.
SPARSE_ROWS, SPARSE_DENSITY = 50, 0.2


class Forward:
    """One forward pass: values, and derivatives from its tape when they are asked for."""

    def __init__(
        self,
        values: FloatArray,
        pull: Pullback | None,
        dimension: int,
        plan: Callable[[], Any],
        traced: Sequence[tuple[int, Shape]] = (),
    ) -> None:
        """`traced` lists, in order, start and shape of the roots that depend on the point."""
        self.values = values
        self._traced = traced
        self._pull = pull
        self._dimension = dimension
        self._plan = plan
        self._jacobian: FloatArray | scipy.sparse.csr_array | None = None

    def pullback(self, weights: Any) -> FloatArray:
        """The gradient of weights·φ."""
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise ModelError(f"{self.values.size} weights are needed, not shape {weights.shape}")
        return swept(self._pull, weights, self._dimension)

    def jacobian(self) -> FloatArray | scipy.sparse.csr_array:
        """The Jacobian of the values; compressed rows where it is large and mostly 0."""
        if self._jacobian is None:
            self._jacobian = self._swept_jacobian(self._plan())
        return self._jacobian

    def _swept_jacobian(self, plan: sparsity.Plan) -> FloatArray | scipy.sparse.csr_array:
        rows, columns = self.values.size, self._dimension
        pull: Pull | None
        if plan.by_rows:
            pull, length, width = self._pull, rows, columns
        else:
            # J v as the derivative of the pullback, which is linear in its weights
            pull, length, width = self._pushforward(), columns, rows
        found = np.zeros((len(plan.groups), width))
        for number, group in enumerate(plan.groups):
            seed = np.zeros(length)
            seed[group] = 1.0
            found[number] = self._swept_roots(seed) if plan.by_rows else swept(pull, seed, width)
        if plan.indptr is None or plan.indices is None:
            return found if plan.by_rows else np.ascontiguousarray(found.T)
        row_of_entry = np.repeat(np.arange(rows), np.diff(plan.indptr))
        if plan.by_rows:
            entries = found[plan.color[row_of_entry], plan.indices]
        else:
            entries = found[plan.color[plan.indices], row_of_entry]
        if rows >= SPARSE_ROWS and entries.size <= SPARSE_DENSITY * rows * columns:
            return scipy.sparse.csr_array(
                (entries, plan.indices, plan.indptr), shape=(rows, columns)
            )
        dense = np.zeros((rows, columns))
        dense[row_of_entry, plan.indices] = entries
        return dense

    def _swept_roots(self, seed: FloatArray) -> FloatArray:
        """A sweep from the roots that the seed touches; the others' tapes are not walked."""
        touched = []
        for position, (start, shape) in enumerate(self._traced):
            part = seed[start : start + int(np.prod(shape, dtype=int))]
            if part.any():
                touched.append((position, part.reshape(shape)))
        if self._pull is None or 2 * len(touched) > len(self._traced):
            return swept(self._pull, seed, self._dimension)
        result = np.zeros(self._dimension)
        for position, part in touched:
            from_root = functools.partial(self._pull.from_argument, position)
            result += swept(from_root, part, self._dimension)
        return result

    def _pushforward(self) -> Pull | None:
        if self._pull is None:
            return None
        with np.errstate(all="ignore"):
            return taped(self._pull, np.zeros(self.values.size))[1]


def on_tape(roots: Sequence[Any]) -> list[tuple[int, Shape]]:
    found, start = [], 0
    for root in roots:
        if is_traced(root):
            found.append((start, np.shape(root)))
        start += int(np.size(root))
    return found


def swept(pull: Pull | None, seed: FloatArray, width: int) -> FloatArray:
    """One sweep; 0 where nothing depends on the point, NaN where linear algebra gives up."""
    if pull is None:
        return np.zeros(width)
    try:
        with np.errstate(all="ignore"):
            return np.asarray(pull(seed), dtype=float)
    except np.linalg.LinAlgError:
        return np.full(width, np.nan)
