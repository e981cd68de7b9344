"""`hc.function`: any Python callable as an atom, through autograd or with its own gradient.

With `grad`, second derivatives are central differences of it; without, they are exact.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from hcmodel.atoms.atom import Derivatives, atom
from hcmodel.atoms.autodiff import define_pullback, detached, is_traced, primitive
from hcmodel.atoms.autodiff import xp as traced_numpy
from hcmodel.atoms.gradient_check import CheckedGradient
from hcmodel.atoms.user_code import Differences, Program, prepared, program_of
from hcmodel.errors import ModelError
from hcmodel.expressions.arguments import as_flag
from hcmodel.expressions.shapes import Shape, as_shape

STEP = 6e-6  # near the cube root of the rounding unit, best for central differences


def _checked(value: Any, callable: Callable[..., Any], shape: Shape) -> Any:
    found = () if isinstance(value, float) else np.shape(value)
    if not _is_real(value):
        _check_real(value, f"the function '{_name(callable)}'")
    if found != shape:
        name = _name(callable)
        raise ModelError(
            f"the function '{name}' returned shape {found}, but was declared with shape={shape}; write "
            f"hc.function(…, shape={found}), or return a value of shape {shape}"
        )
    return value


def _name(code: Callable[..., Any]) -> str:
    return str(getattr(code, "__name__", code))


def _is_real(value: Any) -> bool:
    if isinstance(value, float):
        return True
    plain = value if type(value) is np.ndarray else np.asarray(detached(value))
    return plain.dtype.kind in "biuf"


def _check_real(value: Any, what: str) -> None:
    kind = np.asarray(detached(value)).dtype.kind
    if kind == "c":
        raise ModelError(f"{what} returned complex numbers; it must return real ones")
    if kind not in "biuf":
        raise ModelError(f"{what} returned {value!r}, which is not an array of numbers")


@primitive
def _opaque(callable: Any, gradient: Any, shape: Shape, *arrays: Any) -> Any:
    return np.asarray(_checked(callable(*arrays), callable, shape), dtype=float)


@primitive
def _jacobian(gradient: Any, number: int, shape: Shape, *arrays: Any) -> Any:
    """The user's gradient with respect to one argument."""
    found = gradient(*arrays)
    if not isinstance(found, (tuple, list)) or (len(arrays) == 1 and len(found) != 1):
        found = (found,)
    if len(found) != len(arrays):
        raise ModelError(
            f"grad returned {len(found)} arrays for {len(arrays)} arguments; it must return one "
            "for each"
        )
    if not _is_real(found[number]):
        _check_real(found[number], f"grad '{_name(gradient)}'")
    jacobian = np.asarray(found[number], dtype=float)
    array = arrays[number]
    wanted = shape + (array.shape if type(array) is np.ndarray else np.shape(array))
    if jacobian.shape != wanted:
        raise ModelError(
            f"grad returned shape {jacobian.shape} for argument {number}, but shape + argument "
            f"shape = {wanted} is needed"
        )
    return jacobian


