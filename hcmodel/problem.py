"""`Problem`: the thin facade around a model, its forms, its analysis and its solution."""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.call_memory import Remembering
from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.registry import AUTO, check_name
from hcmodel.errors import HCWarning, ModelError
from hcmodel.expressions.arguments import as_flag, check_tolerance
from hcmodel.expressions.by_name import ByName
from hcmodel.expressions.foreign_habits import (
    MODEL,
    PROBLEM,
    SOLVE,
    SWEEP,
    missing_attribute,
    refuse_arguments,
)
from hcmodel.expressions.leaves import Constraint, Expression, Parameter, Variable
from hcmodel.expressions.model import Constraints, Maximize, Minimize, Model
from hcmodel.expressions.output_files import as_path
from hcmodel.expressions.sparse_data import fingerprint
from hcmodel.reductions.canonical import CanonicalProblem
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.semidefinite import check_symmetric
from hcmodel.report.text import counted
from hcmodel.solvers.methods import find_method
from hcmodel.solvers.theory.theorems import Constants
from hcmodel.solving.kept_forms import KeptForms
from hcmodel.solving.naming import Naming, find_named
from hcmodel.solving.request import Callback, SolveRequest, check_constants, check_number
from hcmodel.solving.session import Session
from hcmodel.solving.solution import Solution, passed_on
from hcmodel.solving.start import start_point

if TYPE_CHECKING:
    from hcmodel.analysis.analyze import Analysis
    from hcmodel.analysis.landscape import Landscape
    from hcmodel.solvers.oracle import Oracle
    from hcmodel.solving.problem_data import ProblemData
    from hcmodel.studies.derivatives import Derivative, Elasticities, Sensitivity
    from hcmodel.studies.relaxation import Relaxation
    from hcmodel.studies.sweep_table import SweepTable

FloatArray = NDArray[np.float64]

# Held for the moment in which a problem is marked as being solved.
SOLVING = threading.Lock()


FIXED = "the {} of a problem cannot be set; make a new one: hc.Problem(objective, constraints)"


