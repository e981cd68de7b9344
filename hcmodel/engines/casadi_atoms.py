"""The table of atoms that casadi's engine expresses, and how.

Most atoms are built by their own numeric function on the arrays of `casadi_arrays`. Those that look at
numbers (largest entries, stability, definiteness) have a rule here. Domains are kept: what the atom
makes NaN outside its domain is not finite here either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import ATOMS
from hcmodel.atoms.aggregates import SMALLEST
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.matrix_equations import LARGEST_SYSTEM
from hcmodel.engines.batches import GATHER
from hcmodel.engines.casadi_arrays import (
    Array,
    Namespace,
    as_array,
    casadi,
    entrywise,
    from_matrix,
    gathered,
    lines,
    matrix,
    product,
    solved,
    spread,
    total,
    where,
)
from hcmodel.expressions.shapes import Shape
from hcmodel.records import dataclass

Params = dict[str, Any]
Build = Callable[[Atom, Sequence[Any], Params], Array]
Shapes = Sequence[Shape]

# Determinants are expanded by minors, n! products, up to this order; beyond it the engine refuses.
LARGEST_DETERMINANT = 5
# Entries that a sum of the largest compares with each other.
MOST_COMPARED = 1000
# Blocks of this order are eliminated entry by entry, larger ones by linear solves.
SMALL_BLOCK = 4


@dataclass(frozen=True)
class Rule:
    """How an atom is built; `able` says for which shapes, `solves` whether by linear algebra."""

    build: Build
    able: Callable[[Shapes, Params], bool] = lambda shapes, params: True
    solves: bool = False


def as_written(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    """The atom's own function; constants are numpy arrays, as for any other namespace."""
    return as_array(atom.function(Namespace, *arguments, **params))


# ---- sums, products, movements


def _sum_of_terms(atom: Atom, terms: Sequence[Any], params: Params) -> Array:
    arrays = [as_array(term) for term in terms]
    if len(arrays) == 2:
        return arrays[0] + arrays[1]
    shape = np.broadcast_shapes(*(array.shape for array in arrays))
    columns = casadi().horzcat(*(spread(array, shape).flat for array in arrays))
    return Array(casadi().sum2(columns), shape)


def _product(atom: Atom, factors: Sequence[Any], params: Params) -> Array:
    left, right = factors
    if np.ndim(left) == 0 or np.ndim(right) == 0:
        return as_array(left) * as_array(right)
    return product(left, right)


