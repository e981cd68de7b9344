"""Sharp local minima at kinks: points from which the objective rises in every feasible direction.

Around a point each function is read off at many nearby points. If it is there the largest of its linear
pieces (a convex kink; a concave one fails this test), the pieces are rows of a small linear program.
Where that program says that every step raises the objective at a positive rate, curvature cannot
change it, and the point is a strict local minimum.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.analysis.analysis_options import SHARP, STATIONARY
from hcmodel.analysis.hidden_map import OBJECTIVE, HiddenMap, MapPoint
from hcmodel.analysis.segments import inside
from hcmodel.analysis.stationary import Stationary
from hcmodel.records import dataclass
from hcmodel.solvers.numerics import TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class _Pieces:
    """Linear pieces of one function at a point: values and gradients, one a row."""

    values: FloatArray
    gradients: FloatArray


def sharp_minimum(
    model: HiddenMap,
    start: FloatArray,
    generator: np.random.Generator,
    known: Sequence[FloatArray] = (),
) -> Stationary | None:
    """The sharp minimum that steps by linear programs reach from `start`, if there is one.

    A descent that comes near a point of `known` is given up.
    """
    if not model.domain.is_box or model.domain.dimension > SHARP.largest_dimension:
        return None
    x, radius = model.domain.project(start), SHARP.first_radius
    if any(np.all(np.abs(x - y) <= SHARP.known_start * model.domain.metric(x)) for y in known):
        return None
    last = np.zeros(x.size)
    for _ in range(SHARP.descent_steps):
        step = _descent(model, x, radius, generator)
        if step is None:
            return None
        length = float(np.max(np.abs(step[0]) / model.domain.metric(x)))
        x = model.domain.project(x + step[0])
        if length < SHARP.short * radius:
            radius *= SHARP.short_decrease
        elif float(step[0] @ last) < 0.0:  # to and fro
            radius *= SHARP.turn_decrease
        last = step[0]
        if radius < 0.5 * SHARP.final_radius:
            break
        reach = max(radius, SHARP.known) * model.domain.metric(x)
        if radius < SHARP.shrunk * SHARP.first_radius and any(
            np.all(np.abs(x - y) <= reach) for y in known
        ):
            return None
    point = model.at(model.domain.snapped(x, STATIONARY.near))
    if not (point.finite and inside(model, point.point) and point.violation <= SHARP.feasible):
        return None
    return _shown(model, point, generator)


def _shown(model: HiddenMap, point: MapPoint, generator: np.random.Generator) -> Stationary | None:
    """The point with multipliers, if the objective rises in every direction of the pieces."""
    x = point.point
    pieces = _read(model, x, SHARP.final_radius, generator)
    if pieces is None or not _are_largest(model, x, pieces, generator):
        return None
    found = _descent(model, x, SHARP.final_radius, generator)
    if found is None:
        return None
    program = _program(model, x, SHARP.final_radius, pieces, elastic=False)
    for entry in range(x.size):
        for wanted in (1.0, -1.0):
            bounds = list(program.arguments["bounds"])
            low, high = bounds[entry]
            if not low <= wanted <= high:
                continue  # X ends there
            bounds[entry] = (wanted, wanted)
            solved = scipy.optimize.linprog(**{**program.arguments, "bounds": bounds})
            if solved.status == 2:
                continue  # no feasible step goes there
            if solved.status != 0 or not solved.x[x.size] > SHARP.least_rise:
                return None
    return Stationary(point, found[1], np.flatnonzero(found[1]), None, sharp=True)


def _descent(
    model: HiddenMap, x: FloatArray, radius: float, generator: np.random.Generator
) -> tuple[FloatArray, FloatArray] | None:
    """The best step within the radius by the linear pieces, and the multipliers of the rows.

    Rows that cannot be satisfied within the radius are violated at a price.
    """
    pieces = _read(model, x, radius, generator)
    if pieces is None:
        return None
    program = _program(model, x, radius, pieces, elastic=True)
    solved = scipy.optimize.linprog(**program.arguments)
    if solved.status != 0:
        return None
    multipliers = np.zeros(model.rows)
    prices = -np.asarray(solved.ineqlin.marginals)
    for owner, sign, size, price in zip(
        program.owners, program.signs, program.sizes, prices, strict=True
    ):
        if owner != OBJECTIVE:
            multipliers[owner] += sign * price * program.size / size
    metric = np.asarray(model.domain.metric(x))
    return np.asarray(solved.x[: x.size]) * radius * metric, multipliers


@dataclass(frozen=True)
class _Program:
    """A linear program in steps s of at most one radius, t for the objective, v for the rows.

    Each row of it belongs to a function, with a sign, and is divided by a size.
    """

    arguments: dict[str, Any]
    owners: list[int]
    signs: list[float]
    sizes: list[float]
    size: float


def _program(
    model: HiddenMap, x: FloatArray, radius: float, pieces: dict[int, _Pieces], *, elastic: bool
) -> _Program:
    """min t + price·v: objective pieces <= t, row pieces <= v, all in units of one radius."""
    domain = model.domain
    metric = np.asarray(domain.metric(x))
    rows, limits, owners, signs, sizes = [], [], [], [], []
    size = 1.0
    for function, piece in pieces.items():
        natural = piece.gradients * metric * radius
        largest = max(float(np.max(np.abs(natural), initial=0.0)), TINY)
        values = piece.values
        if function == OBJECTIVE:
            size, values = largest, values - np.max(values)
        for sign in (1.0, -1.0) if function >= model.inequalities else (1.0,):
            columns = np.full(
                (values.size, 2), [-1.0, 0.0] if function == OBJECTIVE else [0.0, -1.0]
            )
            rows.append(np.hstack([sign * natural / largest, columns]))
            limits.append(-sign * values / largest)
            owners += [function] * values.size
            signs += [sign] * values.size
            sizes += [largest] * values.size
    lower, upper = domain.entry_bounds()
    low = np.maximum((lower - x) / (metric * radius), -1.0)
    high = np.minimum((upper - x) / (metric * radius), 1.0)
    bounds = [*zip(low.tolist(), high.tolist(), strict=True), (None, None)]
    arguments = {
        "c": np.concatenate([np.zeros(x.size), [1.0, SHARP.price]]),
        "A_ub": np.vstack(rows),
        "b_ub": np.concatenate(limits),
        "bounds": [*bounds, (0.0, None if elastic else 0.0)],
    }
    return _Program(arguments, owners, signs, sizes, size)


def _read(
    model: HiddenMap, x: FloatArray, radius: float, generator: np.random.Generator
) -> dict[int, _Pieces] | None:
    """The pieces of the objective and of the rows near their bound, from points around x."""
    around = _around(model, x, radius, generator)
    here = model.at(x)
    if not here.finite or any(not point.finite for point in around):
        return None
    metric = np.asarray(model.domain.metric(x))
    found: dict[int, _Pieces] = {}
    for function in (OBJECTIVE, *range(model.rows)):
        at = [here, *around]
        gradients = np.array([point.gradient(function) for point in at])
        if not np.isfinite(gradients).all():
            return None
        values = np.array([_value(point, function) for point in at])
        shifts = np.array([x - point.point for point in at])
        linear = values + np.sum(gradients * shifts, axis=1)
        slope = float(np.max(np.abs(gradients) @ metric, initial=0.0))
        if 0 <= function < model.inequalities and linear.max() < -SHARP.reach * radius * slope:
            continue  # out of reach
        found[function] = _distinct(linear, gradients, metric, slope)
    return found


def _distinct(
    values: FloatArray, gradients: FloatArray, metric: FloatArray, slope: float
) -> _Pieces:
    """One piece for each cluster of gradients, which differ by more than curvature explains."""
    kept: list[int] = []
    for i in range(values.size):
        apart = np.abs(gradients[kept] - gradients[i]) @ metric
        if not kept or apart.min() > SHARP.distinct * slope:
            kept.append(i)
    return _Pieces(values[kept], gradients[kept])


def _are_largest(
    model: HiddenMap, x: FloatArray, pieces: dict[int, _Pieces], generator: np.random.Generator
) -> bool:
    """Whether each function is, near x, the largest of its pieces: a convex kink."""
    for point in _around(model, x, SHARP.final_radius, generator):
        for function, piece in pieces.items():
            predicted = float(np.max(piece.values + piece.gradients @ (point.point - x)))
            metric = np.asarray(model.domain.metric(x))
            slope = float(np.max(np.abs(piece.gradients) @ metric, initial=0.0))
            allowed = SHARP.distinct * SHARP.final_radius * max(slope, TINY)
            if abs(_value(point, function) - predicted) > allowed:
                return False
            if function >= model.inequalities and piece.values.size > 1:
                return False  # a kinked equality
    return True


def _around(
    model: HiddenMap, x: FloatArray, radius: float, generator: np.random.Generator
) -> list[MapPoint]:
    metric = np.asarray(model.domain.metric(x))
    steps = (
        generator.uniform(-1.0, 1.0, size=(2 * x.size + SHARP.more_points, x.size))
        * radius
        * metric
    )
    return [model.at(model.domain.project(x + step)) for step in steps]


def _value(point: MapPoint, function: int) -> float:
    return point.objective if function == OBJECTIVE else float(point.rows[function])
