"""Adaptive sweeps: as few solves as possible for a certified curve of the optimal value.

The first solve touches the curve where it is farthest below the chord of the whole range. From there the
slopes go outwards in steps that are as long as the accuracy allows by the curvature seen so far; on a
quadratic with W″ = κ, neighbours with slopes Δs apart leave Δs²/(4κ) between chord and tangents.
Intervals that are still too wide are split where their chord is farthest from the curve.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field, replace
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.atoms import log
from hcmodel.errors import ModelError, SolverError
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Parameter, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.substitution import Substitution
from hcmodel.report.sweeps import SweepProgress
from hcmodel.solving.judge import Status
from hcmodel.studies.affine_parameter import AffineSearch, is_affine_in_objective
from hcmodel.studies.grid import Grid, Point
from hcmodel.studies.point_batches import Batches
from hcmodel.studies.sweep_table import SweepRow
from hcmodel.studies.value_curve import Line, Scale, ValueCurve, interval_width

if TYPE_CHECKING:
    from hcmodel.problem import Problem

# Share of the allowed width that a step aims at; the rest is for a curvature other than estimated.
AIM = 0.96
# Most that the logarithm of the curvature may change by extrapolation.
MOST_CHANGE = 2.0
# Steps to the end of the range from which on the rest is divided into equal ones.
EVEN_STEPS = 3
# Solves after which an adaptive sweep ends, whatever its width is.
MOST_SOLVES = 500
# Steps, relative to where they start, that are lost to the tolerance of a solve.
SMALLEST_STEP = 1e-7


@dataclass(frozen=True)
class Contact:
    """A point of the curve and the slope there."""

    q: float
    w: float
    slope: float


@dataclass
class Tilted:
    """The model with its parameter as a variable, and an objective w(x, q) − s·q for a slope s."""

    problem: Problem
    parameter: Variable
    slope: Parameter
    scale: Scale
    ends: tuple[float, float]

    @property
    def names(self) -> tuple[str, ...]:
        return self.problem.variables.names

    @staticmethod
    def of(problem: Problem, name: str, ends: tuple[float, float], positive: bool) -> Tilted | None:
        """The first scale in which the model is proven convex; None where there is none.

        `positive` says that the value is at both ends, so that it has a logarithm.
        """
        sign = problem.model.sign
        pairs = [(True, True), (False, False), (True, False), (False, True)]
        for log_value, log_parameter in pairs:
            if (log_parameter and ends[0] <= 0) or (log_value and not positive):
                continue
            found = _tilted(problem, name, ends, Scale(sign, log_value, log_parameter))
            if found is not None:
                return found
        return None


def _tilted(problem: Problem, name: str, ends: tuple[float, float], scale: Scale) -> Tilted | None:
    model = problem.model
    variable = Variable(name=f"{name}'", bounds=ends, pos=ends[0] > 0)
    parameter = next(each for each in model.parameters if each.name == name)
    # Of this sign the tilt is convex in the wanted coordinate of the parameter only.
    sign = -1.0 if scale.log_parameter else 1.0
    slope = Parameter(name="slope of the curve", value=sign)
    new: dict[int, Expression] = {id(parameter): variable}
    for node in topological_order(model.roots):
        if isinstance(node, Apply) and any(id(argument) in new for argument in node.args):
            arguments = tuple(new.get(id(argument), argument) for argument in node.args)
            new[id(node)] = Apply(node.atom, arguments, node.params, node.shape)
    constraints = []
    for position, constraint in enumerate(model.constraints):
        sides = (new.get(id(side), side) for side in (constraint.lhs, constraint.rhs))
        copy = constraint.like(*sides)
        copy.name = constraint.name or f"c{position + 1}"
        constraints.append(copy)
    objective = new.get(id(model.objective.expression), model.objective.expression)
    w = log(objective) if scale.log_value else objective
    q = log(variable) if scale.log_parameter else variable
    tilted = Model(Minimize(scale.sign * w - slope * q), tuple(constraints))
    joint = type(problem).of(tilted)
    form = joint.forms().hidden()
    if form is None or form.proof is None or not form.proof.proven or _leaves_bounds_out(form):
        return None
    kinds = {each.name: kind for each, kind in form.proof.coordinates.items()}
    if kinds.get(variable.name) != ("log" if scale.log_parameter else "identity"):
        return None
    return Tilted(joint, variable, slope, scale, ends)


def _leaves_bounds_out(form: Form) -> bool:
    """Whether the set on which the form is convex is larger than the model's: V is not convex then."""
    released = [step.released for step in form.chain.steps if isinstance(step, Substitution)]
    return form.released is not None or any(released)


