"""Many sweeps back along one tape at once, for Jacobians and Hessians.

A sweep of autograd takes tens of microseconds at each operation, whatever the size of its arrays, and
a Jacobian takes one sweep per row or column. Here cotangents have one more axis, the first, and the
rules of the operations that models consist of act on all of them together. An operation without a
rule, or in a form that its rule does not cover, is swept once for each cotangent by its own pullback,
so that rules matter for speed only.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from hcmodel.atoms.autodiff import Pullback, stacked, total, xp
from hcmodel.atoms.tape import (
    TapeNode,
    dense_cotangent,
    identities,
    item,
    tape_order,
    untake,
    where,
)
from hcmodel.solvers.limits import check_time

# A rule: cotangents (k, *shape of the answer), the number of the argument, the answer, the arguments and
# the keywords → cotangents (k, *shape of the argument), or None where the rule does not apply.
Rule = Callable[[Any, int, Any, tuple[Any, ...], dict[str, Any]], Any]

# The most numbers in the cotangents of one operation: 16 MB, which fit into a cache of the last level.
MOST_ENTRIES = 2_000_000


def swept_together(pull: Pullback, cotangents: Any, position: int | None = None) -> Any:
    """The pullback of each row of `cotangents`, which has one more axis than the end of the tape.

    With a position: of that argument of the last operation alone. A user's code may have operations with
    several answers, such as an eigendecomposition, whose cotangents are no arrays, or complex numbers,
    for which there are no rules: then each row is swept by itself.
    """
    nodes = tape_order(pull.end(position))
    if any(_is_unusual(node.answer) for node in nodes):
        alone = pull if position is None else functools.partial(pull.from_argument, position)
        return np.array([alone(row) for row in cotangents])
    largest = max([node.size for node in nodes], default=1)
    at_once = max(1, MOST_ENTRIES // max(largest, 1))
    parts = [
        _sweep(nodes, cotangents[start : start + at_once])
        for start in range(0, len(cotangents), at_once)
    ]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _is_unusual(answer: Any) -> bool:
    kind = getattr(answer, "dtype", None)
    return isinstance(answer, (tuple, list, dict)) if kind is None else kind.kind == "c"


def _sweep(nodes: list[TapeNode], cotangents: Any) -> Any:
    waiting: dict[TapeNode, Any] = {nodes[0]: cotangents}
    arrived = cotangents
    for node in nodes:
        check_time()
        arrived = waiting.pop(node)
        for parent, part in zip(node.parents, _pulled(node, arrived), strict=True):
            before = waiting.get(parent)
            waiting[parent] = part if before is None else before + part
    return arrived


def _pulled(node: TapeNode, cotangents: Any) -> list[Any]:
    """The cotangents of the node's parents."""
    if not node.parents:
        return []
    found: list[Any] = []
    if node.operation in ELEMENTWISE:
        found = _elementwise(node, cotangents)
    else:
        rule = RULES.get(node.operation)
        if rule is not None:
            described = node.answer, node.arguments, node.keywords
            try:
                found = [rule(cotangents, number, *described) for number in node.numbers]
            except (AttributeError, TypeError, ValueError):  # lists among the arguments, say
                found = []
    if found and all(part is not None for part in found):
        return found
    each = [_pulled_alone(node, row) for row in cotangents]
    return [np.array(parts) for parts in zip(*each, strict=True)]


def _pulled_alone(node: TapeNode, cotangent: Any) -> list[Any]:
    check_time()  # a user's function, or an operation of autograd's, for each of many rows
    return [dense_cotangent(part) for part in node.vjp(cotangent)]


def _elementwise(node: TapeNode, cotangents: Any) -> list[Any]:
    """Each entry depends on the same entry of the arguments: derivatives are the pullback of ones."""
    shape = np.shape(node.answer)
    if any(np.shape(node.arguments[number]) != shape for number in node.numbers):
        return []
    return [cotangents * slope for slope in node.vjp(np.ones(shape))]


# ---- rules ---------------------------------------------------------------------------------------


def _summed(cotangents: Any, shape: tuple[int, ...]) -> Any:
    """Cotangents of an argument that was broadcast from `shape`."""
    extra = cotangents.ndim - 1 - len(shape)
    if extra:
        cotangents = cotangents.sum(axis=tuple(range(1, 1 + extra)))
    kept = tuple(i + 1 for i, n in enumerate(shape) if n == 1 and cotangents.shape[i + 1] != 1)
    return cotangents.sum(axis=kept, keepdims=True) if kept else cotangents


