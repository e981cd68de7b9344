"""Atoms that only move entries: indexing, reshaping, transposing, stacking.

They are affine and rising in every channel; what differs is where the entries go.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from hcmodel.atoms import indexing
from hcmodel.atoms.algebra import Factor
from hcmodel.atoms.atom import always_sparse, atom
from hcmodel.atoms.rules import (
    Argument,
    Arguments,
    Curvature,
    Dependence,
    MatrixKind,
    Monotonicity,
    Params,
    Sign,
    common_sign,
)
from hcmodel.atoms.shape_rules import probed
from hcmodel.errors import ModelError
from hcmodel.expressions.shapes import Shape, as_shape, normalized_axes
from hcmodel.expressions.sparse_data import is_sparse

movement = functools.partial(
    atom,
    sign=common_sign,
    monotonicity=Monotonicity.INCREASING,
    curvature=Curvature.AFFINE,
    log_curvature=Curvature.AFFINE,
    dependence=Dependence.MOVEMENT,
)


def _prepare_index(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    key = params["key"]
    frozen = key if isinstance(key, indexing.IndexKey) else indexing.frozen_key(key)
    return {"key": frozen}


def _index_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    return indexing.indexed_shape(params["key"], shapes[0])


@movement(shape=_index_shape, prepare=_prepare_index, linear_in=(0,))
def index(xp: Any, a: Any, *, key: Any) -> Any:
    """The entries that `key` selects, as numpy's a[key]."""
    return a[key.numpy]


def _prepare_reshape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    """The one -1 of numpy's convention is filled in here, so that equal results merge."""
    wanted = params["shape"]
    entries = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    if any(isinstance(entry, np.ndarray) and entry.ndim for entry in entries):
        raise ModelError(
            f"the shape of '{name}' is an integer or a tuple of integers, not {wanted!r}"
        )
    size = math.prod(shapes[0])
    if entries.count(-1) == 1:
        place = entries.index(-1)
        rest = math.prod([e for e in entries if e != -1])
        if rest > 0 and size % rest == 0:
            entries[place] = size // rest
    if -1 in entries:
        raise ModelError(f"'reshape' cannot bring shape {shapes[0]} to {tuple(entries)}")
    shape = as_shape(entries, "reshape")
    if math.prod(shape) != size:
        raise ModelError(
            f"'reshape' cannot bring shape {shapes[0]} ({size} entries) to {shape}: the number of "
            "entries must stay the same"
        )
    return {"shape": shape}


@movement(
    shape=lambda name, shapes, params: params["shape"],
    prepare=_prepare_reshape,
    static=("shape",),
    linear_in=(0,),
)
def reshape(xp: Any, a: Any, shape: Any) -> Any:
    """The same entries in another shape, last index fastest (C order)."""
    return xp.reshape(a, shape)


def _prepare_transpose(
    name: str, shapes: Sequence[Shape], params: dict[str, Any]
) -> dict[str, Any]:
    axes, ndim = params["axes"], len(shapes[0])
    if axes is None:
        return {"axes": None}
    if isinstance(axes, int) or sorted(normalized_axes(axes, ndim, name) or ()) != [*range(ndim)]:
        raise ModelError(f"'transpose' needs each of the {ndim} axes once, not {axes!r}")
    return {"axes": tuple(axis % ndim for axis in axes)}


def _transposed(arguments: Arguments, params: Params) -> tuple[Factor, ...]:
    """The transpose, of a matrix whose two axes are exchanged."""
    exchanged = params["axes"] is None or tuple(params["axes"]) == (1, 0)
    matrix = len(arguments[0].shape) == 2
    return (Factor(0, transposed=True),) if matrix and exchanged else ()


def _same_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """That of the argument."""
    return arguments[0].matrix


@movement(
    shape=probed(lambda xp, a, axes: xp.transpose(a, axes)),
    prepare=_prepare_transpose,
    static=("axes",),
    linear_in=(0,),
    factors=_transposed,
    definiteness=_same_definiteness,
    takes_sparse=always_sparse,
)
def transpose(xp: Any, a: Any, axes: Any = None) -> Any:
    """The axes in another order, reversed by default."""
    if is_sparse(a):
        return a if axes == (0, 1) else a.T.tocsr()
    return xp.transpose(a, axes)


def _prepare_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    return {"shape": as_shape(params["shape"], name)}


