"""The language read literally: every index one by one, in plain loops, on numbers.

Slow and simple on purpose, it is what the array operations of the front end are compared with.
"""

import math

import numpy as np

from hcmodel.grammar import syntax

OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "@": np.matmul,
}
COMPARISONS = {
    "<": np.less,
    ">": np.greater,
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
}
REDUCE = {
    "sum": np.sum,
    "prod": np.prod,
    "max": np.max,
    "min": np.min,
    "mean": np.mean,
    "norm": lambda a: np.sqrt(np.sum(np.square(a))),
    "logsumexp": lambda a: np.log(np.sum(np.exp(a))),
}
CONSTANTS = {"pi": math.pi, "e": math.e}


class Reference:
    """`names` maps names to arrays, `firsts` to the first index where it is not 1."""

    def __init__(self, names, firsts=None):
        self.names = {**CONSTANTS, **names}
        self.firsts = firsts or {}

    def __call__(self, node, indices=None):
        with np.errstate(all="ignore"):  # what leaves a domain is NaN here as there
            return getattr(self, type(node).__name__.lower())(node, indices or {})

    def number(self, node, indices):
        return node.value

    def name(self, node, indices):
        word = node.identifier
        return indices[word] if word in indices else self.names[word]

    def listliteral(self, node, indices):
        return np.array([self(item, indices) for item in node.items])

    def arithmetic(self, node, indices):
        result = self(node.operands[0], indices)
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            result = OPERATORS[operator](result, self(operand, indices))
        return result

    def power(self, node, indices):
        return np.power(self(node.base, indices), self(node.exponent, indices))

    def signed(self, node, indices):
        value = self(node.operand, indices)
        return -value if node.operator == "-" else value

    def subscript(self, node, indices):
        base = np.asarray(self(node.base, indices))
        first = self.firsts.get(getattr(node.base, "identifier", None), 1)
        key = []
        for index in node.indices:
            if isinstance(index, syntax.Everything):
                key.append(slice(None))
            elif isinstance(index, syntax.Range):
                low, high = int(self(index.lower, indices)), int(self(index.upper, indices))
                key.append(slice(low - first, high - first + 1))
            else:
                key.append(np.asarray(self(index, indices)).astype(int) - first)
        return base[tuple(key)]

    def call(self, node, indices):
        name = node.function.identifier
        if isinstance(node.arguments[0], syntax.Comprehension):
            inner = node.arguments[0]
            members = self.members(inner.generators, inner.condition, indices)
            values = [self(inner.element, each) for each in members]
            return REDUCE[name](np.array(values)) if values else {"sum": 0.0, "prod": 1.0}[name]
        arguments = [np.asarray(self(each, indices)) for each in node.arguments]
        keywords = {each.name.identifier: int(self(each.value, indices)) for each in node.keywords}
        if len(arguments) > 1:
            return {"max": np.maximum, "min": np.minimum}[name](*arguments)
        if name in REDUCE:
            axis = keywords.get("axis")
            return REDUCE[name](*arguments) if axis is None else np.sum(*arguments, axis=axis - 1)
        return getattr(np, name)(*arguments)

    def members(self, generators, condition, indices):
        """All assignments of the indices, one by one."""
        if not generators:
            return [indices] if condition is None or self.holds(condition, indices) else []
        first, *rest = generators
        found = []
        for value in self.index_set(first.index_set, indices):
            found += self.members(rest, condition, {**indices, first.index.identifier: value})
        return found

    def index_set(self, node, indices):
        if isinstance(node, syntax.Range):
            return range(int(self(node.lower, indices)), int(self(node.upper, indices)) + 1)
        return [int(each) for each in self(node, indices)]

    def holds(self, node, indices):
        if isinstance(node, syntax.Not):
            return not self.holds(node.operand, indices)
        if isinstance(node, syntax.Logical):
            join = all if node.operator == "and" else any
            return join(self.holds(each, indices) for each in node.operands)
        values = [self(each, indices) for each in node.operands]
        return all(
            COMPARISONS[operator](*values[i : i + 2]) for i, operator in enumerate(node.operators)
        )
