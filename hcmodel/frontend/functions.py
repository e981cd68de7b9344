"""Calls: the atoms by their names, and the constant arrays `eye`, `zeros`, `ones`.

Arguments that fix shapes (`axis`, the shape of `reshape`) must be known at load; axes count from 1.
Inside a comprehension an argument has index axes in front, and the atom has to leave them alone.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.compositions import COMPOSITIONS, Composition
from hcmodel.atoms.rules import Dependence
from hcmodel.errors import HCError
from hcmodel.expressions.table import ATOMS
from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.names import CONSTANT_FUNCTIONS
from hcmodel.frontend.values import (
    Value,
    aligned,
    apply,
    broadcasted,
    check_entries,
    combine,
    contract,
    indexed,
    lengths,
    number,
    reshaped,
    shown,
    spend,
    spread,
    transposed,
    union,
)
from hcmodel.grammar import Span, syntax

if TYPE_CHECKING:
    from hcmodel.frontend.expressions import Evaluator

Params = dict[str, Any]


def call(evaluator: Evaluator, node: syntax.Call) -> Value:
    """The value of a call without a comprehension."""
    name = node.function.identifier
    if name in CONSTANT_FUNCTIONS:
        return _constant_array(evaluator, node)
    if name in ("max", "min") and len(node.arguments) > 1:
        name = f"{name}imum"
    function = COMPOSITIONS.get(name) or ATOMS[name]
    operands, params = _bound(evaluator, function, node)
    values = [evaluator.evaluate(operand) for operand in operands]
    if isinstance(function, Atom):
        return _applied(name, values, params, node.span)

    def inner(atom: str, *given: Any, **static: Any) -> Value:
        parts = [each if isinstance(each, Value) else number(each) for each in given]
        return _applied(atom, parts, {k: v for k, v in static.items() if v is not None}, node.span)

    result: Value = function.build(inner, *values, **params)
    return result


def _applied(name: str, values: list[Value], params: Params, span: Span) -> Value:
    """An atom applied to values, which may depend on indices."""
    _check_axis(name, values[0], params, span)
    if not any(value.axes for value in values):
        return Value(apply(name, [value.node for value in values], _prepared(ATOMS[name], params)))
    return _along_axes(name, values, params, span)


def _check_axis(name: str, value: Value, params: Params, span: Span) -> None:
    axis = params.get("axis")
    numbers = axis if isinstance(axis, tuple) else () if axis is None else (axis,)
    for name_of in ("axis", "axes"):
        given = params.get(name_of)
        if isinstance(given, tuple) and len(set(given)) < len(given):
            raise Mistake(f"`{name}` names an axis twice", span)
    if name == "norm":
        _check_norm(value, params, span)
    for each in numbers:
        if each >= len(value.shape):
            count = len(value.shape)
            has = f"has {count} {'axis' if count == 1 else 'axes'}" if count else "is a number"
            raise Mistake(f"`{name}` has no axis {each + 1}: its argument {has}", span)
    if name == "reshape" and np.prod(params["shape"], dtype=int) != np.prod(value.shape, dtype=int):
        shape = params["shape"] if isinstance(params["shape"], tuple) else (params["shape"],)
        raise Mistake(
            f"`reshape` cannot bring shape {shown(value.shape)} to {shown(shape)}",
            span,
            "the number of entries must stay the same",
        )


def _check_norm(value: Value, params: Params, span: Span) -> None:
    p, axis = params.get("p"), params.get("axis")
    if isinstance(p, tuple):
        raise Mistake("the `p` of a norm is a number", span)
    p = np.inf if p == "inf" else p
    is_matrix = len(value.shape) == 2 and axis is None
    if p is None or (is_matrix and p == "fro"):
        return
    if p == "fro":
        what = f"an array of {shown(value.shape)}" if axis is None else "rows or columns"
        message = f'`"fro"` is the norm of a whole matrix, not of {what}'
        raise Mistake(message, span, "leave it out, or write a number: 1, 2, `inf`")
    if isinstance(p, str) or not p >= 1:
        given = f'"{p}"' if isinstance(p, str) else f"{p:g}"
        message = f'the kind of a norm is a number from 1 on, `inf` or `"fro"`, not {given}'
        raise Mistake(message, span)
    if is_matrix:
        raise Mistake(
            'a whole matrix has only the norm `"fro"`, the root of the sum of squares',
            span,
            "leave the number out, or give `axis=…` for the norms of columns or rows",
        )


def _prepared(atom: Atom, params: Params) -> Params:
    """All static parameters, with the defaults of the signature filled in."""
    defaults = {
        each: atom.signature.parameters[each].default
        for each in atom.static
        if atom.signature.parameters[each].default is not inspect.Parameter.empty
    }
    return {**defaults, **params}


# ---- arguments ----------------------------------------------------------------------------------


def _bound(
    evaluator: Evaluator, atom: Atom | Composition, node: syntax.Call
) -> tuple[list[syntax.Node], Params]:
    """The arguments as operands and static parameters, by the atom's signature."""
    keywords: dict[str, Any] = {each.name.identifier: each.value for each in node.keywords}
    try:
        bound = atom.signature.bind(*node.arguments, **keywords)
    except TypeError:
        raise _wrong_call(atom, node) from None
    operands: list[Any] = []
    params: Params = {}
    for word, given in bound.arguments.items():
        if word in atom.static:
            params[word] = _static(evaluator, word, given)
        elif atom.signature.parameters[word].kind is inspect.Parameter.VAR_POSITIONAL:
            operands.extend(given)
        else:
            operands.append(given)
    for operand in operands:
        if isinstance(operand, syntax.String):
            raise Mistake("a string cannot stand here", operand.span, _usage(atom))
    if not operands:
        raise _wrong_call(atom, node)
    return operands, params


