"""Matrix expressions as noncommutative polynomials, and whether two of them are each other's transpose.

Each matrix is written as a weighted sum of words, a word being a product of factors, and so is its
transpose: transposes are pushed down to the factors, products and sums are multiplied out. A matrix
is symmetric, whatever its variables are, if the two sums are equal. What is not understood is a factor
of its own, of which nothing is claimed.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import field

import numpy as np

from hcmodel.atoms.algebra import Factor
from hcmodel.atoms.rules import Argument, Dependence, MatrixKind
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Expression, Parameter, Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import Numbers, any_nonzero, is_sparse
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import DATA_ROUNDING

# Sums of more words than this are not multiplied out, which bounds the work.
MOST_WORDS = 256

Word = tuple[int, ...]
Words = dict[Word, float]

_ONE: Words = {(): 1.0}  # the empty product


def is_symmetric_value(value: Numbers) -> bool:
    """Whether an array is a symmetric matrix, to rounding."""
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        return False
    return _size(value - value.T) <= DATA_ROUNDING * _size(value)


def _size(value: Numbers) -> float:
    """The largest absolute value of an entry."""
    return float(np.max(np.abs(value.data if is_sparse(value) else value), initial=0.0))


def _is_negative(value: Numbers) -> bool:
    """One of E and −E, the same for the transposes: the entry that is largest in size has this sign."""
    return bool(value.max() + value.min() < 0)


def difference_is_symmetric(left: Expression, right: Expression, shape: Shape) -> bool:
    """Whether left − right is a symmetric matrix, at the parameters' current values."""
    if shape == (1, 1):
        return True
    polynomials = Polynomials()
    for node in topological_order((left, right)):
        polynomials.add(node)
    plain, turned = polynomials.total((left, right), (1.0, -1.0), shape)
    return plain == turned