@dataclass(frozen=True)
class Curvature:
    """An estimate of W″ near a place: its size there and how fast its logarithm changes."""

    place: float
    size: float
    trend: float

    @staticmethod
    def around(middle: Contact, low: tuple[float, float], high: tuple[float, float]) -> Curvature:
        """From the heights of both ends over the tangent in the middle.

        Each height is κd²/2 with a mean of W″ whose weight is centred at a third of the distance d.
        """
        sizes, places = [], []
        for q, w in (low, high):
            distance = abs(q - middle.q)
            height = w - (middle.w + middle.slope * (q - middle.q))
            if distance > 0 and height > 0:
                sizes.append(2 * height / distance**2)
                places.append(middle.q + (q - middle.q) / 3)
        if len(sizes) < 2:
            return Curvature(middle.q, sizes[0] if sizes else 1.0, 0.0)
        trend = math.log(sizes[1] / sizes[0]) / (places[1] - places[0])
        return Curvature(places[0], sizes[0], trend)

    def at(self, place: float) -> float:
        change = self.trend * (place - self.place)
        return self.size * math.exp(min(max(change, -MOST_CHANGE), MOST_CHANGE))

    def followed_by(self, place: float, size: float) -> Curvature:
        """The estimate after one more interval has shown its curvature."""
        if size <= 0 or place == self.place:
            return self
        return Curvature(place, size, math.log(size / self.size) / (place - self.place))


def _even_share(steps: float) -> float:
    """The share of a full step with which the rest of a range is divided evenly, 1 where it is long.

    The last interval has a line at one end only, and is shorter by √2.
    """
    last = 1 / math.sqrt(2)
    count = max(1, math.ceil(steps - last))
    return 1.0 if count > EVEN_STEPS else steps / (count + last)