def _unchanged(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    return g


def _add(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    return _summed(g, np.shape(arguments[number]))


def _subtract(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    return _summed(g if number == 0 else -g, np.shape(arguments[number]))


def _multiply(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    return _summed(g * arguments[1 - number], np.shape(arguments[number]))


def _divide(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    below = arguments[1]
    slope = 1.0 / below if number == 0 else -arguments[0] / below**2
    return _summed(g * slope, np.shape(arguments[number]))


def _reshape(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    if len(arguments) > 2 or keywords.get("order") not in (None, "C"):
        return None
    return g.reshape(len(g), *np.shape(arguments[0]))


def _transpose(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    axes = arguments[1] if len(arguments) > 1 else keywords.get("axes")
    count = g.ndim - 1
    order = range(count)[::-1] if axes is None else np.argsort([axis % count for axis in axes])
    return g.transpose(0, *(int(axis) + 1 for axis in order))


def _swapaxes(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    if len(arguments) != 3:
        return None
    one, other = (int(axis) % (g.ndim - 1) + 1 for axis in arguments[1:])
    return np.swapaxes(g, one, other)


def _sum(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    if len(arguments) > 2 or set(keywords) - {"axis", "keepdims"}:
        return None
    shape = np.shape(arguments[0])
    axes = arguments[1] if len(arguments) > 1 else keywords.get("axis")
    if axes is None:
        whole = range(len(shape))
    else:
        whole = [axis % len(shape) for axis in np.atleast_1d(axes).tolist()]  # type: ignore[assignment]
    kept = [1 if axis in whole else n for axis, n in enumerate(shape)]
    return np.broadcast_to(g.reshape(len(g), *kept), (len(g), *shape))


def _where(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    if len(arguments) != 3 or keywords:
        return None
    chosen = np.asarray(arguments[0], dtype=bool)
    return _summed(np.where(chosen == (number == 1), g, 0.0), np.shape(arguments[number]))


def _first_last(array: Any) -> Any:
    """The array with its first axis as the last one."""
    return array.transpose(*range(1, array.ndim), 0)


def _last_first(array: Any) -> Any:
    return array.transpose(array.ndim - 1, *range(array.ndim - 1))


def _item(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    array, index = arguments
    if not _plain_index(index):
        return None
    parts = index if isinstance(index, tuple) else (index,)
    if all(isinstance(part, int | slice) for part in parts):  # no entry is read twice
        found = np.zeros((len(g), *np.shape(array)))
        found[(slice(None), *parts)] = g
        return found
    # The axis of the cotangents comes last, where no index reaches it.
    found = np.zeros((*np.shape(array), len(g)))
    np.add.at(found, index, _first_last(g))
    return _last_first(found)


def _untake(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    if number or not _plain_index(arguments[1]):
        return None
    return _last_first(_first_last(g)[arguments[1]])


def _plain_index(index: Any) -> bool:
    """Whether it means the same where the array has one more axis at its end."""
    parts = index if isinstance(index, tuple) else (index,)
    return not any(part is Ellipsis or isinstance(part, list) for part in parts)


def _matmul(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    left, right = arguments[0], arguments[1]
    sizes = np.ndim(left), np.ndim(right)
    if len(arguments) > 2 or max(sizes) > 2 or min(sizes) == 0:
        return None
    if number == 0:
        if sizes[1] == 2:
            return g @ right.T
        return g[..., None] * right
    if sizes == (2, 2):
        return left.T @ g
    if sizes[1] == 2:
        return left[:, None] * g[:, None, :]
    return g @ left if sizes[0] == 2 else g[:, None] * left


def _tensordot(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    left, right = arguments[0], arguments[1]
    axes = arguments[2] if len(arguments) > 2 else keywords.get("axes", 2)
    pairs = _contracted(axes, np.ndim(left))
    inner = (
        [axis % np.ndim(left) for axis in pairs[0]],
        [axis % np.ndim(right) for axis in pairs[1]],
    )
    free = [
        [i for i in range(np.ndim(a)) if i not in b]
        for a, b in zip((left, right), inner, strict=True)
    ]
    other = (right, left)[number]
    # Axes of the cotangents that belong to the other array.
    first = 1 + (len(free[0]) if number == 0 else 0)
    there = list(range(first, first + len(free[1 - number])))
    found = np.tensordot(g, other, (there, free[1 - number]))
    # Its axes: k, the free ones of this array, then the contracted ones in the order of the other array.
    partner = dict(zip(inner[1 - number], inner[number], strict=True))
    order = [*free[number], *(partner[axis] for axis in sorted(partner))]
    return found.transpose(0, *(int(place) + 1 for place in np.argsort(order)))


def _contracted(axes: Any, dimensions: int) -> tuple[list[int], list[int]]:
    if np.ndim(axes) == 0:
        return list(range(dimensions - int(axes), dimensions)), list(range(int(axes)))
    return np.atleast_1d(axes[0]).tolist(), np.atleast_1d(axes[1]).tolist()


def _kron(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    left, right = arguments
    if np.ndim(left) != 2 or np.ndim(right) != 2:
        return None
    (m, n), (p, q) = left.shape, right.shape
    apart = g.reshape(len(g), m, p, n, q)
    if number == 0:
        return np.einsum("kmpnq,pq->kmn", apart, right)
    return np.einsum("kmpnq,mn->kpq", apart, left)


def _einsum(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    subscripts = arguments[0]
    if keywords or not isinstance(subscripts, str) or "->" not in subscripts or "." in subscripts:
        return None
    inputs, output = subscripts.replace(" ", "").split("->")
    terms = inputs.split(",")
    own = terms.pop(number - 1)
    others = [a for i, a in enumerate(arguments[1:]) if i != number - 1]
    known = set(output).union(*terms)
    if len(set(own)) < len(own) or not set(own) <= known or "Z" in subscripts:
        return None
    return np.einsum(
        ",".join(["Z" + output, *terms]) + "->Z" + own, g, *others, optimize=len(others) > 1
    )


def _solve(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    matrix, right = arguments
    if np.ndim(matrix) != 2 or np.ndim(right) > 2:
        return None
    sides = np.moveaxis(g, 0, -1).reshape(len(matrix), -1)
    found = np.linalg.solve(matrix.T, sides).reshape(*np.shape(right), len(g))
    found = np.moveaxis(found, -1, 0)
    if number == 1:
        return found
    return -found[:, :, None] * answer if np.ndim(right) == 1 else -found @ answer.T


def _inverse(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    return -answer.T @ g @ answer.T if np.ndim(answer) == 2 else None


def _stacked(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    start = 0
    for array in arguments[:number]:
        start += getattr(array, "size", 1)
    own = arguments[number]
    return g[:, start : start + getattr(own, "size", 1)].reshape(len(g), *np.shape(own))


def _concatenate(g: Any, number: int, answer: Any, arguments: Any, keywords: Any) -> Any:
    """The first argument is the axis."""
    axis = arguments[0] % np.ndim(answer)
    start = sum(np.shape(array)[axis] for array in arguments[1:number])
    stop = start + np.shape(arguments[number])[axis]
    return g[(slice(None),) * (1 + axis) + (slice(start, stop),)]


RULES: dict[Any, Rule] = {
    xp.add: _add,
    xp.subtract: _subtract,
    xp.multiply: _multiply,
    xp.divide: _divide,
    xp.true_divide: _divide,
    xp.reshape: _reshape,
    xp.transpose: _transpose,
    xp.swapaxes: _swapaxes,
    xp.sum: _sum,
    xp.matmul: _matmul,
    xp.tensordot: _tensordot,
    xp.kron: _kron,
    xp.einsum: _einsum,
    xp.linalg.solve: _solve,
    xp.linalg.inv: _inverse,
    xp.concatenate_args: _concatenate,
    item: _item,
    where: _where,
    untake: _untake,
    stacked.traced: _stacked,
    total.traced: _unchanged,
    **dict.fromkeys(identities, _unchanged),
}

ELEMENTWISE = {
    *(xp.negative, xp.exp, xp.log, xp.log1p, xp.expm1, xp.sqrt, xp.square, xp.abs, xp.power),
    *(xp.sin, xp.cos, xp.tan, xp.tanh, xp.sinh, xp.cosh, xp.arctan, xp.maximum, xp.minimum),
    *(xp.reciprocal,),
}