def _wrong_call(atom: Atom | Composition, node: syntax.Call) -> Mistake:
    name = node.function.identifier
    known = [word for word in atom.static if word != "key"]
    for keyword in node.keywords:
        if keyword.name.identifier not in atom.signature.parameters:
            what = f"its keywords are {', '.join(f'`{each}`' for each in known)}"
            return Mistake(
                f"`{name}` has no argument `{keyword.name.identifier}`",
                keyword.span,
                what if known else "it has none",
            )
    return Mistake(f"`{name}` cannot be called with these arguments", node.span, _usage(atom))


def _usage(atom: Atom | Composition) -> str:
    words = []
    for each in atom.signature.parameters.values():
        if each.kind is inspect.Parameter.VAR_POSITIONAL:
            words += ["a", "b", "…"]
        elif each.default is inspect.Parameter.empty:
            words.append(each.name)
        else:
            words.append(f"{each.name} = …")
    return f"write `{atom.name}({', '.join(words)})`"


def _static(evaluator: Evaluator, word: str, node: Any) -> Any:
    """The value of an argument that fixes a shape or names a norm."""
    if isinstance(node, syntax.String):
        if word in ("axis", "axes", "shape"):
            raise Mistake(f"`{word}` is a number or a list, not a string", node.span)
        return node.value
    if word == "subscripts":
        raise Mistake("`einsum` begins with a string", node.span, 'write `einsum("ij,j->i", A, x)`')
    value = evaluator.constant(f"`{word}`").evaluate(node)
    if value.axes:
        raise Mistake(f"`{word}` cannot depend on `{value.axes[0].name}`", node.span)
    array = np.asarray(value.node)
    if word in ("p", "M"):
        if array.ndim > (1 if word == "p" else 0):
            raise Mistake(f"`{word}` is a number" + " or a list" * (word == "p"), node.span)
        return tuple(array.tolist()) if array.ndim else float(array)
    if array.ndim > 1 or (array != np.rint(array)).any() or (np.abs(array) > 2.0**31).any():
        raise Mistake(f"`{word}` is an integer or a list of integers", node.span)
    shift = 1 if word in ("axis", "axes") else 0
    if shift and (array < 1).any():
        raise Mistake("axes are counted from 1", node.span)
    numbers = tuple(int(each) - shift for each in array.ravel())
    if word == "shape":
        if any(each < 0 for each in numbers):
            raise Mistake("a shape has no negative entry", node.span)
        check_entries(numbers)
    return numbers if array.ndim or word == "axes" else numbers[0]


