"""Comprehensions and families as array operations.

A generator over a plain range opens an axis. Ranges that depend on other indices, and filters,
become index tuples made here at load time: one axis over the tuples, on which every index involved
is an array. Where the tuples depend on indices from outside, each of these has a segment of them,
and the reduction works on the segments gathered as rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.frontend import subscripts
from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.segment_tables import Tuples, reduce_segments
from hcmodel.frontend.signs import has_variables, is_polynomial, is_positive
from hcmodel.frontend.values import (
    Axis,
    Dimension,
    Value,
    apply,
    check_entries,
    combine,
    contract,
    lengths,
    multiply,
    number,
    spend,
    spread,
    union,
)
from hcmodel.grammar import Span, syntax
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.frontend.expressions import Evaluator

MAX_TUPLES = 2_000_000
LEAST_SHARE = 0.25  # of the terms that a filter keeps, for weights instead of tuples
TUPLE_COST = 8  # numbers kept or made on the way for each
# What the language reduces over an index; `segment_tables` knows what each does with no members.
REDUCING = ("sum", "prod", "mean", "max", "min", "norm", "logsumexp")


@dataclass(frozen=True, eq=False)
class Opened:
    """What the generators of a comprehension or family open."""

    evaluator: Evaluator  # with all indices in scope
    axes: tuple[Axis, ...]  # that the reduction goes over
    tuples: Tuples | None


def open_generators(
    evaluator: Evaluator,
    generators: Sequence[syntax.Generator],
    condition: syntax.Condition | None,
    *,
    join_all: bool = False,
) -> Opened:
    """The axes of the generators; `join_all` makes tuples of all of them once some are needed."""
    _check_indices(evaluator, generators)
    own = [generator.index.identifier for generator in generators]
    involved = _involved(evaluator, generators, condition, own)
    if join_all and (condition is not None or any(name in involved for name in own)):
        involved |= set(own)
    scope = dict(evaluator.scope)
    axes: list[Axis] = []
    for generator in generators:
        name = generator.index.identifier
        if name not in involved:
            values = subscripts.dimension(evaluator, generator.index_set, is_shape=False).values
            axis = Axis(name, len(values))
            axes.append(axis)
            scope[name] = Value(values.astype(float), (axis,))
    tuples = None
    if any(name in involved for name in own) or condition is not None:
        joined = [each for each in generators if each.index.identifier in involved]
        tuples, found = _tuples(evaluator, joined, condition, involved)
        scope.update(found)
        axes.append(tuples.axis)
    return Opened(evaluator.within(scope), tuple(axes), tuples)


def _check_indices(evaluator: Evaluator, generators: Sequence[syntax.Generator]) -> None:
    seen: set[str] = set()
    for generator in generators:
        word = generator.index.identifier
        if word in seen or word in evaluator.scope:
            raise Mistake(f"the index `{word}` is in use already", generator.index.span)
        if evaluator.names.get(word) is not None:
            raise Mistake(
                f"the index `{word}` has the name of a declaration",
                generator.index.span,
                "choose another letter",
            )
        seen.add(word)


def _names_under(node: syntax.Node | None) -> set[str]:
    if node is None:
        return set()
    return {each.identifier for each in syntax.walk(node) if isinstance(each, syntax.Name)}


def _involved(
    evaluator: Evaluator,
    generators: Sequence[syntax.Generator],
    condition: syntax.Condition | None,
    own: Sequence[str],
) -> set[str]:
    """The indices, own and outer, that a filter or a dependent range mentions."""
    indices = {*own, *evaluator.scope}
    involved = _names_under(condition) & indices
    for generator in generators:
        mentioned = _names_under(generator.index_set) & indices
        if mentioned:
            involved |= {*mentioned, generator.index.identifier}
    return involved


def _tuples(
    evaluator: Evaluator,
    generators: Sequence[syntax.Generator],
    condition: syntax.Condition | None,
    involved: set[str],
) -> tuple[Tuples, dict[str, Value]]:
    """All index tuples, enumerated generator by generator, then filtered."""
    outer = union(evaluator.scope[name] for name in involved if name in evaluator.scope)
    count = _counted(lengths(outer), generators[0].span if generators else None)
    places = np.unravel_index(np.arange(count), lengths(outer)) if outer else ()
    position = dict(zip(outer, places, strict=True))
    columns: dict[str, np.ndarray] = {}
    for name, value in evaluator.scope.items():
        if value.axes and value.axes[0] in position:
            columns[name] = np.asarray(value.node)[position[value.axes[0]]]
    segments = np.arange(count)
    for generator in generators:
        rows, values = _members(evaluator, generator, columns, len(segments))
        columns = {name: column[rows] for name, column in columns.items()}
        columns[generator.index.identifier] = values
        segments = segments[rows]
    if condition is not None:
        axis = Axis(", ".join(columns), len(segments))
        bound = _bound(evaluator, columns, axis)
        found = bound.constant("a filter").condition(condition)
        kept = np.flatnonzero(np.asarray(spread(found, (axis,)).node))
        columns = {name: column[kept] for name, column in columns.items()}
        segments = segments[kept]
    axis = Axis(", ".join(columns), len(segments))
    scope = {name: Value(column, (axis,)) for name, column in columns.items()}
    return Tuples(axis, outer, segments), scope


def _bound(evaluator: Evaluator, columns: dict[str, np.ndarray], axis: Axis) -> Evaluator:
    scope = dict(evaluator.scope)
    scope.update({name: Value(column, (axis,)) for name, column in columns.items()})
    return evaluator.within(scope)


def _members(
    evaluator: Evaluator, generator: syntax.Generator, columns: dict[str, np.ndarray], count: int
) -> tuple[np.ndarray, np.ndarray]:
    """For each row so far its members: the rows repeated, and the values of the new index."""
    node = generator.index_set
    axis = Axis(", ".join(columns), count)
    bound = _bound(evaluator, columns, axis)
    if not isinstance(node, syntax.Range) or not _names_under(node) & set(bound.scope):
        values = subscripts.dimension(evaluator, node, is_shape=False).values
        _counted((count, len(values)), generator.span)
        return np.repeat(np.arange(count), len(values)), np.tile(values.astype(float), count)
    ends = []
    for end in (node.lower, node.upper):
        value = bound.constant("the end of a range").evaluate(end)
        whole = subscripts.integers(value, end.span, "the end of a range")
        ends.append(np.broadcast_to(whole, (count,)))
    sizes = np.maximum(ends[1] - ends[0] + 1, 0)
    if count:
        subscripts.check_range(1, int(sizes.max()), node.span)
    total = _counted((int(sizes.sum()),), generator.span)
    rows = np.repeat(np.arange(count), sizes)
    before = np.cumsum(sizes) - sizes
    values = ends[0][rows] + (np.arange(total) - before[rows])
    return rows, values.astype(float)


def _counted(factors: Sequence[int], span: Span | None) -> int:
    count = 1
    for factor in factors:
        count *= int(factor)
    if count > MAX_TUPLES:
        raise Mistake(
            f"dependent ranges and filters make {count} index tuples; the limit is {MAX_TUPLES}",
            span or Span(1, 1, 1, 1),
            "plain ranges without a filter have no such limit",
        )
    spend((count, TUPLE_COST))
    return count


def dimensions_of(
    evaluator: Evaluator, generators: Sequence[syntax.Generator]
) -> tuple[Dimension, ...]:
    """The index ranges of generators that do not depend on each other."""
    return tuple(
        subscripts.dimension(evaluator, generator.index_set, is_shape=False)
        for generator in generators
    )


# ---- reductions ---------------------------------------------------------------------------------


def reduce_comprehension(
    evaluator: Evaluator, call: syntax.Call, node: syntax.Comprehension
) -> Value:
    """`sum(element for …)` and its like."""
    name = call.function.identifier
    if name not in REDUCING:
        raise Mistake(
            f"`{name}` takes no comprehension",
            call.function.span,
            f"these do: {', '.join(f'`{each}`' for each in REDUCING)}",
        )
    if name == "sum" and node.condition is not None:
        weighted = _weighted_sum(evaluator, node)
        if weighted is not None:
            return weighted
    opened = open_generators(evaluator, node.generators, node.condition)
    inner, over = opened.evaluator, set(opened.axes)
    segmented = opened.tuples is not None and bool(opened.tuples.outer)
    if any(axis.length == 0 for axis in opened.axes) and not segmented:
        return _over_nothing(name, call.span)
    if not segmented:
        factored = _factored(inner, name, node.element, over)
        if factored is not None:
            return factored
    element = inner.evaluate(node.element)
    element = Value(element.node, element.axes)
    if segmented:
        assert opened.tuples is not None
        rest = over - {opened.tuples.axis}
        if rest and name in ("norm", "logsumexp"):
            raise Mistake(f"`{name}` cannot run over these ranges at once", call.span)
        if any(axis.length == 0 for axis in rest):
            return _over_nothing(name, call.span)
        return reduce_segments(name, reduce_axes(name, element, rest), opened.tuples, call.span)
    return reduce_axes(name, element, over)


def _over_nothing(name: str, span: Span) -> Value:
    if name in ("sum", "norm"):
        return number(0.0)
    if name == "prod":
        return number(1.0)
    raise Mistake(f"`{name}` over no members has no value", span)


def _factored(
    evaluator: Evaluator, name: str, element: syntax.Expression, over: set[Axis]
) -> Value | None:
    """Sums of products as matrix products, products of powers through logarithms.

    None stands for an element of another form; nothing has been evaluated then.
    """
    if name == "sum" and isinstance(element, syntax.Arithmetic):
        if set(element.operators) != {"*"}:
            return None
        first = evaluator.evaluate(element.operands[0])
        for operand in element.operands[1:-1]:
            factor = evaluator.evaluate(operand)
            first = evaluator.operate("*", first, factor, element.operands[0].span.to(operand.span))
        last = evaluator.evaluate(element.operands[-1])
        if not first.shape and not last.shape:
            return sum_of_product(first, last, over)
        return reduce_axes(name, evaluator.operate("*", first, last, element.span), over)
    if name == "prod" and isinstance(element, syntax.Power):
        base, exponent = evaluator.evaluate(element.base), evaluator.evaluate(element.exponent)
        if base.is_number or base.shape or exponent.shape or not is_positive(base.node):
            return reduce_axes(name, evaluator.operate("^", base, exponent, element.span), over)
        return combine("exp", [sum_of_product(exponent, combine("log", [base]), over)])
    return None


def _weighted_sum(evaluator: Evaluator, node: syntax.Comprehension) -> Value | None:
    """A filtered sum as a sum with weights 0 and 1, where the terms left out do no harm; or None.

    They do none if all indices exist and the terms are polynomials, finite everywhere. A product
    then is one matrix product instead of gathered tuples.
    """
    assert node.condition is not None
    indices = {*evaluator.scope, *(each.index.identifier for each in node.generators)}
    if any(_names_under(each.index_set) & indices for each in node.generators):
        return None
    if any(
        isinstance(each, syntax.Comprehension) and each is not node for each in syntax.walk(node)
    ):
        return None  # read in vain here and again later, nested ones would take exponential time
    opened = open_generators(evaluator, node.generators, None)
    inner, over = opened.evaluator, set(opened.axes)
    involved = _names_under(node.condition) & indices
    _counted(lengths(union(inner.scope[name] for name in involved)), node.span)
    kept = inner.constant("a filter").condition(node.condition)
    weights = Value(np.asarray(kept.node, dtype=float), kept.axes)
    if weights.node.size == 0 or np.mean(weights.node) < LEAST_SHARE:
        return None
    element = node.element
    operands: tuple[syntax.Expression, ...] = (element,)
    if isinstance(element, syntax.Arithmetic) and set(element.operators) == {"*"}:
        operands = element.operands
    try:
        factors = [inner.evaluate(operand) for operand in operands]
    except Mistake:
        return None  # an index that the filter leaves out may not exist
    if any(factor.shape or not is_polynomial(factor.node) for factor in factors):
        return None
    # The weights go to the factors without variables, which are multiplied before solving.
    factors.sort(key=lambda factor: has_variables(factor.node))
    first = weights
    for factor in factors[:-1]:
        first = multiply(first, factor)
    return sum_of_product(first, factors[-1], over)


def sum_of_product(left: Value, right: Value, over: set[Axis]) -> Value:
    """The sum over axes of left * right, both without own shape."""
    for constant, varying in ((left, right), (right, left)):
        if not over & set(constant.axes):
            return multiply(constant, reduce_axes("sum", varying, over))
    shared = over & {*left.axes, *right.axes}
    alone = float(np.prod([axis.length for axis in over - shared]))
    check_entries(lengths(axis for axis in union([left, right]) if axis not in shared))
    return multiply(number(alone), contract(left, "", right, "", "", shared))


def reduce_axes(name: str, value: Value, over: set[Axis]) -> Value:
    """A reduction over index axes, whether the value depends on them or not."""
    if not over:
        return value
    lacking = [axis for axis in over if axis not in value.axes]
    if lacking and name in ("norm", "logsumexp"):
        value = spread(value, tuple(sorted({*value.axes, *over}, key=lambda axis: axis.number)))
        lacking = []
    places = tuple(i for i, axis in enumerate(value.axes) if axis in over)
    kept = tuple(axis for axis in value.axes if axis not in over)
    result = Value(value.node, value.axes)
    if places:
        params: dict[str, Any] = {"axis": places}
        if name == "norm":
            params["p"] = 2.0
        if name in ("sum", "prod") and len(places) == value.node.ndim:
            params["axis"] = None
        result = Value(apply(name, [value.node], params), kept)
    repeated = float(np.prod([axis.length for axis in lacking])) if lacking else 1.0
    if repeated != 1.0 and name == "sum":
        return multiply(number(repeated), result)
    if repeated != 1.0 and name == "prod":
        return combine("power", [result, number(repeated)])
    return result