@dataclass
class Polynomials:
    """For each node its words and those of its transpose; factors are numbered as they appear."""

    words: dict[int, tuple[Words, Words]] = field(default_factory=dict)
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def add(self, node: Expression) -> None:
        """Find the words of a node whose arguments are known."""
        found: tuple[Words, Words] | None = None
        if isinstance(node, Constant) and not any_nonzero(node.value):
            found = {}, {}
        elif isinstance(node, Apply):
            if node.atom.moves_entries:
                found = self._stacked(node) or self._laid_out(node)
            if found is None and node.ndim == 2:
                found = self._multiplied_out(node)
        elif isinstance(node, Constant) and node.ndim == 2 and _is_negative(node.value):
            plain, turned = self._factor(Constant(-node.value))  # E and −E have one factor
            found = {(plain,): -1.0}, {(turned,): -1.0}
        if found is None:
            plain, turned = self._factor(node)
            found = {(plain,): 1.0}, {(turned,): 1.0}
        if node.shape == (1, 1):  # its own transpose, also as a block of a larger matrix
            found = found[0], found[0]
        self.words[id(node)] = found

    def total(
        self, nodes: Sequence[Expression], weights: Sequence[float], shape: Shape
    ) -> tuple[Words, Words]:
        """The words of a weighted sum, in which a number fills the whole shape."""
        plain: Words = {}
        turned: Words = {}
        for node, weight in zip(nodes, weights, strict=True):
            pair = self.words[id(node)]
            if node.shape != shape:
                filled = [
                    self._number(("fill", self._opaque(node), lengths))
                    for lengths in (shape, shape[::-1])
                ]
                pair = {(filled[0],): 1.0}, {(filled[1],): 1.0}
            for target, words in zip((plain, turned), pair, strict=True):
                for word, coefficient in words.items():
                    target[word] = target.get(word, 0.0) + weight * coefficient
        return _without_zeros(plain), _without_zeros(turned)

    def _multiplied_out(self, node: Apply) -> tuple[Words, Words] | None:
        """Sums, products (transposes and inverses among them) and multiples by a number; else None."""
        atom, args = node.atom, node.args
        if atom.summed:
            count = sum(len(self.words[id(argument)][0]) for argument in args)
            fitting = all(argument.shape in ((), node.shape) for argument in args)
            if not fitting or count > MOST_WORDS:
                return None
            return self.total(args, atom.signs(len(args)), node.shape)
        factors = _factors(node)
        if not factors:
            return self._multiple(node)
        plain: Words = {(): 1.0}
        turned: Words = {(): 1.0}
        for factor in factors:
            own, own_turned = self._words_of(factor, args)
            if len(plain) * len(own) > MOST_WORDS:
                return None
            plain, turned = _product(plain, own), _product(own_turned, turned)
        return plain, turned

    def _stacked(self, node: Apply) -> tuple[Words, Words] | None:
        """Matrices below or beside each other: each is multiplied by the 0–1 matrix of its place.

        A vector is a column, and a row where vectors stand below each other.
        """
        arguments = [Argument(argument.shape) for argument in node.args]
        axis = node.atom.stacks(arguments, dict(node.params))
        if axis is None or node.ndim > 2:
            return None
        plain: Words = {}
        turned: Words = {}
        first = 0
        for argument in node.args:
            as_rows = node.ndim == 2 and argument.ndim < 2
            length = 1 if as_rows or not argument.ndim else argument.shape[axis]
            place, placed = (
                self._letter((kind, first, length, node.shape[axis]))
                for kind in ("place", "placed")
            )
            own, own_turned = self.words[id(argument)]
            if as_rows:
                own, own_turned = own_turned, own
            if len(plain) + len(own) > MOST_WORDS:
                return None
            if axis == 0:
                plain.update(_product(place, own))
                turned.update(_product(own_turned, placed))
            else:
                plain.update(_product(own, placed))
                turned.update(_product(place, own_turned))
            first += length
        return plain, turned

    def _laid_out(self, node: Apply) -> tuple[Words, Words] | None:
        """A vector written as a column or as a row, by reshaping or indexing; else None."""
        if len(node.args) != 1:
            return None
        before, after = node.args[0].shape, node.shape
        if not (_is_line(before) and _is_line(after)) or math.prod(before) != math.prod(after):
            return None
        numbers = np.arange(math.prod(before))
        moved = node.atom.function(np, numbers.reshape(before), **dict(node.params))
        if not np.array_equal(np.ravel(moved), numbers):
            return None
        own, own_turned = self.words[id(node.args[0])]
        return (own, own_turned) if _is_row(before) == _is_row(after) else (own_turned, own)

    def _words_of(self, factor: Factor, args: Sequence[Expression]) -> tuple[Words, Words]:
        plain, turned = self.words[id(args[factor.place])]
        if factor.inverted:
            letters = [self._number(("inverse", self._sum(words))) for words in (plain, turned)]
            plain, turned = {(letters[0],): 1.0}, {(letters[1],): 1.0}
        return (turned, plain) if factor.transposed else (plain, turned)

    def _multiple(self, node: Apply) -> tuple[Words, Words] | None:
        """A matrix times, or divided by, a number; one that is not constant is a factor that commutes."""
        places = [i for i, argument in enumerate(node.args) if argument.shape == node.shape]
        if len(places) != 1 or places[0] not in node.atom.linear_in or not _is_elementwise(node):
            return None
        factors = [np.ones(()) if i == places[0] else each for i, each in enumerate(node.args)]
        numbers = [each.value if isinstance(each, Constant) else each for each in factors]
        if not all(isinstance(number, np.ndarray) and not number.shape for number in numbers):
            return self._varying_multiple(node, places[0])
        with np.errstate(all="ignore"):
            weight = float(node.atom.function(np, *numbers, **dict(node.params)))
        if not np.isfinite(weight):
            return None
        return self.total([node.args[places[0]]], [weight], node.shape)

    def _varying_multiple(self, node: Apply, place: int) -> tuple[Words, Words] | None:
        """The words of a matrix behind a negative number, which stands for the scalar factor."""
        if any(each.ndim for i, each in enumerate(node.args) if i != place):
            return None
        scalars = [
            -1 if i == place else self._sum(self.words[id(each)][0])
            for i, each in enumerate(node.args)
        ]
        if node.atom.commutative:
            scalars.sort()
        letter: Words = {(-1 - self._number((node.atom, node.params, tuple(scalars))),): 1.0}
        plain, turned = self.words[id(node.args[place])]
        return _product(letter, plain), _product(letter, turned)

    def _factor(self, node: Expression) -> tuple[int, int]:
        """A node as a factor of words, and its transpose."""
        own = self._opaque(node)
        if node.ndim == 0 or (node.ndim == 2 and self._is_symmetric_factor(node)):
            return own, own
        if isinstance(node, Constant) and node.ndim == 2:
            return own, self._opaque(Constant(node.value.T))
        if isinstance(node, Apply) and node.ndim == 2:
            factors = _factors(node)
            if factors:  # a product that is too long to be multiplied out
                pairs = [self._words_of(factor, node.args) for factor in factors]
                plain = tuple(self._sum(words) for words, _ in pairs)
                turned = tuple(self._sum(words) for _, words in reversed(pairs))
                return self._number(("product", plain)), self._number(("product", turned))
            if node.atom.transposes or _is_elementwise(node):
                return own, self._number(self._form(node, node.args, 1))
        return own, self._number(("transpose", own))

    def _is_symmetric_factor(self, node: Expression) -> bool:
        if node.size == 1:
            return True
        if isinstance(node, (Constant, Parameter)):
            return node.value is not None and is_symmetric_value(node.value)
        if isinstance(node, Variable):
            return node.set.is_symmetric
        if not isinstance(node, Apply):
            return False
        arguments = [
            Argument(argument.shape, matrix=self._matrix_kind(argument)) for argument in node.args
        ]
        kind = node.atom.definiteness(arguments, dict(node.params))
        return kind >= MatrixKind.SYMMETRIC

    def _matrix_kind(self, node: Expression) -> MatrixKind:
        plain, turned = self.words[id(node)]
        symmetric = node.ndim == 2 and plain == turned
        return MatrixKind.SYMMETRIC if symmetric else MatrixKind.GENERAL

    def _opaque(self, node: Expression) -> int:
        if isinstance(node, Apply):
            return self._number(self._form(node, node.args, 0))
        return self._number(node.merge_key() if isinstance(node, Constant) else id(node))

    def _form(self, node: Apply, args: Sequence[Expression], side: int) -> Hashable:
        """The atom on its arguments (side 0) or on their transposes (side 1)."""
        arguments = [self._sum(self.words[id(argument)][side]) for argument in args]
        if node.atom.commutative:
            arguments.sort()
        return (node.atom, node.params, tuple(arguments))

    def _sum(self, words: Words) -> int:
        return self._number(("sum", frozenset(words.items())))

    def _letter(self, form: Hashable) -> Words:
        return {(self._number(form),): 1.0}

    def _number(self, form: Hashable) -> int:
        return self.numbers.setdefault(form, len(self.numbers))


