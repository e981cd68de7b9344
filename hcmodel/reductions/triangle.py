"""Whether an expression is a symmetric matrix whatever its variables are, shown by its structure.

Each matrix is written as a weighted sum of words, a word being a product of factors, and so is its
transpose: transposes are pushed down to the factors, products and sums are multiplied out. The matrix
is symmetric if the two sums are one. What is not understood is a factor of its own, of which nothing
is claimed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from hcmodel.atoms.rules import Dependence
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Constant, Constraint, Expression, Parameter, Variable

# Data that differ from their transpose by less than this, relative to the largest entry, do so by
# rounding: a covariance computed as B @ B.T, say.
ROUNDING = 1e-12
# Sums of more words than this are not multiplied out, which bounds the work.
MOST_WORDS = 256

Word = tuple[int, ...]
Words = dict[Word, float]


def has_symmetric_value(parameter: Parameter) -> bool:
    """Whether the parameter's current data are a symmetric matrix, to rounding."""
    return parameter.value is not None and _is_even(parameter.value)


def square_parameters(constraint: Constraint) -> tuple[Parameter, ...]:
    """The parameters whose values may decide whether the two sides are symmetric."""
    if not _may_be_symmetric(constraint):
        return ()
    return tuple(
        node
        for node in topological_order((constraint.lhs, constraint.rhs))
        if isinstance(node, Parameter) and _is_square(node.shape)
    )


def equates_symmetric(constraint: Constraint) -> bool:
    """Whether this is an equality with symmetric lhs − rhs, at the parameters' current values."""
    if not _may_be_symmetric(constraint):
        return False
    forms = _Forms()
    for node in topological_order((constraint.lhs, constraint.rhs)):
        forms.add(node)
    plain, turned = forms.total((constraint.lhs, constraint.rhs), (1.0, -1.0), constraint.shape)
    return plain == turned


def _may_be_symmetric(constraint: Constraint) -> bool:
    shape = constraint.shape
    fitting = all(side.shape in ((), shape) for side in (constraint.lhs, constraint.rhs))
    return constraint.sense == "==" and _is_square(shape) and fitting


def _is_square(shape: tuple[int, ...]) -> bool:
    return len(shape) == 2 and shape[0] == shape[1] and shape[0] > 1


def _is_even(value: np.ndarray) -> bool:
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        return False
    largest = float(np.max(np.abs(value), initial=0.0))
    return bool(np.max(np.abs(value - value.T), initial=0.0) <= ROUNDING * largest)


@dataclass
class _Forms:
    """For each node its words and those of its transpose; factors are numbered as they appear."""

    words: dict[int, tuple[Words, Words]] = field(default_factory=dict)
    numbers: dict[Hashable, int] = field(default_factory=dict)

    def add(self, node: Expression) -> None:
        """Find the words of a node whose arguments are known."""
        found: tuple[Words, Words] | None = None
        if isinstance(node, Apply) and node.ndim == 2:
            found = self._multiplied_out(node)
        if found is None:
            plain, turned = self._factor(node)
            found = {(plain,): 1.0}, {(turned,): 1.0}
        self.words[id(node)] = found

    def total(
        self, nodes: Sequence[Expression], weights: Sequence[float], shape: tuple[int, ...]
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
        """Transposes, sums, multiples by a constant number and products; else None."""
        name, args = node.atom.name, node.args
        pairs = [self.words[id(argument)] for argument in args]
        if name == "transpose" and dict(node.params).get("axes") in (None, (1, 0)):
            return pairs[0][1], pairs[0][0]
        if name in ("add", "sub", "neg"):
            fitting = all(argument.shape in ((), node.shape) for argument in args)
            if not fitting or sum(len(plain) for plain, _ in pairs) > MOST_WORDS:
                return None
            weights = {"add": [1.0] * len(args), "sub": [1.0, -1.0], "neg": [-1.0]}[name]
            return self.total(args, weights, node.shape)
        if name in ("matmul", "dot") and all(argument.ndim == 2 for argument in args):
            (left, left_turned), (right, right_turned) = pairs
            if len(left) * len(right) > MOST_WORDS:
                return None
            return _product(left, right), _product(right_turned, left_turned)
        return self._multiple(node)

    def _multiple(self, node: Apply) -> tuple[Words, Words] | None:
        """A matrix times, or divided by, a constant number."""
        if node.atom.name not in ("mul", "div"):
            return None
        matrix, number = node.args
        if node.atom.name == "mul" and not matrix.shape:
            matrix, number = number, matrix
        if not isinstance(number, Constant) or number.shape or matrix.shape != node.shape:
            return None
        factor = float(number.value)
        if node.atom.name == "div":
            if factor == 0.0:
                return None
            factor = 1.0 / factor
        return self.total([matrix], [factor], node.shape)

    def _factor(self, node: Expression) -> tuple[int, int]:
        """A node as a factor of words, and its transpose."""
        own = self._opaque(node)
        if node.ndim != 2 or self._is_symmetric_factor(node):
            return own, own
        if isinstance(node, Constant):
            return own, self._opaque(Constant(node.value.T))
        if isinstance(node, Apply):
            if node.atom.name == "outer":
                return own, self._number(self._form(node, (node.args[1], node.args[0]), 0))
            if node.atom.name in ("inv", "kron") or _is_elementwise(node):
                return own, self._number(self._form(node, node.args, 1))
        return own, self._number(("transpose", own))

    def _is_symmetric_factor(self, node: Expression) -> bool:
        if isinstance(node, Constant):
            return _is_even(node.value)
        if isinstance(node, Parameter):
            return has_symmetric_value(node)
        if isinstance(node, Variable):
            return node.domain_kind in ("symmetric", "psd")
        if isinstance(node, Apply) and node.atom.name == "diag":
            return True
        if isinstance(node, Apply) and node.atom.name in ("lyap", "dlyap"):
            plain, turned = self.words[id(node.args[1])]
            return plain == turned
        return False

    def _opaque(self, node: Expression) -> int:
        if isinstance(node, Apply):
            return self._number(self._form(node, node.args, 0))
        return self._number(node.merge_key() if isinstance(node, Constant) else id(node))

    def _form(self, node: Apply, args: Sequence[Expression], side: int) -> Hashable:
        """The atom on its arguments (side 0) or on their transposes (side 1)."""
        sums = [frozenset(self.words[id(argument)][side].items()) for argument in args]
        arguments = [self._number(("sum", each)) for each in sums]
        if node.atom.name == "mul":
            arguments.sort()
        return (node.atom.name, node.params, tuple(arguments))

    def _number(self, form: Hashable) -> int:
        return self.numbers.setdefault(form, len(self.numbers))


def _product(left: Words, right: Words) -> Words:
    product: Words = {}
    for first, weight in left.items():
        for second, other in right.items():
            product[first + second] = product.get(first + second, 0.0) + weight * other
    return _without_zeros(product)


def _without_zeros(words: Words) -> Words:
    return {word: weight for word, weight in words.items() if weight != 0.0}


def _is_elementwise(node: Apply) -> bool:
    shapes = [argument.shape for argument in node.args]
    dependence = node.atom.dependence(shapes, dict(node.params))
    fitting = all(shape in ((), node.shape) for shape in shapes)
    return dependence is Dependence.ELEMENTWISE and fitting
