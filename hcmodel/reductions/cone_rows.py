"""The builder of a cone program: unknowns, rows in cones, and the cone forms of elementary functions.

Atoms declare their cone form as a function of this builder (`Atom.cone_form`), so that they import no
solver. Every method works on whole arrays; nothing here loops over entries.

A method that returns a bound adds unknowns t with rows that keep t above a convex function (below a
concave one); a program that profits from a tight bound makes it tight.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.reductions.affine import Affine, Sparse, joined
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, cone_program

FloatArray = NDArray[np.float64]


@dataclass
class ConeRows:
    """Rows `affine in K`, in the order in which they were added, and the number of unknowns."""

    size: int
    blocks: list[tuple[ConeBlock, Affine]] = field(default_factory=list)

    # ---- unknowns and rows

    def unknown(self, shape: tuple[int, ...]) -> Affine:
        """New unknowns."""
        count = int(np.prod(shape, dtype=int))
        columns = self.size + np.arange(count)
        self.size += count
        parts = (np.ones(count), columns, np.arange(count + 1))
        return Affine(shape, np.zeros(count), Sparse(parts, shape=(count, self.size)))

    def add(self, block: ConeBlock, rows: Affine) -> int:
        """Rows in a cone; the number of the block, by which duals are found again."""
        self.blocks.append((block, rows.flat()))
        return len(self.blocks) - 1

    def zero(self, rows: Affine) -> int:
        return self.add(ConeBlock(ConeKind.ZERO, rows.size), rows)

    def nonnegative(self, rows: Affine) -> int:
        return self.add(ConeBlock(ConeKind.NONNEGATIVE, rows.size), rows)

    def exponential(self, x: Affine, y: Affine, z: Affine) -> int:
        """y·exp(x/y) <= z, entry by entry."""
        shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
        rows = _interleaved([each.broadcast(shape) for each in (x, y, z)])
        return self.add(ConeBlock(ConeKind.EXPONENTIAL, rows.size), rows)

    def second_order(self, top: Affine, below: Affine) -> None:
        """‖below[i]‖ <= top[i] for each row i of an array with two axes."""
        count, length = below.shape
        rows = _interleaved([top.broadcast((count,)), *_columns(below)])
        for number in range(count):  # Clarabel takes one cone at a time; so does CVXPY
            own = np.arange(number * (length + 1), (number + 1) * (length + 1))
            self.add(ConeBlock(ConeKind.SECOND_ORDER, length + 1), rows.taken(own, (length + 1,)))

    def power(self, x: Affine, y: Affine, z: Affine, exponent: float) -> int:
        """x^α · y^(1−α) >= |z|, entry by entry."""
        shape = np.broadcast_shapes(x.shape, y.shape, z.shape)
        rows = _interleaved([each.broadcast(shape) for each in (x, y, z)])
        return self.add(ConeBlock(ConeKind.POWER, rows.size, exponent), rows)

    # ---- functions

    def exp(self, a: Affine) -> Affine:
        """t >= exp(a)."""
        if a.is_constant:
            return Affine.constant(np.exp(a.value))
        t = self.unknown(a.shape)
        self.exponential(a, ONE, t)
        return t

    def log(self, a: Affine) -> Affine:
        """t <= log(a)."""
        if a.is_constant:
            return Affine.constant(np.log(a.value))
        t = self.unknown(a.shape)
        self.exponential(t, ONE, a)
        return t

    def entropy(self, a: Affine) -> Affine:
        """t <= −a·log(a): a·exp(t/a) <= 1."""
        t = self.unknown(a.shape)
        self.exponential(t, a, ONE)
        return t

    def relative_entropy(self, a: Affine, b: Affine) -> Affine:
        """t >= a·log(a/b): a·exp(−t/a) <= b."""
        t = self.unknown(np.broadcast_shapes(a.shape, b.shape))
        self.exponential(-t, a, b)
        return t

    def square(self, a: Affine) -> Affine:
        """t >= a²: ‖(2a, t − 1)‖ <= t + 1."""
        t = self.unknown(a.shape)
        flat, top = a.flat(), t.flat()
        below = _stacked_columns([flat.scaled(2.0), top - ONE])
        self.second_order(top + ONE, below)
        return t

    def norm(self, a: Affine) -> Affine:
        """t[i] >= ‖a[i]‖ for each row i of an array with two axes."""
        t = self.unknown((a.shape[0],))
        self.second_order(t, a)
        return t

    def power_of(self, a: Affine, exponent: float) -> Affine:
        """A bound on a^p, above it for p > 1 or p < 0 and below it for 0 < p < 1, with a >= 0."""
        t = self.unknown(a.shape)
        if exponent > 1:
            self.power(t, ONE, a, 1.0 / exponent)  # t^(1/p) >= |a|
        elif exponent < 0:
            self.power(t, a, ONE, 1.0 / (1.0 - exponent))  # t^(1/(1−p)) a^(−p/(1−p)) >= 1
        else:
            self.power(a, ONE, t, exponent)  # a^p >= |t|
        return t

    def log_sum_exp(self, terms: Affine, targets: NDArray[np.intp], count: int) -> Affine:
        """t[i] >= log Σ exp(terms[k]) over the k with target i."""
        t = self.unknown((count,))
        self.sum_exp_at_most_one(terms - t.taken(targets, (targets.size,)), targets, count)
        return t

    def sum_exp_at_most_one(self, terms: Affine, targets: NDArray[np.intp], count: int) -> int:
        """Σ exp(terms[k]) <= 1 for each target; the block of these rows."""
        z = self.unknown((targets.size,))
        self.exponential(terms, ONE, z)
        groups = Sparse(
            (np.ones(targets.size), (targets, np.arange(targets.size))), shape=(count, targets.size)
        )
        return self.nonnegative(Affine.constant(np.ones(count)) - z.mapped(groups, (count,)))

    def log_sum_exp_of(self, parts: list[Affine]) -> Affine:
        """t >= log Σ exp(part), entry by entry over parts of one shape."""
        count = parts[0].size
        targets = np.tile(np.arange(count), len(parts))
        return self.log_sum_exp(joined(parts), targets, count).reshaped(parts[0].shape)

    def log_sum_exp_along(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        targets, shape = _targets(a.shape, axis)
        return self.log_sum_exp(a.flat(), targets, int(np.prod(shape, dtype=int))).reshaped(shape)

    def norm_along(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        """t >= the Euclidean norm over some axes."""
        targets, shape = _targets(a.shape, axis)
        count = int(np.prod(shape, dtype=int))
        order = np.argsort(targets, kind="stable")
        return self.norm(a.flat().taken(order, (count, a.size // count))).reshaped(shape)

    def summed(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        """The sum over some axes."""
        targets, shape = _targets(a.shape, axis)
        count = int(np.prod(shape, dtype=int))
        parts = (np.ones(targets.size), (targets, np.arange(targets.size)))
        return a.mapped(Sparse(parts, shape=(count, targets.size)), shape)

    # ---- the program

    def program(self, objective: Affine) -> ConeProgram:
        """Minimise an affine function of the unknowns over the rows."""
        linear = np.zeros(self.size)
        if objective.matrix is not None:
            row = objective.rows(self.size)
            np.add.at(linear, row.indices, row.data)
        rows = joined([affine for _, affine in self.blocks])
        # affine = b − A x in K
        matrix = scipy.sparse.csc_matrix(-rows.rows(self.size))
        return cone_program(linear, matrix, rows.offset, [block for block, _ in self.blocks])

    def starts(self) -> NDArray[np.intp]:
        """Where the rows of each block begin."""
        sizes = [block.size for block, _ in self.blocks]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


ONE = Affine.constant(1.0)


def _targets(
    shape: tuple[int, ...], axis: tuple[int, ...] | None
) -> tuple[NDArray[np.intp], tuple[int, ...]]:
    """For each entry the entry of the array reduced along `axis`, and the shape of that."""
    axes = range(len(shape)) if axis is None else axis
    kept = tuple(length for i, length in enumerate(shape) if i not in axes)
    thin = tuple(1 if i in axes else length for i, length in enumerate(shape))
    numbers = np.arange(int(np.prod(kept, dtype=int))).reshape(thin)
    return np.broadcast_to(numbers, shape).reshape(-1), kept


def _interleaved(parts: list[Affine]) -> Affine:
    """Entry 0 of every part, then entry 1 of every part, and so on."""
    count = parts[0].size
    order = np.arange(count * len(parts)).reshape(len(parts), count).T.reshape(-1)
    whole = joined(parts)
    return whole.taken(order, (whole.size,))


def _columns(rows: Affine) -> list[Affine]:
    count, length = rows.shape
    return [rows.taken(np.arange(count) * length + j, (count,)) for j in range(length)]


def _stacked_columns(columns: list[Affine]) -> Affine:
    whole = _interleaved(columns)
    return whole.reshaped((columns[0].size, len(columns)))