def _constant_array(evaluator: Evaluator, node: syntax.Call) -> Value:
    name = node.function.identifier
    if node.keywords or not 1 <= len(node.arguments) <= (2 if name == "eye" else 8):
        hint = "write `eye(n)`" if name == "eye" else f"write `{name}(n)` or `{name}(n, m)`"
        raise Mistake(f"`{name}` takes the lengths of its axes", node.span, hint)
    sizes: list[int] = []
    for argument in node.arguments:
        found = _static(evaluator, "shape", argument)
        sizes += found if isinstance(found, tuple) else [found]
    try:
        spend([*sizes, *sizes] if name == "eye" and len(sizes) == 1 else sizes)
    except HCError as error:
        raise Mistake(str(error), node.span) from None
    if name == "eye":
        if not 1 <= len(sizes) <= 2:
            raise Mistake("`eye` makes a matrix", node.span, "write `eye(n)`")
        return Value(np.eye(sizes[0], sizes[-1]))
    return Value(np.ones(sizes) if name == "ones" else np.zeros(sizes))


# ---- with index axes in front -------------------------------------------------------------------


def _along_axes(name: str, values: list[Value], params: Params, span: Span) -> Value:
    shapes = [value.shape for value in values]
    if name in _SPECIAL:
        return _SPECIAL[name](values, params, span)
    dependence = ATOMS[name].dependence(shapes, params)
    if dependence is Dependence.REDUCTION:
        return reduce_own(name, values[0], params)
    if dependence is Dependence.ELEMENTWISE:
        return combine(name, values, _prepared(ATOMS[name], params) or None)
    index = union(values)[0].name
    raise Mistake(
        f"`{name}` cannot depend on the index `{index}` of a comprehension or family",
        span,
        "write it without the index, or entry by entry",
    )


def reduce_own(name: str, value: Value, params: Params) -> Value:
    """A reduction over own axes only."""
    count, own = len(value.axes), len(value.shape)
    axis = params.get("axis")
    # Running sums and the like have an entry for each entry along the axis.
    keeps_axis = ATOMS[name].shape(name, [(1,)], {"axis": (0,)}) == (1,)
    if axis is None:
        numbers: tuple[int, ...] = tuple(range(own))
        if keeps_axis and own != 1:
            flat = reshaped(value.node, (*lengths(value.axes), math.prod(value.shape)))
            return Value(apply(name, [flat], {"axis": count}), value.axes)
    else:
        numbers = axis if isinstance(axis, tuple) else (axis,)
    if not numbers:
        return combine("abs", [value]) if name == "norm" else value
    shifted: Any = tuple(count + each for each in numbers)
    if keeps_axis:
        shifted = shifted[0]
    all_params = _prepared(ATOMS[name], {**params, "axis": shifted})
    if name == "norm" and all_params["p"] in (None, "fro"):
        all_params["p"] = 2.0
    return Value(apply(name, [value.node], all_params), value.axes)


def _transpose(values: list[Value], params: Params, span: Span) -> Value:
    value = values[0]
    count, own = len(value.axes), len(value.shape)
    axes = params.get("axes")
    order = tuple(reversed(range(own))) if axes is None else tuple(axes)
    if sorted(order) != list(range(own)):
        raise Mistake(f"`transpose` needs each of the {own} axes once", span)
    return Value(transposed(value.node, [*range(count), *(count + i for i in order)]), value.axes)


def _to_shape(values: list[Value], params: Params, span: Span, *, spread_out: bool) -> Value:
    value = values[0]
    shape = params["shape"] if isinstance(params["shape"], tuple) else (params["shape"],)
    whole = (*lengths(value.axes), *shape)
    if spread_out:
        node = aligned(value, value.axes, len(shape))
        return Value(broadcasted(node, whole), value.axes)
    return Value(reshaped(value.node, whole), value.axes)


def _reshape(values: list[Value], params: Params, span: Span) -> Value:
    return _to_shape(values, params, span, spread_out=False)


def _broadcast_to(values: list[Value], params: Params, span: Span) -> Value:
    return _to_shape(values, params, span, spread_out=True)