def _product(left: Words, right: Words) -> Words:
    if left == _ONE:
        return right
    if right == _ONE:
        return left
    product: Words = {}
    for first, weight in left.items():
        for second, other in right.items():
            word = first + second
            if second and second[0] < 0:  # scalar factors come first, in order
                word = (*sorted(x for x in word if x < 0), *(x for x in word if x >= 0))
            product[word] = product.get(word, 0.0) + weight * other
    return _without_zeros(product)


def _without_zeros(words: Words) -> Words:
    if all(words.values()):
        return words
    return {word: weight for word, weight in words.items() if weight != 0.0}


def _factors(node: Apply) -> tuple[Factor, ...]:
    arguments = [Argument(argument.shape) for argument in node.args]
    return node.atom.factors(arguments, dict(node.params))


def _is_elementwise(node: Apply) -> bool:
    fitting = all(argument.shape in ((), node.shape) for argument in node.args)
    shapes = [argument.shape for argument in node.args]
    return fitting and node.atom.dependence(shapes, dict(node.params)) is Dependence.ELEMENTWISE


def _is_line(shape: Shape) -> bool:
    """Whether an array is a vector, a column or a row."""
    return len(shape) == 1 or (len(shape) == 2 and 1 in shape)


def _is_row(shape: Shape) -> bool:
    return len(shape) == 2 and shape[0] == 1 and shape[1] != 1
