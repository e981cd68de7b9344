"""Which method runs on which form of a model, in which order, and why.

`auto` takes Newton's method where hidden coordinates are proven or declared, prox-linear where they
are not, and the next one on the list when a run ends without a point that can be shown to be anything.
Where second derivatives are dense and the unknowns many, curvature comes from gradients instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.lower_bound import lower_bound
from hcmodel.errors import NotHiddenConvexError
from hcmodel.reductions.forms import Form, Forms
from hcmodel.solvers.methods import MethodEntry, find_method, minimize
from hcmodel.solvers.oracle import Evaluation, OracleCalls
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solving.solution import gap_allowed

FloatArray = NDArray[np.float64]

# Oracle calls of the first-order method where both methods of second order have failed.
FALLBACK_CALLS = 2000
# The share of the gap allowed that a run aims at: the last Newton steps gain more than they cost.
FINE = 1e-2
# The factor by which the gap has to shrink from one look at it to the next.
NARROWING = 0.5
# Oracle calls of a run without the bounds that bend; without them there may be no minimiser at all.
RELEASED_CALLS = 160
# Oracle calls after which a method of second order is taken to have stalled.
SECOND_ORDER_CALLS = 10_000


@dataclass(frozen=True)
class Stage:
    """One run: a method on a form, and the reason for it in a few words."""

    entry: MethodEntry
    form: Form
    why: str
    options: Any = None
    max_calls: int | None = None
    follows: bool = False
    """Whether it goes on from the run before it whatever that has shown, as a polish does."""


def automatic(forms: Forms, hidden: Form | None) -> list[Stage]:
    """The stages of `auto`."""
    stages = []
    if hidden is not None and hidden.affords_hessian:
        stages += newton_stages(hidden, max_calls=SECOND_ORDER_CALLS)
    if forms.lifted.affords_hessian:
        why = "as the run before it stalled" if stages else _without_coordinates(hidden)
        linear = find_method("prox-linear")
        stages.append(Stage(linear, forms.lifted, why, max_calls=SECOND_ORDER_CALLS))
    limit = FALLBACK_CALLS if stages else None
    if not stages:
        stages.append(_limited_memory(forms, hidden))
    stages.append(
        Stage(find_method("sbl-adals"), forms.lifted, "first-order method", max_calls=limit)
    )
    return stages


def polishing(forms: Forms, hidden: Form | None) -> list[Stage]:
    """What follows a first-order method with `polish=True`: the fitting method of second order."""
    if hidden is not None and hidden.affords_hessian:
        stages = newton_stages(hidden)
    elif forms.lifted.affords_hessian:
        stages = single(find_method("prox-linear"), forms, hidden, None)
    else:
        stages = [_limited_memory(forms, hidden)]
    return [replace(stages[0], follows=True), *stages[1:]]


def newton_stages(hidden: Form, options: Any = None, max_calls: int | None = None) -> list[Stage]:
    """Newton's method in hidden coordinates, first without the bounds that bend there."""
    newton, why = find_method("hidden-newton"), known_coordinates(hidden)
    bounded = Stage(newton, hidden, why, options, max_calls)
    if hidden.released is None:
        return [bounded]
    names = ", ".join(hidden.bending_names())
    why = f"{why}, bounds of {names} left out"
    return [
        Stage(newton, hidden.released, why, options, RELEASED_CALLS),
        replace(bounded, why=f"bounds of {names} kept"),
    ]


def _without_coordinates(hidden: Form | None) -> str:
    if hidden is None:
        return "no hidden coordinates known"
    mapped = hidden.map_geometry is not None
    return "too many unknowns for the map" if mapped else "too many unknowns for second derivatives"


def _limited_memory(forms: Forms, hidden: Form | None) -> Stage:
    """prox-linear with curvature from gradients, in hidden coordinates where these are no map."""
    form, known = forms.lifted, _without_coordinates(hidden)
    if hidden is not None and hidden.map_geometry is None:
        form, known = hidden, known_coordinates(hidden)
    size = form.canonical.layout.size
    why = f"{known}; limited memory, as {size:,} unknowns make dense second derivatives dear"
    options = {"curvature": "lbfgs"}
    return Stage(find_method("prox-linear"), form, why, options, max_calls=SECOND_ORDER_CALLS)


def single(entry: MethodEntry, forms: Forms, hidden: Form | None, options: Any) -> list[Stage]:
    """The stages of a method that was asked for by name."""
    if entry.needs_coordinates:
        if hidden is None:
            raise NotHiddenConvexError(
                f"{entry.name} works in hidden coordinates, and none are known: no proof was found "
                "(problem.analyze() says why) and none are declared; declare them with hidden=[…], or "
                "use method='prox-linear'"
            )
        return newton_stages(hidden, options)
    smooth = entry.needs_smooth or entry.second_order
    return [Stage(entry, forms.lifted if smooth else forms.written, "as asked for", options)]


