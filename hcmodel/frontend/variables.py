"""Variables from their declarations: shape, bounds and set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.variable_sets import simplex_conflict
from hcmodel.frontend import subscripts
from hcmodel.frontend.expressions import Evaluator
from hcmodel.frontend.mistakes import Mistake
from hcmodel.frontend.values import MAX_DIMENSIONS, Dimension, shown
from hcmodel.grammar import syntax

MAX_UNKNOWNS = 1_000_000


def make_variable(
    evaluator: Evaluator, statement: syntax.VariableDeclaration
) -> tuple[Variable, tuple[Dimension, ...]]:
    """The variable and its index ranges."""
    name = statement.name.identifier
    dimensions = tuple(
        subscripts.dimension(evaluator, entry, is_shape=True) for entry in statement.shape
    )
    shape = tuple(each.length for each in dimensions)
    if np.prod(shape, dtype=float) > MAX_UNKNOWNS:
        raise Mistake(
            f"`{name}` has {np.prod(shape, dtype=float):.0f} entries; the limit is {MAX_UNKNOWNS}",
            statement.span,
        )
    if len(shape) > MAX_DIMENSIONS:
        raise Mistake(
            f"`{name}` has {len(shape)} indices; the limit is {MAX_DIMENSIONS}", statement.span
        )
    for entry in statement.shape:
        if isinstance(entry, syntax.Number) and entry.value == 0:
            message = f"`{name}` has no entries: its length is 0"
            raise Mistake(message, entry.span, "a length counts the entries; indices start at 1")
    simplex = any(isinstance(each, syntax.Simplex) for each in statement.domains)
    psd = _eigenvalue_bounds(evaluator, statement)
    lower, upper, pos = _box(evaluator, statement, shape)
    _check_box(statement, lower, upper, dimensions, pos)
    _check_kind(statement, shape, simplex, bool(psd))
    matrix = statement.symmetric or bool(psd)
    _check_bounded(statement, simplex, matrix, lower, upper, dimensions)
    variable = Variable(
        shape,
        name,
        bounds=(lower, upper),
        pos=pos,
        symmetric=statement.symmetric,
        PSD=psd,
        simplex=simplex,
    )
    try:
        variable.set.domain()
    except ModelError as error:
        raise Mistake(str(error), statement.span) from None
    return variable, dimensions


def _check_kind(
    statement: syntax.VariableDeclaration, shape: Shape, simplex: bool, psd: bool
) -> None:
    """Whether the shape is one that a simplex or a symmetric matrix can have."""
    name = statement.name.identifier
    matrix = statement.symmetric or psd
    if matrix and simplex:
        word = "psd" if psd else "symmetric"
        raise Mistake(f"`{name}` cannot be in a simplex and {word}", statement.span)
    if not shape and matrix:
        message = f"`{name}` is a number; only a matrix is symmetric or psd"
        raise Mistake(message, statement.span)
    if matrix and (len(shape) != 2 or shape[0] != shape[1]):
        raise Mistake(
            f"`{name}` is {shown(shape)}; only a square matrix is symmetric or psd", statement.span
        )
    if not shape and simplex:
        message = f"`{name}` is a number; a simplex holds vectors"
        raise Mistake(message, statement.span, f"write `var {name}[n] in simplex`")


def _check_bounded(
    statement: syntax.VariableDeclaration,
    simplex: bool,
    matrix: bool,
    lower: np.ndarray,
    upper: np.ndarray,
    dimensions: Sequence[Dimension],
) -> None:
    """Whether the bounds leave each row of a simplex a distribution, each pair of entries a number."""
    name = statement.name.identifier
    conflict = simplex_conflict(lower, upper) if simplex else None
    if conflict is not None:
        row, reason = conflict
        labels = [str(d.values[i]) for d, i in zip(dimensions, row, strict=False)]
        where = f"{name}[{','.join([*labels, ':'])}]" if labels else name
        message = f"`{where}` is in a simplex, but {reason}"
        raise Mistake(message, statement.span, "widen the bounds")
    apart = np.maximum(lower, lower.T) > np.minimum(upper, upper.T) if matrix else np.zeros(0)
    if apart.any():
        i, j = (str(d.values[k]) for d, k in zip(dimensions, np.argwhere(apart)[0], strict=True))
        raise Mistake(
            f"`{name}[{i},{j}]` and `{name}[{j},{i}]` are one number, and their bounds leave none",
            statement.span,
            "widen the bounds",
        )


def _box(
    evaluator: Evaluator, statement: syntax.VariableDeclaration, shape: Shape
) -> tuple[np.ndarray, np.ndarray, bool]:
    """Lower and upper bounds, and whether `> 0` was among them."""
    lower, upper = np.full(shape, -np.inf), np.full(shape, np.inf)
    pos = False
    for domain in statement.domains:
        if isinstance(domain, syntax.Interval):
            lower = np.maximum(lower, _limit(evaluator, domain.lower, shape))
            upper = np.minimum(upper, _limit(evaluator, domain.upper, shape))
        elif isinstance(domain, syntax.Bound):
            limit = _limit(evaluator, domain.value, shape)
            if domain.operator == ">":
                if np.any(limit != 0):
                    raise Mistake("a variable's strict bound is `> 0`", domain.span, "write `>=`")
                pos = True
            if domain.operator == "<=":
                upper = np.minimum(upper, limit)
            else:
                lower = np.maximum(lower, limit)
    return lower, upper, pos


def _eigenvalue_bounds(
    evaluator: Evaluator, statement: syntax.VariableDeclaration
) -> bool | tuple[float, float]:
    for domain in statement.domains:
        if isinstance(domain, syntax.PositiveSemidefinite):
            lower, upper = (
                default if limit is None else float(_limit(evaluator, limit, ()))
                for limit, default in ((domain.lower, 0.0), (domain.upper, np.inf))
            )
            if not 0 <= lower <= upper or lower == np.inf:
                raise Mistake(
                    f"eigenvalues cannot lie between {lower:g} and {upper:g}",
                    domain.span,
                    "write `psd(smallest, largest)` with 0 <= smallest <= largest",
                )
            return lower, upper
    return False


def _limit(evaluator: Evaluator, node: syntax.Expression, shape: Shape) -> np.ndarray:
    value = evaluator.constant("a bound").evaluate(node)
    try:
        return np.broadcast_to(np.asarray(value.node, dtype=float), shape)
    except ValueError:
        raise Mistake(
            f"a bound of shape {shown(value.shape)} does not fit a variable of {shown(shape)}",
            node.span,
        ) from None


def _check_box(
    statement: syntax.VariableDeclaration,
    lower: np.ndarray,
    upper: np.ndarray,
    dimensions: Sequence[Dimension],
    pos: bool,
) -> None:
    empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if pos:
        empty |= upper <= 0
    if not empty.any():
        return
    entry = tuple(int(i) for i in np.argwhere(empty)[0])
    labels = ",".join(str(d.values[i]) for d, i in zip(dimensions, entry, strict=True))
    name = statement.name.identifier
    where = f"{name}[{labels}]" if labels else name
    raise Mistake(
        f"`{where}` has no room between its bounds {lower[entry]:g} and {upper[entry]:g}",
        statement.span,
        "write the smaller bound first",
    )
