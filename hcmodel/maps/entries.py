"""Entries of one array with coordinates of their own.

The coordinates of a model are the variables or their logarithms, array by array. Where a model is written
with one array for quantities of different kinds,

    minimise x₁·x₂ + exp(x₃)/x₁ + (x₃ − 1)²,

x₁ and x₂ need their logarithms and x₃ needs to stay as it is. Each entry of the boxes becomes a variable
then, and the proof chooses for each of them. No value changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.map import Map, Obstacle, Step
from hcmodel.maps.positive import Parted, positivity

# Entries up to which each one becomes a variable: the search for coordinates tries them one by one.
MOST_ENTRIES = 60


class Entries(Map):
    """A variable for each entry; see the module."""

    name = "entries"
    summary = "each entry of an array is a variable, with a coordinate of its own"
    literature = "Boyd, Vandenberghe 2004, section 4.1.3"
    example = """
    # Two sides of a rectangle and a position that may be negative, in one array.
    param low[3]  = [0.1, 0.1, -5]
    param high[3] = [10, 10, 5]
    var x[3] in [low, high]

    minimize x[1]*x[2] + 1/x[1] + 1/x[2] + (x[3] + 1)^2

    subject to
        area: x[1]*x[2] >= 2
        shape: x[1] <= 3*x[2]
    """

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        if not model.is_original:
            return
        boxes = [each for each in model.variables if each.set.is_box and each.size]
        arrays = [each for each in boxes if each.size > 1]
        if not arrays or sum(each.size for each in boxes) > MOST_ENTRIES:
            return
        found = positivity(model)
        marks = {} if found is None else dict(found.marks)
        for variable in arrays:
            marks.setdefault(variable, np.ravel((variable.lower > 0) | variable.pos))
        if any(each.any() for each in marks.values()):
            parts = {variable: tuple(np.arange(variable.size)[:, None]) for variable in marks}
            by_objective = () if found is None else found.by_objective
            step = Parted.of(model, parts, marks, self.name, by_objective=by_objective)
            step.splits = True
            yield step