def _spread(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    return spread(as_array(arguments[0]), params["shape"])


def _halved(columns: Any, join: Callable[[Any, Any], Any]) -> Any:
    """Rows joined in pairs, pairs of pairs and so on; a number of operations that is logarithmic."""
    while columns.shape[0] > 1:
        half = columns.shape[0] // 2
        pairs = join(columns[:half, :], columns[half : 2 * half, :])
        rest = columns[2 * half :, :]
        columns = casadi().vertcat(pairs, rest) if rest.shape[0] else pairs
    return columns


def _lines(a: Any, axis: Any) -> tuple[Any, Shape]:
    array = as_array(a)
    return lines(array, tuple(range(array.ndim)) if axis is None else axis)


def _prod(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    columns, shape = _lines(arguments[0], params["axis"])
    if not columns.shape[0]:
        return as_array(np.ones(shape))
    return from_matrix(_halved(columns, lambda a, b: a * b), shape)


def _gather(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    sources = [as_array(argument) for argument in arguments]
    joined = casadi().vertcat(*(source.flat for source in sources))
    flat = Array(joined, (sum(source.size for source in sources),))
    return gathered(flat, np.asarray(params["places"]).reshape(params["shape"]))


# ---- extremes; a NaN on either side goes on


def _larger(a: Any, b: Any) -> Any:
    choose = casadi().if_else
    return choose(a >= b, a, choose(b > a, b, a + b))


def _smaller(a: Any, b: Any) -> Any:
    choose = casadi().if_else
    return choose(a <= b, a, choose(b < a, b, a + b))


def _extreme(join: Callable[[Any, Any], Any]) -> Build:
    """Along axes."""

    def build(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
        columns, shape = _lines(arguments[0], params["axis"])
        return from_matrix(_halved(columns, join), shape)

    return build


def _extreme_of(join: Callable[[Any, Any], Any]) -> Build:
    """Of several arrays, entry by entry."""

    def build(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
        joined: Array = functools.reduce(lambda a, b: entrywise(join, a, b), arguments)
        return joined

    return build


def _norm(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    if params["p"] != np.inf:
        return as_written(atom, arguments, params)
    array = as_array(arguments[0])
    if not array.size:
        return as_array(np.zeros(()))
    return _extreme(_larger)(atom, [where(array >= 0, array, -array)], params)


def _sum_largest(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    """An entry is among the k largest where less than k entries come before it."""
    columns, shape = _lines(arguments[0], params["axis"])
    length, count = columns.shape
    sums = []
    for number in range(count):
        line = Array(columns[:, number], (length,))
        across, down = Array(line.flat, (1, length)), Array(line.flat, (length, 1))
        earlier = np.tri(length, k=-1)
        before = (across > down) | ((across == down) & earlier)
        rank = total(before, 1)
        sums.append(total(where(rank < params["k"], line, 0.0)).flat)
    return Array(casadi().vertcat(*sums), shape)


def _log_sum_exp(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    columns, shape = _lines(arguments[0], params["axis"])
    largest = _halved(columns, _larger)
    shifted = casadi().exp(columns - casadi().repmat(largest, columns.shape[0], 1))
    return from_matrix(largest + casadi().log(casadi().sum1(shifted)), shape)


def _softmax(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    array, axis = as_array(arguments[0]), params["axis"]
    columns, shape = _lines(array, axis)
    largest = from_matrix(_halved(columns, _larger), shape)
    axes = range(array.ndim) if axis is None else [each % array.ndim for each in axis]
    kept = tuple(1 if i in axes else n for i, n in enumerate(array.shape))
    weights = Namespace.exp(array - Array(largest.flat, kept))
    return weights / total(weights, tuple(axes), keepdims=True)


def _geo_mean(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    columns, shape = _lines(arguments[0], params["axis"])
    length = columns.shape[0]
    weights = np.full(length, 1.0 / length) if params["p"] is None else np.asarray(params["p"])
    taken = np.flatnonzero(weights)
    columns, choose = columns[taken.tolist(), :], casadi().if_else
    logarithms = casadi().log(choose(columns > 0, columns, SMALLEST))
    mean = casadi().exp(casadi().mtimes(casadi().DM(weights[taken]).T, logarithms))
    least = _halved(columns, _smaller)
    # where a factor is 0 the mean is, and no tangent has a finite slope
    edge = casadi().sqrt(choose(least > 0, 1.0, least))
    return from_matrix(choose(least > 0, mean, edge), shape)


# ---- matrices


@functools.cache
def _elimination(order: int) -> Any:
    """The pivots of a matrix, without exchanges of rows: a function of casadi."""
    symbol = casadi().SX.sym("a", order, order)
    rest, pivots = symbol, []
    for _ in range(order):
        pivot = rest[0, 0]
        pivots.append(pivot)
        rest = rest[1:, 1:] - casadi().mtimes(rest[1:, 0], rest[0, 1:]) / pivot
    return symbol, casadi().vertcat(*pivots)


@functools.cache
def _definite_function(order: int) -> Any:
    """1 for a positive definite symmetric matrix, else NaN; it has no derivative."""
    symbol, pivots = _elimination(order)
    positive = casadi().if_else(casadi().mmin(pivots > 0) > 0, 1.0, np.nan)
    return casadi().Function("definite", [symbol], [positive], {"is_diff_out": [False]})


@functools.cache
def _logarithm_function(order: int) -> Any:
    """The logarithm of the determinant of a matrix with a definite symmetric part."""
    symbol, pivots = _elimination(order)
    return casadi().Function("logdet", [symbol], [casadi().sum1(casadi().log(pivots))])


@functools.cache
def _determinant_function(order: int) -> Any:
    symbol = casadi().SX.sym("a", order, order)
    return casadi().Function("det", [symbol], [casadi().det(symbol)])


def _if_definite(rows: Any) -> Any:
    """1 where the symmetric part of a square matrix of casadi is positive definite, else NaN."""
    return _definite_function(rows.shape[0])((rows + rows.T) / 2)


def _det(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    rows = matrix(as_array(arguments[0]))
    return Array(_determinant_function(rows.shape[0])(rows), ())


def _logdet(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    rows = matrix(as_array(arguments[0]))
    return Array(_if_definite(rows) * _log_determinant(rows), ())


def _log_determinant(rows: Any) -> Any:
    """That of a block, and of its Schur complement."""
    order = rows.shape[0]
    if order <= SMALL_BLOCK:
        return _logarithm_function(order)(rows)
    k = order // 2
    first, right = rows[:k, :k], rows[:k, k:]
    below = casadi().mtimes(rows[k:, :k], _solved(first, right))
    return _log_determinant(first) + _log_determinant(rows[k:, k:] - below)


def _solved(left: Any, right: Any) -> Any:
    """As `solved`, of matrices of casadi."""
    shape = (right.shape[1], right.shape[0])
    answer = solved(from_matrix(left.T, left.shape), from_matrix(right.T, (shape[1], shape[0])))
    return matrix(answer).T


def _matrix_frac(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    above, below = (as_array(argument) for argument in arguments)
    columns = Array(above.flat, (above.shape[0], above.size // above.shape[0]))
    found = total(columns * solved(below, columns))
    return Array(_if_definite(matrix(below)) * found.flat, ())


def _is_small_equation(shapes: Shapes, params: Params) -> bool:
    """Larger ones are solved by another method than Kronecker products, which CasADi does not have."""
    return shapes[0][0] <= LARGEST_SYSTEM


def _lyapunov(sign: float, operator: Callable[[Array, np.ndarray], Array]) -> Build:
    """A Lyapunov equation, by Kronecker products; NaN unless the matrix is stable.

    It is stable just where the solution for Q = I is positive definite (Lyapunov's theorem).
    """

    def build(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
        a, q = (as_array(argument) for argument in arguments)
        n = a.shape[0]
        identity = as_array(np.eye(n))
        right = casadi().horzcat(q.flat, identity.flat)
        both = solved(operator(a, np.eye(n)), from_matrix(right.T, (n * n, 2)))
        answers = sign * matrix(both).T
        inside = _if_definite(casadi().reshape(answers[:, 1], n, n))
        return Array(inside * answers[:, 0], (n, n))

    return build


def _continuous(a: Array, identity: np.ndarray) -> Array:
    return Namespace.kron(a, identity) + Namespace.kron(identity, a)


def _discrete(a: Array, identity: np.ndarray) -> Array:
    return as_array(np.eye(len(identity) ** 2)) - Namespace.kron(a, a)


def _eye_minus_inv(atom: Atom, arguments: Sequence[Any], params: Params) -> Array:
    """For entries >= 0 the spectral radius is below 1 just where the inverse has no negative entry."""
    a = as_array(arguments[0])
    inverse = Namespace.linalg.inv(np.eye(a.shape[0]) - a)
    least = _halved(casadi().vertcat(a.flat, inverse.flat), _smaller)
    return inverse * Array(casadi().if_else(least >= 0, 1.0, np.nan), ())


AS_WRITTEN = Rule(as_written)
SOLVES_AS_WRITTEN = Rule(as_written, solves=True)

# Atoms whose own function is written for any namespace.
# fmt: off
WRITTEN_FOR_ALL = (
    "sub", "diff_pos", "neg", "mul", "div", "power", "exp", "log", "log1p", "sqrt", "square",
    "inv_pos", "sin", "cos", "tanh", "sigmoid", "softplus", "huber", "abs", "sum", "mean",
    "cumsum", "entr", "kl_div", "rel_entr", "index", "reshape", "transpose", "hstack", "vstack",
    "concatenate", "diag", "outer", "kron", "einsum", "trace", "quad_form", "quad_over_lin",
)
# fmt: on

# Atoms without an entry: `function` (the user's own) and eigenvalues, which casadi does not have.
_BY_NAME: dict[str, Rule] = {
    **dict.fromkeys(WRITTEN_FOR_ALL, AS_WRITTEN),
    "add": Rule(_sum_of_terms),
    "matmul": Rule(_product),
    "dot": Rule(_product),
    "broadcast_to": Rule(_spread),
    "prod": Rule(_prod),
    "max": Rule(_extreme(_larger)),
    "min": Rule(_extreme(_smaller)),
    "maximum": Rule(_extreme_of(_larger)),
    "minimum": Rule(_extreme_of(_smaller)),
    "norm": Rule(_norm),
    "sum_largest": Rule(_sum_largest, lambda shapes, params: math.prod(shapes[0]) <= MOST_COMPARED),
    "logsumexp": Rule(_log_sum_exp),
    "softmax": Rule(_softmax),
    "geo_mean": Rule(_geo_mean),
    "det": Rule(_det, lambda shapes, params: shapes[0][0] <= LARGEST_DETERMINANT),
    "inv": SOLVES_AS_WRITTEN,
    "solve": SOLVES_AS_WRITTEN,
    "logdet": Rule(_logdet, solves=True),
    "matrix_frac": Rule(_matrix_frac, solves=True),
    "lyap": Rule(_lyapunov(-1.0, _continuous), _is_small_equation, solves=True),
    "dlyap": Rule(_lyapunov(1.0, _discrete), _is_small_equation, solves=True),
    "eye_minus_inv": Rule(_eye_minus_inv, solves=True),
}

RULES: dict[Atom, Rule] = {ATOMS[name]: rule for name, rule in _BY_NAME.items()}
RULES[GATHER] = Rule(_gather)