def _concatenate(values: list[Value], params: Params, span: Span) -> Value:
    axes = union(values)
    nodes = [spread(value, axes).node for value in values]
    axis = params.get("axis", 0)
    return Value(apply("concatenate", nodes, {"axis": len(axes) + axis}), axes)


def _hstack(values: list[Value], params: Params, span: Span) -> Value:
    lifted = [_with_dimensions(value, 1) for value in values]
    return _concatenate(lifted, {"axis": 0 if len(lifted[0].shape) == 1 else 1}, span)


def _vstack(values: list[Value], params: Params, span: Span) -> Value:
    return _concatenate([_with_dimensions(value, 2) for value in values], {"axis": 0}, span)


def _with_dimensions(value: Value, wanted: int) -> Value:
    own = value.shape
    shape = (*lengths(value.axes), *([1] * (wanted - len(own))), *own)
    return Value(reshaped(value.node, shape), value.axes)


def _dot(values: list[Value], params: Params, span: Span) -> Value:
    left, right = values
    return (
        combine("mul", values)
        if not left.shape or not right.shape
        else matrix_product(left, right, span)
    )


def matrix_product(left: Value, right: Value, span: Span) -> Value:
    """`left @ right`, for each combination of the indices that they depend on."""
    if not left.shape or not right.shape:
        raise Mistake("`@` needs vectors or matrices, not numbers", span, "write `*`")
    if len(left.shape) > 2 or len(right.shape) > 2:
        raise Mistake("`@` needs vectors or matrices", span, "write `einsum(…)`")
    if left.shape[-1] != right.shape[0]:
        raise Mistake(
            f"`@` cannot join shapes {shown(left.shape)} and {shown(right.shape)}: "
            f"{left.shape[-1]} against {right.shape[0]}",
            span,
            "a `.T` may be missing",
        )
    check_entries((*lengths(union([left, right])), *left.shape[:-1], *right.shape[1:]))
    if not left.axes and not right.axes:
        return Value(apply("matmul", [left.node, right.node]))
    first, second = "ij"[-len(left.shape) :], "jk"[: len(right.shape)]
    result = first[:-1] + second[1:]
    return contract(left, first, right, second, result, set())


def _outer(values: list[Value], params: Params, span: Span) -> Value:
    left, right = (_with_dimensions(value, 1) for value in values)
    if len(left.shape) > 1 or len(right.shape) > 1:
        raise Mistake("`outer` takes vectors", span)
    return contract(left, "i", right, "j", "ij", set())


def _trace(values: list[Value], params: Params, span: Span) -> Value:
    value = values[0]
    if len(value.shape) != 2 or value.shape[0] != value.shape[1]:
        raise Mistake(f"`trace` needs a square matrix, not {shown(value.shape)}", span)
    numbers = np.arange(value.shape[0])
    diagonal = indexed(value.node, [*[slice(None)] * len(value.axes), numbers, numbers])
    return reduce_own("sum", Value(diagonal, value.axes), {})


def _quad_form(values: list[Value], params: Params, span: Span) -> Value:
    vector, matrix = values
    if len(vector.shape) != 1 or matrix.shape != vector.shape * 2:
        raise Mistake("`quad_form` takes a vector and a square matrix of its length", span)
    image = contract(matrix, "ij", vector, "j", "i", set())
    return contract(vector, "i", image, "i", "", set())


def _quad_over_lin(values: list[Value], params: Params, span: Span) -> Value:
    above, below = values
    if below.shape:
        raise Mistake("`quad_over_lin` divides by one number", span)
    return combine("div", [reduce_own("sum", combine("square", [above]), {}), below])


_SPECIAL: dict[str, Callable[[list[Value], Params, Span], Value]] = {
    "transpose": _transpose,
    "reshape": _reshape,
    "broadcast_to": _broadcast_to,
    "concatenate": _concatenate,
    "hstack": _hstack,
    "vstack": _vstack,
    "dot": _dot,
    "outer": _outer,
    "trace": _trace,
    "quad_form": _quad_form,
    "quad_over_lin": _quad_over_lin,
}