@movement(
    shape=probed(lambda xp, a, shape: np.broadcast_to(a, shape)),
    prepare=_prepare_shape,
    static=("shape",),
    linear_in=(0,),
)
def broadcast_to(xp: Any, a: Any, shape: Any) -> Any:
    """The entries repeated to fill `shape`, as numpy's."""
    return a + xp.zeros(shape)


def _beside(arguments: Arguments, params: Params) -> int:
    return 0 if len(arguments[0].shape) < 2 else 1


@movement(shape=probed(lambda xp, *arrays: xp.hstack(arrays)), stacks=_beside)
def hstack(xp: Any, *arrays: Any) -> Any:
    """Arrays side by side, as numpy's; give a list or several arguments."""
    parts = [a if getattr(a, "ndim", 0) else xp.reshape(a, (1,)) for a in arrays]
    return xp.concatenate(parts, axis=0 if parts[0].ndim == 1 else 1)


@movement(shape=probed(lambda xp, *arrays: xp.vstack(arrays)), stacks=0)
def vstack(xp: Any, *arrays: Any) -> Any:
    """Arrays one under the other, as numpy's; give a list or several arguments."""
    parts = [xp.reshape(a, (1, -1)) if np.ndim(a) < 2 else a for a in arrays]
    return xp.concatenate(parts, axis=0)


def _prepare_concatenate(
    name: str, shapes: Sequence[Shape], params: dict[str, Any]
) -> dict[str, Any]:
    if not shapes[0]:
        raise ModelError("'concatenate' needs arrays, not scalars; use hstack")
    axes = normalized_axes(params["axis"], len(shapes[0]), name)
    if axes is None or len(axes) != 1:
        raise ModelError(f"'concatenate' takes one axis, not {params['axis']!r}")
    return {"axis": axes[0]}


@movement(
    shape=probed(lambda xp, *arrays, axis: xp.concatenate(arrays, axis=axis)),
    prepare=_prepare_concatenate,
    stacks=lambda arguments, params: params["axis"],
)
def concatenate(xp: Any, *arrays: Any, axis: int = 0) -> Any:
    """Arrays joined along an axis, as numpy's; give a list or several arguments."""
    return xp.concatenate(arrays, axis=axis)


def _fills_with_zeros(argument: Argument) -> bool:
    return len(argument.shape) == 1


def _diagonal_sign(arguments: Arguments, params: Params) -> Sign:
    """A vector's matrix has zeros beside the diagonal; a definite matrix's diagonal is positive."""
    argument = arguments[0]
    if not _fills_with_zeros(argument):
        return Sign.POSITIVE if argument.definite else argument.sign
    weakened = {Sign.POSITIVE: Sign.NONNEGATIVE, Sign.NEGATIVE: Sign.NONPOSITIVE}
    return weakened.get(argument.sign, argument.sign)


def _diagonal_log_curvature(arguments: Arguments, params: Params) -> Curvature:
    """The zeros beside a vector's diagonal have no logarithm."""
    return Curvature.UNKNOWN if _fills_with_zeros(arguments[0]) else Curvature.AFFINE


def _diagonal_shape(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> Shape:
    shape = shapes[0]
    if len(shape) == 1:
        return (shape[0], shape[0])
    if len(shape) == 2:
        return (min(shape),)
    raise ModelError(f"'diag' takes a vector or a matrix, not shape {shape}")


def _diagonal_definiteness(arguments: Arguments, params: Params) -> MatrixKind:
    """Of a vector, definite where its entries are positive."""
    sign = arguments[0].sign
    if not _fills_with_zeros(arguments[0]):
        return MatrixKind.GENERAL
    if sign is Sign.POSITIVE:
        return MatrixKind.DEFINITE
    return MatrixKind.SEMIDEFINITE if sign.is_nonnegative else MatrixKind.SYMMETRIC


@movement(
    shape=_diagonal_shape,
    sign=_diagonal_sign,
    log_curvature=_diagonal_log_curvature,
    linear_in=(0,),
    definiteness=_diagonal_definiteness,
)
def diag(xp: Any, a: Any) -> Any:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if np.ndim(a) == 1:
        return xp.reshape(a, (-1, 1)) * np.eye(np.shape(a)[0])
    numbers = np.arange(min(np.shape(a)))
    return a[numbers, numbers]