class Problem:
    """A model: objective, constraints, and the hidden coordinates if you know them. ::

        problem = hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= cap, x[0] >= 2 * x[1]])
        problem.solve()
        problem.status, problem.value, x.value

    Coordinates are found where `hidden` is left out; `problem.analyze()` shows them.
    """

    def __init__(
        self,
        objective: Minimize | Maximize,
        constraints: Iterable[Constraint] = (),
        hidden: Sequence[Expression] | Expression | None = None,
        **foreign: Any,
    ) -> None:
        if foreign:
            refuse_arguments(MODEL, foreign, "hc.Problem", Problem)
        self._adopt(Model.checked(objective, constraints, hidden))

    @classmethod
    def of(cls, model: Model) -> Problem:
        """The problem of a model that a front end made."""
        problem = cls.__new__(cls)
        problem._adopt(model)
        return problem

    def _adopt(self, model: Model) -> None:
        check_symmetric(model.constraints)
        self.model = model
        self._constraints = Constraints(model.constraints)
        self.solution: Solution | None = None
        self.analysis: Analysis | None = None
        self._kept = KeptForms(model)
        self._warned = False
        self._busy = False
        self._analysed: tuple[Any, ...] = ()
        self._asked: SolveRequest | None = None
        self._solved_for: tuple[int, ...] = ()

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            model = self.__dict__.get("model")
            leaves = () if model is None else (*model.variables, *model.parameters)
            if any(each.name == name for each in leaves):
                raise AttributeError(
                    f"a problem has no attribute {name!r}; write problem[{name!r}]"
                )
            raise missing_attribute(PROBLEM, name, "Problem")

    def __add__(self, other: Any) -> NoReturn:
        raise ModelError(
            "problems are not added; make one: hc.Problem(hc.Minimize(f + g), [*rows, *others])"
        )

    def __getstate__(self) -> dict[str, Any]:
        kept = self._kept.emptied()  # compiled functions are made again
        return {**self.__dict__, "_kept": kept, "_asked": None, "_busy": False}

    @property
    def objective(self) -> Minimize | Maximize:
        return self.model.objective

    @objective.setter
    def objective(self, objective: Any) -> NoReturn:
        raise ModelError(FIXED.format("objective"))

    @property
    def constraints(self) -> Constraints:
        return self._constraints

    @constraints.setter
    def constraints(self, constraints: Any) -> NoReturn:
        raise ModelError(FIXED.format("constraints"))

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
    def variables(self) -> ByName[Variable]:
        """The variables in order of appearance; `problem.variables["x"]` is the one named x."""
        return ByName(self.model.variables, "variable")

    @property
    def parameters(self) -> ByName[Parameter]:
        """The parameters; `problem.parameters["cap"].value = 3` sets the one named cap."""
        return ByName(self.model.parameters, "parameter")

    def __getitem__(self, name: str) -> Variable | Parameter | Constraint:
        """The variable, parameter or constraint with this name."""
        return find_named(self.model, name)

    @property
    def status(self) -> str | None:
        return None if self.solution is None else self.solution.status.value

    @property
    def value(self) -> float | None:
        return None if self.solution is None else self.solution.value

    @property
    def canonical(self) -> CanonicalProblem:
        """The model without names, as a minimisation, for the parameters' current values."""
        forms = self.forms()
        forms.check_structure()
        return forms.written.canonical

    def compile(self, engine: str = AUTO) -> CompiledStack:
        """Compile φ, once: later solves, and new parameter values, use the same functions.

        Later solves and analyses use this engine too, unless they name another one.
        """
        self._kept.engine = check_name(engine)
        return self.forms().written.compiled

    @property
    def engine(self) -> str:
        """The engine that `compile` was given, "auto" before."""
        return self._kept.engine

    def forms(self, engine: str = AUTO) -> Forms:
        """The forms in which methods see the model."""
        return self._kept.of(engine)

    @property
    def compilations(self) -> int:
        """How often functions of the model were compiled."""
        return self._kept.compilations

    def analyze(
        self, samples: int | None = 200, seed: int = 0, time_limit: float | None = None
    ) -> Analysis:
        """Whether the model is hidden convex: proven, not refuted by `samples` points, or refuted.

        A proven model is sampled for estimates of its constants only; `samples=None` leaves them out.
        The analysis is kept: later solves warn where it refuted the model, and claim nothing global.
        What is not found within `time_limit` seconds is not refuted, and `conditions` say so.
        """
        from hcmodel.analysis.analyze import analyze

        self.analysis = analyze(self._kept.to_show, samples, seed, time_limit)
        if time_limit is not None:
            self._kept.drop()  # they may be half made
        self._analysed = self._parameter_values()
        return self.analysis

    def is_hidden_convex(self) -> bool | None:
        """True where it is proven, False where it is refuted, None where neither was shown."""
        self._forget_old_analysis()
        verdict = (self.analysis or self.analyze(samples=None)).verdict
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
        progress: bool | str = False,
        callback: Callback | None = None,
        engine: str = AUTO,
        options: Any = None,
        trace_points: bool = False,
        **foreign: Any,
    ) -> float | None:
        """Solve and return the optimal value; `problem.solution` holds the rest.

        See the method table for `method` and `options`. `tol` is relative feasibility, the certified
        gap where there is one, and the KKT residual elsewhere. `polish` runs the fitting method of
        second order from the point that a first-order method found. `callback(record)` sees each record
        of the trace; returning True stops. `trace_points` keeps the point of each record, as
        `solution.trace.points`.
        """
        if foreign:
            refuse_arguments(SOLVE, foreign, "solve", Problem.solve)
        check_tolerance(tol)
        request = SolveRequest.checked(
            self.model,
            method=method,
            tol=tol,
            optimal_value=optimal_value,
            start=start,
            warm_start=as_flag(warm_start, "warm_start"),
            rule=rule,
            constants=constants,
            max_calls=max_calls,
            time_limit=time_limit,
            polish=as_flag(polish, "polish"),
            callback=callback,
            engine=check_name(engine),
            options=options,
            trace_points=as_flag(trace_points, "trace_points"),
        )
        verbose = as_flag(verbose, "verbose")
        progress = progress if isinstance(progress, str) else as_flag(progress, "progress")
        self._refuse_second()
        try:
            with Remembering():
                self._asked = request
                self._solved_for = self._versions()
                session = Session(
                    self.model,
                    self._kept,
                    request,
                    is_first=self.solution is None,
                    is_refuted=self._warn_if_refuted,
                    estimated=_estimated,
                )
                solution = session.solve(self._keep, verbose=verbose, progress=progress)
                self._write_back(solution)
                session.raise_error(solution)
                return solution.value
        finally:
            self._busy = False

    def _refuse_second(self) -> None:
        """Mark this problem as being solved, which it may not be already: in a callback, or a thread."""
        with SOLVING:
            if self._busy:
                raise ModelError(
                    "this problem is being solved already; for a solve in a callback or in another "
                    "thread make a Problem of its own (its solution is then its own, too)"
                )
            self._busy = True

    def _versions(self) -> tuple[int, ...]:
        """How often each parameter got a value."""
        return tuple(parameter.version for parameter in self.model.parameters)

    def _parameter_values(self) -> tuple[Any, ...]:
        return tuple(
            None if parameter.value is None else fingerprint(parameter.value)
            for parameter in self.parameters
        )

    def _forget_old_analysis(self) -> None:
        """An analysis speaks of the parameters' values that it was made for."""
        if self.analysis is not None and self._analysed != self._parameter_values():
            self.analysis = None

    def _warn_if_refuted(self) -> bool:
        self._forget_old_analysis()
        refuted = self.analysis is not None and self.analysis.verdict == "refuted"
        if refuted and not self._warned:
            self._warned = True
            warnings.warn(
                "this model was shown not to be hidden convex (problem.analysis has the "
                "counterexample): a solve can find a local minimum only",
                HCWarning,
                stacklevel=5,
            )
        return refuted

    def _keep(self, solution: Solution) -> None:
        self.solution = solution

    def _write_back(self, solution: Solution) -> None:
        """Write the solution to the variables and constraints."""
        for variable in self.variables:
            variable._write(solution.point.get(variable.name), "solve")
        names = Naming.of(self.model).constraints
        for constraint in self.constraints:
            constraint.dual_value = None
        for name, constraint in zip(names, self.constraints, strict=True):
            dual = solution.duals.get(name)
            if dual is None:
                continue
            if dual.shape != constraint.shape:
                dual = dual[np.isfinite(dual)]  # the members of a filtered family
            if constraint.dual_value is not None:  # listed twice: either place may hold a part
                dual = dual + constraint.dual_value
            constraint.dual_value = dual

    def budget(
        self,
        method: str,
        tol: float,
        constants: Constants,
        *,
        optimal_value: float | None = None,
        start: Mapping[Any, Any] | None = None,
    ) -> int:
        """The oracle calls that the method's theorem promises to suffice for accuracy `tol`.

        `optimal_value` and `start` are those of `solve`; evaluating the start costs one point, which is
        not counted.
        """
        check_number("tol", tol, positive=True, needed=True)
        check_number("optimal_value", optimal_value)
        check_constants(constants)
        forms = self.forms()
        forms.refresh()
        domain = forms.written.domain
        first = domain.project(start_point(forms, start, False))
        begin = forms.written.oracle().at(first)
        lowest = constants.f1_lower
        if optimal_value is not None:
            lowest = forms.sign.value(optimal_value)
        from hcmodel.solvers.theory.budget import budget  # no solve needs it

        try:
            find_method(method)
            promise = budget(
                method,
                tol,
                constants,
                delta0=None if lowest is None else max(begin.objective - lowest, 0.0),
                violation0=float(np.max(begin.violations, initial=0.0)),
            )
        except ValueError as error:
            raise ModelError(str(error)) from None
        return promise.calls

    def oracle(self) -> Oracle:
        """Objective and rows as functions of the flat vector of all variables, with counted calls.

        `oracle.at(x)` has objective, gradient, values and Jacobian of the rows, at the current values of
        the parameters; `problem.canonical.domain` is the set of x.
        """
        forms = self.forms()
        forms.refresh()
        return forms.written.oracle()

    def sweep(
        self,
        grid: Any = None,
        executor: Any = None,
        warm_start: bool = True,
        progress: bool = True,
        adaptive: bool = False,
        *,
        accuracy: float = 1e-3,
        starts: int = 0,
        seed: int = 0,
        chunk: int | None = None,
        file: str | Path | None = None,
        resume: bool = False,
        method: str = "auto",
        tol: float = 1e-6,
        max_calls: int | None = None,
        time_limit: float | None = None,
        engine: str = AUTO,
        options: Any = None,
        **foreign: Any,
    ) -> SweepTable:
        """Solve for every point of a grid `{parameter: values}`, or of a list of scenarios.

        Keys are parameters or their names; a variable as a key gives starts, and `starts=20` solves each
        point from 20 random ones, with or without a grid. `executor` has `submit`, or is a number of
        processes. A point that fails is a row with its error. `file` keeps the rows as they arrive, and
        `resume=True` solves only those that it lacks. `adaptive=True` chooses the points of one parameter
        itself, until the certified curves of the value are within ±`accuracy`. The problem itself stays
        as it is.
        """
        from hcmodel.studies.sweep import SweepRequest, sweep

        for name in foreign:
            if name in self.parameters:
                raise ModelError(
                    f"a sweep takes one dictionary: problem.sweep({{{name!r}: values}})"
                )
        refuse_arguments(SWEEP, foreign, "sweep", Problem.sweep)
        check_tolerance(tol)
        solve = {"method": method, "tol": tol, "max_calls": max_calls, "time_limit": time_limit}
        solve |= {"engine": check_name(engine), "options": options}
        request = SweepRequest(
            executor,
            warm_start,
            progress,
            starts,
            seed,
            chunk,
            file,
            resume,
            solve,
            adaptive,
            accuracy,
        )
        return sweep(self, grid, request)

    def get_problem_data(self, solver: Any = None) -> ProblemData:
        """The cone program of a proven model in its hidden coordinates, as in CVXPY.

        `data.program` has P, q, A, b and the cones, in Clarabel's order; `data.point` and `data.duals`
        map a solution back to the model. `solver` may be "CLARABEL" or "HIGHS", as in CVXPY; the data are
        the same for both.
        """
        from hcmodel.solving.problem_data import ProblemData, check_solver

        check_solver(solver)
        return ProblemData.of(self.forms())

    def landscape(self, *, points: int = 120, method: str | None = None) -> Landscape:
        """Objective, rows and hidden coordinates on a grid, for models of two unknowns.

        `hc.plot.landscape` draws it. The model is solved first if it was not.
        """
        from hcmodel.analysis.landscape import survey

        if self.solution is None:
            self.solve()
            assert self.solution is not None
            passed_on(self.solution)
        forms = self.forms()
        return survey(forms, self.solution, start_point(forms, None, False), points, method)

    def derivative(self, parameter: Parameter | str) -> Derivative:
        """How the solution moves with a parameter: dx*/dp, dV/dp, and per cent per per cent.

        Where the derivatives do not exist they are NaN, and `reason` says why.
        """
        return self._sensitivity([parameter]).derivative(0)

    def adjoint(self, weights: Mapping[Any, Any]) -> dict[str, FloatArray]:
        """The gradient of Σ weight·x* by every parameter, from weights {variable: array}."""
        from hcmodel.studies.derivatives import chosen_weights

        chosen = chosen_weights(self.model, weights)
        return self._sensitivity(self.model.parameters).adjoint(chosen)

    def elasticities(self) -> Elasticities:
        """The table of dV/dp and of per cent per per cent, for parameters and right-hand sides."""
        return self._sensitivity(self.model.parameters).elasticities()

    def relax(
        self,
        rows: Iterable[str] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        tol: float = 1e-8,
        time_limit: float | None = None,
    ) -> Relaxation:
        """Which rows to relax, and by how much, so that the model is feasible: the smallest total.

        `rows` names the constraints that may be relaxed (default: all), `weights` makes some more
        expensive. Bounds and sets of variables are not relaxed. This problem is not changed.
        """
        from hcmodel.studies.relaxation import RelaxedModel

        relaxed = RelaxedModel(self.forms(), rows, weights)
        values = [(variable, variable.value, variable._value_origin) for variable in self.variables]
        begin, done = time.monotonic(), list[Problem]()

        def solve(model: Model) -> Solution | None:
            left = time_limit
            if done and left is not None:  # which the first solve has checked
                left -= time.monotonic() - begin
                if left <= 0:
                    return None
            problem = Problem.of(model)
            problem.solve(tol=tol, time_limit=left)
            done.append(problem)
            return problem.solution and passed_on(problem.solution)

        try:
            return relaxed.least(solve, tol)
        finally:
            for variable, value, origin in values:
                variable._write(value, origin or "user")

    def _sensitivity(self, parameters: Sequence[Any]) -> Sensitivity:
        from hcmodel.studies.derivatives import Sensitivity, checked_solution, chosen_parameters

        chosen = chosen_parameters(self.model, parameters)
        solution = checked_solution(self.solution)
        if self._solved_for != self._versions():
            raise ModelError(
                "a parameter got a new value after the last solve: call problem.solve() again, since "
                "derivatives belong to its solution"
            )
        forms = self.forms()
        forms.refresh()
        return Sensitivity(forms, self.model, solution, chosen)

    def report(self, path: str | Path | None = None, *, title: str | None = None) -> str:
        """One self-contained HTML page: model, analysis, pictures, certificate, tables, environment.

        The model is solved first if it was not. Returns the page, and writes it to
        `path` if that is given.
        """
        from hcmodel.studies.report_page import report

        return report(self, path, title)

    def to_latex(self) -> str:
        """The model as a LaTeX `aligned` environment."""
        from hcmodel.report.show import problem_latex

        return problem_latex(self)

    def _repr_latex_(self) -> str:
        from hcmodel.report.notebook import problem_latex_block

        return problem_latex_block(self)

    def _repr_html_(self) -> str:
        from hcmodel.report.notebook import problem_html

        return problem_html(self)

    def write(self, path: str | Path) -> None:
        """Write the model to a file: `.mof.json` as it is, `.cbf` in its cone form, `.hc` as text.

        A name that ends in `.gz` is packed. Parts that a format cannot say are an error that names them.
        """
        from hcmodel.formats.file_types import file_type, write_packed

        target = as_path(path)
        if target.suffix == ".hc":
            from hcmodel.frontend.to_hc import write_hc

            write_hc(self.model, target)
        else:
            write_packed(target, file_type(target).write(self.model, self.get_problem_data))

    def dump(self, path: str | Path) -> None:
        """Write one zip file for a bug report: model, data, settings, solution, versions.

        `hc.load` reads it. Look into the file before you send it: your data are in it.
        """
        from hcmodel.studies.dump import dump

        dump(as_path(path), self.model, self._asked, self.solution)

    def to_hc(self) -> str:
        """The model as text in the `.hc` language, which loads back to an equal problem.

        Arrays of more than 64 numbers stay out of the text; `problem.data()` has them:
        `hc.parse(problem.to_hc(), problem.data())`.
        """
        from hcmodel.frontend.to_hc import to_hc

        return to_hc(self.model)

    def data(self) -> dict[str, Any]:
        """The arrays that are too large for the text of `to_hc`, by the names of their parameters in it.

        An array is a numpy array, or a sparse array of scipy where the model has one.
        """
        from hcmodel.frontend.to_hc import hc_data

        return hc_data(self.model)

    def __repr__(self) -> str:
        rows = sum(constraint.size for constraint in self.constraints)
        unknowns = self.model.layout.size
        return (
            f"Problem({self.objective!r}, {counted(unknowns, 'unknown')}, {counted(rows, 'row')})"
        )


