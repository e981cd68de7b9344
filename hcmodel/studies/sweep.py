"""Sweeps: the same problem for many values of its parameters, from many starts, or for many scenarios.

The points are cut into runs of neighbours, by their number alone. Each run is solved in order by one
worker, every point from the solution of the one before, so that the table does not depend on where and
in which order the runs are solved.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.arguments import as_flag, shown
from hcmodel.expressions.model import Model
from hcmodel.expressions.output_files import as_path
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.records import dataclass
from hcmodel.report.sweeps import SweepProgress
from hcmodel.solving.naming import Naming, axes_of, named_point
from hcmodel.solving.request import SolveRequest, check_number
from hcmodel.studies.executors import dispatch
from hcmodel.studies.grid import MOST_POINTS, Grid, Point
from hcmodel.studies.journal import Journal, study_of
from hcmodel.studies.sweep_table import NOT_RUN, Layout, SweepRow, SweepTable
from hcmodel.studies.workers import Shipment, solve_points

if TYPE_CHECKING:
    from hcmodel.problem import Problem


@dataclass(frozen=True)
class SweepRequest:
    """How a sweep is run; see `Problem.sweep`."""

    executor: Any
    warm_start: bool
    progress: bool
    starts: int
    seed: int
    chunk: int | None
    file: str | Path | None
    resume: bool
    options: Mapping[str, Any]
    adaptive: bool = False
    accuracy: float = 1e-3
    """For `adaptive`: the certified curves are this close to their middle, relative to the value. Curves
    that are closer than 0.1 % cannot be told apart in a picture."""

    def checked(self, model: Model) -> SweepRequest:
        """The request, or an error that says which argument does not fit any point."""
        for name, number, least in (("starts", self.starts, 0), ("chunk", self.chunk, 1)):
            is_count = isinstance(number, int) and not isinstance(number, bool) and number >= least
            if number is not None and not is_count:
                raise ModelError(f"{name} is a whole number, at least {least}; not {shown(number)}")
        if (self.starts or 0) > MOST_POINTS:
            raise ModelError(f"starts is at most {MOST_POINTS}, not {shown(self.starts)}")
        for name in ("warm_start", "progress", "adaptive", "resume"):
            as_flag(getattr(self, name), name)
        if self.resume and self.file is None:
            raise ModelError("resume=True needs the file of the earlier sweep: file='runs.csv'")
        if self.adaptive:
            self._check_adaptive()
        SolveRequest.checked(
            model,
            **dict(self.options),
            optimal_value=None,
            start=None,
            warm_start=self.warm_start,
            rule="adaptive",
            constants=None,
            polish=False,
            callback=None,
        )
        return self

    def _check_adaptive(self) -> None:
        check_number("accuracy", self.accuracy, positive=True, needed=True)
        for name, given in (("starts", self.starts), ("file", self.file)):
            if given:
                raise ModelError(
                    f"adaptive=True chooses each point from those before it; {name} is for grids"
                )


def sweep(problem: Problem, given: Any, request: SweepRequest) -> SweepTable:
    """The table of a grid, of scenarios, or of starts."""
    request.checked(problem.model)
    if given is None:
        if not request.starts:
            raise ModelError("a sweep needs {parameter: values}, or starts=20 for random starts")
        given = {}
    grid = Grid.of(problem.model, given)
    if not grid.points:
        raise ModelError("a sweep needs at least one point")
    if request.adaptive:
        return _adaptive(problem, grid, request)
    if request.starts:
        grid = grid.repeated(sampled_starts(problem.model, request.starts, request.seed))
    layout = layout_of(problem.model, grid)
    journal = _journal(problem.model, grid, layout, request)
    known = _known(grid, journal)
    rows = dict(known)
    runs = _runs(grid, known, request.chunk)
    interrupted = False
    with SweepProgress(len(grid.points), len(rows), shown=request.progress) as progress:
        try:
            for row in _solved(problem, runs, request):
                rows[row.number] = row
                if journal is not None:
                    journal.append(row)
                progress.row(row)
        except KeyboardInterrupt:
            interrupted = True
    table = tuple(
        rows.get(point.number)
        or SweepRow.failed(point, "the sweep was interrupted before", NOT_RUN)
        for point in grid.points
    )
    if journal is not None:
        journal.finish(table)
    return SweepTable(table, layout, grid.axes, interrupted)


def _adaptive(problem: Problem, grid: Grid, request: SweepRequest) -> SweepTable:
    """The table of an adaptive sweep, with its curves."""
    from hcmodel.studies.adaptive import refine
    from hcmodel.studies.point_batches import Batches

    with (
        Batches(request.executor, request.options) as batches,
        SweepProgress(None, 0, shown=request.progress) as progress,
        restored(problem),
    ):
        found = refine(problem, grid, request.accuracy, batches, progress)
    layout = layout_of(problem.model, grid)
    return SweepTable(found.rows, layout, None, found.interrupted, found.curve)


def layout_of(model: Model, grid: Grid) -> Layout:
    """The columns of the table, which are known before anything is solved."""
    naming = Naming.of(model)
    leaves = {each.name: each.shape for each in model.parameters}
    leaves |= {each.name: each.shape for each in model.variables}
    duals = {
        name: naming.dual(position, np.zeros(constraint.shape)).shape
        for position, (name, constraint) in enumerate(
            zip(naming.constraints, model.constraints, strict=True)
        )
    }
    return Layout(
        {name: leaves[name] for name in grid.parameters},
        {name: leaves[name] for name in grid.starts},
        {variable.name: variable.shape for variable in model.variables},
        duals,
        naming.first,
        axes_of(model),
    )


def sampled_starts(model: Model, count: int, seed: int) -> list[dict[str, Any]]:
    """Random points of the variables' sets, the same ones for the same seed."""
    domain, generator = make_domain(model.variables), np.random.default_rng(seed)
    return [named_point(model.layout, domain.sample(generator)) for _ in range(count)]


