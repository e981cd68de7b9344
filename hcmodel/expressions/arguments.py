"""Arguments of public functions that are checked in many places."""

from __future__ import annotations

from typing import Any

from hcmodel.errors import ModelError


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


def shown(value: Any) -> str:
    """A value in a message; a number of 400 digits is not written out."""
    if isinstance(value, int) and value.bit_length() > 64:
        return f"a number of {value.bit_length()} bits"
    return repr(value)