def known_coordinates(hidden: Form) -> str:
    """How the coordinates of a form are known."""
    if hidden.proof is None:
        return "coordinates as declared"
    names = hidden.coordinate_names()
    shown = names if len(names) <= 4 else [*names[:3], "…"]
    return f"proven convex in {', '.join(shown)}"


@dataclass(frozen=True)
class Journey:
    """What several runs, one after the other, cost and left in the trace."""

    trace: tuple[Record, ...] = ()
    calls: OracleCalls = field(default_factory=OracleCalls)
    iterations: int = 0

    def extended(self, result: Result) -> Journey:
        before, own = self.calls, result.calls
        names = ("objective", "constraints", "points", "hessians", "outside")
        total = OracleCalls(**{n: getattr(before, n) + getattr(own, n) for n in names})
        trace = (*self.trace, *(self.shifted(record) for record in result.trace))
        return Journey(trace, total, max(len(trace) - 1, 0))

    def shifted(self, record: Record) -> Record:
        """A line of the run that follows."""
        return replace(
            record,
            iteration=record.iteration + len(self.trace),
            calls=record.calls + self.calls.total,
            points=record.points + self.calls.points,
        )


@dataclass(frozen=True)
class Request:
    """What a solve asks for, whatever the method."""

    tolerance: float
    optimal_value: float | None
    rule: str
    constants: Any
    max_calls: int | None
    deadline: float | None
    callback: Callable[[Record], bool | None] | None

    def is_spent(self, journey: Journey) -> bool:
        """Whether a limit was reached already."""
        by_calls = self.max_calls is not None and journey.calls.total >= self.max_calls
        return by_calls or (self.deadline is not None and time.monotonic() >= self.deadline)


def run_stage(
    stage: Stage, point: FloatArray, request: Request, journey: Journey, hidden: Form | None
) -> Result:
    """Run a stage from a point of the model as written, within what is left of the limits."""
    form = stage.form
    limits = [stage.max_calls] if stage.max_calls is not None else []
    if request.max_calls is not None:
        limits.append(request.max_calls - journey.calls.total)
    calls = min(limits, default=None)
    seconds = None if request.deadline is None else request.deadline - time.monotonic()
    result = minimize(
        form.oracle(),
        form.domain,
        form.from_written(form.written.domain.project(point)),
        method=stage.entry.name,
        tolerance=request.tolerance,
        optimal_value=request.optimal_value,
        rule=request.rule,
        constants=request.constants,
        max_calls=calls,
        time_limit=seconds,
        callback=_shown(request.callback, journey, form),
        options=stage.options,
        geometry=form.geometry if stage.entry.second_order else None,
        certified=(
            _certifier(hidden, request.tolerance)
            if hidden is not None and (form is hidden or form is hidden.released)
            else None
        ),
    )
    termination = result.termination
    if termination is Termination.CALL_LIMIT and stage.max_calls is not None:
        left = limits[-1] if request.max_calls is not None else None
        if left is None or stage.max_calls < left:
            termination = Termination.STALLED  # the limit was not the user's
    freed = hidden is not None and form is hidden.released
    if freed and termination is Termination.UNBOUNDED:
        termination = Termination.STALLED  # without its bounds, which says nothing of the model
    trace = tuple(form.record(record) for record in result.trace)
    return replace(result, trace=trace, termination=termination)


def _shown(
    callback: Callable[[Record], bool | None] | None, journey: Journey, form: Form
) -> Callable[[Record], bool | None] | None:
    """The callback for lines of a run on a form, which comes after others."""
    if callback is None:
        return None
    return lambda record: callback(journey.shifted(form.record(record)))


def _certifier(form: Form, tolerance: float) -> Callable[[Evaluation, FloatArray], bool | None]:
    """Whether the gap at a point is small enough; None where no bound is to be had, or no better one.

    Nothing is claimed on this: a declared map is put to the test when the run has ended.
    """
    narrowest = np.inf

    def certified(evaluation: Evaluation, multipliers: FloatArray) -> bool | None:
        nonlocal narrowest
        if not form.domain.contains(evaluation.point, 1e-9):
            return None  # bounds that were left out are broken: the run after it keeps them
        value = form.plain_objective(evaluation.objective)
        allowed = gap_allowed(value, tolerance)
        bound = lower_bound(form, evaluation, multipliers, target=FINE * allowed, trusting=True)
        if bound is None:
            return None
        gap, before = value - bound.value, narrowest
        narrowest = min(gap, before)
        if gap <= FINE * allowed:
            return True
        if gap <= NARROWING * before:
            return False
        return True if gap <= allowed else None

    return certified


def describe(method: str, run: Sequence[Stage]) -> str:
    """What `solution.method` says: the method asked for, or what `auto` did and why."""
    if method != "auto":
        return ", then ".join(dict.fromkeys(stage.entry.name for stage in run))
    return "auto: " + ", then ".join(f"{stage.entry.name} ({stage.why})" for stage in run)
