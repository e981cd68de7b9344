"""Arguments of public functions that are checked in many places."""

from __future__ import annotations

from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.solvers.numerics import PRODUCT_ROUNDING

# What is left of a value is rounding below this share of it.
SMALLEST_TOLERANCE = PRODUCT_ROUNDING


def as_flag(value: Any, name: str) -> bool:
    """The truth of an argument; an array has none."""
    try:
        return bool(value)
    except (TypeError, ValueError):
        raise ModelError(f"{name} is True or False, not {value!r}") from None


def as_count(value: Any, name: str, *, least: int, most: int) -> int:
    """A whole number within limits."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ModelError(f"{name} is a whole number from {least} to {most:,}, not {shown(value)}")
    return int(value)


def check_tolerance(tol: Any) -> None:
    """Raise for a tolerance that rounding does not let any point satisfy."""
    if isinstance(tol, (int, float, np.number)) and 0 < tol < SMALLEST_TOLERANCE:
        raise ModelError(
            f"tol is {tol:g}, which is below rounding: values and violations are known to about "
            f"{SMALLEST_TOLERANCE:g} of their size; take a tol of at least {SMALLEST_TOLERANCE:g}"
        )


def shown(value: Any) -> str:
    """A value in a message; a number of 400 digits is not written out."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    return repr(value)
