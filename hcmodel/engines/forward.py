"""One forward pass over a stack: its values, and derivatives by sweeps back along its tape."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.autodiff import Pull, Pullback, is_traced, taped
from hcmodel.engines import sparsity
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape
from hcmodel.records import cached_property, dataclass
from hcmodel.solvers.limits import check_time
from hcmodel.solvers.memory import check_dense

FloatArray: TypeAlias = NDArray[np.float64]

# Matrices with this many rows, and at most this share of entries that are not 0, are stored as sparse.
SPARSE_ROWS, SPARSE_DENSITY = 50, 0.2

# Entries of a Jacobian up to which all rows are swept together, also those of different roots: what an
# operation takes by itself is more than what its numbers take (Ex-CNLS, tests/benchmarks/general.py).
SMALL_AT_ONCE = 1_000

# Up to this many sweeps go one after the other where there are more unknowns than this: together, each
# entry that is read has an array of zeros of its own. For fewer unknowns even a single sweep takes less
# time by the rules of those together: 280 µs instead of 380 for Rosenbrock's function, its tape included.
FEW_AT_ONCE, FEW_UNKNOWNS = 2, 1_000


@dataclass(frozen=True)
class Tape:
    """Values and their pullback, None where nothing depends on the point.

    `traced` lists, in order, start and shape of the roots that depend on it. `read` is called when
    derivatives are asked for.
    """

    values: FloatArray
    pull: Pullback | None
    traced: Sequence[tuple[int, Shape]]
    read: Callable[[], None]


class Forward:
    """One forward pass: values, and derivatives from its tape when they are asked for."""

    def __init__(
        self,
        values: FloatArray,
        tape: Tape | Callable[[], Tape],
        dimension: int,
        plan: Callable[[], Any],
    ) -> None:
        """A `tape` that is a function is recorded when it is first needed."""
        self.values = values
        self._recorded = tape
        self._dimension = dimension
        self._plan = plan
        self._jacobian: FloatArray | scipy.sparse.csr_array | None = None

    @cached_property
    def _tape(self) -> Tape:
        tape = self._recorded if isinstance(self._recorded, Tape) else self._recorded()
        tape.read()
        return tape

    def pullback(self, weights: Any) -> FloatArray:
        """The gradient of weights·φ."""
        weights = np.asarray(weights, dtype=float)
        if weights.shape != self.values.shape:
            raise ModelError(f"{self.values.size} weights are needed, not shape {weights.shape}")
        return swept(self._tape.pull, weights, self._dimension)

    def jacobian(self) -> FloatArray | scipy.sparse.csr_array:
        """The Jacobian of the values; compressed rows where it is large and mostly 0."""
        if self._jacobian is None:
            self._jacobian = self._swept_jacobian(self._plan())
        return self._jacobian

    def _swept_jacobian(self, plan: sparsity.Plan) -> FloatArray | scipy.sparse.csr_array:
        rows, columns = self.values.size, self._dimension
        pull: Pullback | None
        if plan.by_rows:
            pull, length, width = self._tape.pull, rows, columns
        else:
            # J v as the derivative of the pullback, which is linear in its weights
            pull, length, width = self._pushforward(), columns, rows
        check_dense("a Jacobian", len(plan.groups), max(length, width))
        check_time()
        seeds = np.zeros((len(plan.groups), length))
        for seed, group in zip(seeds, plan.groups, strict=True):
            seed[group] = 1.0
        found = self._swept_roots(seeds) if plan.by_rows else swept_all(pull, seeds, width)
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
        check_dense("a Jacobian", rows, columns)
        dense = np.zeros((rows, columns))
        dense[row_of_entry, plan.indices] = entries
        return dense

    def _swept_roots(self, seeds: FloatArray) -> FloatArray:
        """Sweeps from the roots that the seeds touch; the others' tapes are not walked."""
        parts = [
            seeds[:, start : start + math.prod(shape)].reshape(len(seeds), *shape)
            for start, shape in self._tape.traced
        ]
        check_time()
        touched = [part.any(axis=tuple(range(1, part.ndim))) for part in parts]
        count = sum(int(np.count_nonzero(each)) for each in touched)
        pull = self._tape.pull
        if pull is None or 2 * count > len(seeds) * len(parts):
            return swept_all(pull, seeds, self._dimension)
        if len(seeds) * self._dimension <= SMALL_AT_ONCE:
            together = swept_all(pull, seeds, self._dimension)
            if np.isfinite(together).all():
                return together  # else one root's slope may have spoiled another's, as 0 times infinity
        found = np.zeros((len(seeds), self._dimension))
        for position, (part, rows) in enumerate(zip(parts, touched, strict=True)):
            check_time()
            if rows.any():
                found[rows] += swept_all(pull, part[rows], self._dimension, position)
        return found

    def _pushforward(self) -> Pullback | None:
        pull = self._tape.pull
        if pull is None:
            return None
        with np.errstate(all="ignore"):
            return taped(pull, np.zeros(self.values.size))[1]


def roots_on_tape(roots: Sequence[Any]) -> list[tuple[int, Shape]]:
    found, start = [], 0
    for root in roots:
        if type(root) is np.ndarray or not is_traced(root):
            start += int(np.size(root))
            continue
        shape = root.shape
        found.append((start, shape))
        start += math.prod(shape)
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


def swept_all(
    pull: Pullback | None, seeds: FloatArray, width: int, position: int | None = None
) -> FloatArray:
    """One sweep for each row of seeds, from the end or from an argument of the last operation."""
    if pull is None:
        return np.zeros((len(seeds), width))
    if len(seeds) <= FEW_AT_ONCE and width > FEW_UNKNOWNS:
        one = pull if position is None else functools.partial(pull.from_argument, position)
        return np.array([swept(one, seed, width) for seed in seeds]).reshape(-1, width)
    from hcmodel.engines.batched_sweeps import swept_together  # imports autograd, as the tape did

    try:
        with np.errstate(all="ignore"):
            return np.asarray(swept_together(pull, seeds, position), dtype=float)
    except np.linalg.LinAlgError:
        return np.full((len(seeds), width), np.nan)