@dataclass
class Search:
    """An adaptive sweep while it runs: points of the curve, lines below it, and the rows of the table."""

    tilted: Tilted
    name: str
    batches: Batches
    progress: SweepProgress
    width: float = 0.0
    """The distance between the curves that is allowed."""
    lines: list[Line] = field(default_factory=list)
    points: list[tuple[float, float]] = field(default_factory=list)
    rows: list[SweepRow] = field(default_factory=list)
    solves: int = 0
    most: int = 0

    def take_end(self, row: SweepRow) -> None:
        """A solved end of the range."""
        q = float(self.tilted.scale.q(row.parameters[self.name]))
        self._add(row, q, float(self.tilted.scale.w(row.value)))

    def _add(self, row: SweepRow, q: float, w: float) -> None:
        self.solves += 1
        self.rows.append(row)
        self.progress.row(row)
        if all(q != known for known, _ in self.points):
            self.points.append((q, w))
            self.points.sort()

    def touch(self, slope: float) -> Contact | None:
        """The line of this slope below the curve, and where it touches; None where the solve failed."""
        return self._touched([(slope, self.rows[-1])])[0]

    def _touched(self, slopes: Sequence[tuple[float, SweepRow]]) -> list[Contact | None]:
        """The contacts of several slopes, each with the row whose point is its start."""
        tilted = self.tilted
        points = []
        for slope, last in slopes:
            start = {name: value for name, value in last.variables.items() if name in tilted.names}
            start[tilted.parameter.name] = last.parameters[self.name]
            points.append(Point(0, {tilted.slope.name: np.array(slope)}, start))
        rows = self.batches.rows(tilted.problem, points)
        return [self._contact(slope, row) for (slope, _), row in zip(slopes, rows, strict=True)]

    def _contact(self, slope: float, row: SweepRow) -> Contact | None:
        """Where the line of a solve touches the curve; None where nothing is certified."""
        tilted = self.tilted
        if row.status != Status.OPTIMAL.value or row.lower_bound is None or row.value is None:
            self.solves += 1
            return None
        line = Line(slope, row.lower_bound)
        self.lines.append(line)
        parameter = float(np.clip(row.variables[tilted.parameter.name], *tilted.ends))
        q = float(tilted.scale.q(parameter))
        contact = Contact(q, row.value + slope * q, slope)
        self._add(self._row(parameter, contact, line, row), q, contact.w)
        return contact

    def _row(self, parameter: float, contact: Contact, line: Line, row: SweepRow) -> SweepRow:
        """The touching point as a row of a sweep, in the units of the model."""
        scale = self.tilted.scale
        value = float(scale.value(contact.w))
        factor = abs(value) if scale.log_value else 1.0
        bound = float(scale.value(line.at(contact.q)))
        row = row.at(Point(len(self.rows), {self.name: np.array(parameter)}))
        variables = {n: x for n, x in row.variables.items() if n != self.tilted.parameter.name}
        return replace(
            row,
            value=value,
            lower_bound=bound,
            gap=max(abs(value - bound), 0.0),
            variables=variables,
            duals={name: factor * dual for name, dual in row.duals.items()},
        )

    @property
    def scale(self) -> Scale:
        return self.tilted.scale

    # ---- where to touch next

    def run(self, most: int) -> None:
        """Touch the curve until no interval is too wide, or `most` solves are done.

        One worker goes outwards from the middle, each step as long as possible. Several split all
        intervals at once, which takes more solves and less time.
        """
        self.most = most
        (q0, w0), (q1, w1) = self.points
        middle = self.touch((w1 - w0) / (q1 - q0))
        if middle is None:
            return
        if not self.batches.parallel:
            curvature = Curvature.around(middle, (q0, w0), (q1, w1))
            self.march(middle, (q0, w0), curvature)
            self.march(middle, (q1, w1), curvature)
        self.split()

    def march(self, first: Contact, end: tuple[float, float], seen: Curvature) -> None:
        """Touch the curve from a contact towards an end, in steps as long as the width allows."""
        direction = 1.0 if end[0] > first.q else -1.0
        last = first
        while self.solves < self.most:
            left = abs(end[0] - last.q)
            excess = end[1] - (last.w + last.slope * (end[0] - last.q))
            if left <= 0 or excess <= self.width:
                return
            length = self._step(seen.at(last.q))
            ahead = seen.at(last.q + direction * min(length, left) / 2)
            length = self._step(ahead)
            length *= _even_share(left / length)
            found = self.touch(last.slope + direction * ahead * length)
            moved = 0.0 if found is None else abs(found.q - last.q)
            if found is None or moved <= SMALLEST_STEP * (1 + abs(last.q)):
                return
            seen = seen.followed_by((found.q + last.q) / 2, abs(found.slope - last.slope) / moved)
            last = found

    def _step(self, curvature: float) -> float:
        return 2 * math.sqrt(AIM * self.width / curvature)

    def split(self) -> None:
        """Touch under the chord of the widest interval, or of all that are too wide, until none is."""
        given_up: set[tuple[float, float]] = set()
        while self.solves < self.most:
            intervals = list(zip(self.points[:-1], self.points[1:], strict=True))
            widths = [interval_width(*each, self.lines) for each in intervals]
            wide = [
                (width, first, last)
                for width, (first, last) in zip(widths, intervals, strict=True)
                if width > self.width and (first[0], last[0]) not in given_up
            ]
            if not wide:
                return
            wide = wide if self.batches.parallel else [max(wide)]
            chords = [(b[1] - a[1]) / (b[0] - a[0]) for _, a, b in wide]
            near = [
                self._nearest(a[0]) if self.batches.parallel else self.rows[-1] for _, a, _ in wide
            ]
            known = {q for q, _ in self.points}
            found = self._touched(list(zip(chords, near, strict=True)))
            for contact, (_, first, last) in zip(found, wide, strict=True):
                if contact is None or contact.q in known:
                    given_up.add((first[0], last[0]))

    def _nearest(self, q: float) -> SweepRow:
        scale = self.tilted.scale
        return min(self.rows, key=lambda row: abs(float(scale.q(row.parameters[self.name])) - q))

    def curve(self, accuracy: float) -> ValueCurve:
        return ValueCurve(
            self.name,
            self.tilted.scale,
            tuple(self.points),
            tuple(self.lines),
            accuracy,
            self.solves,
        )


