"""`hc.register_method`: the solvers' own function, with errors of hcmodel's tree."""

from __future__ import annotations

import functools
from typing import Any

from hcmodel.errors import ModelError
from hcmodel.solvers import methods


class UnfitMethodError(ModelError, ValueError):
    """A method cannot be registered as it was given."""


@functools.wraps(methods.register_method)
def register_method(*arguments: Any, **settings: Any) -> methods.MethodEntry:
    try:
        return methods.register_method(*arguments, **settings)
    except ValueError as error:
        raise UnfitMethodError(str(error)) from None
