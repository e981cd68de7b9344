"""Certified curves of the optimal value over a parameter that stands affinely in the objective only.

With V(p) = min over x in X of f(x) + p·g(x), every feasible x gives a line above V, so that V is concave,
whatever f, g and X are. The points of a sweep give these lines, and their certified lower bounds give
chords below V. The next point is where the lines of two neighbours meet, which is where the curves are
farthest apart. For a maximisation all signs are the opposite.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np

from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.facts.bits import AFFINE
from hcmodel.facts.curvature import Curvatures
from hcmodel.facts.node_facts import Facts
from hcmodel.records import dataclass
from hcmodel.report.sweeps import SweepProgress
from hcmodel.solving.judge import Status
from hcmodel.solving.naming import named_point
from hcmodel.studies.grid import Point
from hcmodel.studies.point_batches import Batches
from hcmodel.studies.sweep_table import SweepRow
from hcmodel.studies.value_curve import Line, Scale, ValueCurve, interval_width

if TYPE_CHECKING:
    from hcmodel.problem import Problem


def is_affine_in_objective(model: Model, name: str) -> bool:
    """Whether the objective is affine in the parameter for every x, and no constraint has it."""
    parameter = next(each for each in model.parameters if each.name == name)
    sides = [side for each in model.constraints for side in (each.lhs, each.rhs)]
    outside = topological_order([*sides, *(model.hidden or ())])
    if any(node is parameter for node in outside):
        return False
    middle = named_point(model.layout, make_domain(model.variables).middle())
    new: dict[int, Expression] = {id(parameter): Variable(parameter.shape, name="p")}
    for variable in model.variables:
        new[id(variable)] = Parameter(variable.shape, variable.name, middle[variable.name])
    root = model.objective.expression
    for node in topological_order([root]):
        if isinstance(node, Apply) and any(id(argument) in new for argument in node.args):
            arguments = tuple(new.get(id(argument), argument) for argument in node.args)
            new[id(node)] = Apply(node.atom, arguments, node.params, node.shape)
    facts = Facts()
    known = facts[new.get(id(root), root)]
    return bool(Curvatures(facts, 0).channels[known.number][0] == AFFINE)


@dataclass
class AffineSearch:
    """An adaptive sweep over a parameter of the objective while it runs. W is −V for a minimisation."""

    problem: Problem
    name: str
    batches: Batches
    progress: SweepProgress
    ends: tuple[float, float]
    width: float = 0.0
    """The distance between the curves that is allowed."""
    lines: dict[float, Line] = field(default_factory=dict)
    points: list[tuple[float, float]] = field(default_factory=list)
    rows: list[SweepRow] = field(default_factory=list)
    solves: int = 0

    @property
    def scale(self) -> Scale:
        return Scale(-self.problem.model.sign, log_value=False, log_parameter=False)

    def take(self, row: SweepRow) -> bool:
        """A solved point: its line, and its certified bound. False where nothing is certified."""
        self.solves += 1
        self.rows.append(row)
        self.progress.row(row)
        q = float(row.parameters[self.name])
        if row.status != Status.OPTIMAL.value or row.lower_bound is None or q in self.lines:
            return False
        sign = self.scale.sign
        first, last = (sign * self._objective(row, end) for end in self.ends)
        slope = (last - first) / (self.ends[1] - self.ends[0])
        self.lines[q] = Line(slope, first - slope * self.ends[0])
        self.points.append((q, sign * row.lower_bound))
        self.points.sort()
        return True

    def _objective(self, row: SweepRow, at: float) -> float:
        """The objective at the point of a row, for another value of the parameter."""
        for variable in self.problem.variables:
            variable._write(row.variables[variable.name], "solve")
        self.problem.parameters[self.name].value = at
        return float(np.asarray(self.problem.objective.expression.value).reshape(-1)[0])

    def run(self, most: int) -> None:
        """Solve where neighbours' lines meet until no interval is too wide."""
        given_up: set[tuple[float, float]] = set()
        while self.solves < most:
            wide = self._wide(given_up)
            if not wide:
                return
            chosen = wide if self.batches.parallel else wide[:1]
            points = [self._between(first, last) for first, last in chosen]
            for (first, last), row in zip(
                chosen, self.batches.rows(self.problem, points), strict=True
            ):
                if not self.take(row):
                    given_up.add((first[0], last[0]))

    def _wide(
        self, given_up: set[tuple[float, float]]
    ) -> list[tuple[tuple[float, float], tuple[float, float]]]:
        """The intervals that are too wide, the widest first."""
        lines = list(self.lines.values())
        intervals = zip(self.points[:-1], self.points[1:], strict=True)
        found = [(interval_width(*each, lines), each) for each in intervals]
        found.sort(key=lambda pair: -pair[0])
        return [
            each
            for width, each in found
            if width > self.width and (each[0][0], each[1][0]) not in given_up
        ]

    def _between(self, first: tuple[float, float], last: tuple[float, float]) -> Point:
        """Where the lines of both ends meet, else the middle; from the solution at the first end."""
        one, other = self.lines[first[0]], self.lines[last[0]]
        place = (first[0] + last[0]) / 2
        if one.slope != other.slope:
            meeting = (one.offset - other.offset) / (other.slope - one.slope)
            place = meeting if first[0] < meeting < last[0] else place
        near = next(row for row in self.rows if float(row.parameters[self.name]) == first[0])
        return Point(0, {self.name: np.array(place)}, near.variables)

    def curve(self, accuracy: float) -> ValueCurve:
        lines = tuple(self.lines.values())
        return ValueCurve(self.name, self.scale, tuple(self.points), lines, accuracy, self.solves)
