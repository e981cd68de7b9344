"""Which matrices are symmetric, positive semidefinite, positive definite: proven from their build."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.atoms.rules import MatrixKind, Sign
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.variable_sets import VariableSet

if TYPE_CHECKING:
    from hcmodel.facts.node_facts import Node

MAX_ORDER = 400  # of constants whose eigenvalues are computed
ROUNDING = 1e-12


def definiteness(
    expression: Expression,
    arguments: Sequence[Node],
    nodes: Sequence[Node] = (),
    value: np.ndarray | None = None,
) -> MatrixKind:
    """What is proven of a square matrix; other shapes are general. `nodes` has all earlier nodes."""
    shape = expression.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        return MatrixKind.GENERAL
    if value is not None:
        return of_value(value)
    if isinstance(expression, Variable):
        return _of_set(expression.set)
    if isinstance(expression, Apply) and arguments:
        return _applied(expression, arguments, nodes)
    return MatrixKind.GENERAL


def _of_set(values: VariableSet) -> MatrixKind:
    """What holds for every matrix of a variable's set."""
    if not values.is_symmetric:
        return MatrixKind.GENERAL
    smallest = -np.inf if values.eigenvalue_bounds is None else values.eigenvalue_bounds[0]
    if smallest > 0:
        return MatrixKind.DEFINITE
    return MatrixKind.SEMIDEFINITE if smallest == 0 else MatrixKind.SYMMETRIC


def of_value(matrix: np.ndarray) -> MatrixKind:
    """By symmetry and eigenvalues, to rounding."""
    if matrix.shape[0] > MAX_ORDER or not np.all(np.isfinite(matrix)):
        return MatrixKind.GENERAL
    scale = float(np.max(np.abs(matrix), initial=0.0))
    if np.any(np.abs(matrix - matrix.T) > ROUNDING * scale):
        return MatrixKind.GENERAL
    smallest = float(np.min(np.linalg.eigvalsh(matrix), initial=np.inf))
    if smallest > ROUNDING * scale:
        return MatrixKind.DEFINITE
    return MatrixKind.SEMIDEFINITE if smallest >= -ROUNDING * scale else MatrixKind.SYMMETRIC


def _applied(expression: Apply, arguments: Sequence[Node], nodes: Sequence[Node]) -> MatrixKind:
    name = expression.atom.name
    kinds = [node.definiteness for node in arguments]
    if name == "add" and all(node.shape == expression.shape for node in arguments):
        weakest = min(kinds)
        return max(kinds) if weakest >= MatrixKind.SEMIDEFINITE else weakest
    if name in ("sub", "neg"):
        return min(MatrixKind.SYMMETRIC, *kinds)
    if name in ("mul", "div"):
        return _scaled(name, arguments)
    if name == "transpose":
        return kinds[0]
    if name == "inv":
        return kinds[0] if kinds[0] != MatrixKind.SEMIDEFINITE else MatrixKind.DEFINITE
    if name == "diag":
        sign = arguments[0].sign
        if sign is Sign.POSITIVE:
            return MatrixKind.DEFINITE
        return MatrixKind.SEMIDEFINITE if sign.is_nonnegative else MatrixKind.SYMMETRIC
    if name == "outer" and arguments[0].number == arguments[1].number:
        return MatrixKind.SEMIDEFINITE
    if name == "matmul":
        return _product(arguments[0], arguments[1], nodes)
    return MatrixKind.GENERAL


def _scaled(name: str, arguments: Sequence[Node]) -> MatrixKind:
    """A matrix times or over a number."""
    first, second = arguments
    matrix, factor = (first, second) if name == "div" or second.shape == () else (second, first)
    if factor.shape != ():
        return MatrixKind.GENERAL
    if factor.sign is Sign.POSITIVE:
        return matrix.definiteness
    limit = MatrixKind.SEMIDEFINITE if factor.sign.is_nonnegative else MatrixKind.SYMMETRIC
    return min(limit, matrix.definiteness)


def _product(first: Node, second: Node, nodes: Sequence[Node]) -> MatrixKind:
    """B' B and B' X B, however the product is bracketed."""
    if _are_transposes(first, second):
        return MatrixKind.SEMIDEFINITE
    for outer, product, place in ((second, first, 0), (first, second, 1)):
        if product.atom is None or product.atom.name != "matmul":
            continue
        inner = [nodes[i] for i in product.arguments]
        if _are_transposes(inner[place], outer):
            return min(MatrixKind.SEMIDEFINITE, inner[1 - place].definiteness)
    return MatrixKind.GENERAL


def _are_transposes(first: Node, second: Node) -> bool:
    if first.value is not None and second.value is not None:
        return bool(np.array_equal(first.value, second.value.T))
    for node, other in ((first, second), (second, first)):
        if node.atom is not None and node.atom.name == "transpose" and len(node.shape) == 2:
            return node.arguments[0] == other.number
    return False
