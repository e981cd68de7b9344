"""The errors of hcmodel, one tree under `HCError`, so that one `except` catches them all.

A message names the object it is about (variable, parameter, shape, index) and says what to do.
"""

from __future__ import annotations

from typing import Any


class HCError(Exception):
    """Any error that hcmodel raises on purpose.

    An error in a model's text also knows where: its `filename`, its `text`, and `diagnostics`, each a
    message with a hint and a place.
    """

    diagnostics: tuple[Any, ...] = ()
    filename: str | None = None
    text: str = ""


class ModelSyntaxError(HCError):
    """The text of a model does not follow the language."""


class ModelError(HCError):
    """The model makes no sense as written: shapes, names, domains, operators."""


class DataError(HCError):
    """A number that was handed in is missing, misshapen, NaN or of the wrong sign."""


class NotHiddenConvexError(HCError):
    """A method needs hidden coordinates, and there are none."""


class SolverError(HCError):
    """A method or its backend cannot go on."""


class HCWarning(UserWarning):
    """Something the user should know and may ignore."""
