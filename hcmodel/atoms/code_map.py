"""`hc.Map`: hidden coordinates that are code, beside those that are expressions.

`Map(forward, …)(x)` is an expression for `hidden=`: its value comes from `forward`, and what the user
knows beside it, an inverse and bounds of the image, is kept for the methods and the certificate.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.black_box import function
from hcmodel.atoms.user_code import differences_of, name_of, program_of
from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]

# How far, relative to the largest entry, a Jacobian may be from differences, which are exact to 1e-8,
# and a point from what forward and inverse make of it.
JACOBIAN_TOLERANCE = 1e-4
INVERSE_TOLERANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Map:
    """Hidden coordinates u = forward(x) that are code.

    `forward` takes arrays, one for each variable, and returns as many numbers as they have together.
    `jacobian` returns the derivatives, an array of shape (n, *x.shape) for each variable, or names a
    scheme of differences; without it `forward` is written with autograd.numpy. `inverse` takes u and
    returns x, a tuple for several variables; without it Newton's method finds x. `image` = (lower, upper)
    bounds u.
    """

    forward: Callable[..., Any]
    jacobian: Callable[..., Any] | str | None = None
    inverse: Callable[[FloatArray], Any] | None = None
    image: tuple[Any, Any] | None = None
    _checked: dict[str, bool] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for name in ("forward", "inverse"):
            given = getattr(self, name)
            if not (callable(given) or (name == "inverse" and given is None)):
                raise ModelError(f"{name} of hc.Map is a callable, not {given!r}")
        pair = self.image is None or (
            isinstance(self.image, (tuple, list)) and len(self.image) == 2
        )
        if not pair:
            raise ModelError("image of hc.Map is a pair (lower, upper) of numbers or arrays")

    @property
    def __name__(self) -> str:
        return name_of(self.forward)

    def __call__(self, *variables: Any) -> Expression:
        """The coordinates as an expression for `hidden=`."""
        if not variables or not all(isinstance(each, Variable) for each in variables):
            raise ModelError("hc.Map(…)(x, …) takes variables; write hidden=[mapping(x)]")
        size = sum(variable.size for variable in variables)
        found: Expression = function(_Forward(self), *variables, shape=(size,), grad=self.jacobian)
        return found

    def bounds(self, size: int) -> tuple[FloatArray, FloatArray]:
        """Bounds of u, infinite where none are given."""
        lower, upper = (-np.inf, np.inf) if self.image is None else self.image
        low = np.broadcast_to(np.asarray(-np.inf if lower is None else lower, float), (size,))
        high = np.broadcast_to(np.asarray(np.inf if upper is None else upper, float), (size,))
        return np.array(low), np.array(high)

    def inverted(self, u: FloatArray) -> list[FloatArray]:
        """The variables' values, one array each."""
        assert self.inverse is not None
        found = self.inverse(u)
        parts = found if isinstance(found, (tuple, list)) else (found,)
        return [np.asarray(part, dtype=float) for part in parts]

    def check(self, arrays: Sequence[FloatArray]) -> None:
        """Raise where Jacobian or inverse contradict `forward` at a point; looked at once."""
        if self._checked:
            return
        try:
            with np.errstate(all="ignore"):  # what is not finite is an error in words
                self._check(arrays)
        except ModelError:
            raise
        except Exception as error:
            raise ModelError(
                f"hc.Map: its code fails at the start: {type(error).__name__}: {error}. forward, "
                "jacobian and inverse take and return arrays of numbers"
            ) from error
        self._checked["done"] = True

    def _check(self, arrays: Sequence[FloatArray]) -> None:
        image = np.asarray(self.forward(*arrays), dtype=float)
        size = sum(array.size for array in arrays)
        if image.shape != (size,):
            raise ModelError(
                f"hc.Map: '{name_of(self.forward)}' returned shape {image.shape}, but the variables "
                f"have {size} entries, so that u needs shape ({size},)"
            )
        if not np.isfinite(image).all():
            raise ModelError(
                f"hc.Map: '{name_of(self.forward)}' is not finite at the start: u is {image}; give "
                "another start or tighter bounds"
            )
        if callable(self.jacobian):
            self._check_jacobian(arrays)
        if self.inverse is not None:
            self._check_inverse(arrays, image)
        low, high = self.bounds(size)
        if not ((image >= low) & (image <= high)).all():
            raise ModelError(
                f"hc.Map: u at the start is {image}, outside of image = ({low}, {high})"
            )

    def _check_jacobian(self, arrays: Sequence[FloatArray]) -> None:
        assert callable(self.jacobian)
        given = self.jacobian(*arrays)
        parts = given if isinstance(given, (tuple, list)) else (given,)
        expected = differences_of(self.forward, "3-point")(*arrays)
        shapes = [np.shape(part) for part in parts]
        if shapes != [wanted.shape for wanted in expected]:
            raise ModelError(
                f"hc.Map: jacobian returned the shapes {shapes}, but "
                f"{[wanted.shape for wanted in expected]} are needed, one array for each variable; entry "
                "[i, j] is the derivative of u[i] by x[j]"
            )
        for number, (part, wanted) in enumerate(zip(parts, expected, strict=True)):
            miss = float(np.max(np.abs(np.asarray(part, dtype=float) - wanted)))
            if not miss <= JACOBIAN_TOLERANCE * max(1.0, float(np.max(np.abs(wanted)))):
                raise ModelError(
                    f"hc.Map: the Jacobian by argument {number} differs from differences of "
                    f"'{name_of(self.forward)}' by {miss:.1e} at the start; its entry [i, j] is the "
                    "derivative of u[i] by x[j]"
                )

    def _check_inverse(self, arrays: Sequence[FloatArray], image: FloatArray) -> None:
        back = self.inverted(image)
        shapes = [array.shape for array in arrays]
        if [part.shape for part in back] != shapes:
            raise ModelError(
                f"hc.Map: inverse returned shapes {[part.shape for part in back]}, but the variables "
                f"have {shapes}"
            )
        miss = max(float(np.max(np.abs(a - b))) for a, b in zip(arrays, back, strict=True))
        size = max(1.0, *(float(np.max(np.abs(array))) for array in arrays))
        if not miss <= INVERSE_TOLERANCE * size:
            raise ModelError(
                f"hc.Map: inverse(forward(x)) differs from x by {miss:.1e} at the start"
            )


@dataclass(frozen=True, eq=False)
class _Forward:
    """`forward` of a map as the callable of an expression, by which the map is found again."""

    map: Map

    @property
    def __name__(self) -> str:
        return self.map.__name__

    def __call__(self, *arrays: Any) -> Any:
        return self.map.forward(*arrays)


def map_of(part: Expression) -> Map | None:
    """The map that an expression belongs to, if any."""
    if not isinstance(part, Apply) or not part.atom.black_box:
        return None
    code = program_of(dict(part.params)).callable
    return code.map if isinstance(code, _Forward) else None
