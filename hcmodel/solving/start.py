"""Where a solve starts: its own `start`, a value the user set, the variable's start, the middle of X."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.labels import in_order
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


def start_vector(
    model: Model, domain: Domain, given: Mapping[Any, Any] | None, warm_start: bool
) -> FloatArray:
    """The start as a flat vector; values that a solve wrote count only with `warm_start`."""
    variables = model.variables
    chosen = _given(variables, {} if given is None else given)
    vector = domain.middle()
    for variable in variables:
        value = chosen.get(variable)
        if value is None and (warm_start or variable._value_origin == "user"):
            value = variable.value
        if value is None:
            value = variable.start
        if value is not None:
            block = model.layout.blocks[model.layout.position(variable)]
            vector[block.start : block.stop] = block.store(value)
    return vector


def start_point(forms: Forms, given: Mapping[Any, Any] | None, warm_start: bool) -> FloatArray:
    """The start as a point of the forms' model, slacks of matrix inequalities included."""
    domain = forms.written.domain
    if forms.front.slacks:
        domain = make_domain(forms.user.variables)
    return forms.front.point(start_vector(forms.user, domain, given, warm_start))


def is_chosen(variables: Sequence[Variable], given: Mapping[Any, Any] | None) -> bool:
    """Whether the user chose the start, or a part of it."""
    return bool(given) or any(
        variable.start is not None or variable._value_origin == "user" for variable in variables
    )


def _given(variables: tuple[Variable, ...], given: Mapping[Any, Any]) -> dict[Variable, FloatArray]:
    by_name = {variable.name: variable for variable in variables}
    if not isinstance(given, Mapping):
        raise ModelError("start is a dict {variable or name: array}")
    known = set(variables)
    chosen: dict[Variable, FloatArray] = {}
    for key, value in given.items():
        variable = by_name.get(key) if isinstance(key, str) else key
        if not isinstance(variable, Variable) or variable not in known:
            raise ModelError(
                f"start names {key!r}, which is not a variable of the problem; there are: "
                + ", ".join(by_name)
            )
        try:
            what = f"the start of variable '{variable.name}'"
            array = np.asarray(in_order(value, variable.labels, what), dtype=float)
        except (TypeError, ValueError):
            raise DataError(
                f"the start of variable '{variable.name}' is not an array of numbers: {value!r}"
            ) from None
        if not np.isfinite(array).all():
            raise DataError(f"the start of variable '{variable.name}' is not finite")
        try:
            fitted = np.broadcast_to(array, variable.shape)
        except ValueError:
            raise DataError(
                f"the start of variable '{variable.name}' has shape {array.shape}, but "
                f"{variable.shape} is needed"
            ) from None
        chosen[variable] = variable.set.fitting(fitted, f"the start of variable '{variable.name}'")
    return chosen