def _estimated(forms: Forms) -> Constants:
    """Estimates of a model's constants; few solves want them."""
    from hcmodel.analysis.constants import estimate_constants

    return estimate_constants(forms)[0]


def load(path: str | Path, data: Any = None, *, set: Mapping[str, Any] | None = None) -> Problem:
    """The problem of a model file in the `.hc` language, or of a file that `problem.dump` wrote.

    `data` maps parameter names to arrays, or names a JSON or NPZ file, or is a list of such; `set` maps
    names to single values.
    """
    from hcmodel.frontend import load as load_model

    if isinstance(path, (str, Path)) and str(path).endswith(".zip"):
        from hcmodel.studies.dump import load_dump

        return Problem.of(load_dump(Path(path)))
    return Problem.of(load_model(path, data, set=set))


def read(path: str | Path) -> Problem:
    """The problem of a file in another format: CBF (`.cbf`), MathOptFormat (`.mof.json`), also `.gz`."""
    from hcmodel.formats.file_types import file_type, read_text

    source = as_path(path)
    if source.suffix == ".hc":
        return load(source)
    return Problem.of(file_type(source).read(source, read_text(source)))


def parse(text: str, data: Any = None, filename: str | None = None) -> Problem:
    """The problem of a model given as text; `filename` is what error messages call it."""
    from hcmodel.frontend import parse as parse_model

    return Problem.of(parse_model(text, data, filename))
