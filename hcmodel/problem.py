"""`Problem`: the facade that walks a model through canonical form, engine, method and judgement."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.registry import AUTO, check_name
from hcmodel.errors import HCWarning, ModelError, SolverError
from hcmodel.expressions.leaves import Constraint, Expression, Parameter, Variable
from hcmodel.expressions.model import Maximize, Minimize, Model
from hcmodel.reductions.canonical import CanonicalProblem, canonicalize
from hcmodel.reductions.forms import Form, Forms
from hcmodel.report.text import ProgressLine, VerbosePrinter
from hcmodel.solvers.methods import RULES, MethodEntry, find_method, make_options
from hcmodel.solvers.result import Record, Termination
from hcmodel.solvers.theory.budget import budget
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.data_checks import outside_domain_message, warn_about_data
from hcmodel.solving.run import run_stages
from hcmodel.solving.solution import Solution
from hcmodel.solving.start import start_vector
from hcmodel.solving.strategy import Request, Stage, automatic, describe, polishing, single
from hcmodel.solving.walk_back import Naming, signed_record

if TYPE_CHECKING:
    from hcmodel.analysis.analyze import Analysis

FloatArray = NDArray[np.float64]
Callback = Callable[[Record], "bool | None"]


class Problem:
    """A model: objective, constraints, and the hidden coordinates if they are known."""

    def __init__(
        self,
        objective: Minimize | Maximize,
        constraints: Iterable[Constraint] = (),
        hidden: Sequence[Expression] | Expression | None = None,
    ) -> None:
        self._adopt(Model.checked(objective, constraints, hidden))

    @classmethod
    def of(cls, model: Model) -> Problem:
        """The problem of a model that a front end made."""
        problem = cls.__new__(cls)
        problem._adopt(model)
        return problem

    def _adopt(self, model: Model) -> None:
        self.model = model
        self._canonical = canonicalize(model.objective.expression, model.sign, model.constraints)
        self.solution: Solution | None = None
        self.analysis: Analysis | None = None
        self._forms: Forms | None = None
        self._engine = AUTO
        self._warned = False
        self._analysed: tuple[Any, ...] = ()

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_forms": None}  # compiled functions are made again

    @property
    def objective(self) -> Minimize | Maximize:
        return self.model.objective

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        return self.model.constraints

    @property
    def hidden(self) -> tuple[Expression, ...] | None:
        return self.model.hidden

    @property
    def families(self) -> Mapping[str, Any]:
        """The indexed constraints of a model in the language."""
        return self.model.families

    @property
    def source(self) -> Any:
        """The text of a model in the language."""
        return self.model.source

    @property
    def canonical(self) -> CanonicalProblem:
        """The model without names; its rows are listed anew where parameters ceased to be symmetric."""
        if not self._canonical.is_current():
            objective = self.objective
            self._canonical = canonicalize(objective.expression, objective.sign, self.constraints)
        return self._canonical

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.canonical.layout.variables

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        return self.model.parameters

    @property
    def status(self) -> str | None:
        return None if self.solution is None else self.solution.status.value

    @property
    def value(self) -> float | None:
        return None if self.solution is None else self.solution.value

    def compile(self, engine: str = "auto") -> CompiledStack:
        """Compile φ, once: later solves, and new parameter values, use the same functions.

        Later solves and analyses use this engine too, unless they name another one.
        """
        check_name(engine)
        self._engine = engine
        return self.forms().stack

    @property
    def engine(self) -> str:
        """The engine that `compile` was given, "auto" before."""
        return self._engine

    def forms(self, engine: str | None = None) -> Forms:
        """The forms in which methods see the model, made again where its rows have changed."""
        canonical, known = self.canonical, self._forms
        engine = self._engine if engine is None else engine
        if known is None or known.canonical is not canonical or known.engine != engine:
            objective = self.objective.expression
            stack = None if known is None or known.engine != engine else known.stack
            self._forms = Forms(canonical, objective, self.constraints, self.hidden, stack, engine)
            self._forms.compilations = 0 if known is None else known.compilations
        assert self._forms is not None
        return self._forms

    @property
    def compilations(self) -> int:
        """How often the functions of the model were compiled."""
        return 0 if self._forms is None else self._forms.compilations

    def analyze(self, samples: int = 200, seed: int = 0) -> Analysis:
        """Whether the model is hidden convex: proven, not refuted by `samples` points, or refuted.

        The analysis is kept: later solves warn where it refuted the model, and claim nothing global.
        """
        from hcmodel.analysis.analyze import analyze

        self.analysis = analyze(self, samples, seed)
        self._analysed = self._parameter_values()
        return self.analysis

    def _parameter_values(self) -> tuple[Any, ...]:
        return tuple(
            None if parameter.value is None else np.asarray(parameter.value).tobytes()
            for parameter in self.parameters
        )

    def _forget_old_analysis(self) -> None:
        """An analysis speaks of the parameters' values that it was made for."""
        if self.analysis is not None and self._analysed != self._parameter_values():
            self.analysis = None

    def is_hidden_convex(self) -> bool | None:
        """True where it is proven, False where it is refuted, None where neither was shown."""
        self._forget_old_analysis()
        verdict = (self.analysis or self.analyze()).verdict
        return {"proven": True, "refuted": False}.get(verdict)

    def solve(
        self,
        method: str = "auto",
        *,
        tol: float = 1e-6,
        optimal_value: float | None = None,
        start: Mapping[Any, Any] | None = None,
        warm_start: bool = False,
        rule: str = "adaptive",
        constants: Any = None,
        max_calls: int | None = None,
        time_limit: float | None = None,
        polish: bool = False,
        verbose: bool = False,
        progress: bool = False,
        callback: Callback | None = None,
        engine: str = "auto",
        options: Any = None,
    ) -> float | None:
        """Solve and return the optimal value; `problem.solution` holds the rest.

        See the method table for `method` and `options`. `tol` is relative feasibility, the certified
        gap where there is one, and the KKT residual elsewhere. `polish` runs the fitting method of
        second order from the point that a first-order method found. `callback(record)` sees each line
        of the trace; returning True stops.
        """
        for name, number in (("tol", tol), ("max_calls", max_calls), ("time_limit", time_limit)):
            _check_number(name, number, positive=True)
        _check_number("optimal_value", optimal_value)
        entry = self._checked_request(method, optimal_value, rule, constants, options)
        if callback is not None and not callable(callback):
            raise ModelError(f"callback is a function of one record, not {callback!r}")
        clock = time.perf_counter()
        before = self.compilations
        check_name(engine)
        forms = self.forms(None if engine == AUTO else engine)
        forms.stack  # noqa: B018  (compiled here, so that its time counts as compilation)
        first = start_vector(self.canonical, start, warm_start)
        forms.written.refresh()
        if self.solution is None:
            warn_about_data(self)
        forms.update()
        refuted = self._warn_if_refuted()
        hidden = None if refuted else forms.hidden(self.source)
        for form in {id(form): form for form in (forms.lifted, hidden) if form}.values():
            form.refresh()
        stages = self._stages(entry, forms, hidden, polish, options)
        compile_seconds = time.perf_counter() - clock if self.compilations > before else 0.0
        if constants == "estimate":
            from hcmodel.analysis.constants import estimate_constants

            constants = estimate_constants(self)[0]
            vouched = None
        else:
            vouched = constants
        watchers: list[Callback] = [] if callback is None else [callback]
        printer = VerbosePrinter(self, describe(method, stages[:1]), tol) if verbose else None
        if printer is not None:
            watchers.append(printer.row)
        line = ProgressLine() if progress and not verbose else None
        if line is not None:
            watchers.append(line.row)
        request = Request(
            tolerance=tol,
            optimal_value=None if optimal_value is None else self.canonical.sign * optimal_value,
            rule=rule,
            constants=constants,
            max_calls=max_calls,
            deadline=None if time_limit is None else time.monotonic() + time_limit,
            callback=self._watch(watchers),
        )
        clock = time.perf_counter()
        naming = Naming(0 if self.source is None else 1, self.families)
        try:
            self.solution = run_stages(
                stages, forms, hidden, first, request, method, compile_seconds, naming, vouched
            )
        except ValueError as error:
            if rule == "theory":  # a constant is missing, or does not fit the theorem
                raise ModelError(str(error)) from None
            raise
        finally:
            if line is not None:
                line.close()
        self.solution = replace(self.solution, solve_seconds=time.perf_counter() - clock)
        self._write_back(self.solution, first)
        self._warn_about_start(forms, first, start)
        if printer is not None:
            printer.footer(self.solution)
        return self.solution.value

    def _stages(
        self,
        entry: MethodEntry | None,
        forms: Forms,
        hidden: Form | None,
        polish: bool,
        options: Any,
    ) -> list[Stage]:
        if entry is None:
            return automatic(forms, hidden)
        stages = single(entry, forms, hidden, options)
        if polish and not entry.second_order:
            stages += polishing(forms, hidden)
        if entry.needs_smooth and forms.lifted.compiled.kinked:
            warnings.warn(
                f"{entry.name} is made for smooth rows, and this model has kinks that no linear row "
                "can express (max, abs or a norm under a minus sign, or a norm2): it may stop early at "
                "one",
                HCWarning,
                stacklevel=3,
            )
        return stages

    def _warn_if_refuted(self) -> bool:
        self._forget_old_analysis()
        refuted = self.analysis is not None and self.analysis.verdict == "refuted"
        if refuted and not self._warned:
            self._warned = True
            warnings.warn(
                "this model was shown not to be hidden convex (problem.analysis has the "
                "counterexample): a solve can find a local minimum only",
                HCWarning,
                stacklevel=3,
            )
        return refuted

    def _warn_about_start(
        self, forms: Forms, first: FloatArray, given: Mapping[Any, Any] | None
    ) -> None:
        """A start that the user chose and that cannot be used is not passed over in silence."""
        chosen = bool(given) or any(
            variable.start is not None or variable._value_origin == "user"
            for variable in self.variables
        )
        point = self.canonical.domain.project(first)
        if chosen and not forms.written.oracle().at(point).finite:
            message = outside_domain_message(self, point)
            warnings.warn(f"{message} (another start was used)", HCWarning, stacklevel=3)

    def _checked_request(
        self,
        method: str,
        optimal_value: float | None,
        rule: str,
        constants: Any,
        options: Any,
    ) -> MethodEntry | None:
        """The method's entry in the table, None for `auto`."""
        if rule not in RULES:
            raise ModelError(f"unknown rule {rule!r}; there are: {', '.join(RULES)}")
        estimated = isinstance(constants, str) and constants == "estimate"
        if constants is not None and not (estimated or isinstance(constants, Constants)):
            raise ModelError('constants is hc.Constants(…), or "estimate"')
        if estimated and rule == "adaptive":
            raise ModelError("constants=\"estimate\" goes with rule='theory'")
        if method == "auto":
            if rule == "theory":
                raise ModelError("rule='theory' needs a method of the paper, such as 'sbl-star'")
            if options is not None:
                raise ModelError("options belong to a method; name it with method=…")
            return None
        try:
            entry = find_method(method)
            make_options(entry, options)
        except (ValueError, TypeError) as error:
            raise ModelError(str(error)) from None
        if entry.needs_optimal_value and optimal_value is None:
            raise ModelError(f"{method} needs optimal_value=...; without it use 'sbl-adals'")
        if entry.needs_no_rows and self.constraints:
            raise ModelError(
                f"{method} takes no constraints; use 'ippm-swsg' for a model with them"
            )
        return entry

    def _watch(self, watchers: Sequence[Callback]) -> Callback | None:
        """One callback that hands records, in the user's sign, to all who asked for them."""
        if not watchers:
            return None

        def watch(record: Record) -> bool:
            shown = signed_record(record, self.canonical.sign)
            answers = [watcher(shown) for watcher in watchers]
            return any(bool(answer) for answer in answers)

        return watch

    def _write_back(self, solution: Solution, first: FloatArray) -> None:
        for variable in self.variables:
            variable._write(solution.point.get(variable.name), "solve")
        for block in self.canonical.blocks:
            dual = solution.duals.get(block.name)
            if dual is not None and dual.shape != block.constraint.shape:
                dual = dual[np.isfinite(dual)]  # the members of a filtered family
            block.constraint.dual_value = dual
        if solution.termination is Termination.OUTSIDE_DOMAIN:
            raise SolverError(outside_domain_message(self, self.canonical.domain.project(first)))

    def budget(self, method: str, tol: float, constants: Constants, **options: Any) -> int:
        """The oracle calls that the method's theorem promises to suffice for accuracy `tol`.

        `optimal_value` and `start` may be given as in `solve`; evaluating the start costs one point,
        which is not counted.
        """
        unknown = set(options) - {"optimal_value", "start"}
        if unknown:
            raise ModelError(f"budget takes optimal_value and start besides, not {sorted(unknown)}")
        _check_number("tol", tol, positive=True)
        self.forms().stack.refresh()
        canonical = self.canonical
        first = canonical.domain.project(start_vector(canonical, options.get("start"), False))
        start = self.forms().written.oracle().at(first)
        optimum = options.get("optimal_value")
        lowest = constants.f1_lower if optimum is None else canonical.sign * optimum
        try:
            find_method(method)
            promise = budget(
                method,
                tol,
                constants,
                delta0=None if lowest is None else max(start.objective - lowest, 0.0),
                violation0=float(np.max(start.violations, initial=0.0)),
            )
        except ValueError as error:
            raise ModelError(str(error)) from None
        return promise.calls

    def to_hc(self) -> str:
        """The model as text in the `.hc` language, which loads back to an equal problem.

        Arrays of more than 64 numbers stay out of the text; `hc_data(problem.model)` of
        `hcmodel.frontend.to_hc` has them, for `hc.parse(text, data)`.
        """
        from hcmodel.frontend.to_hc import to_hc

        return to_hc(self.model)

    def __repr__(self) -> str:
        unknowns, rows = self.canonical.layout.size, self.canonical.outer.size
        return f"Problem({self.objective!r}, {unknowns} unknown(s), {rows} row(s))"


def _check_number(name: str, number: Any, *, positive: bool = False) -> None:
    if number is None and name != "tol":
        return
    number_like = isinstance(number, (int, float, np.number)) and not isinstance(number, bool)
    real = number_like and np.isfinite(number)
    if not real or (positive and number <= 0):
        kind = "positive" if positive else "finite"
        raise ModelError(f"{name} must be a {kind} number, not {number!r}")


def load(path: str | Path, data: Any = None, *, set: Mapping[str, Any] | None = None) -> Problem:
    """The problem of a model file in the `.hc` language.

    `data` maps parameter names to arrays, or names a JSON or NPZ file, or is a list of such; `set` maps
    names to single values.
    """
    from hcmodel.frontend import load as load_model

    return Problem.of(load_model(path, data, set=set))


def parse(text: str, data: Any = None, filename: str | None = None) -> Problem:
    """The problem of a model given as text; `filename` is what error messages call it."""
    from hcmodel.frontend import parse as parse_model

    return Problem.of(parse_model(text, data, filename))