def _opaque_vjp(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    _, gradient, shape, *arrays = args

    def pull(cotangent: Any) -> Any:
        return [
            traced_numpy.tensordot(
                cotangent, _jacobian(gradient, i - 3, shape, *arrays), len(shape)
            )
            for i in argnums
        ]

    return pull


def _jacobian_vjp(argnums: Sequence[int], answer: Any, args: Any, keywords: Any) -> Any:
    gradient, number, shape, *arrays = (detached(arg) for arg in args)

    def pull(cotangent: Any) -> Any:
        weights = detached(cotangent)
        return [_difference(gradient, number, shape, arrays, i - 3, weights) for i in argnums]

    return pull


def _difference(
    gradient: Any, number: int, shape: Shape, arrays: list[Any], moved: int, weights: Any
) -> np.ndarray:
    """The derivative of weights·jacobian in the entries of the argument `moved`."""
    base = np.asarray(arrays[moved], dtype=float)
    low, high = np.full(base.shape, -np.inf), np.full(base.shape, np.inf)
    if isinstance(gradient, Differences):
        low, high = gradient.limits([np.asarray(array, dtype=float) for array in arrays])[moved]
    result = np.zeros(base.shape)
    for entry in np.ndindex(base.shape):
        step = STEP * max(1.0, abs(float(base[entry])))
        sides, ends = [], []
        for sign in (1.0, -1.0):
            point = base.copy()
            point[entry] = np.clip(base[entry] + sign * step, low[entry], high[entry])
            others = [*arrays[:moved], point, *arrays[moved + 1 :]]
            sides.append(np.sum(weights * _jacobian(gradient, number, shape, *others)))
            ends.append(point[entry])
        if ends[0] > ends[1]:  # else bounds fix the entry
            result[entry] = (sides[0] - sides[1]) / (ends[0] - ends[1])
    return result


define_pullback(_opaque, _opaque_vjp)
define_pullback(_jacobian, _jacobian_vjp)


def _prepare(name: str, shapes: Sequence[Shape], params: dict[str, Any]) -> dict[str, Any]:
    if not callable(params["callable"]):
        raise ModelError(f"hc.function takes a callable first, not {params['callable']!r}")
    grad = params["grad"]
    if grad is not None and not (callable(grad) or isinstance(grad, str)):
        raise ModelError(
            "grad of hc.function is a callable that takes the same arguments, or the name of a scheme"
        )
    made = prepared(params)
    if as_flag(params.get("check", False), "check of hc.function"):
        if not isinstance(made["grad"], Program):
            raise ModelError(
                "check=True of hc.function compares a gradient that is given as grad=…; there is none"
            )
        made |= {"grad": CheckedGradient(made["grad"], program_of(made)), "check": False}
    return {**made, "shape": as_shape(params["shape"], "hc.function")}


class _Called:
    """A function with a gradient of its own, called with plain arrays."""

    def __init__(self, params: dict[str, Any]) -> None:
        self._callable, self._gradient = params["callable"], params["grad"]
        self._shape = params["shape"]

    def __call__(self, arrays: Sequence[Any], places: Sequence[int]) -> list[Any]:
        gradient, shape = self._gradient, self._shape
        return [_jacobian.function(gradient, place, shape, *arrays) for place in places]

    def value(self, arrays: Sequence[Any]) -> Any:
        return _opaque.function(self._callable, self._gradient, self._shape, *arrays)


def _derivatives(params: dict[str, Any]) -> Derivatives | None:
    return None if params["grad"] is None else _Called(params)


# What numpy says of an array of traced numbers.
NOT_AN_ARRAY = "setting an array element with a sequence"


@atom(
    shape=lambda name, shapes, params: params["shape"],
    prepare=_prepare,
    leading="callable",
    black_box=True,
    derivatives=_derivatives,
)
def function(
    xp: Any,
    *arrays: Any,
    callable: Any,
    shape: Any = (),
    grad: Any = None,
    executor: Any = None,
    cache: Any = None,
    check: bool = False,
) -> Any:
    """Any Python callable of arrays, with a value of the given shape.

    Written with autograd.numpy it needs nothing else. With `grad(*args)` it may be any code: grad
    returns, for each argument, the derivatives as an array of shape `shape + argument.shape` (the
    array itself if there is one argument). grad="2-point", "3-point" or "complex-step" takes differences,
    whose calls an `executor` (anything with `submit`) may spread. `cache` names a file in which all
    evaluations are kept. `check=True` compares `grad` with differences once and says where it differs.
    The callable must be pure: same arguments, same value.
    """
    if grad is not None:
        return _opaque(callable, grad, shape, *arrays)
    try:
        value = callable(*arrays)
    except (TypeError, AttributeError, ValueError) as error:
        traced = any(is_traced(array) for array in arrays)
        if not traced or (isinstance(error, ValueError) and NOT_AN_ARRAY not in str(error)):
            raise
        name = getattr(callable, "__name__", "the callable")
        raise ModelError(
            f"{name} in hc.function uses something that autograd cannot differentiate ({error}); write "
            "it with autograd.numpy, without float() or math, or give its gradient as grad=, or take "
            'differences by grad="2-point"'
        ) from error
    return _checked(value, callable, shape)