@dataclass(frozen=True)
class Refined:
    """The rows of an adaptive sweep in order of the parameter, and its curves."""

    rows: tuple[SweepRow, ...]
    curve: ValueCurve
    interrupted: bool


def refine(
    problem: Problem,
    grid: Grid,
    accuracy: float,
    batches: Batches,
    progress: SweepProgress,
) -> Refined:
    """Solve where it is needed for curves within ± `accuracy`, of log V or relative to the size of V."""
    name, ends = _range(grid)
    first = _ends(problem, name, ends, batches)
    tilted = Tilted.of(problem, name, ends, all((row.value or 0.0) > 0 for row in first))
    search: Search | AffineSearch
    if tilted is not None:
        search = Search(tilted, name, batches, progress)
        for row in first:
            search.take_end(row)
    elif is_affine_in_objective(problem.model, name):
        search = AffineSearch(problem, name, batches, progress, ends)
        for row in first:
            if not search.take(row):
                raise SolverError(
                    f"an adaptive sweep needs certified bounds at both ends; at {name} = "
                    f"{float(row.parameters[name]):g} the status is {row.status}"
                )
    else:
        raise ModelError(
            f"adaptive=True bounds the value between the points, which needs a model that is proven "
            f"convex jointly in its variables and '{name}' (or their logarithms), or one whose objective "
            f"is affine in '{name}' and whose constraints do not have it, and this one is neither; sweep "
            "a grid instead: the points are certified all the same"
        )
    if not search.scale.log_value:
        accuracy *= max(abs(w) for _, w in search.points)
    search.width = 2.0 * accuracy
    interrupted = False
    try:
        search.run(MOST_SOLVES)
    except KeyboardInterrupt:
        interrupted = True
    rows = sorted(search.rows, key=lambda row: float(row.parameters[name]))
    numbered = tuple(replace(row, number=number) for number, row in enumerate(rows))
    return Refined(numbered, search.curve(accuracy), interrupted)


def _ends(
    problem: Problem, name: str, ends: tuple[float, float], batches: Batches
) -> list[SweepRow]:
    """Both ends of the range, solved; without them there is no curve."""
    points = [Point(number, {name: np.array(end)}) for number, end in enumerate(ends)]
    rows = []
    for row in batches.rows(problem, points):
        if not row.is_solved:
            raise SolverError(
                f"an adaptive sweep needs a solution at both ends; at {name} = "
                f"{float(row.parameters[name]):g} the status is {row.status} {row.error}".rstrip()
            )
        rows.append(row)
    return rows


def _range(grid: Grid) -> tuple[str, tuple[float, float]]:
    if grid.axes is None or len(grid.parameters) != 1 or grid.starts:
        raise ModelError("adaptive=True is for one parameter: {cap: (lowest, highest)}")
    (name,) = grid.parameters
    values = grid.axes[name]
    if values.ndim != 1:
        raise ModelError(
            f"adaptive=True is for a parameter that is a number, and '{name}' is an array"
        )
    if not np.isfinite(values).all() or not values.min() < values.max():
        raise ModelError(
            f"an adaptive sweep needs a range of '{name}': two different finite values"
        )
    return name, (float(values.min()), float(values.max()))
