"""Irreducible conflicts: rows and bounds no one of which can be left out of a contradiction.

A proven model without a feasible point has a cone program whose least relaxation is above 0. Its
multipliers say which rows and bounds take part. Of these, one after the other is left out for as long as
what remains still contradicts itself (the deletion filter of Chinneck 2008, section 6.1); every program
that is still infeasible also drops what has no multiplier in it.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.layout import Layout
from hcmodel.records import dataclass
from hcmodel.reductions.cone import Cone, RelaxedCone
from hcmodel.reductions.forms import Form
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.solvers.qp import ConeOptions, ConeProgram, make_cone_backend, without_rows

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class ConflictRules:
    """How the programs of a deletion filter are read."""

    # Rows that have to give less than this, relatively, do not contradict each other.
    relaxed: float = 1e-7  # ten times the accuracy at which Clarabel still calls a program solved
    # The share of the largest multiplier below which a row takes no part.
    involved: float = 1e-6  # what an interior-point method leaves is about 1e-8
    # Rows and bounds up to which they are left out one by one.
    most: int = 500  # a program each, of milliseconds


RULES = ConflictRules()


@dataclass(frozen=True)
class Part:
    """A row or bound of the model, and the rows of the program that say it."""

    origin: Origin | BoundOrigin
    rows: IndexArray


def irreducible_conflict(
    form: Form, deadline: float | None = None
) -> tuple[Origin | BoundOrigin, ...] | None:
    """The parts of a conflict, in the order of the model; None where no program shows one in time."""
    cone = form.cone
    if form.proof is None or not isinstance(cone, Cone):
        return None
    relaxed = cone.relaxed()
    found = _Deletion(relaxed, _parts(form, relaxed), deadline).conflict()
    return None if found is None else tuple(part.origin for part in found)


def _parts(form: Form, relaxed: RelaxedCone) -> list[Part]:
    """Every row and bound of the model. Bounds come first, so that they are left out where they can."""
    found: dict[Origin | BoundOrigin, list[int]] = {}
    layout = form.chain.end.before.layout
    for start, bounds in relaxed.bounds:
        for number, entry in enumerate(bounds.entries.tolist()):
            origin = form.chain.bound_origin(_bound(layout, bounds.side, entry))
            if origin is not None and bounds.side != "set":
                found.setdefault(origin, []).append(start + number)
        if bounds.side == "set":
            _, stop = _extent(relaxed.program, start)
            origin = form.chain.bound_origin(_bound(layout, "set", int(bounds.entries[0])))
            if origin is not None:
                found.setdefault(origin, []).extend(range(start, stop))
    canonical = form.canonical
    rows = canonical.multipliers(relaxed.rows).astype(np.intp)
    others = canonical.multipliers(relaxed.others).astype(np.intp)
    for number in range(rows.size):
        origin = form.chain.origin(number)
        if origin is not None:
            own = [int(rows[number])] + ([int(others[number])] if others[number] >= 0 else [])
            found.setdefault(origin, []).extend(own)
    return [Part(origin, np.array(own, dtype=np.intp)) for origin, own in found.items()]


def _bound(layout: Layout, side: str, entry: int) -> BoundOrigin:
    """The variable and the entry of it behind an entry of the vector."""
    for variable in layout.variables:
        own = layout.slice(variable)
        if own.start <= entry < own.stop:
            if side == "set":
                return BoundOrigin(variable, side)
            place = int(np.flatnonzero(layout.places(variable) == entry)[0])
            index = np.unravel_index(place, variable.shape)
            return BoundOrigin(variable, side, tuple(int(i) for i in index))
    raise IndexError(entry)


def _extent(program: ConeProgram, start: int) -> tuple[int, int]:
    """The rows of the cone that begins at `start`."""
    first = 0
    for cone in program.cones:
        if first == start:
            return first, first + cone.size
        first += cone.size
    raise IndexError(start)


class _Deletion:
    """The programs of a deletion filter."""

    def __init__(self, relaxed: RelaxedCone, parts: Sequence[Part], deadline: float | None) -> None:
        self.program, self.amount = relaxed.program, relaxed.amount
        self.parts, self.deadline = parts, deadline

    def conflict(self) -> list[Part] | None:
        """Parts that contradict each other, none of which can be left out; None where none are found."""
        weights = self._weights(self.parts)
        if weights is None:
            return None
        for quick in (True, False):
            found = self._filtered(weights if quick else None)
            if found is None or self._weights(found) is not None:
                return found
        return None

    def _filtered(self, weights: FloatArray | None) -> list[Part] | None:
        """What is left when everything that can be left out is; None where the time is over.

        With weights, parts without one are left out at once; they are in different units, so that what
        is left has to be checked.
        """
        quick = weights is not None
        kept = list(self.parts) if weights is None else _weighted(self.parts, weights)
        if len(kept) > RULES.most:
            return None
        needed: list[Part] = []
        while kept:
            tried, rest = kept[0], kept[1:]
            if self.deadline is not None and time.monotonic() >= self.deadline:
                return None
            weights = self._weights([*needed, *rest])
            if weights is None:  # without it there is a feasible point
                needed.append(tried)
                kept = rest
            else:
                kept = _weighted(rest, weights) if quick else rest
        return needed

    def _weights(self, kept: Sequence[Part]) -> FloatArray | None:
        """Multipliers of all rows of the program of some parts; None where it has a feasible point."""
        dropped = np.zeros(self.program.offset.size, dtype=bool)
        for part in self.parts:
            dropped[part.rows] = True
        for part in kept:
            dropped[part.rows] = False
        left = np.inf if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)
        reduced = without_rows(self.program, dropped)
        solution = make_cone_backend().solve(reduced, ConeOptions(time_limit=left))
        if not solution.usable or solution.primal[self.amount] <= RULES.relaxed:
            return None
        weights = np.zeros(self.program.offset.size)
        weights[~dropped] = np.abs(solution.dual)
        return weights


def _weighted(parts: Sequence[Part], weights: FloatArray) -> list[Part]:
    """The parts that take part."""
    sizes = [float(np.max(weights[part.rows])) for part in parts]
    least = RULES.involved * max(sizes, default=0.0)
    return [part for part, size in zip(parts, sizes, strict=True) if size > least]
