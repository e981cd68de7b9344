"""Comprehensions and families as array operations.

A generator over a plain range opens an axis. Ranges that depend on other indices, and filters,
become index tuples made here at load time: one axis over the tuples, on which every index involved
is an array. Where the tuples depend on indices from outside, each of these has a segment of them,
and the reduction works on the segments gathered as rows of a table.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.frontend import functions, indexing
from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.signs import is_positive
from hcmodel.frontend.values import (
    Axis,
    Dimension,
    Value,
    apply,
    check_entries,
    combine,
    contract,
    indexed,
    lengths,
    multiply,
    number,
    reshaped,
    spread,
    transposed,
    union,
)
from hcmodel.grammar import Span, syntax

if TYPE_CHECKING:
    from hcmodel.frontend.expressions import Evaluator

MAX_TUPLES = 2_000_000
REDUCING = functions.REDUCTIONS


@dataclass(frozen=True, eq=False)
class Tuples:
    """An axis over index tuples: which outer axes they belong to, and where in them."""

    axis: Axis
    outer: tuple[Axis, ...]
    segments: np.ndarray  # of each tuple, the flat position in the outer axes


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
    if join_all and any(name in involved for name in own):
        involved |= set(own)
    scope = dict(evaluator.scope)
    axes: list[Axis] = []
    for generator in generators:
        name = generator.index.identifier
        if name not in involved:
            values = indexing.dimension(evaluator, generator.index_set, is_shape=False).values
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
        values = indexing.dimension(evaluator, node, is_shape=False).values
        _counted((count, len(values)), generator.span)
        return np.repeat(np.arange(count), len(values)), np.tile(values.astype(float), count)
    ends = []
    for end in (node.lower, node.upper):
        value = bound.constant("the end of a range").evaluate(end)
        whole = indexing.integers(value, end.span, "the end of a range")
        ends.append(np.broadcast_to(whole, (count,)))
    sizes = np.maximum(ends[1] - ends[0] + 1, 0)
    if count:
        indexing.check_range(1, int(sizes.max()), node.span)
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
    return count


def dimensions_of(
    evaluator: Evaluator, generators: Sequence[syntax.Generator]
) -> tuple[Dimension, ...]:
    """The index ranges of generators that do not depend on each other."""
    return tuple(
        indexing.dimension(evaluator, generator.index_set, is_shape=False)
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
        return _reduce_segments(name, reduce_axes(name, element, rest), opened.tuples, call.span)
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
    """Sums of products as matrix products, products of powers through logarithms; or None."""
    if name == "sum" and isinstance(element, syntax.Arithmetic):
        if set(element.operators) != {"*"}:
            return None
        factors = [evaluator.evaluate(operand) for operand in element.operands]
        if any(factor.shape for factor in factors):
            return None
        first = factors[0]
        for factor in factors[1:-1]:
            first = multiply(first, factor)
        return sum_of_product(first, factors[-1], over)
    if name == "prod" and isinstance(element, syntax.Power):
        base = evaluator.evaluate(element.base)
        if base.is_number or base.shape or not is_positive(base.node):
            return None
        exponent = evaluator.evaluate(element.exponent)
        if exponent.shape:
            return None
        return combine("exp", [sum_of_product(exponent, combine("log", [base]), over)])
    return None


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


def _reduce_segments(name: str, value: Value, tuples: Tuples, span: Span) -> Value:
    """A reduction over the tuples of each combination of the outer indices."""
    outer = tuples.outer
    axis = tuples.axis
    rows = int(np.prod(lengths(outer), dtype=int))
    counts = np.bincount(tuples.segments, minlength=rows)
    if (counts == 0).any() and name not in ("sum", "prod", "norm"):
        raise Mistake(f"`{name}` over no members has no value", span)
    if name == "logsumexp":
        raise Mistake(
            "`logsumexp` cannot run over a range that depends on an outer index",
            span,
            "write `log(sum(exp(…) for …))`",
        )
    if axis.length == 0:
        shape = lengths(outer)
        return Value(np.ones(shape) if name == "prod" else np.zeros(shape), outer)
    if axis not in value.axes:
        value = spread(value, tuple(sorted({*value.axes, axis}, key=lambda each: each.number)))
    table = _Table.of(tuples.segments, counts)
    check_entries(table.places.shape)
    place = value.axes.index(axis)
    key: list[Any] = [slice(None)] * value.node.ndim
    key[place] = table.places
    node = indexed(value.node, key)
    after = value.node.ndim - place - 1
    node = _masked(name, node, table, after)
    params: dict[str, Any] = {"axis": (place + 1,)}
    if name == "norm":
        params["p"] = 2.0
    node = apply("sum" if name == "mean" else name, [node], params)
    if name == "mean":
        node = apply("div", [node, counts.reshape((rows, *[1] * after)).astype(float)])
    before, behind = node.shape[:place], node.shape[place + 1 :]
    node = reshaped(node, (*before, *lengths(outer), *behind))
    axes = (*value.axes[:place], *outer, *value.axes[place + 1 :])
    order = sorted(range(len(axes)), key=lambda i: axes[i].number)
    own = range(len(axes), node.ndim)
    return Value(transposed(node, [*order, *own]), tuple(axes[i] for i in order))


@dataclass(frozen=True, eq=False)
class _Table:
    """One row per segment: which tuple stands where, and which places are filled.

    Places that are not repeat the row's first tuple, so that nothing outside it is evaluated.
    """

    places: np.ndarray
    filled: np.ndarray

    @classmethod
    def of(cls, segments: np.ndarray, counts: np.ndarray) -> _Table:
        order = np.argsort(segments, kind="stable")
        width = max(int(counts.max(initial=0)), 1)
        check_entries((len(counts), width))
        starts = np.cumsum(counts) - counts
        columns = np.arange(width)
        filled = columns < counts[:, None]
        wanted = starts[:, None] + np.where(filled, columns, 0)
        return cls(order[np.minimum(wanted, len(order) - 1)], filled)


def _masked(name: str, node: Any, table: _Table, after: int) -> Any:
    """The table's entries with the neutral element where it is not filled."""
    if table.filled.all() or name in ("max", "min"):
        return node
    mask = table.filled.astype(float).reshape((*table.filled.shape, *[1] * after))
    if name == "prod":
        if is_positive(node):
            return apply("power", [node, mask])
        return apply("add", [apply("mul", [node, mask]), 1.0 - mask])
    return apply("mul", [node, mask])
