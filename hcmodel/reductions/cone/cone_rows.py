"""The builder of a cone program: unknowns, rows in cones, and the cone forms of elementary functions.

Atoms declare their cone form as a function of this builder (`Atom.cone_form`), so that they import no
solver. Every method works on whole arrays; nothing here loops over entries.

A method that returns a bound adds unknowns t with rows that keep t above a convex function (below a
concave one); a program that profits from a tight bound makes it tight.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.atoms.cones import broken_powers
from hcmodel.records import dataclass
from hcmodel.reductions.cone.affine import Affine, joined
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.solvers.algebra.symmetric import triangle, upper_entries
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram, cone_program

FloatArray = NDArray[np.float64]


class Mark(NamedTuple):
    """How much of everything a `ConeRows` has."""

    size: int
    blocks: int
    quadratics: int
    norms: int


@dataclass
class ConeRows:
    """Rows `affine in K`, in the order in which they were added, and the number of unknowns.

    `quadratics` has terms r'Qr of the objective, with affine r and a constant semidefinite Q.
    """

    size: int
    blocks: list[tuple[tuple[ConeBlock, ...], Affine]] = field(default_factory=list)
    quadratics: list[tuple[Affine, Any]] = field(default_factory=list)
    norms: list[tuple[int, NDArray[np.intp]]] = field(default_factory=list)
    """The group of rows of each Euclidean norm, and the norm that each entry belongs to."""

    # ---- unknowns and rows

    def unknown(self, shape: tuple[int, ...]) -> Affine:
        """New unknowns."""
        count = math.prod(shape)
        columns = self.size + np.arange(count)
        self.size += count
        return Affine(shape, np.zeros(count), Rows.units(columns, self.size))

    def mark(self) -> Mark:
        """What there is now, to be come back to by `take_back`."""
        return Mark(self.size, len(self.blocks), len(self.quadratics), len(self.norms))

    def take_back(self, mark: Mark) -> None:
        """Take unknowns and rows that were added after a mark out again."""
        self.size = mark.size
        del self.blocks[mark.blocks :], self.quadratics[mark.quadratics :], self.norms[mark.norms :]

    def add(self, blocks: ConeBlock | Sequence[ConeBlock], rows: Affine) -> int:
        """Rows in one cone or several; the number of the group, by which duals are found again."""
        cones = (blocks,) if isinstance(blocks, ConeBlock) else tuple(blocks)
        self.blocks.append((cones, rows.flat()))
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

    def second_order(self, top: Affine, below: Affine, targets: NDArray[np.intp]) -> int:
        """‖the entries of `below` with target i‖ <= top[i] for each entry i of `top`."""
        count = top.size
        owners = np.concatenate([np.arange(count), targets])
        order = np.argsort(
            owners, kind="stable"
        )  # the top of a cone comes before its other entries
        rows = joined([top, below]).taken(order, (owners.size,))
        sizes = 1 + np.bincount(targets, minlength=count)
        return self.add([ConeBlock(ConeKind.SECOND_ORDER, int(size)) for size in sizes], rows)

    def semidefinite(self, matrix: Affine) -> int:
        """A symmetric matrix that is positive semidefinite."""
        order = matrix.shape[0]
        row, column = triangle(order)
        upper = matrix.flat().taken(row * order + column, (row.size,))
        weights = np.where(row == column, 1.0, np.sqrt(2.0))
        return self.add(ConeBlock(ConeKind.PSD_TRIANGLE, row.size), upper.scaled(weights))

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
        """t >= a²."""
        return self.sums_of_squares(a.flat(), np.arange(a.size), a.size).reshaped(a.shape)

    def sum_of_squares(self, terms: Affine, divisor: Affine | None = None) -> Affine:
        """t >= Σ terms² / divisor, with a divisor > 0, which is 1 if it is not given."""
        targets = np.zeros(terms.size, dtype=np.intp)
        return self.sums_of_squares(terms, targets, 1, divisor).reshaped(())

    def sums_of_squares(
        self, terms: Affine, targets: NDArray[np.intp], count: int, divisor: Affine | None = None
    ) -> Affine:
        """t[i] >= Σ terms[k]² / divisor[i] over the k with target i: ‖(2 terms, t − b)‖ <= t + b."""
        t = self.unknown((count,))
        below = ONE if divisor is None else divisor.flat()
        rows = joined([terms.scaled(2.0), t - below])
        self.second_order(t + below, rows, np.concatenate([targets, np.arange(count)]))
        return t

    def power_of(self, a: Affine, exponents: Any) -> Affine:
        """A bound on a^p, above it for p > 1 or p < 0 and below it for 0 < p < 1, with a >= 0.

        For p > 1 it bounds |a|^p.
        """
        shape = np.broadcast_shapes(a.shape, np.shape(exponents))
        wanted = np.broadcast_to(exponents, shape).reshape(-1)
        flat = a.broadcast(shape).flat()
        different = np.unique(wanted)
        if different.size == 1:
            return self._power_of(flat, float(different[0])).reshaped(shape)
        groups = [np.flatnonzero(wanted == each) for each in different]
        parts = [
            self._power_of(flat.taken(group, (group.size,)), float(each))
            for group, each in zip(groups, different, strict=True)
        ]
        return joined(parts).taken(np.argsort(np.concatenate(groups)), shape)

    def _power_of(self, a: Affine, exponent: float) -> Affine:
        if exponent == 0.0:
            return Affine.constant(np.ones(a.shape))
        if exponent == 1.0:
            return a
        if exponent == 2.0:
            return self.square(a)
        if exponent == -1.0:
            ones, numbers = Affine.constant(np.ones(a.size)), np.arange(a.size)
            return self.sums_of_squares(ones, numbers, a.size, a)  # t a >= 1
        t = self.unknown(a.shape)
        if exponent == 0.5:  # a >= t²
            rows, numbers = joined([t.scaled(2.0), a - ONE]), np.arange(a.size)
            self.second_order(a + ONE, rows, np.tile(numbers, 2))
        elif exponent > 1:
            self.power(t, ONE, a, 1.0 / exponent)  # t^(1/p) >= |a|
        elif exponent < 0:
            self.power(t, a, ONE, 1.0 / (1.0 - exponent))  # t^(1/(1−p)) a^(−p/(1−p)) >= 1
        else:
            self.power(a, ONE, t, exponent)  # a^p >= |t|
        return t

    def in_domain_of_power(self, a: Affine, exponents: Any) -> None:
        """a >= 0 where only such numbers have the power: what a cone bounds for p > 1 is |a|^p."""
        marked = np.broadcast_to(broken_powers(exponents), a.shape).ravel().nonzero()[0]
        if marked.size:
            self.nonnegative(a.flat().taken(marked, (marked.size,)))

    def geometric_mean(
        self, a: Affine, axis: tuple[int, ...] | None, weights: Sequence[float] | None
    ) -> Affine:
        """t <= Π a^w: with r <= t·log(a/t) the weighted sum of r is not negative."""
        targets, shape = _targets(a.shape, axis)
        count = math.prod(shape)
        t = self.unknown((count,))
        r = self.unknown(a.shape)
        self.exponential(r.flat(), t.taken(targets, (targets.size,)), a.flat())
        self.nonnegative(self.weighted_along(r, axis, weights))
        return t.reshaped(shape)

    def largest_of(self, parts: Sequence[Affine]) -> Affine:
        """t >= each part, entry by entry; the parts broadcast."""
        shape = np.broadcast_shapes(*(part.shape for part in parts))
        count = math.prod(shape)
        wide = joined([part.broadcast(shape) for part in parts])
        return self.largest(wide, np.tile(np.arange(count), len(parts)), count).reshaped(shape)

    def largest_along(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        """t >= all entries over some axes."""
        targets, shape = _targets(a.shape, axis)
        return self.largest(a.flat(), targets, math.prod(shape)).reshaped(shape)

    def largest(self, parts: Affine, targets: NDArray[np.intp], count: int) -> Affine:
        """t[i] >= parts[k] for the k with target i; the logarithm of 0 asks for nothing."""
        t = self.unknown((count,))
        kept = np.flatnonzero(parts.offset > -np.inf)
        own = parts.taken(kept, (kept.size,))
        self.nonnegative(t.taken(targets[kept], (kept.size,)) - own)
        return t

    def log_sum_of_largest(self, a: Affine, k: int, axis: tuple[int, ...] | None) -> Affine:
        """t with k·q + Σ s <= 1, s >= exp(a − t) − q and s >= 0: the sum of the k largest exp(a − t)."""
        targets, shape = _targets(a.shape, axis)
        t = self.unknown((math.prod(shape),))
        kept = np.flatnonzero(a.offset > -np.inf)
        own = targets[kept]
        sizes = self.exp(a.flat().taken(kept, (kept.size,)) - t.taken(own, (own.size,)))
        q, s = self.unknown(t.shape), self.unknown((kept.size,))
        self.nonnegative(s)
        self.nonnegative(s + q.taken(own, (own.size,)) - sizes)
        groups = Rows.of_entries(np.ones(own.size), own, np.arange(own.size), (t.size, own.size))
        total = q.scaled(float(k)) + s.mapped(groups, t.shape)
        self.nonnegative(Affine.constant(np.ones(t.size)) - total)
        return t.reshaped(shape)

    def sum_of_largest(self, a: Affine, k: int, axis: tuple[int, ...] | None) -> Affine:
        """k·q + Σ s with s >= a − q and s >= 0."""
        targets, shape = _targets(a.shape, axis)
        q = self.unknown((math.prod(shape),))
        s = self.unknown(a.shape)
        self.nonnegative(s)
        self.nonnegative(s.flat() + q.taken(targets, (targets.size,)) - a.flat())
        return q.reshaped(shape).scaled(float(k)) + self.summed(s, axis)

    def log_sum_exp(self, terms: Affine, targets: NDArray[np.intp], count: int) -> Affine:
        """t[i] >= log Σ exp(terms[k]) over the k with target i."""
        t = self.unknown((count,))
        self.sum_exp_at_most_one(terms - t.taken(targets, (targets.size,)), targets, count)
        return t

    def sum_exp_at_most_one(self, terms: Affine, targets: NDArray[np.intp], count: int) -> int:
        """Σ exp(terms[k]) <= 1 for each target; the block of these rows."""
        kept = np.flatnonzero(terms.offset > -np.inf)
        if kept.size < targets.size:  # logarithms of 0
            terms, targets = terms.taken(kept, (kept.size,)), targets[kept]
        z = self.unknown((targets.size,))
        self.exponential(terms, ONE, z)
        ones, places = np.ones(targets.size), np.arange(targets.size)
        groups = Rows.of_entries(ones, targets, places, (count, targets.size))
        return self.nonnegative(Affine.constant(np.ones(count)) - z.mapped(groups, (count,)))

    def log_sum_exp_of(self, parts: list[Affine]) -> Affine:
        """t >= log Σ exp(part), entry by entry over parts of one shape."""
        count = parts[0].size
        targets = np.tile(np.arange(count), len(parts))
        return self.log_sum_exp(joined(parts), targets, count).reshaped(parts[0].shape)

    def log_sum_exp_along(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        targets, shape = _targets(a.shape, axis)
        return self.log_sum_exp(a.flat(), targets, math.prod(shape)).reshaped(shape)

    def norm_along(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        """t >= the Euclidean norm over some axes."""
        targets, shape = _targets(a.shape, axis)
        t = self.unknown((math.prod(shape),))
        self.norms.append((self.second_order(t, a.flat(), targets), targets))
        return t.reshaped(shape)

    def euclidean_norms(self, terms: Affine, targets: NDArray[np.intp], count: int) -> Affine:
        """t[i] >= the Euclidean norm of the terms with target i."""
        t = self.unknown((count,))
        self.second_order(t, terms, targets)
        return t

    def power_norm_along(self, a: Affine, axis: tuple[int, ...] | None, p: float) -> Affine:
        """t >= the p-norm over some axes: r^(1/p) t^(1−1/p) >= |a|, Σ r = t."""
        targets, shape = _targets(a.shape, axis)
        t = self.unknown((math.prod(shape),))
        r = self.unknown(a.shape)
        self.power(r.flat(), t.taken(targets, (targets.size,)), a.flat(), 1.0 / p)
        self.zero(t - self.summed(r, axis).flat())
        return t.reshaped(shape)

    def summed(self, a: Affine, axis: tuple[int, ...] | None) -> Affine:
        """The sum over some axes."""
        return self._weighted(a, axis, np.ones(a.size))

    def weighted_along(
        self, a: Affine, axis: tuple[int, ...] | None, weights: Sequence[float] | None
    ) -> Affine:
        """The sum over some axes with weights along them, or the mean."""
        axes = tuple(range(len(a.shape))) if axis is None else axis
        lengths = [a.shape[i] for i in axes]
        count = math.prod(lengths)
        own = np.full(count, 1.0 / max(count, 1)) if weights is None else np.asarray(weights)
        # an axis of its own for each of the axes that are summed, in their order
        order = np.argsort(axes)
        thin = np.transpose(own.reshape(lengths), order)
        shape = tuple(length if i in axes else 1 for i, length in enumerate(a.shape))
        return self._weighted(a, axis, np.broadcast_to(thin.reshape(shape), a.shape).reshape(-1))

    def _weighted(self, a: Affine, axis: tuple[int, ...] | None, weights: FloatArray) -> Affine:
        targets, shape = _targets(a.shape, axis)
        count = math.prod(shape)
        kept = np.flatnonzero(weights)  # 0 times the logarithm of 0 is 0
        whole = (count, targets.size)
        return a.mapped(Rows.of_entries(weights[kept], targets[kept], kept, whole), shape)

    def repeated_along(
        self, a: Affine, shape: tuple[int, ...], axis: tuple[int, ...] | None
    ) -> Affine:
        """An array reduced along `axis`, with each entry where it was reduced from."""
        return a.flat().taken(_targets(shape, axis)[0], shape)

    # ---- matrices

    def inner(self, matrix: Affine, weights: FloatArray) -> Affine:
        """The sum of the entries times constant weights."""
        return matrix.mapped(Rows.of(weights.reshape(1, -1)), ())

    def largest_eigenvalue(self, matrix: Affine) -> Affine:
        """t >= the largest eigenvalue of the symmetric part: t I − A is semidefinite."""
        order = matrix.shape[0]
        t = self.unknown(())
        self.semidefinite(t.scaled(np.eye(order)) - _symmetric_part(matrix))
        return t

    def log_determinant(self, matrix: Affine) -> Affine:
        """t <= log det A: [A, Z; Z', diag(Z)] is semidefinite, Z lower triangular, t <= Σ log Z[i, i]."""
        order = matrix.shape[0]
        row, column = np.tril_indices(order)
        numbers, shape = np.arange(row.size), (order * order, row.size)
        places = Rows.of_entries(np.ones(row.size), row * order + column, numbers, shape)
        entries = self.unknown((row.size,))
        lower = entries.mapped(places, (order, order))
        diagonal = entries.taken(np.flatnonzero(row == column), (order,))
        below = diagonal.broadcast((order, order)).scaled(np.eye(order))
        self.semidefinite(_blocks(_symmetric_part(matrix), lower, below))
        return self.summed(self.log(diagonal), None)

    def matrix_fraction(self, above: Affine, matrix: Affine) -> Affine:
        """t >= trace(X' inv(P) X): [P, X; X', T] is semidefinite, t = trace T."""
        corner = self.symmetric_unknown(above.shape[1])
        self.semidefinite(_blocks(_symmetric_part(matrix), above, corner))
        return self.inner(corner, np.eye(above.shape[1]))

    def log_matrix_fraction(self, above: FloatArray, matrix: Affine) -> Affine:
        """t >= log trace(X' inv(P) X): [P, w X; w X', S] is semidefinite, trace S <= w, −t <= log w."""
        w, corner = self.unknown(()), self.symmetric_unknown(above.shape[1])
        self.semidefinite(_blocks(_symmetric_part(matrix), w.scaled(above), corner))
        self.nonnegative(w - self.inner(corner, np.eye(above.shape[1])))
        return -self.log(w)

    def symmetric_unknown(self, order: int) -> Affine:
        """A new symmetric matrix."""
        row, column = np.divmod(upper_entries(order), order)
        numbers = np.zeros((order, order), dtype=np.intp)
        numbers[row, column] = numbers[column, row] = np.arange(row.size)
        return self.unknown((row.size,)).taken(numbers.reshape(-1), (order, order))

    def perron_eigenvalue(self, logarithms: Affine) -> Affine:
        """t >= log of the largest eigenvalue of a positive matrix: Σ_j A[i, j] v[j] <= exp(t) v[i]."""
        order = logarithms.shape[0]
        t, v = self.unknown(()), self.unknown((order,))
        terms = logarithms + v.reshaped((1, order)) - v.reshaped((order, 1)) - t
        self.zero(v.taken(np.zeros(1, dtype=np.intp), (1,)))  # v is given up to a factor
        rows = np.repeat(np.arange(order), order)
        self.sum_exp_at_most_one(terms.flat(), rows, order)
        return t

    def eye_minus_inverse(self, logarithms: Affine) -> Affine:
        """T >= log inv(I − A) for A >= 0: the Y with I + A Y <= Y are those above the inverse.

        Entries that are 0 whatever A is, by the zeros of A, are the logarithm of 0.
        """
        order = logarithms.shape[0]
        present = logarithms.offset.reshape(order, order) > -np.inf
        reached = np.linalg.matrix_power(present + np.eye(order), order) > 0
        own = np.flatnonzero(reached)
        numbers, shape = np.arange(own.size), (order * order, own.size)
        places = Rows.of_entries(np.ones(own.size), own, numbers, shape)
        y = self.unknown((own.size,)).mapped(places, (order, order))
        row, middle, column = (each.reshape(-1) for each in np.indices((order, order, order)))
        kept = present[row, middle] & reached[middle, column]
        row, middle, column = row[kept], middle[kept], column[kept]
        count, flat = row.size, y.flat()
        products = logarithms.flat().taken(row * order + middle, (count,))
        products = products + flat.taken(middle * order + column, (count,))
        diagonal = np.arange(order) * (order + 1)
        terms = joined([products, Affine.constant(np.zeros(order))])
        targets = np.concatenate([row * order + column, diagonal])
        shifted = terms - flat.taken(targets, (targets.size,))
        self.sum_exp_at_most_one(shifted, np.searchsorted(own, targets), own.size)
        zero = np.where(reached, 0.0, -np.inf)
        return y + Affine.constant(zero)

    def log_difference(self, a: Affine, b: Affine) -> Affine:
        """t <= log(exp(a) − exp(b)): exp(t − a) + exp(b − a) <= 1."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        a, b = a.broadcast(shape), b.broadcast(shape)
        t = self.unknown(shape)
        numbers = np.arange(t.size)
        self.sum_exp_at_most_one(joined([t - a, b - a]), np.tile(numbers, 2), t.size)
        return t

    # ---- the program

    def add_quadratic(self, terms: Affine, matrix: Any) -> None:
        """terms' Q terms in the objective; Q stays as sparse as it is, a vector is its diagonal."""
        if terms.matrix is not None and terms.matrix.nnz > terms.size:
            r = self.unknown((terms.size,))
            self.zero(r - terms.flat())
            terms = r
        self.quadratics.append((terms.flat(), matrix))

    def program(self, objective: Affine) -> ConeProgram:
        """Minimise an affine function of the unknowns, and the quadratic terms, over the rows."""
        linear, constant = np.zeros(self.size), float(objective.offset.sum())
        if objective.matrix is not None:
            np.add.at(linear, objective.matrix.indices, objective.matrix.data)
        quadratic, own = (
            None,
            [(terms.rows(self.size), matrix) for terms, matrix in self.quadratics],
        )
        if own:
            only = all(
                np.ndim(matrix) == 1 and rows.lengths.max(initial=0) <= 1 for rows, matrix in own
            )
            add = self._diagonal if only else self._products
            quadratic, more = add(linear)
            constant += more
        rows = joined([affine for _, affine in self.blocks])
        # affine = b − A x in K
        matrix = scipy.sparse.csc_matrix((-rows.rows(self.size)).to_scipy())
        cones = [cone for group, _ in self.blocks for cone in group]
        return cone_program(linear, matrix, rows.offset, cones, quadratic, constant)

    def _products(self, linear: FloatArray) -> tuple[Any, float]:
        """P of the quadratic terms, and their constant; `linear` gets what they add to it."""
        quadratic, constant = None, 0.0
        for terms, given in self.quadratics:
            matrix = scipy.sparse.diags_array(given) if np.ndim(given) == 1 else given
            matrix, own = scipy.sparse.csr_array(matrix), terms.rows(self.size).to_scipy()
            part = own.T @ (2.0 * matrix) @ own
            quadratic = part if quadratic is None else quadratic + part
            linear += own.T @ (2.0 * (matrix @ terms.offset))
            constant += float(terms.offset @ (matrix @ terms.offset))
        return quadratic, constant

    def _diagonal(self, linear: FloatArray) -> tuple[Any, float]:
        """The same for weighted squares of single unknowns, without the matrices of scipy."""
        found, constant, uses = np.zeros(self.size), 0.0, np.zeros(self.size, dtype=np.intp)
        for terms, weights in self.quadratics:
            places, columns, numbers = terms.rows(self.size).entries()
            slopes = 2.0 * weights[places] * numbers
            found += np.bincount(columns, slopes * numbers, self.size)
            linear += np.bincount(columns, slopes * terms.offset[places], self.size)
            constant += float(weights @ terms.offset**2)
            uses += np.bincount(columns, minlength=self.size)
        used = uses.nonzero()[0]
        starts = np.searchsorted(used, np.arange(self.size + 1))
        shape = (self.size, self.size)
        return scipy.sparse.csc_matrix((found[used], used, starts), shape=shape), constant

    def starts(self) -> NDArray[np.intp]:
        """Where the rows of each group begin."""
        sizes = [affine.size for _, affine in self.blocks]
        return np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)


