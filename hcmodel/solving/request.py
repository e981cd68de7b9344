"""What a solve asks for, checked once."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from hcmodel.errors import ModelError
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass, replace
from hcmodel.solvers.methods import RULES, MethodEntry, find_method, make_options
from hcmodel.solvers.result import Record
from hcmodel.solvers.theory.theorems import Constants

Callback = Callable[[Record], "bool | None"]

# How long after the deadline a point is still looked at, as a share of the limit and in seconds. These
# are half of what a limit may be exceeded by; the other half is for the operation that runs by then.
GRACE_SHARE, GRACE_SECONDS = 0.05, 0.1


@dataclass(frozen=True)
class SolveRequest:
    """The arguments of `Problem.solve`. `optimal_value` is in the user's sign.

    `entry` is the method's row of the table, None for `auto`. `deadline` is a time of the monotonic
    clock.
    """

    method: str
    entry: MethodEntry | None
    tolerance: float
    optimal_value: float | None
    start: Mapping[Any, Any] | None
    warm_start: bool
    rule: str
    constants: Constants | str | None
    max_calls: int | None
    time_limit: float | None
    polish: bool
    callback: Callback | None
    engine: str
    options: Any
    trace_points: bool = False
    deadline: float | None = None

    @staticmethod
    def checked(
        model: Model,
        *,
        method: str,
        tol: float,
        optimal_value: float | None,
        rule: str,
        constants: Any,
        max_calls: int | None,
        time_limit: float | None,
        callback: Callback | None,
        options: Any,
        **rest: Any,
    ) -> SolveRequest:
        """The request, or an error that says which argument does not fit."""
        entry = check_arguments(
            method=method,
            tol=tol,
            optimal_value=optimal_value,
            rule=rule,
            constants=constants,
            max_calls=max_calls,
            time_limit=time_limit,
            options=options,
        )
        if entry is not None and entry.needs_no_rows and model.constraints:
            raise ModelError(
                f"{method} takes no constraints; use 'ippm-swsg' for a model with them"
            )
        if callback is not None and not callable(callback):
            raise ModelError(f"callback is a function of one record, not {callback!r}")
        return SolveRequest(
            method=method,
            entry=entry,
            tolerance=tol,
            optimal_value=optimal_value,
            rule=rule,
            constants=constants,
            max_calls=max_calls,
            time_limit=time_limit,
            callback=callback,
            options=options,
            **rest,
        )

    @property
    def given_constants(self) -> Constants | None:
        """Constants that the user gave; estimates prove nothing."""
        return self.constants if isinstance(self.constants, Constants) else None

    def started(self) -> SolveRequest:
        """The request with its time limit counted from now, unless it is counted already."""
        if self.time_limit is None or self.deadline is not None:
            return self
        return replace(self, deadline=time.monotonic() + self.time_limit)

    @property
    def last_moment(self) -> float | None:
        """When a point that was found is no longer looked at: a little after the deadline."""
        if self.deadline is None or self.time_limit is None:
            return None
        return self.deadline + GRACE_SHARE * self.time_limit + GRACE_SECONDS

    @property
    def seconds_left(self) -> float | None:
        return None if self.deadline is None else self.deadline - time.monotonic()

    @property
    def time_left(self) -> float:
        """Seconds that a part of the work may take: infinite without a limit, 0 after it."""
        return np.inf if self.seconds_left is None else max(self.seconds_left, 0.0)


def check_arguments(
    *,
    method: str,
    tol: float,
    optimal_value: float | None,
    rule: str,
    constants: Any,
    max_calls: int | None,
    time_limit: float | None,
    options: Any,
) -> MethodEntry | None:
    """Raise unless the arguments make sense for some model; the method's entry, None for `auto`."""
    if not isinstance(method, str):
        raise ModelError(f"method is the name of a method, not {method!r}")
    check_number("tol", tol, positive=True, needed=True)
    check_number("max_calls", max_calls, positive=True)
    check_number("time_limit", time_limit, positive=True)
    check_number("optimal_value", optimal_value)
    _check_rule(method, rule, constants, options)
    return _entry(method, optimal_value, options)


def _check_rule(method: str, rule: str, constants: Any, options: Any) -> None:
    if not isinstance(rule, str) or rule not in RULES:
        raise ModelError(f"unknown rule {rule!r}; there are: {', '.join(RULES)}")
    estimated = isinstance(constants, str) and constants == "estimate"
    if constants is not None and not (estimated or isinstance(constants, Constants)):
        raise ModelError('constants is hc.Constants(…), or "estimate"')
    if isinstance(constants, Constants):
        check_constants(constants)
    if estimated and rule == "adaptive":
        raise ModelError("constants=\"estimate\" goes with rule='theory'")
    if method == "auto" and rule == "theory":
        raise ModelError("rule='theory' needs a method of the paper, such as 'sbl-star'")
    if method == "auto" and options is not None:
        raise ModelError("options belong to a method; name it with method=…")


def _entry(method: str, optimal_value: float | None, options: Any) -> MethodEntry | None:
    if method == "auto":
        return None
    try:
        entry = find_method(method)
        make_options(entry, options)
    except (ValueError, TypeError) as error:
        raise ModelError(str(error)) from None
    if entry.needs_optimal_value and optimal_value is None:
        raise ModelError(f"{method} needs optimal_value=...; without it use 'sbl-adals'")
    return entry


def check_constants(constants: Any) -> None:
    """Raise unless these are constants, each a finite number or unknown."""
    if not isinstance(constants, Constants):
        raise ModelError(f"constants is hc.Constants(…), not {constants!r}")
    for each in fields(constants):
        check_number(f"the constant {each.name}", getattr(constants, each.name))


def check_number(name: str, number: Any, *, positive: bool = False, needed: bool = False) -> None:
    """Raise unless `number` is a finite number, or None where it may be left out."""
    if number is None and not needed:
        return
    number_like = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
    try:
        real = number_like and bool(np.isfinite(float(number)))
    except OverflowError:  # an integer beyond all floating-point numbers
        real = False
    if not real or (positive and number <= 0):
        kind = "positive" if positive else "finite"
        raise ModelError(f"{name} must be a {kind} number, not {number!r}")
