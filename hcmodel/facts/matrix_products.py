"""Matrix expressions as sums of products of variables with constant matrices between them.

    (A + B K) P (A + B K)ᵀ = A P Aᵀ + B K P Aᵀ + A P Kᵀ Bᵀ + B K P Kᵀ Bᵀ

has four terms here whatever the sizes are, where its entries multiplied out have millions: of 20 states
and 5 inputs three. Scalars are sums of traces of such products and of scalar variables. An expression
with any other function of a variable is not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.rules import Argument, Contraction, Dependence
from hcmodel.expressions.graph import Graph, Step
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import dense
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]

# Terms of one matrix: longer sums are left to the entries, which treat them all at once.
MOST_TERMS = 64
TRACE = Contraction("ii->")


class Letter(NamedTuple):
    """A variable or its transpose; symmetric ones are never transposed, and scalars are 1 × 1."""

    variable: Variable
    transposed: bool = False

    @property
    def key(self) -> tuple[int, bool]:
        """What is equal for equal letters; `==` of variables makes constraints."""
        return id(self.variable), self.transposed

    @property
    def turned(self) -> Letter:
        symmetric = self.variable.set.is_symmetric or self.variable.size == 1
        return self if symmetric else Letter(self.variable, not self.transposed)


@dataclass(frozen=True, eq=False)
class Product:
    """C₀ x₁ C₁ x₂ … xₙ Cₙ for the letters x; None is the identity."""

    letters: tuple[Letter, ...]
    matrices: tuple[FloatArray | None, ...]

    def scaled(self, number: float) -> Product:
        first, rest = self.matrices[0], self.matrices[1:]
        if number == 1.0:
            return self
        size = _rows(self.letters[0]) if first is None else 0
        return Product(self.letters, (number * (np.eye(size) if first is None else first), *rest))

    def transposed(self) -> Product:
        turned = tuple(None if each is None else each.T for each in reversed(self.matrices))
        return Product(tuple(each.turned for each in reversed(self.letters)), turned)

    def times(self, other: Product) -> Product:
        middle = times(self.matrices[-1], other.matrices[0])
        matrices = (*self.matrices[:-1], middle, *other.matrices[1:])
        return Product(self.letters + other.letters, matrices)

    def between(self, left: FloatArray | None, right: FloatArray | None) -> Product:
        """The product with matrices on both sides."""
        matrices = [*self.matrices]
        matrices[0], matrices[-1] = times(left, matrices[0]), times(matrices[-1], right)
        return Product(self.letters, tuple(matrices))


@dataclass(frozen=True, eq=False)
class MatrixSum:
    """A constant and products that add up to a matrix, or the traces of which to a number."""

    shape: Shape
    constant: FloatArray
    products: tuple[Product, ...] = field(default=())


def times(left: FloatArray | None, right: FloatArray | None) -> FloatArray | None:
    if left is None or right is None:
        return right if left is None else left
    return np.asarray(left @ right)


def _rows(letter: Letter) -> int:
    shape = (1, 1) if letter.variable.ndim < 2 else letter.variable.shape
    return int(shape[1 if letter.transposed else 0])


def read(graph: Graph) -> list[MatrixSum] | None:
    """The roots of a graph; None where one of them is no such sum."""
    values: list[Any] = []
    for step in graph.steps:
        values.append(_value(step, values))
    found = [values[root] for root in graph.roots]
    if any(each is None for each in found):
        return None
    return [each if isinstance(each, MatrixSum) else _constant(each) for each in found]


def _constant(value: Any) -> MatrixSum:
    array = np.asarray(dense(value), dtype=float)
    return MatrixSum(array.shape, array)


def _value(step: Step, values: Sequence[Any]) -> Any:
    """An array of numbers, a sum, or None for what is not understood."""
    if step.leaf is not None:
        if not isinstance(step.leaf, Variable):
            return dense(step.leaf.value)
        return _variable(step.leaf)
    arguments = [values[i] for i in step.arguments]
    if any(each is None for each in arguments):
        return None
    if not any(isinstance(each, MatrixSum) for each in arguments):
        return np.asarray(step.fold(list(values)), dtype=float)
    found = _applied(step, arguments)
    return found if found is None or len(found.products) <= MOST_TERMS else None


def _variable(variable: Variable) -> MatrixSum | None:
    if variable.ndim not in (0, 2) or not variable.size:
        return None
    product = Product((Letter(variable),), (None, None))
    return MatrixSum(variable.shape, np.zeros(variable.shape), (product,))


def _applied(step: Step, arguments: Sequence[Any]) -> MatrixSum | None:
    atom = step.atom
    assert atom is not None
    shapes = [each.shape for each in arguments]
    if atom.summed:
        return _sum(step.shape, arguments, atom.signs(len(arguments)))
    factors = atom.factors([Argument(shape) for shape in shapes], step.params)
    if factors:
        if any(factor.inverted or len(shapes[factor.place]) != 2 for factor in factors):
            return None
        own = [_sum_of(arguments[factor.place], factor.transposed) for factor in factors]
        return _multiplied(own, step.shape) if len(step.shape) == 2 else None
    stacked = atom.stacks([Argument(shape) for shape in shapes], step.params)
    if atom.moves_entries and stacked is not None and len(step.shape) == 2:
        return _stacked(step.shape, arguments, stacked)
    if atom.moves_entries:
        return _selected(step, arguments[0]) if len(arguments) == 1 else None
    dependence = atom.dependence(shapes, step.params)
    if dependence == TRACE:
        return MatrixSum((), np.trace(arguments[0].constant), arguments[0].products)
    if dependence is Dependence.ELEMENTWISE:
        return _scaled(step, arguments)
    return None


def _sum_of(value: Any, transposed: bool = False) -> MatrixSum:
    found = value if isinstance(value, MatrixSum) else _constant(value)
    if not transposed:
        return found
    products = tuple(each.transposed() for each in found.products)
    return MatrixSum(found.shape[::-1], found.constant.T, products)


def _sum(shape: Shape, arguments: Sequence[Any], signs: Sequence[int]) -> MatrixSum | None:
    constant, products = np.zeros(shape), list[Product]()
    for value, sign in zip(arguments, signs, strict=True):
        each = _sum_of(value)
        if each.products and each.shape != shape:
            return None  # a number in every entry
        constant = constant + sign * each.constant
        products += [product.scaled(float(sign)) for product in each.products]
    return MatrixSum(shape, constant, tuple(products))


def _multiplied(factors: Sequence[MatrixSum], shape: Shape) -> MatrixSum | None:
    found = factors[0]
    for each in factors[1:]:
        constant = found.constant @ each.constant
        products = [one.times(two) for one in found.products for two in each.products]
        if each.constant.any():
            products += [one.between(None, each.constant) for one in found.products]
        if found.constant.any():
            products += [two.between(found.constant, None) for two in each.products]
        if len(products) > MOST_TERMS:
            return None
        found = MatrixSum(constant.shape, constant, tuple(products))
    return found if found.shape == shape else None


def _stacked(shape: Shape, arguments: Sequence[Any], axis: int) -> MatrixSum | None:
    """Matrices below or beside each other: each is multiplied by the 0–1 matrix of its place."""
    constant, products, first = np.zeros(shape), list[Product](), 0
    whole = np.eye(shape[axis])
    for value in arguments:
        each = _sum_of(value)
        if len(each.shape) != 2:
            return None
        last = first + each.shape[axis]
        place = whole[:, first:last]
        sides = (place, None) if axis == 0 else (None, place.T)
        constant[(slice(first, last), slice(None))[:: 1 if axis == 0 else -1]] = each.constant
        products += [product.between(*sides) for product in each.products]
        first = last
    return MatrixSum(shape, constant, tuple(products))


def _selected(step: Step, argument: MatrixSum) -> MatrixSum | None:
    """Some rows and columns of a matrix, or one entry of it."""
    assert step.atom is not None
    if len(argument.shape) != 2 or len(step.shape) not in (0, 2):
        return None
    numbers = np.arange(np.prod(argument.shape)).reshape(argument.shape)
    moved = np.asarray(step.atom.function(np, numbers, **step.params), dtype=int)
    rows, columns = np.divmod(moved.reshape(step.shape or (1, 1)), argument.shape[1])
    if not moved.size or (rows != rows[:, :1]).any() or (columns != columns[:1]).any():
        return None
    left, right = np.eye(argument.shape[0])[rows[:, 0]], np.eye(argument.shape[1])[:, columns[0]]
    constant = (left @ argument.constant @ right).reshape(step.shape)
    products = tuple(each.between(left, right) for each in argument.products)
    return MatrixSum(step.shape, constant, products)


def _scaled(step: Step, arguments: Sequence[Any]) -> MatrixSum | None:
    """A matrix or a number times a constant number; a scalar variable times a constant matrix."""
    assert step.atom is not None
    live = [i for i, each in enumerate(arguments) if isinstance(each, MatrixSum)]
    if len(live) != 1 or live[0] not in step.atom.linear_in:
        return None
    own: MatrixSum = arguments[live[0]]
    ones = [np.ones(own.shape) if i in live else each for i, each in enumerate(arguments)]
    with np.errstate(all="ignore"):
        weights = np.asarray(step.atom.function(np, *ones, **step.params), dtype=float)
    if not np.isfinite(weights).all() or weights.shape != step.shape:
        return None
    if own.shape == step.shape:
        number = float(weights.flat[0]) if weights.size else 1.0
        if (weights != number).any():
            return None
        products = tuple(each.scaled(number) for each in own.products)
        return MatrixSum(own.shape, number * own.constant, products)
    if own.shape != () or len(step.shape) != 2:
        return None
    found = [_spread(each, weights) for each in own.products]
    if any(each is None for each in found):
        return None
    products = tuple(each for many in found for each in many or ())
    return MatrixSum(step.shape, own.constant * weights, products)


def _spread(product: Product, weights: FloatArray) -> list[Product] | None:
    """A scalar variable times a constant matrix, column by column."""
    if len(product.letters) != 1 or product.letters[0].variable.size != 1:
        return None
    number = np.ones(())
    for each in product.matrices:
        number = number if each is None else number * each.reshape(())
    columns = np.flatnonzero(weights.any(axis=0))
    unit = np.eye(weights.shape[1])
    return [Product(product.letters, (float(number) * weights[:, [j]], unit[[j]])) for j in columns]
