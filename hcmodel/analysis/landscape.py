"""A model of two unknowns on a grid: objective, rows and hidden coordinates, and the path of a method.

`hc.plot.landscape` draws it. The images of the grid in u come from x itself, so that no map has to be
inverted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.expressions.arguments import as_count
from hcmodel.expressions.model import Model
from hcmodel.maps.separable import LOG
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.substitution import Substitution
from hcmodel.solvers.loop import Recorder, Task, run
from hcmodel.solvers.methods import METHODS, find_method, make_options
from hcmodel.solvers.oracle import Budget, Oracle
from hcmodel.solving.judge import Status
from hcmodel.solving.naming import Naming

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution

FloatArray = NDArray[np.float64]
Image = Callable[[FloatArray], FloatArray]

# Unknowns of a model that can be drawn.
PLANE = 2
# Along an axis; a million evaluations.
MOST_POINTS = 1_000
# A window shows this many times the extent of the path where the bounds are further away than that, so
# that the level sets around it can be seen.
ROOM = 3.0
# Oracle calls of the path: pictures show tens of iterates, not thousands.
PATH_CALLS = 400
# The accuracy of the path, that of `solve`.
PATH_TOLERANCE = 1e-6
# By how much a point may lie outside of its set by rounding.
SLACK = 1e-9


@dataclass(frozen=True)
class Landscape:
    """Values on a grid of X, and where its points lie in U.

    `margin` is the largest inequality row, at most 0 where a point is feasible; `equalities` are rows
    that vanish at feasible points. `images` has the hidden coordinates of the grid, None where none are
    known. Steps are straight in the logarithms of the unknowns that `logs` marks.
    """

    names: tuple[str, str]
    first: FloatArray
    second: FloatArray
    objective: FloatArray
    margin: FloatArray | None
    equalities: tuple[FloatArray, ...]
    path: FloatArray
    method: str
    optimum: FloatArray | None
    value: float | None
    certified: bool
    feasible: bool
    maximise: bool
    proven: bool
    logs: NDArray[np.bool_]
    hidden_names: tuple[str, str] | None = None
    images: FloatArray | None = None
    path_images: FloatArray | None = None
    optimum_image: FloatArray | None = None


def survey(
    forms: Forms, solution: Solution, start: FloatArray, points: int, method: str | None
) -> Landscape:
    """The landscape of a model of two unknowns around the path from `start` to the solution."""
    as_count(points, "points", least=2, most=MOST_POINTS)
    if not isinstance(method, (str, type(None))):
        raise ModelError(f"method is the name of a method, not {method!r}")
    model = forms.user
    size = model.layout.size
    if size != PLANE or forms.written.canonical.layout.size != PLANE:
        raise ModelError(f"a landscape needs a model with 2 unknowns; this one has {size}")
    hidden = forms.hidden(model.source)
    form = hidden if hidden is not None else forms.lifted
    name = method or ("hidden-newton" if hidden is not None else "prox-linear")
    path = _path(forms, form, name, start)
    optimum = None
    if solution.point:
        optimum = model.layout.pack([solution.point[each.name] for each in model.variables])
    named = None if hidden is None else _coordinates(forms, hidden)
    logs = _logarithms(forms, hidden)
    shown = path if optimum is None else np.vstack([path, optimum])
    first, second = _window(model, shown, logs, points)
    objective, margin, equalities = _values(forms, first, second)
    found: dict[str, Any] = {}
    if named is not None:
        names, image = named
        grid = [[image(np.array([a, b])) for a in first] for b in second]
        found = {
            "hidden_names": names,
            "images": np.array(grid),
            "path_images": np.array([image(each) for each in path]),
            "optimum_image": None if optimum is None else image(optimum),
        }
    return Landscape(
        names=_entry_names(model),
        first=first,
        second=second,
        objective=objective * forms.sign.before.sign,
        margin=margin,
        equalities=equalities,
        path=path,
        method=name,
        optimum=optimum,
        value=solution.value,
        certified=solution.certificate.gap is not None,
        feasible=solution.status not in (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE),
        maximise=forms.sign.before.sign < 0,
        proven=hidden is not None and hidden.proof is not None,
        logs=logs & find_method(name).uses_coordinates,
        **found,
    )


def _path(forms: Forms, form: Form, name: str, start: FloatArray) -> FloatArray:
    """The iterates of a method, as points of the model; the start alone where the method cannot run."""
    try:
        entry = find_method(name)
    except ValueError as error:
        raise ModelError(str(error)) from None
    if entry.program is not None:
        stepping = ", ".join(each for each, its in METHODS.items() if its.program is None)
        raise ModelError(f"{name} has no iterates in x; a landscape can show those of {stepping}")
    if not (entry.second_order or entry.needs_smooth or entry.needs_coordinates):
        form = forms.written
    first = forms.written.domain.project(start)
    oracle = Oracle(form.stack, form.canonical.outer, budget=Budget(PATH_CALLS))
    geometry = form.geometry if entry.uses_coordinates else None
    stepping_method: Any = entry.make(
        make_options(entry, None)
    )  # no direct one, as was asked above
    recorder = Recorder(stepping_method)
    task = Task(oracle, form.domain, PATH_TOLERANCE, None, geometry, settle=form.settle)
    with np.errstate(all="ignore"):
        run(recorder, task, form.chain.point(first)).passed_on()
        points = [first, *(form.chain.point_back(point) for point in recorder.points)]
    return np.array([point for point in points if np.isfinite(point).all()])


def _entry_names(model: Model) -> tuple[str, str]:
    naming = Naming.of(model)
    names = [
        naming.entry(variable.name, index)
        for variable in model.variables
        for index in np.ndindex(variable.shape)
    ]
    return names[0], names[1]


def _logarithms(forms: Forms, hidden: Form | None) -> NDArray[np.bool_]:
    """Which unknowns have their logarithm as coordinate: their axes have equal ratios."""
    marks = np.zeros(PLANE, dtype=bool)
    if hidden is None or hidden.proof is None:
        return marks
    kinds = {variable.name: kind for variable, kind in hidden.proof.coordinates.items()}
    for variable in forms.user.variables:
        marks[forms.user.layout.slice(variable)] = kinds.get(variable.name) == LOG
    return marks


def _coordinates(forms: Forms, hidden: Form) -> tuple[tuple[str, str], Image] | None:
    """The names of two hidden coordinates and their values at a point; None where there are others."""
    if hidden.proof is None:
        return _declared(forms, hidden)
    steps = list(hidden.chain.steps)
    ends = [number for number, step in enumerate(steps) if isinstance(step, Substitution)]
    steps = steps[: ends[-1] + 1] if ends else []
    model = steps[-1].after if steps else forms.model
    kinds = {variable.name: kind for variable, kind in hidden.proof.coordinates.items()}
    naming = Naming.of(forms.user)
    names: list[str] = []
    places: list[int] = []
    logs: list[bool] = []
    for variable in model.variables:
        if variable in hidden.slacks:
            continue
        text = next((t for v, t in hidden.texts.items() if v.name == variable.name), variable.name)
        for index, place in zip(
            np.ndindex(variable.shape), model.layout.places(variable).reshape(-1), strict=True
        ):
            entry = naming.entry(text if text == variable.name else f"({text})", index)
            own = text if not index and text != variable.name else entry
            is_log = kinds.get(variable.name) == LOG
            names.append(f"log({own})" if is_log else own)
            places.append(int(place))
            logs.append(is_log)
    if len(places) != PLANE:
        return None
    marks = np.array(logs)

    def image(x: FloatArray) -> FloatArray:
        u = x
        for step in steps:
            u = step.point(u)
        u = np.asarray(u, dtype=float)[places]
        with np.errstate(all="ignore"):
            return np.where(marks, np.log(np.where(marks, u, 1.0)), u)

    return (names[0], names[1]), image


def _declared(forms: Forms, hidden: Form) -> tuple[tuple[str, str], Image] | None:
    """The entries of a declared map."""
    geometry = hidden.map_geometry
    parts = forms.user.hidden
    if geometry is None or parts is None or sum(part.size for part in parts) != PLANE:
        return None

    def image(x: FloatArray) -> FloatArray:
        return np.asarray(geometry.image(hidden.chain.point(x)), dtype=float)[:PLANE]

    return ("$u_1$", "$u_2$"), image


def _window(
    model: Model, shown: FloatArray, logs: NDArray[np.bool_], points: int
) -> tuple[FloatArray, FloatArray]:
    """Grids of the two unknowns: the bounds, or what surrounds the path where these are far away."""
    whole = [(v.lower, v.upper, v.shape) for v in model.variables]
    ends = [
        np.concatenate([np.broadcast_to(each[side], each[2]).reshape(-1) for each in whole])
        for side in (0, 1)
    ]
    grids = []
    for place in range(PLANE):
        scale, back = (np.log, np.exp) if logs[place] else (np.asarray, np.asarray)
        with np.errstate(all="ignore"):
            lower, upper = (float(scale(side[place])) for side in ends)
            inside = scale(shown[:, place])
        inside = inside[np.isfinite(inside)]
        least, most = float(inside.min()), float(inside.max())
        room = max(most - least, _unit(most, bool(logs[place])))
        low, high = max(lower, least - room), min(upper, most + room)
        if upper - lower <= ROOM * ROOM * room:
            low, high = lower, upper
        grids.append(np.asarray(back(np.linspace(low, high, points)), dtype=float))
    return grids[0], grids[1]


def _unit(size: float, is_log: bool) -> float:
    """The least extent of a window: a factor e, or the size of the number."""
    return 1.0 if is_log else max(abs(size), 1.0) / 2.0


def _values(
    forms: Forms, first: FloatArray, second: FloatArray
) -> tuple[FloatArray, FloatArray | None, tuple[FloatArray, ...]]:
    """Objective, largest inequality row and equality rows over the grid; NaN outside of X."""
    oracle, domain = forms.written.oracle(), forms.written.domain
    outer = forms.written.canonical.outer
    count = int(outer.inequalities)
    objective = np.full((second.size, first.size), np.nan)
    rows = np.full((second.size, first.size, outer.size), np.nan)
    with np.errstate(all="ignore"):
        for i, j in np.ndindex(objective.shape):
            point = np.array([first[j], second[i]])
            if domain.contains(point, SLACK):
                there = oracle.at(point)
                objective[i, j] = there.objective
                rows[i, j] = there.rows
    margin = rows[:, :, :count].max(axis=2) if count else None
    return objective, margin, tuple(rows[:, :, k] for k in range(count, int(outer.size)))
