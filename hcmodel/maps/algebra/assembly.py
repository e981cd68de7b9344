"""From sums back to expressions: the model in hidden coordinates as an ordinary model.

Linear terms become a matrix times the variables. Products that stand for something convex are found
first (`gather`): squares, squares over a positive symbol, u·log u. Functions of single entries that are
alike are applied to one vector.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Apply, Constant, Expression, Variable
from hcmodel.expressions.node import as_expression
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Coding, Sums, stacked
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.gather import gathered
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.marks import all_are_0, highest, some

Numbers = NDArray[np.int64]

# A matrix is kept sparse where it is larger than this and has fewer than this part of its entries.
SMALL = 64
FILLED = 0.3


@dataclass(eq=False)
class Assembly:
    """Expressions of sums over one table of symbols."""

    symbols: Symbols
    _vectors: dict[Hashable, Expression] = field(default_factory=dict)
    _places: dict[int, tuple[Expression, int]] = field(default_factory=dict)

    def expression(self, sums: Sums) -> Expression:
        """The expression of an array of sums."""
        whole = self._variable(sums)
        if whole is not None:
            return whole
        degree = sums.degrees
        if self.symbols.functions(sums.symbols_used()) or highest(degree) > 1:
            sums = gathered(sums, self.symbols)
            degree = sums.degrees
            self._prepare(sums.symbols_used())
        if len(sums.shape) == 2 and highest(degree) <= 1:
            written = self._matrix(sums)
            if written is not None:
                return written
            turned = self._matrix(sums.transposed())
            if turned is not None:
                return turned.T
        parts = self._linear(sums.chosen(degree == 1))
        for each in range(2, highest(degree) + 1):
            own = degree == each
            parts += self._products(sums.chosen(own), each) if some(own) else []
        constant = sums.chosen(degree == 0).value.reshape(-1)
        if not (all_are_0(constant) and parts):
            same = not sums.shape or (parts and (constant == constant[0]).all())
            parts.append(Constant(constant[0] if same else constant))
        if not sums.shape:
            parts = [part if part.ndim == 0 else ATOMS["reshape"](part, ()) for part in parts]
        total = _joined(parts)
        return total if total.shape == sums.shape else ATOMS["reshape"](total, sums.shape)

    def _variable(self, sums: Sums) -> Expression | None:
        """The variable, or its transpose, that an array of sums is; None for others."""
        if sums.key.size != sums.size or not sums.size or (sums.weight != 1).any():
            return None
        if (sums.entry != np.arange(sums.size)).any() or int(sums.key.min()) == ONE:
            return None
        numbers = sums.key.reshape(sums.shape) - 1
        if int(numbers.max()) >= self.symbols.count:
            return None  # products
        source, _ = self.symbols.source(int(numbers.flat[0]))
        if not isinstance(source, Variable):
            return None
        own = self.symbols.of_variable(source)
        if np.array_equal(own, numbers):
            return source
        return source.T if source.ndim == 2 and np.array_equal(own.T, numbers) else None

    def _prepare(self, used: Numbers) -> None:
        """Make the functions among the symbols, those of single entries that are alike together."""
        groups: dict[Hashable, list[Opaque]] = {}
        for source, _, _ in self.symbols.grouped(used):
            if isinstance(source, Variable) or source.start in self._places:
                continue
            if source.shape:
                arguments = [self.expression(each) for each in source.arguments]
                made = Apply(source.atom, tuple(arguments), _frozen(source), source.shape)
                size = math.prod(source.shape)
                flat = ATOMS["reshape"](made, (size,)) if made.ndim != 1 else made
                for place in range(size):
                    self._places[source.start + place] = flat, place
                continue
            constants = tuple(
                each.content() if each.is_constant else None for each in source.arguments
            )
            shapes = tuple(each.shape for each in source.arguments)
            alone = None if not any(shapes) else source.start
            # a logarithm of one term is affine in logarithms, that of a sum is convex
            single = tuple(each.key.size == 1 for each in source.arguments)
            key = source.atom, _frozen(source), constants, alone, single
            groups.setdefault(key, []).append(source)
        for members in groups.values():
            self._function(members)

    def _function(self, members: Sequence[Opaque]) -> None:
        """One function of single entries for all of its arguments."""
        first = members[0]
        if len(members) == 1:
            arguments = [self.expression(each) for each in first.arguments]
            self._places[first.start] = Apply(first.atom, tuple(arguments), _frozen(first), ()), 0
            return
        columns = []
        for place, argument in enumerate(first.arguments):
            if argument.is_constant:
                columns.append(as_expression(argument.value))
            else:
                own = [member.arguments[place] for member in members]
                columns.append(self.expression(stacked(own, self.symbols.coding)))
        made = Apply(first.atom, tuple(columns), _frozen(first), (len(members),))
        for place, member in enumerate(members):
            self._places[member.start] = made, place

    def _matrix(self, sums: Sums) -> Expression | None:
        """A linear matrix as people write it: G @ V, and G @ V + (G @ V).T where it is symmetric.

        None where it is not of this kind: that is, where multiplying it out gives other sums.
        """
        symmetric = sums.shape[0] == sums.shape[1] and sums.equals(sums.transposed())
        total: Expression | None = None
        for source, _, symbols in self.symbols.grouped(sums.symbols_used()):
            if not isinstance(source, Variable) or source.ndim != 2:
                return None
            own = sums.chosen(sums.holding(symbols))
            numbers = self.symbols.of_variable(source)
            factor = _left_factor(own, numbers, symmetric)
            if factor is None:
                return None
            if not _multiplied_out(factor, numbers, symmetric, sums.coding).equals(own):
                return None
            part = source if _is_identity(factor) else as_expression(factor) @ source
            twice = part + part.T if symmetric else part
            total = twice if total is None else total + twice
        constant = sums.value
        if total is None:
            return None
        return total + constant if constant.any() else total

    def _linear(self, sums: Sums) -> list[Expression]:
        """Matrices times the vectors that the symbols belong to."""
        used = sums.symbols_used()
        if not used.size:
            return []
        vectors, which, places = self._located(used)
        if len(vectors) > 1 and sums.shape and sums.key.size == sums.size and sums.counts.all():
            picked = self._gathered(sums.key - 1)  # entries of several variables, one by one
            return [picked if (sums.weight == 1).all() else picked * sums.weight]
        index = np.searchsorted(used, sums.key - 1)
        parts = []
        for number, vector in enumerate(vectors):
            own = which[index] == number
            columns = places[index[own]]
            if (
                not sums.shape
                and isinstance(vector, Apply)
                and isinstance(vector.args[0], Variable)
                and vector is self._vectors.get(vector.args[0])
            ):
                written = _trace(vector.args[0], columns, sums.weight[own])
                if written is not None:
                    parts.append(written)
                    continue
            parts.append(_times(sums.entry[own], columns, sums.weight[own], sums.size, vector))
        return parts

    def _products(self, sums: Sums, degree: int) -> list[Expression]:
        """Products of symbols, entry by entry, times a matrix."""
        keys, inverse = np.unique(sums.key, return_inverse=True)
        digits = sums.coding.digits(keys)[:, :degree]
        product: Expression | None = None
        for column in digits.T[::-1]:
            factor = self._gathered(column - 1)
            product = factor if product is None else product * factor
        assert product is not None
        return [_times(sums.entry, inverse, sums.weight, sums.size, product)]

    def _gathered(self, symbols: Numbers) -> Expression:
        """The symbols as one vector."""
        numbers = np.asarray(symbols)
        vectors = [self._place(symbol) for symbol in numbers.tolist()]
        first = vectors[0][0]
        if all(vector is first and vector.ndim for vector, _ in vectors):
            places = [place for _, place in vectors]
            every = places == list(range(first.size))
            return first if every else first[np.array(places, dtype=np.intp)]
        parts = [
            vector[place : place + 1] if vector.ndim else ATOMS["reshape"](vector, (1,))
            for vector, place in vectors
        ]
        return parts[0] if len(parts) == 1 else ATOMS["concatenate"](*parts)

    def _located(self, used: Numbers) -> tuple[list[Expression], Numbers, Numbers]:
        """The vectors that sorted symbols belong to; for each symbol which one, and its place there."""
        numbers: dict[int, int] = {}
        vectors: list[Expression] = []
        which, places = [], []
        for source, entries, own in self.symbols.grouped(used):
            if isinstance(source, Variable):
                pairs = [(self._vector(source), entries)]
            else:
                each = [self._places[symbol] for symbol in own.tolist()]
                alike = all(vector is each[0][0] for vector, _ in each)
                parts = [each] if alike else [[pair] for pair in each]
                pairs = [(part[0][0], np.array([place for _, place in part])) for part in parts]
            for vector, own_places in pairs:
                if id(vector) not in numbers:
                    numbers[id(vector)] = len(vectors)
                    vectors.append(vector)
                which.append(np.full(own_places.size, numbers[id(vector)]))
                places.append(own_places)
        return vectors, np.concatenate(which), np.concatenate(places)

    def _place(self, symbol: int) -> tuple[Expression, int]:
        """The vector that a symbol belongs to, and its place there."""
        found = self._places.get(symbol)
        if found is None:
            source, place = self.symbols.source(symbol)
            assert isinstance(source, Variable)
            found = self._places[symbol] = self._vector(source), place
        return found

    def _vector(self, variable: Variable) -> Expression:
        """A variable as a vector; numbers stay numbers."""
        found = self._vectors.get(variable)
        if found is None:
            flat = variable.ndim <= 1
            found = variable if flat else ATOMS["reshape"](variable, (variable.size,))
            self._vectors[variable] = found
        return found


def _frozen(function: Opaque) -> tuple[Any, ...]:
    return tuple(sorted(function.params.items()))


def _left_factor(sums: Sums, numbers: Numbers, symmetric: bool) -> NDArray[np.float64] | None:
    """G for which the sums may be G @ V, or G @ V + (G @ V).T; V has these symbols.

    The first column tells all of G, and the diagonal where the sums are symmetric.
    """
    rows, columns = sums.shape
    if numbers.shape[1] != columns:
        return None
    factor = np.zeros((rows, numbers.shape[0]))
    entry_row, entry_column = np.divmod(sums.entry, columns)
    for column in range(columns if symmetric else 1):
        own = entry_column == column
        if symmetric:
            own &= entry_row == column
        place = np.full(int(numbers.max()) + 2, -1, dtype=np.intp)
        place[numbers[:, column] + 1] = np.arange(numbers.shape[0])
        inner = place[sums.key[own]]
        kept = inner >= 0
        weights = sums.weight[own][kept] / (2.0 if symmetric else 1.0)
        factor[entry_row[own][kept], inner[kept]] = weights
    return factor


def _multiplied_out(
    factor: NDArray[np.float64], numbers: Numbers, symmetric: bool, coding: Coding
) -> Sums:
    """G @ V, or G @ V + (G @ V).T, of numbers G and a matrix V of these symbols."""
    rows, inner = factor.nonzero()
    columns = np.arange(numbers.shape[1])
    shape = factor.shape[0], columns.size
    entry = (rows[:, None] * columns.size + columns).reshape(-1)
    key, weight = (numbers[inner] + 1).reshape(-1), factor[rows, inner].repeat(columns.size)
    if symmetric:
        mirrored = (columns * columns.size + rows[:, None]).reshape(-1)
        entry = np.concatenate([entry, mirrored])
        key, weight = np.concatenate([key, key]), np.concatenate([weight, weight])
    return Sums.merged(shape, entry, key, weight, coding)


def _is_identity(matrix: NDArray[np.float64]) -> bool:
    return matrix.shape[0] == matrix.shape[1] and bool((matrix == np.eye(len(matrix))).all())


def _trace(variable: Variable, places: Any, weights: Any) -> Expression | None:
    """A weighted sum of the entries of a matrix as trace(C @ V)."""
    if variable.ndim != 2 or not variable.set.is_symmetric:
        return None
    matrix = np.zeros(variable.shape)
    matrix.reshape(-1)[places] = weights
    matrix = (matrix + matrix.T) / 2
    if _is_identity(matrix):
        return ATOMS["trace"](variable)
    return ATOMS["trace"](as_expression(matrix) @ variable)


def _joined(parts: Sequence[Expression]) -> Expression:
    """The sum of parts as people write it: what is added first, then what is taken away."""
    taken, added = list[Expression](), list[Expression]()
    for part in parts:
        if isinstance(part, Apply) and part.atom is ATOMS["neg"]:
            taken.append(part.args[0])
        elif isinstance(part, Constant) and (part.value <= 0).all() and len(parts) > 1:
            taken.append(Constant(-part.value))
        else:
            added.append(part)
    total = added[0] if added else ATOMS["neg"].apply((taken.pop(0),))
    for part in added[1:]:
        total = total + part
    for part in taken:
        total = total - part
    return total


def _scaled(vector: Expression, weights: NDArray[np.float64]) -> Expression:
    """A vector times numbers, entry by entry; one number where all are the same."""
    weight = float(weights[0])
    if (weights != weight).any():
        return vector * weights
    size = abs(weight)
    scaled = vector if size == 1 else size * vector
    return scaled if weight >= 0 else ATOMS["neg"].apply((scaled,))


def _times(rows: Any, columns: Any, weights: Any, count: int, vector: Expression) -> Expression:
    """A matrix, given by its entries, times a vector; nothing where it is the identity."""
    if vector.ndim == 0:
        flat = np.zeros(count)
        flat[rows] = weights
        return _scaled(vector, flat) if count == 1 else vector * flat
    shape = count, vector.size
    if max(shape) <= SMALL or count == 1 or weights.size > FILLED * count * vector.size:
        dense = np.zeros(shape)
        np.add.at(dense, (rows, columns), weights)
        return _times_dense(dense, vector)
    matrix = scipy.sparse.csr_array((weights, (rows, columns)), shape=shape)
    square = count == vector.size and matrix.nnz == count
    if (
        square
        and (np.diff(matrix.indptr) == 1).all()
        and (matrix.indices == np.arange(count)).all()
    ):
        return _scaled(vector, matrix.data)
    return as_expression(matrix) @ vector


def _times_dense(matrix: NDArray[np.float64], vector: Expression) -> Expression:
    """The same for a matrix that is small or has few zeros: a sparse one takes longer to make."""
    count, entries = len(matrix), np.count_nonzero(matrix)
    if count == vector.size == entries and matrix.diagonal().all():
        return _scaled(vector, matrix.diagonal().copy())
    if count > 1:
        return as_expression(matrix) @ vector
    if entries == vector.size > 1 and (matrix == matrix[0, 0]).all():
        return _scaled(ATOMS["sum"](vector), matrix[0, :1])
    if entries != 1:
        return as_expression(matrix[0]) @ vector
    place = int(matrix[0].nonzero()[0][0])
    return _scaled(vector[place], matrix[0, place : place + 1])
