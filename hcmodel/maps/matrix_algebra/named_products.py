"""Models of one gain whose products K P and K P Kᵀ have names before anything is multiplied out.

Entries of (A + B K) P (A + B K)ᵀ have a million terms in K and P where there are 15 states; with symbols
for the entries of Y = K P and of Z = K P Kᵀ they have as many as these matrices have entries. The model
is read as sums of products of matrices (`matrix_products`). Names are given only if K is next to P in all
of them, with no other matrix in between.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.matrix_products import Letter, MatrixSum, Product, read, times
from hcmodel.facts.polynomials import Coding, Sums, added
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Expanded, Row, spare_symbols
from hcmodel.maps.map import fresh_among
from hcmodel.maps.matrix_algebra.product_terms import Products
from hcmodel.records import dataclass
from hcmodel.solvers.algebra.definite import is_semidefinite
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Named:
    """A model in P, Y and Z."""

    model: Expanded
    gain: Variable
    turned: bool
    matrix: Variable
    product: Variable
    rewriting: NamedProducts


def named(model: Model) -> Iterator[Named]:
    """The model with names for products of its gain; nothing where it is not read, or has several."""
    matrices = [each for each in model.variables if each.set.is_curved and each.set.is_symmetric]
    if not matrices:
        return
    roots = read(model.graph)
    if roots is None:
        return
    products = [each for root in roots for each in root.products]
    pairs = {
        (gain, matrix)
        for each in products
        for one, two in _neighbours(each)
        for gain, matrix in ((one.variable, two.variable), (two.variable, one.variable))
        if any(matrix is own for own in matrices) and not gain.set.is_symmetric
    }
    if len(pairs) != 1:
        return
    gain, matrix = pairs.pop()
    for turned in (False, True):
        if gain.shape[0 if turned else 1] == matrix.shape[0]:
            found = _Naming(model, gain, turned, matrix).named(roots)
            if found is not None:
                yield found


def _neighbours(product: Product) -> Iterator[tuple[Letter, Letter]]:
    letters = product.letters
    if len(letters) > 1:
        yield from zip(letters, (*letters[1:], letters[0]), strict=True)


class NamedProducts(Products):
    """Sums in which the products of K and P have symbols already."""

    def __init__(
        self, model: Expanded, numbers: Numbers, matrix: Variable, new: Variable, square: Variable
    ) -> None:
        super().__init__(model, numbers, matrix, new)
        symbols = model.symbols
        self.square = symbols.of_variable(square)
        self.gone = np.zeros(symbols.count, dtype=bool)
        self.gone[[*np.ravel(numbers), *np.ravel(self.square)]] = True
        # of each digit: the place in Y and in Z; −1 for other symbols
        self._in_product, self._in_square = (
            _places(each, symbols.count) for each in (self.product, self.square)
        )

    def sorted(self, sums: Sums) -> tuple[Sums | None, dict[int, FloatArray] | None, Sums]:
        single = np.where(sums.degrees == 1, sums.digits[:, 0], 0)
        single = np.where(single < self._in_square.size, single, 0)
        linear, quadratic = self._in_product[single] >= 0, self._in_square[single] >= 0
        squares = None
        if quadratic.any():
            entries, place = np.unique(sums.entry[quadratic], return_inverse=True)
            found = np.zeros((entries.size, self.rows, self.rows))
            row, column = np.divmod(self._in_square[single[quadratic]], self.rows)
            weight = sums.weight[quadratic] / np.where(row == column, 1.0, 2.0)
            found[place, row, column] = found[place, column, row] = weight
            squares = dict(zip(entries.tolist(), found, strict=True))
        own = sums.chosen(linear) if linear.any() else None
        return own, squares, sums.chosen(~(linear | quadratic))

    def closed(self, drift: FloatArray, factor: FloatArray) -> Sums:
        """A P Aᵀ + G Y Aᵀ + A Yᵀ Gᵀ + G Z Gᵀ."""
        coding = self.coding
        left, right = (Sums.constant(each, coding) for each in (drift, factor))
        inner, product, square = (
            Sums.symbols(each, coding) for each in (self.inner, self.product, self.square)
        )
        across = right @ product @ left.transposed()
        return added(
            [
                left @ inner @ left.transposed(),
                across,
                across.transposed(),
                right @ square @ right.transposed(),
            ]
        )

    def grows(self, model: Expanded, sums: Sums) -> bool:
        """Whether no entry decreases as P grows at a fixed K: [[Q, Nᵀ], [N, R]] ⪰ 0 for each."""
        if model.symbols.functions(sums.symbols_used()):
            return False
        return all(each is not None and is_semidefinite(each) for each in self.forms(sums))

    def row_grows(self, model: Expanded, row: Row) -> bool:
        """Whether a row that holds is still satisfied with a smaller P."""
        linear, quadratic, rest = self.sorted(row.sums)
        if linear is None and quadratic is None and not rest.holding(self.inner).any():
            return True
        return row.sense == "<=" and self.grows(model, row.sums)


def _places(numbers: Numbers, count: int) -> Numbers:
    """The first place of each symbol among some, by digit; −1 for others."""
    found = np.full(count + 1, -1, dtype=np.int64)
    flat = np.ravel(numbers)
    found[flat[::-1] + 1] = np.arange(flat.size)[::-1]
    return found


class _Naming:
    """Symbols for a model, and its roots in them."""

    def __init__(self, model: Model, gain: Variable, turned: bool, matrix: Variable) -> None:
        self._model, self._matrix = model, matrix
        self._gain, self._turned = gain, turned
        rows = gain.shape[1 if turned else 0]
        self._product = Variable((rows, matrix.shape[0]), name=fresh_among(model.variables, "Y"))
        self._square = Variable(
            (rows, rows), name=fresh_among(model.variables, "Z"), symmetric=True
        )
        variables = (*model.variables, self._product, self._square)
        size = sum(each.size for each in variables)
        self.symbols = Symbols(Coding.of(2 * size + spare_symbols(model)))
        for each in variables:
            self.symbols.of_variable(each)

    def named(self, roots: Sequence[MatrixSum]) -> Named | None:
        sums = [self._sums(each) for each in roots]
        if any(each is None for each in sums):
            return None
        found = [each for each in sums if each is not None]
        expanded = Expanded.of_sums(self._model, found, self.symbols)
        numbers = self.symbols.of_variable(self._gain)
        rewriting = NamedProducts(
            expanded,
            numbers.T if self._turned else numbers,
            self._matrix,
            self._product,
            self._square,
        )
        return Named(expanded, self._gain, self._turned, self._matrix, self._product, rewriting)

    def _sums(self, root: MatrixSum) -> Sums | None:
        """A root in entries of variables, of Y and of Z; None where K stands elsewhere."""
        coding = self.symbols.coding
        parts = [Sums.constant(root.constant, coding)]
        for product in root.products:
            found = self._of_trace(product) if root.shape == () else self._of_matrix(product, root)
            if found is None:
                return None
            parts.append(found)
        return added(parts)

    def _of_matrix(self, product: Product, root: MatrixSum) -> Sums | None:
        found = self._named(product)
        if found is None:
            return None
        numbers, number = found
        left, right = product.matrices[0], product.matrices[-1]
        left = number * (np.eye(numbers.shape[0]) if left is None else left)
        right = np.eye(numbers.shape[1]) if right is None else right
        (i, k), (m, j) = np.nonzero(left), np.nonzero(right)
        entry = (i[:, None] * root.shape[1] + j).reshape(-1)
        weight = (left[i, k][:, None] * right[m, j]).reshape(-1)
        key = numbers[k[:, None], m].reshape(-1) + 1
        return Sums.merged(root.shape, entry, key, weight, self.symbols.coding)

    def _of_trace(self, product: Product) -> Sums | None:
        """trace(C₀ x₁ … xₙ Cₙ), which is that of x₁ … xₙ Cₙ C₀, from each of the letters on."""
        letters, matrices = product.letters, product.matrices
        ring = [*matrices[1:-1], times(matrices[-1], matrices[0])]  # what follows each letter
        for first in range(len(letters)):
            turned = Product(
                letters[first:] + letters[:first], (None, *ring[first:], *ring[:first])
            )
            found = self._named(turned)
            if found is not None:
                numbers, number = found
                last = turned.matrices[-1]
                weights = number * (np.eye(numbers.shape[1]) if last is None else last)
                j, i = np.nonzero(weights)
                entry = np.zeros(i.size, dtype=np.intp)
                key, coding = numbers[i, j] + 1, self.symbols.coding
                return Sums.merged((), entry, key, weights[j, i], coding)
        return None

    def _named(self, product: Product) -> tuple[Numbers, float] | None:
        """The symbols of a product without what is beside it, and a number; None where it has no name."""
        middle = [_multiple(each) for each in product.matrices[1:-1] if each is not None]
        if any(each is None for each in middle):
            return None
        number = float(np.prod([each for each in middle if each is not None]))
        numbers = self._symbols_of(product.letters)
        return None if numbers is None else (numbers, number)

    def _symbols_of(self, letters: tuple[Letter, ...]) -> Numbers | None:
        gain, inner = Letter(self._gain, self._turned), Letter(self._matrix)
        names = {
            (gain.key, inner.key): self._product,
            (gain.key, inner.key, gain.turned.key): self._square,
        }
        of = self.symbols.of_variable
        if len(letters) == 1 and letters[0].variable is not self._gain:
            numbers = np.atleast_2d(of(letters[0].variable))
            return numbers.T if letters[0].transposed else numbers
        name = names.get(tuple(each.key for each in letters))
        if name is not None:
            return of(name)
        back = names.get(tuple(each.turned.key for each in reversed(letters)))
        return None if back is None else of(back).T


def _multiple(matrix: FloatArray) -> float | None:
    """The number that the identity is multiplied by; None for other matrices."""
    if matrix.shape[0] != matrix.shape[1]:
        return None
    number = float(matrix[0, 0])
    left = np.abs(matrix - number * np.eye(len(matrix))).max()
    return number if left <= DATA_ROUNDING * abs(number) else None
