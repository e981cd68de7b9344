"""Which pairs of entries of the flat vector meet in second derivatives, and sweeps that find these.

Every second derivative comes from a step that is not affine: it pairs the columns that its arguments
depend on. Columns are coloured so that one sweep H @ seed serves a whole colour,

    adjacent columns differ in colour, and on a path i – k – j  c(i) = c(j) only if c(k) < c(i),

a restricted star colouring: H[i, j] then stands alone in the sweep of the smaller colour of the two
(Gebremedhin, Manne, Pothen, What color is your Jacobian?, SIAM Review 2005).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy

from hcmodel.atoms.rules import Argument, Contraction, Curvature, Dependence, Kind
from hcmodel.engines.sparsity import FULL, NOTHING, Columns, Pattern, joined
from hcmodel.expressions.graph import Step
from hcmodel.expressions.shapes import Shape
from hcmodel.records import dataclass

# Pairs, counted as often as they are met, beyond which a Hessian is taken to be dense.
MOST_PAIRS = 30_000_000
# Pairs of entries of the arguments of one contraction that are looked at.
MOST_PRODUCTS = 1_000_000

Pair = tuple[frozenset[int], frozenset[int]]


class TooDense(Exception):  # noqa: N818  (a signal, not an error)
    """So many pairs that a pattern saves nothing."""


class Interactions:
    """Collects the pairs of columns that meet in steps which are not affine."""

    def __init__(self, dimension: int) -> None:
        self.dimension = dimension
        self._pairs: set[Pair] = set()
        self._count = 0

    def add(self, step: Step, shapes: Sequence[Shape], patterns: Sequence[Pattern | None]) -> None:
        """The pairs that one step makes; arguments without variables have pattern None."""
        assert step.atom is not None
        live = [i for i, pattern in enumerate(patterns) if pattern is not None]
        facts = [Argument(shape, constant=i not in live) for i, shape in enumerate(shapes)]
        if step.atom.kind(facts, step.params) is Kind.POLYHEDRAL:
            return  # affine wherever it has derivatives
        if step.atom.curvature(facts, step.params) is Curvature.AFFINE:
            return
        alone = [i for i in live if not _affine_alone(step, shapes, i)]
        dependence = step.atom.dependence(shapes, step.params)
        if isinstance(dependence, Contraction):
            assert not alone
            self._add_products(dependence.subscripts, shapes, patterns)
        elif dependence is Dependence.ELEMENTWISE:
            spread = {
                i: np.broadcast_to(np.arange(_size(shapes[i])).reshape(shapes[i]), step.shape)
                for i in live
            }
            for i in live:
                for j in live:
                    if i < j or i in alone:
                        self._add_entries(patterns[i], spread[i], patterns[j], spread[j])
        else:
            for group in _lines(step, shapes, patterns, dependence):
                self._add_pair(group, group)

    def _add_entries(
        self, one: Pattern | None, ones: np.ndarray, other: Pattern | None, others: np.ndarray
    ) -> None:
        assert one is not None
        assert other is not None
        met = {
            (id(one[i]), id(other[j])): (i, j) for i, j in zip(ones.flat, others.flat, strict=True)
        }
        for i, j in met.values():
            self._add_pair(one[i], other[j])

    def _add_products(
        self, subscripts: str, shapes: Sequence[Shape], patterns: Sequence[Pattern | None]
    ) -> None:
        """Of entries of two arguments that are multiplied with each other."""
        inputs = subscripts.split("->")[0].split(",")
        for j, other in enumerate(inputs):
            for i, one in enumerate(inputs[:j]):
                first, second = patterns[i], patterns[j]
                if first is None or second is None:
                    continue
                lengths = dict(zip(one + other, (*shapes[i], *shapes[j]), strict=True))
                labels = list(lengths)
                if math.prod(list(lengths.values())) > MOST_PRODUCTS:
                    raise TooDense
                places = dict(zip(labels, np.indices(list(lengths.values())), strict=True))
                ones = np.ravel_multi_index(tuple(places[label] for label in one), shapes[i])
                others = np.ravel_multi_index(tuple(places[label] for label in other), shapes[j])
                self._add_entries(first, np.ravel(ones), second, np.ravel(others))

    def _add_pair(self, one: Columns, other: Columns) -> None:
        if one == NOTHING or other == NOTHING:
            return
        if one is FULL or other is FULL:
            raise TooDense
        if (one, other) in self._pairs or (other, one) in self._pairs:
            return
        self._pairs.add((one, other))
        self._count += len(one) * len(other)
        if self._count > MOST_PAIRS:
            raise TooDense

    def pattern(self) -> scipy.sparse.csr_array:
        """All pairs and the diagonal, as a symmetric matrix."""
        rows, columns = [np.arange(self.dimension)], [np.arange(self.dimension)]
        for one, other in self._pairs:
            i = np.fromiter(one, dtype=int, count=len(one))
            j = np.fromiter(other, dtype=int, count=len(other))
            rows += [np.repeat(i, j.size), np.tile(j, i.size)]
            columns += [np.tile(j, i.size), np.repeat(i, j.size)]
        keys = np.unique(np.concatenate(rows) * self.dimension + np.concatenate(columns))
        places, indices = np.divmod(keys, self.dimension)
        indptr = np.searchsorted(places, np.arange(self.dimension + 1))
        shape = (self.dimension, self.dimension)
        return scipy.sparse.csr_array((np.ones(keys.size), indices, indptr), shape=shape)


def _affine_alone(step: Step, shapes: Sequence[Shape], number: int) -> bool:
    """Whether the step is affine in one argument while the others stay."""
    assert step.atom is not None
    facts = [Argument(shape, constant=i != number) for i, shape in enumerate(shapes)]
    return step.atom.curvature(facts, step.params) is Curvature.AFFINE


def _lines(
    step: Step, shapes: Sequence[Shape], patterns: Sequence[Pattern | None], dependence: object
) -> list[Columns]:
    """The columns that meet: along the reduced axes, or all of them."""
    if dependence is not Dependence.REDUCTION:
        return [joined(row for pattern in patterns if pattern is not None for row in pattern)]
    shape, axis, pattern = shapes[0], step.params["axis"], patterns[0]
    assert pattern is not None
    axes = (
        tuple(range(len(shape))) if axis is None else ((axis,) if isinstance(axis, int) else axis)
    )
    numbers = np.arange(len(pattern)).reshape(shape)
    kept = [i for i in range(len(shape)) if i not in axes]
    count = math.prod([shape[i] for i in kept])
    lines = np.transpose(numbers, (*kept, *axes)).reshape(count, -1)
    return [joined(pattern[i] for i in line) for line in lines.tolist()]


def _size(shape: Shape) -> int:
    return math.prod(shape)


@dataclass(frozen=True)
class HessianPlan:
    """The pattern in compressed rows, the colour of each column, and where each entry is found."""

    indptr: np.ndarray
    indices: np.ndarray
    colors: np.ndarray
    sweep: np.ndarray
    place: np.ndarray

    @property
    def sweeps(self) -> int:
        return int(self.colors.max(initial=-1)) + 1

    def matrix(self, swept: np.ndarray) -> scipy.sparse.csr_array:
        """H from the sweeps H @ seed of all colours, one in each row."""
        size = self.colors.size
        entries = swept[self.sweep, self.place]
        return scipy.sparse.csr_array((entries, self.indices, self.indptr), shape=(size, size))


def hessian_plan(pattern: scipy.sparse.csr_array) -> HessianPlan:
    """Colour the columns of a symmetric pattern with a full diagonal."""
    colors = star_colors(pattern)
    rows = np.repeat(np.arange(colors.size), np.diff(pattern.indptr))
    columns = pattern.indices
    first = colors[rows] <= colors[columns]
    sweep = np.where(first, colors[rows], colors[columns])
    place = np.where(first, columns, rows)
    return HessianPlan(pattern.indptr, columns, colors, sweep, place)


def star_colors(pattern: scipy.sparse.csr_array) -> np.ndarray:
    """A restricted star colouring, columns with many neighbours first."""
    size = pattern.shape[0]
    neighbours = [
        [j for j in pattern.indices[start:stop].tolist() if j != i]
        for i, (start, stop) in enumerate(
            zip(pattern.indptr[:-1].tolist(), pattern.indptr[1:].tolist(), strict=True)
        )
    ]
    colors = [-1] * size
    around = [0] * size  # for each column, the colours of its neighbours as a bit mask
    for i in sorted(range(size), key=lambda i: -len(neighbours[i])):
        taken = 0
        for k in neighbours[i]:
            if colors[k] < 0:
                taken |= around[k]
            else:
                own = 1 << colors[k]
                taken |= own | (around[k] & (own - 1))
        free = ~taken & (taken + 1)
        colors[i] = free.bit_length() - 1
        for k in neighbours[i]:
            around[k] |= free
    return np.array(colors, dtype=int)
