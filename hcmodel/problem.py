"""`Problem`: the facade that walks a model through canonical form, engine, method and judgement."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.canonical import canonicalize
from hcmodel.engines.autograd_ import AutogradStack, compile_stack
from hcmodel.errors import HCWarning, ModelError, SolverError
from hcmodel.expression import Constraint, Expression, Parameter, Variable, as_expression
from hcmodel.graph import topological_order
from hcmodel.report.text import ProgressLine, VerbosePrinter
from hcmodel.solution import Solution
from hcmodel.solvers.budget import budget
from hcmodel.solvers.methods import RULES, MethodEntry, find_method, make_options, minimize
from hcmodel.solvers.oracle import Oracle
from hcmodel.solvers.result import Record, Termination
from hcmodel.solvers.theory import Constants
from hcmodel.start import start_vector
from hcmodel.walk_back import Naming, Run, judged_solution, signed_record

FloatArray = NDArray[np.float64]
Callback = Callable[[Record], "bool | None"]

ENGINES = ("auto", "autograd")


class _Objective:
    sign: float
    word: str

    def __init__(self, expression: Any) -> None:
        self.expression: Expression = as_expression(expression)
        if self.expression.size != 1:
            raise ModelError(
                f"the objective has shape {self.expression.shape}, but only one number can be "
                f"{self.word}d; take hc.sum or another reduction of it"
            )

    def __repr__(self) -> str:
        return f"{self.word} {self.expression}"


class Minimize(_Objective):
    """The objective of a minimisation."""

    sign = 1.0
    word = "minimize"


class Maximize(_Objective):
    """The objective of a maximisation."""

    sign = -1.0
    word = "maximize"


class Problem:
    """A model: objective, constraints, and the hidden coordinates if they are known."""

    def __init__(
        self,
        objective: Minimize | Maximize,
        constraints: Iterable[Constraint] = (),
        hidden: Sequence[Expression] | Expression | None = None,
    ) -> None:
        if not isinstance(objective, _Objective):
            raise ModelError("the objective is hc.Minimize(...) or hc.Maximize(...)")
        if isinstance(constraints, Constraint):
            constraints = (constraints,)
        if not isinstance(constraints, Iterable):
            raise ModelError(f"constraints are a list of constraints, not {constraints!r}")
        constraints = tuple(constraints)
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                raise ModelError(
                    f"{constraint!r} is no constraint; write expression <= expression, >= or =="
                )
        self.objective = objective
        self.constraints = constraints
        self.canonical = canonicalize(objective.expression, objective.sign, self.constraints)
        self.hidden = self._checked_hidden(hidden)
        self.solution: Solution | None = None
        self.compilations = 0
        # What a model in the language knows besides: its families, index ranges and text.
        self.families: Mapping[str, Any] = {}
        self.ranges: Mapping[str, Any] = {}
        self.source: Any = None
        self._stack: AutogradStack | None = None

    def _checked_hidden(self, hidden: Any) -> tuple[Expression, ...] | None:
        if hidden is None:
            return None
        parts = hidden if isinstance(hidden, (list, tuple)) else [hidden]
        if not all(isinstance(part, Expression) for part in parts):
            raise ModelError("hidden is an expression or a list of them, such as [hc.log(x)]")
        expressions = tuple(parts)
        known = set(self.variables)
        for node in topological_order(expressions):
            if isinstance(node, Variable) and node not in known:
                raise ModelError(f"hidden names variable '{node.name}', which the model lacks")
        return expressions

    @property
    def variables(self) -> tuple[Variable, ...]:
        return self.canonical.layout.variables

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        nodes = topological_order([*self.canonical.roots, *(self.hidden or ())])
        return tuple(node for node in nodes if isinstance(node, Parameter))

    @property
    def status(self) -> str | None:
        return None if self.solution is None else self.solution.status.value

    @property
    def value(self) -> float | None:
        return None if self.solution is None else self.solution.value

    def compile(self, engine: str = "auto") -> AutogradStack:
        """Compile φ, once: later solves, and new parameter values, use the same functions."""
        if engine not in ENGINES:
            raise ModelError(f"unknown engine {engine!r}; there are: {', '.join(ENGINES)}")
        if self._stack is None:
            self._stack = compile_stack(self.canonical.roots, self.canonical.layout, 1)
            self.compilations += 1
        return self._stack

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

        See the method table for `method` and `options`. `tol` is relative feasibility and the KKT
        residual aimed at. `callback(record)` sees each line of the trace; returning True stops.
        """
        for name, number in (("tol", tol), ("max_calls", max_calls), ("time_limit", time_limit)):
            _check_number(name, number, positive=True)
        _check_number("optimal_value", optimal_value)
        entry = self._checked_request(method, optimal_value, rule, constants, polish, options)
        if callback is not None and not callable(callback):
            raise ModelError(f"callback is a function of one record, not {callback!r}")
        first = start_vector(self.canonical, start, warm_start)
        clock = time.perf_counter()
        fresh = self._stack is None
        stack = self.compile(engine)
        compile_seconds = time.perf_counter() - clock if fresh else 0.0
        stack.refresh()
        if entry.needs_smooth and stack.kinked:
            warnings.warn(
                f"{entry.name} is made for smooth rows, and this model has kinks (max, abs or a "
                "norm inside): it may stop early at one",
                HCWarning,
                stacklevel=2,
            )
        canonical = self.canonical
        oracle = Oracle(stack, canonical.outer)
        watchers: list[Callback] = [] if callback is None else [callback]
        printer = VerbosePrinter(self, entry.name, tol) if verbose else None
        if printer is not None:
            watchers.append(printer.row)
        line = ProgressLine() if progress and not verbose else None
        if line is not None:
            watchers.append(line.row)
        clock = time.perf_counter()
        try:
            result = minimize(
                oracle,
                canonical.domain,
                first,
                method=entry.name,
                tolerance=tol,
                optimal_value=None if optimal_value is None else canonical.sign * optimal_value,
                rule=rule,
                constants=constants,
                max_calls=max_calls,
                time_limit=time_limit,
                callback=self._watch(watchers),
                options=options,
            )
        except ValueError as error:
            if rule == "theory":  # a constant is missing, or does not fit the theorem
                raise ModelError(str(error)) from None
            raise
        finally:
            if line is not None:
                line.close()
        seconds = time.perf_counter() - clock
        naming = Naming(0 if self.source is None else 1, self.families)
        self.solution = judged_solution(
            canonical,
            result,
            stack,
            tol,
            Run(entry.name, "autograd", compile_seconds, seconds),
            naming,
        )
        self._write_back(self.solution)
        if printer is not None:
            printer.footer(self.solution)
        return self.solution.value

    def _checked_request(
        self,
        method: str,
        optimal_value: float | None,
        rule: str,
        constants: Any,
        polish: bool,
        options: Any,
    ) -> MethodEntry:
        if rule not in RULES:
            raise ModelError(f"unknown rule {rule!r}; there are: {', '.join(RULES)}")
        if constants is not None and (rule == "adaptive" or not isinstance(constants, Constants)):
            raise ModelError("constants=hc.Constants(…) goes with rule='theory'")
        if polish:
            raise ModelError("polish=True needs a method of second order, and there is none yet")
        if method == "auto":
            method = "sbl-adals" if optimal_value is None else "sbl-star"
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

    def _write_back(self, solution: Solution) -> None:
        for variable in self.variables:
            variable._write(solution.point.get(variable.name), "solve")
        for block in self.canonical.blocks:
            dual = solution.duals.get(block.name)
            if dual is not None and dual.shape != block.constraint.shape:
                dual = dual[np.isfinite(dual)]  # the members of a filtered family
            block.constraint.dual_value = dual
        if solution.termination is Termination.OUTSIDE_DOMAIN:
            raise SolverError(
                "no point was found at which every function of the model is defined; give a start, "
                "or bounds that keep arguments of log, sqrt and powers in their domain"
            )

    def budget(self, method: str, tol: float, constants: Constants, **options: Any) -> int:
        """The oracle calls that the method's theorem promises to suffice for accuracy `tol`.

        `optimal_value` and `start` may be given as in `solve`; evaluating the start costs one point,
        which is not counted.
        """
        unknown = set(options) - {"optimal_value", "start"}
        if unknown:
            raise ModelError(f"budget takes optimal_value and start besides, not {sorted(unknown)}")
        _check_number("tol", tol, positive=True)
        stack = self.compile()
        stack.refresh()
        canonical = self.canonical
        first = canonical.domain.project(start_vector(canonical, options.get("start"), False))
        start = Oracle(stack, canonical.outer).at(first)
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

        Arrays of more than 64 numbers stay out of the text; `hcmodel.to_hc.hc_data(problem)` holds
        them, for `hc.parse(text, data)`.
        """
        from hcmodel.to_hc import to_hc

        return to_hc(self)

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
