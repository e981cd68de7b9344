"""Syntax to values: names, numbers, lists, operators. Calls, subscripts and comprehensions go on
to their own modules.

An evaluator knows the indices in scope. Its constant form, for ranges, filters, indices and bounds,
takes parameters as the numbers that they are at load time and refuses variables.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from hcmodel.errors import HCError
from hcmodel.expressions.leaves import Apply
from hcmodel.expressions.sparse_data import dense
from hcmodel.frontend import comprehension, functions, subscripts
from hcmodel.frontend.mistakes import Mistake, in_words
from hcmodel.frontend.names import Kind, Names, Symbol
from hcmodel.frontend.values import (
    Value,
    apply,
    check_entries,
    combine,
    lengths,
    number,
    reshaped,
    shown,
    spread,
    transposed,
    union,
)
from hcmodel.grammar import Span, syntax

ATOM_OF = {"+": "add", "-": "sub", "*": "mul", "/": "div", "^": "power"}
COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": np.less_equal,
    ">=": np.greater_equal,
    "<": np.less,
    ">": np.greater,
    "==": np.equal,
    "!=": np.not_equal,
}


class Evaluator:
    """Evaluates expressions with the names of a model and the indices in scope."""

    def __init__(
        self, names: Names, scope: Mapping[str, Value] | None = None, place: str | None = None
    ) -> None:
        self.names = names
        self.scope: Mapping[str, Value] = scope or {}
        self.place = place

    def within(self, scope: Mapping[str, Value]) -> Evaluator:
        """The same with other indices in scope."""
        return Evaluator(self.names, scope, self.place)

    def constant(self, place: str) -> Evaluator:
        """The constant form; `place` names in messages what is being read."""
        return Evaluator(self.names, self.scope, place)

    def evaluate(self, node: syntax.Node) -> Value:
        """The value of an expression; what atoms refuse becomes a mistake with its place."""
        try:
            value = _METHODS[type(node)](self, node)
        except HCError as error:
            raise Mistake(in_words(str(error)), node.span) from None
        if isinstance(value.node, Apply):
            self.names.places.setdefault(value.node, node.span)
        return value

    # ---- leaves

    def name(self, node: syntax.Name) -> Value:
        index = self.scope.get(node.identifier)
        if index is not None:
            return index
        symbol = self.names.find(node, tuple(self.scope))
        assert symbol.value is not None
        if symbol.kind is Kind.SET and self.place is None:
            raise Mistake(
                f"`{symbol.name}` is a set, not a number",
                node.span,
                f"let an index run over it: `for i in {symbol.name}`",
            )
        if self.place is None or symbol.value.is_number:
            return symbol.value
        return self._number_of(symbol, node.span)

    def _number_of(self, symbol: Symbol, span: Span) -> Value:
        """The number behind a parameter, or behind a `let` made of parameters."""
        assert symbol.value is not None
        if symbol.data is not None:
            return Value(dense(symbol.data), dimensions=symbol.value.dimensions)
        expression: Any = symbol.value.node
        if expression.variables():
            is_one = "is" if symbol.kind is Kind.VARIABLE else "depends on"
            raise Mistake(
                f"{self.place} must be known before solving, and `{symbol.name}` {is_one} a "
                "variable",
                span,
                "use parameters and numbers only",
            )
        return Value(np.asarray(dense(expression.value)), dimensions=symbol.value.dimensions)

    def number(self, node: syntax.Number) -> Value:
        return number(node.value)

    def list_literal(self, node: syntax.ListLiteral) -> Value:
        items = [self.evaluate(item) for item in node.items]
        shape = items[0].shape
        for item, part in zip(items, node.items, strict=True):
            if item.shape != shape:
                raise Mistake(
                    f"the parts of a list have one shape; this has {shown(item.shape)}, the first "
                    f"{shown(shape)}",
                    part.span,
                )
        axes = union(items)
        check_entries((*lengths(axes), len(items), *shape))
        if all(item.is_number and not item.axes for item in items):
            return Value(np.array([item.node for item in items]))
        if not axes and not shape:
            return Value(apply("hstack", [item.node for item in items]))
        parts = [reshaped(spread(item, axes).node, (*lengths(axes), 1, *shape)) for item in items]
        return Value(apply("concatenate", parts, {"axis": len(axes)}), axes)

    # ---- operators

    def arithmetic(self, node: syntax.Arithmetic) -> Value:
        result = self.evaluate(node.operands[0])
        for operator, operand in zip(node.operators, node.operands[1:], strict=True):
            right = self.evaluate(operand)
            span = node.operands[0].span.to(operand.span)
            result = self.operate(operator, result, right, span)
        return result

    def operate(self, operator: str, left: Value, right: Value, span: Span) -> Value:
        """`left operator right`."""
        if operator == "@":
            return functions.matrix_product(left, right, span)
        check_shapes(operator, left, right, span)
        if operator == "/" and not left.is_number and right.is_number and not np.all(right.node):
            raise Mistake("this divides by zero", span)
        try:
            return combine(ATOM_OF[operator], [left, right])
        except HCError as error:
            raise Mistake(in_words(str(error)), span) from None

    def power(self, node: syntax.Power) -> Value:
        base, exponent = self.evaluate(node.base), self.evaluate(node.exponent)
        return self.operate("^", base, exponent, node.span)

    def signed(self, node: syntax.Signed) -> Value:
        operand = self.evaluate(node.operand)
        if node.operator == "+":
            return Value(operand.node, operand.axes)
        return combine("neg", [operand])

    def transpose(self, node: syntax.Transpose) -> Value:
        operand = self.evaluate(node.operand)
        count = len(operand.axes)
        order = [*range(count), *reversed(range(count, operand.node.ndim))]
        return Value(transposed(operand.node, order), operand.axes)

    # ---- conditions, always constant

    def condition(self, node: syntax.Condition) -> Value:
        """A filter, as Booleans over the axes that it depends on."""
        if isinstance(node, syntax.Not):
            inner = self.condition(node.operand)
            return Value(np.logical_not(inner.node), inner.axes)
        if isinstance(node, syntax.Logical):
            join = np.logical_and if node.operator == "and" else np.logical_or
            return _joined(join, [self.condition(each) for each in node.operands])
        values = [self.evaluate(operand) for operand in node.operands]
        for value, operand in zip(values, node.operands, strict=True):
            if value.shape:
                raise Mistake(
                    f"a filter compares numbers, not arrays of {shown(value.shape)}", operand.span
                )
        pairs = [
            _joined(COMPARE[operator], values[i : i + 2])
            for i, operator in enumerate(node.operators)
        ]
        return _joined(np.logical_and, pairs)

    # ---- what has a module of its own

    def subscript(self, node: syntax.Subscript) -> Value:
        return subscripts.subscript(self, node)

    def call(self, node: syntax.Call) -> Value:
        if node.arguments and isinstance(node.arguments[0], syntax.Comprehension):
            return comprehension.reduce_comprehension(self, node, node.arguments[0])
        return functions.call(self, node)


def _joined(function: Callable[[Any, Any], Any], values: list[Value]) -> Value:
    axes = union(values)
    arrays = [np.asarray(spread(value, axes).node) for value in values]
    result = arrays[0]
    for array in arrays[1:]:
        result = function(result, array)
    return Value(np.asarray(result), axes)


def check_shapes(operator: str, left: Value, right: Value, span: Span) -> None:
    """Own shapes must broadcast, as numpy's."""
    try:
        np.broadcast_shapes(left.shape, right.shape)
    except ValueError:
        hint = "sizes must agree, or be 1"
        if operator == "*" and left.shape and left.shape[-1] == right.shape[0]:
            hint = "`*` works entry by entry; write `@` for the matrix product"
        raise Mistake(
            f"`{operator}` cannot join shapes {shown(left.shape)} and {shown(right.shape)}",
            span,
            hint,
        ) from None


def _misplaced(evaluator: Evaluator, node: syntax.Node) -> Value:
    raise Mistake("this cannot stand in an expression", node.span)


_METHODS: dict[type[syntax.Node], Callable[[Evaluator, Any], Value]] = {
    syntax.Name: Evaluator.name,
    syntax.Number: Evaluator.number,
    syntax.ListLiteral: Evaluator.list_literal,
    syntax.Arithmetic: Evaluator.arithmetic,
    syntax.Power: Evaluator.power,
    syntax.Signed: Evaluator.signed,
    syntax.Transpose: Evaluator.transpose,
    syntax.Subscript: Evaluator.subscript,
    syntax.Call: Evaluator.call,
    syntax.String: _misplaced,
    syntax.Comprehension: _misplaced,
    syntax.Range: _misplaced,
    syntax.Everything: _misplaced,
}