def _journal(model: Model, grid: Grid, layout: Layout, request: SweepRequest) -> Journal | None:
    if request.file is None:
        return None
    path = as_path(request.file)
    if not path.parent.is_dir():
        raise DataError(f"{path}: there is no folder {path.parent}")
    options = {**request.options, "warm_start": request.warm_start, "chunk": request.chunk}
    journal = Journal(path, layout, study_of(model, grid.parameters, options))
    if request.resume:
        journal.read()
    journal.open()
    return journal


def _known(grid: Grid, journal: Journal | None) -> dict[int, SweepRow]:
    """The rows that the file has already, by their number."""
    if journal is None or not journal.known:
        return {}
    found = {}
    for point in grid.points:
        row = journal.known.get(point.key())
        if row is not None:
            found[point.number] = row.at(point)
    return found


def _runs(grid: Grid, known: Mapping[int, SweepRow], chunk: int | None) -> list[tuple[Point, ...]]:
    """Neighbours that are solved in order; √n of them, which makes as many runs as points in one."""
    length = chunk or math.ceil(math.sqrt(len(grid.order)))
    runs = []
    for first in range(0, len(grid.order), length):
        places = [place for place in grid.order[first : first + length] if place not in known]
        if places:
            runs.append(tuple(grid.points[place] for place in places))
    return runs


def _solved(
    problem: Problem, runs: Sequence[Sequence[Point]], request: SweepRequest
) -> Iterator[SweepRow]:
    """The rows as they are found, here or by workers; ends with KeyboardInterrupt where that came."""
    if request.executor is None:
        with restored(problem):
            for run in runs:
                for row in solve_points(problem, run, request.warm_start, request.options):
                    if row is None:
                        raise KeyboardInterrupt
                    yield row
        return
    with Shipment(problem) as shipment:
        tasks = [shipment.task(run, request.warm_start, request.options) for run in runs]
        sent = dispatch(request.executor, shipment, tasks)
        yield from sent.rows()
        if sent.was_interrupted:
            raise KeyboardInterrupt


@contextmanager
def restored(problem: Problem) -> Iterator[None]:
    """What a study sets and solves inside leaves the problem as it was."""
    parameters = [(parameter, parameter.value) for parameter in problem.parameters]
    values = [(each, each.value, each._value_origin) for each in problem.variables]
    duals = [(constraint, constraint.dual_value) for constraint in problem.constraints]
    solution, asked = problem.solution, problem._asked
    is_current = problem._solved_for == problem._versions()
    try:
        yield
    finally:
        for parameter, value in parameters:
            parameter.value = value
        for variable, value, origin in values:
            variable._write(value, origin or "solve")
        for constraint, value in duals:
            constraint.dual_value = value
        problem.solution, problem._asked = solution, asked
        # the values are those of the solution again, though they were set anew
        problem._solved_for = problem._versions() if is_current else ()
