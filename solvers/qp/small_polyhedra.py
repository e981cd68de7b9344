"""Two programs over a small polyhedron {z: matrix @ z <= offset}, with a few unknowns and dense rows.

    lowest vertex    minimise cost·z        the dual simplex method (Lemke 1954)
    nearest point    minimise ½|z|²         the dual active-set method of Goldfarb and Idnani (1983)

Both begin without looking at most rows and take in the one that is violated most, so that a program which
differs by a few rows from the last one takes a few steps, each with one small system. Where numbers get
in the way there is no answer, and a general backend is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.numerics import BACKEND_ROUNDING, DATA_ROUNDING

FloatArray = NDArray[np.float64]

# Steps of one program, in multiples of the number of its rows and unknowns.
STEPS = 4  # either method takes fewer than one for each row unless it cycles (black_boxes.py)


@dataclass(frozen=True)
class Vertex:
    """The point where the rows `basis` meet, and their multipliers, which are nonnegative.

    `conflict` says that the rows, so weighed, contradict each other: then there is no point.
    """

    point: FloatArray
    basis: tuple[int, ...]
    weights: FloatArray
    conflict: bool = False


def lowest_vertex(
    matrix: FloatArray, offset: FloatArray, cost: FloatArray, basis: Sequence[int]
) -> Vertex | None:
    """The least value of cost·z; None where rounding leaves no answer.

    `basis` are as many rows as unknowns, with cost = −Σ weights·rows and nonnegative weights: they show
    that the value is bounded.
    """
    rows = list(basis)
    for _ in range(STEPS * (offset.size + cost.size)):
        try:
            inverse = np.linalg.inv(matrix.take(rows, 0))
        except np.linalg.LinAlgError:
            return None
        weights = (-(cost @ inverse)).tolist()  # numbers of Python are faster than short arrays
        if not min(weights) >= -BACKEND_ROUNDING * max(weights):
            return None
        point = inverse @ offset.take(rows)
        missing = matrix @ point - offset
        worst = int(missing.argmax())
        size = 1.0 + max(map(abs, point.tolist()))
        excess = float(missing[worst])
        if not excess > DATA_ROUNDING * size:
            found = Vertex(point, tuple(rows), np.maximum(weights, 0.0))
            return found if np.isfinite(point).all() else None
        shares = (matrix[worst] @ inverse).tolist()
        leaving, least = -1, np.inf
        for place, share in enumerate(shares):
            if share > DATA_ROUNDING and weights[place] < least * share:
                leaving, least = place, weights[place] / share
        if leaving < 0:
            weighed = np.concatenate([np.maximum(-np.array(shares), 0.0), [1.0]])
            clear = excess > BACKEND_ROUNDING * size
            return Vertex(point, (*rows, worst), weighed, conflict=True) if clear else None
        rows[leaving] = worst
    return None


def nearest_point(matrix: FloatArray, offset: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """The point of the polyhedron that is nearest to 0, and the multipliers of the rows.

    Rows have length 1, or 0, and an infinite offset leaves a row out. None where there is no such point,
    or rounding hides it.
    """
    point, weights = np.zeros(matrix.shape[1]), np.zeros(offset.size)
    missing, active = -offset, list[int]()
    for _ in range(STEPS * (offset.size + point.size)):
        worst = int(missing.argmax())
        if not missing[worst] > DATA_ROUNDING * (1.0 + max(map(abs, point.tolist()))):
            return (point, weights) if np.isfinite(point).all() else None
        if worst in active:
            return None
        moved = _with_row(matrix, float(missing[worst]), worst, active, weights)
        if moved is None:
            return None
        point = -(weights @ matrix)
        missing = matrix @ point - offset
    return None


def _with_row(
    matrix: FloatArray, missing: float, row: int, active: list[int], weights: FloatArray
) -> bool | None:
    """Changes the active rows and their weights until another row is one of them.

    The point is −Σ weights·rows. None where the row contradicts the active ones.
    """
    normal, none = matrix[row], np.zeros(0)
    while True:
        shares, across = none, normal
        if len(active) == 1:
            own = matrix[active]
            shares = own @ normal  # the row has length 1
            across = normal - shares @ own
        elif active:
            own = matrix.take(active, 0)
            try:
                shares = np.linalg.solve(own @ own.T, own @ normal)
            except np.linalg.LinAlgError:
                return None
            across = normal - shares @ own
        slope = float(across @ across)
        # how far a weight of an active row falls to 0, and how far the row is from being satisfied
        most, first = np.inf, -1
        for place, share in enumerate(shares.tolist()):
            if share > 0 and weights[active[place]] < most * share:
                most, first = float(weights[active[place]]) / share, place
        whole = missing / slope if slope > DATA_ROUNDING else np.inf
        length = min(most, whole)
        if not np.isfinite(length):
            return None
        if active:
            weights[active] -= length * shares
        weights[row] += length
        if whole <= most:
            active.append(row)
            return True
        missing -= length * slope
        weights[active.pop(first)] = 0.0
