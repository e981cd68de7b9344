"""What one call of `solve` does, from the request to the solution.

Forms, start and runs are prepared within the time limit, the runs are made, and the point is looked at
once more for warnings. What a problem keeps from one call to the next is handed in.
"""

from __future__ import annotations

import functools
import time
import warnings
from collections.abc import Callable
from contextlib import suppress

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.call_memory import AtMost
from hcmodel.certify.domains.nowhere import Nowhere, nowhere_defined
from hcmodel.errors import HCError, HCWarning, SolverError
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.records import dataclass, replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.report.printers import Heading, Reporter
from hcmodel.solvers.limits import BudgetExhausted, TimeExhausted, beyond, until
from hcmodel.solvers.memory import CollectionPaused
from hcmodel.solvers.result import Termination
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.call_budget import calls_left
from hcmodel.solving.conclude import nowhere, user_point, without_time
from hcmodel.solving.data_checks import outside_domain_message, warn_about_data, warn_about_map
from hcmodel.solving.judge import Status
from hcmodel.solving.kept_forms import KeptForms
from hcmodel.solving.naming import axes_of
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.run import UNSETTLED, Plan, Watch, run
from hcmodel.solving.solution import Solution
from hcmodel.solving.start import is_chosen, start_point, start_vector
from hcmodel.solving.strategy import (
    Queue,
    describe,
    solved_in,
    stages,
    start_only,
    written_in_map,
)
from hcmodel.solving.user_functions import check_functions, function_calls, warn_about_gradients

FloatArray = NDArray[np.float64]

# Ends after which forms may be half made: they are made again by the next solve.
HALF_MADE = (Termination.TIME_LIMIT, Termination.INTERRUPTED, Termination.OUT_OF_MEMORY)


@dataclass(frozen=True)
class Prepared:
    """The forms with the parameters read, the start, the form in hidden coordinates, and the runs."""

    forms: Forms
    first: FloatArray
    hidden: Form | None
    stages: Queue
    constants: Constants | None = None
    otherwise: Callable[[], Plan] | None = None
    nowhere: Nowhere | None = None
    """Why no run is made: no point is in the domain of every function."""

    @property
    def place(self) -> FloatArray:
        """The start within the sets of the variables."""
        return self.forms.written.domain.project(self.first)