ONE = Affine.constant(1.0)


def _targets(
    shape: tuple[int, ...], axis: tuple[int, ...] | None
) -> tuple[NDArray[np.intp], tuple[int, ...]]:
    """For each entry the entry of the array reduced along `axis`, and the shape of that."""
    axes = range(len(shape)) if axis is None else axis
    kept = tuple(length for i, length in enumerate(shape) if i not in axes)
    thin = tuple(1 if i in axes else length for i, length in enumerate(shape))
    numbers = np.arange(math.prod(kept)).reshape(thin)
    return np.broadcast_to(numbers, shape).reshape(-1), kept


def _interleaved(parts: list[Affine]) -> Affine:
    """Entry 0 of every part, then entry 1 of every part, and so on."""
    count = parts[0].size
    order = np.arange(count * len(parts)).reshape(len(parts), count).T.reshape(-1)
    whole = joined(parts)
    return whole.taken(order, (whole.size,))


def _symmetric_part(matrix: Affine) -> Affine:
    return (matrix + matrix.transposed()).scaled(0.5)


def _blocks(corner: Affine, side: Affine, below: Affine) -> Affine:
    """The symmetric matrix [A, B; B', C]."""
    first, second = side.shape
    order = first + second
    numbers = np.empty((order, order), dtype=np.intp)
    numbers[:first, :first] = np.arange(first * first).reshape(first, first)
    beside = first * first + np.arange(first * second).reshape(first, second)
    numbers[:first, first:], numbers[first:, :first] = beside, beside.T
    start = first * order
    numbers[first:, first:] = start + np.arange(second * second).reshape(second, second)
    return joined([corner, side, below]).taken(numbers.reshape(-1), (order, order))
