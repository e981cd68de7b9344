"""`problem.report`: what the HTML report shows is gathered here, and drawn by `report/page.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcmodel.errors import HCError, ModelError
from hcmodel.expressions.output_files import as_path, write_text
from hcmodel.report.canvas import matplotlib_installed
from hcmodel.report.elasticities import elasticities
from hcmodel.report.page import Page, page_html
from hcmodel.solving.naming import Naming
from hcmodel.solving.solution import passed_on

if TYPE_CHECKING:
    from hcmodel.analysis.landscape import Landscape
    from hcmodel.expressions.model import Model
    from hcmodel.problem import Problem

# Unknowns of a model that can be drawn as a landscape, and grid points along an axis: fewer than for a
# picture of its own, since the page holds every line of it.
PLANE = 2
POINTS = 70


def report(problem: Problem, path: str | Path | None, title: str | None) -> str:
    """The page as text, written to `path` if that is given."""
    if path is not None:
        as_path(path)  # an error before the work, not after it
    if not isinstance(title, (str, type(None))):
        raise ModelError(f"the title of a report is a string, not {title!r}")
    if problem.solution is None:
        problem.solve()
        assert problem.solution is not None
        passed_on(problem.solution)
    solution = problem.solution
    analysis = problem.analysis or problem.analyze(samples=None)
    naming = Naming.of(problem.model)
    source = problem.source
    page = Page(
        title=title or _name(source) or "hcmodel report",
        model=problem.model,
        source=None if source is None else str(source.text),
        constraint_names=naming.constraints,
        solution=solution,
        analysis=analysis,
        hidden_model=_hidden_model(problem),
        landscape=_landscape(problem),
        elasticities=elasticities(problem.model, naming.constraints, solution, naming.first),
        parameters=_parameters(problem),
        relaxation=_relaxation(problem),
        first_index=naming.first,
    )
    text = page_html(page)
    if path is not None:
        write_text(path, text)
    return text


def _name(source: Any) -> str | None:
    """The name of the model's file."""
    filename = getattr(source, "filename", None)
    return None if not filename else Path(filename).name


def _hidden_model(problem: Problem) -> Model | None:
    """The model that a map of the catalogue made."""
    if problem.analysis is None or problem.analysis.model is None:
        return None
    substitution = problem.forms().discovery.substitution
    return None if substitution is None else substitution.after


def _landscape(problem: Problem) -> Landscape | None:
    """The landscape where there is one: other parts of the page do not depend on it."""
    if problem.model.layout.size != PLANE or not matplotlib_installed():
        return None
    try:
        return problem.landscape(points=POINTS)
    except HCError:
        return None


def _parameters(problem: Problem) -> tuple[tuple[str, float, float, float], ...]:
    """How the value moves with the parameters, where that is known."""
    if not problem.model.parameters or problem.status not in ("optimal", "locally_optimal"):
        return ()
    try:
        rows = problem.elasticities().rows
    except HCError:
        return ()
    return tuple(
        (each.name, each.at, each.derivative, each.elasticity)
        for each in rows
        if each.kind == "parameter"
    )


def _relaxation(problem: Problem) -> str | None:
    """How much which rows have to give, for models that are infeasible."""
    relax = getattr(problem, "relax", None)
    if problem.status not in ("infeasible", "infeasible_inaccurate") or relax is None:
        return None
    try:
        return str(relax())
    except HCError as error:
        return f"no relaxation was found: {error}"