class Session:
    """One call of `solve`. Its time limit is counted from here.

    `is_first` says whether the data are still to be looked at. `is_refuted` is asked for, with a warning,
    where a run is planned, and `estimated` where the request wants estimates of the constants.
    """

    def __init__(
        self,
        model: Model,
        kept: KeptForms,
        request: SolveRequest,
        *,
        is_first: bool,
        is_refuted: Callable[[], bool],
        estimated: Callable[[Forms], Constants],
    ) -> None:
        self._model, self._kept, self._request = model, kept, request.started()
        self._is_first, self._is_refuted, self._estimated = is_first, is_refuted, estimated
        self._prepared: Prepared | None = None

    def solve(
        self, keep: Callable[[Solution], None], *, verbose: bool, progress: bool | str
    ) -> Solution:
        """The solution. `keep` gets it before it is printed, as printing may be interrupted."""
        clock, compiled = time.perf_counter(), self._kept.compilations
        called = function_calls(self._model)
        prepared = self._prepared = self._prepare()
        if prepared is None:
            solution = self._without_time()
            keep(solution)
            return solution
        compiling = time.perf_counter() - clock if self._kept.compilations > compiled else 0.0
        clock = time.perf_counter()
        callback = self._request.callback
        with Reporter(callback, verbose=verbose, progress=progress) as reporter:
            reporter.header(functools.partial(self._heading, prepared))
            found = self._run(prepared, reporter.watch)
            seconds = time.perf_counter() - clock
            found = self._after_warnings(prepared, found)
            solution = replace(
                found,
                compile_seconds=compiling,
                solve_seconds=seconds,
                function_calls=function_calls(self._model).minus(called),
                index=axes_of(self._model),
            )
            keep(solution)
            reporter.footer(solution)
        if solution.termination in HALF_MADE:
            self._kept.drop()
        return solution

    def raise_error(self, solution: Solution) -> None:
        """Raise what ended the solve, if it ended with an error; messages of hcmodel are passed on."""
        if solution.termination is Termination.OUTSIDE_DOMAIN:
            assert self._prepared is not None
            raise SolverError(_why_undefined(self._prepared))
        cause = solution.cause
        if isinstance(cause, HCError):
            raise cause
        if isinstance(cause, MemoryError):
            raise SolverError(str(cause) or solution.termination.value) from cause
        if cause is not None:
            raise SolverError(
                f"{solution.termination.value}: {type(cause).__name__}: {cause} "
                "(problem.solution has the best point found)"
            ) from cause

    def _prepare(self) -> Prepared | None:
        """What a solve begins with, as far as it can be made in time; None where the start cannot.

        What is half made when the time is over, or when an exception is raised, is not used again.
        """
        request, forms, first, hidden = self._request, None, None, None
        constants, otherwise = None, None
        try:
            with until(request.deadline):
                with CollectionPaused():
                    forms = self._kept.of(request.engine)
                    first = start_point(forms, request.start, request.warm_start)
                    forms.refresh()
                if self._is_first:
                    warn_about_data(self._model)
                    warn_about_map(self._model)
                    if self._model.user_functions:
                        check_functions(self._model, user_point(forms, first))
                excluded = nowhere_defined(forms.model, forms.bounds.after, first=True)
                if excluded is not None:
                    return Prepared(forms, first, None, Queue(forms, []), nowhere=excluded)
                with CollectionPaused():
                    refuted = self._is_refuted()
                    stage = None if refuted else written_in_map(request, forms)
                    if stage is None:
                        hidden, plan = self._planned(forms, refuted)
                    else:
                        hidden, plan = stage.form, Queue(forms, [stage])
                        otherwise = functools.partial(self._without_map, forms)
                constants = self._constants(forms)
        except TimeExhausted:
            self._kept.drop()
            if forms is None or first is None:
                return None
            plan = Queue(forms, [start_only(forms)])
        except HCError:
            raise
        except BaseException:
            self._kept.drop()
            raise
        return Prepared(forms, first, hidden, plan, constants, otherwise)

    def _planned(self, forms: Forms, refuted: bool) -> Plan:
        """The form in hidden coordinates, and the runs."""
        hidden = None if refuted else forms.hidden(self._model.source)
        return hidden, Queue(forms, stages(self._request, forms, hidden))

    def _without_map(self, forms: Forms) -> Plan:
        """The same, where the entries of a declared map were not enough."""
        forms.leave_map()
        with CollectionPaused():
            return self._planned(forms, refuted=False)

    def _constants(self, forms: Forms) -> Constants | None:
        if self._request.constants != "estimate":
            return self._request.given_constants
        return self._estimated(forms)

    def _heading(self, prepared: Prepared) -> Heading:
        method, forms = self._request.method, prepared.forms
        return Heading(
            method=describe(method, [prepared.stages.first]) if prepared.stages else method,
            tolerance=self._request.tolerance,
            canonical=forms.written.canonical,
            coordinates=solved_in(prepared.hidden, self._model.hidden or ()),
            engine=forms.engine,
        )

    def _run(self, prepared: Prepared, watch: Watch | None) -> Solution:
        """What the runs have found, or why none is made."""
        if prepared.nowhere is not None:
            return nowhere(prepared.forms, prepared.nowhere, self._request.method, self._request)
        return run(
            prepared.stages,
            prepared.forms,
            prepared.hidden,
            prepared.first,
            self._request,
            prepared.constants,
            watch,
            prepared.otherwise,
        )

    def _without_time(self) -> Solution:
        """The start, where time ran out before the model was compiled."""
        request, domain = self._request, make_domain(self._model.variables)
        start = start_vector(self._model, domain, request.start, request.warm_start)
        return without_time(self._model, domain.project(start), request.method)

    def _after_warnings(self, prepared: Prepared, found: Solution) -> Solution:
        """The solution; warnings about functions of the user call these, and Ctrl-C may end them."""
        request = self._request
        chosen = is_chosen(self._model.variables, request.start)
        if not (chosen or self._model.user_functions):
            return found  # there is nothing to warn about
        left = calls_left(request, found.oracle_calls)
        held = until(request.deadline), beyond(request.last_moment)
        try:
            with held[0], held[1], AtMost(left), suppress(BudgetExhausted):
                if chosen:
                    self._warn_about_start(prepared, found)
                if found.status in UNSETTLED and found.cause is None:
                    start = user_point(prepared.forms, prepared.first)
                    warn_about_gradients(self._model, start)
        except KeyboardInterrupt:
            if found.status in UNSETTLED:
                ended = Termination.INTERRUPTED
                limit = Status.USER_LIMIT
                return replace(found, status=limit, termination=ended, message=ended.value)
        return found

    def _warn_about_start(self, prepared: Prepared, found: Solution) -> None:
        """Warn about a start that the user chose and that cannot be used."""
        written, point = prepared.forms.written, prepared.place
        if found.cause is not None or found.termination is Termination.OUTSIDE_DOMAIN:
            return  # an error is raised
        if written.compiled.has_black_boxes and not found.oracle_calls.outside:
            return  # no function of the user is called again: the start was among the points
        written.compiled.expect_values()
        if not written.oracle().at(point).finite:
            message = _why_undefined(prepared)
            warnings.warn(f"{message} (another start was used)", HCWarning, stacklevel=4)


def _why_undefined(prepared: Prepared) -> str:
    """Why the model has no value at the start."""
    return outside_domain_message(prepared.forms.sign.before, prepared.place)
