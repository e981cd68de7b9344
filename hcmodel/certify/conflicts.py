"""Irreducible conflicts: rows and bounds no one of which can be left out of a contradiction.

A proven model without a feasible point has a cone program whose least relaxation is above 0. Its
multipliers say which rows and bounds take part. Of these, one after the other is left out for as long as
what remains still contradicts itself (the deletion filter of Chinneck 2008, section 6.1); every program
that is still infeasible also drops what has no multiplier in it. Linear rows that contradict each other
and any but one of which are independent need no such programs (Gleeson and Ryan 1990): without any one of
them the others can be satisfied whatever their right-hand sides are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import BOUND
from hcmodel.expressions.layout import Layout
from hcmodel.records import cached_property, dataclass
from hcmodel.reductions.form import Form, LeastRelaxation
from hcmodel.reductions.reduction import WHOLE, BoundOrigin, Origin
from hcmodel.solvers.algebra.groups import joined
from hcmodel.solvers.loop import RelaxedProgram
from hcmodel.solvers.qp import ConeOptions, ConeProgram, make_cone_backend
from hcmodel.solvers.qp.balance import in_like_units
from hcmodel.solvers.qp.cone_program import ConeKind, without_idle

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]


@dataclass(frozen=True)
class ConflictRules:
    """How the programs of a deletion filter are read."""

    # Rows that have to give less than this, relatively, do not contradict each other.
    relaxed: float = 1e-7  # ten times the accuracy at which Clarabel still calls a program solved
    # The share of the largest multiplier below which a row takes no part.
    involved: float = BOUND.involved
    # Rows and bounds up to which they are left out one by one.
    most: int = 500  # a program each, of milliseconds
    # Linear rows of length 1 are independent where no sum with weights of length 1 is shorter than this
    # share of the longest one: points of them are then not much farther away than their right-hand sides.
    independent: float = 1e-3  # far above rounding; nearer ones are left out one by one
    # Numbers beyond which programs are solved in other units: 1e-10 of them is rounding of a backend.
    large: float = 1e3  # relaxed, relative to that rounding
    # How often a part is tried whose program has no answer: one of fewer parts may have one.
    rounds: int = 2


RULES = ConflictRules()


class Part(NamedTuple):
    """A row or bound of the model, or some that belong together, and the rows of the program for it."""

    origins: tuple[Origin | BoundOrigin, ...]
    rows: IndexArray


class _Tested(NamedTuple):
    """Whether a program has an answer, and its multipliers where it has no feasible point."""

    known: bool
    weights: FloatArray | None


class _Parts:
    """Every row and bound of a model: most of them are never looked at, and are no `Part` then."""

    def __init__(
        self,
        rows: Mapping[Origin | BoundOrigin, Sequence[int]],
        implied: Sequence[int] = (),
        members: Mapping[Origin, Sequence[Origin]] | None = None,
    ) -> None:
        self.origins = list(rows)
        self._members: Mapping[Any, Sequence[Any]] = members or {}
        told = itertools.chain.from_iterable(rows.values())
        self.rows = np.array([*told, *implied], dtype=np.intp)
        """Those of the parts, then those that follow from parts: a conflict must not rest on them."""
        self._ends = list(itertools.accumulate(map(len, rows.values()), initial=0))

    def chosen(self, places: Iterable[int]) -> list[Part]:
        ends = self._ends
        return [Part(self._named(i), self.rows[ends[i] : ends[i + 1]]) for i in places]

    def _named(self, place: int) -> tuple[Origin | BoundOrigin, ...]:
        origin = self.origins[place]
        return tuple(self._members.get(origin, (origin,)))

    def whole(self) -> list[Part]:
        return self.chosen(range(len(self.origins)))

    def largest(self, sizes: FloatArray) -> FloatArray:
        """The largest of what the rows of each part have."""
        own = sizes[self.rows[: self._ends[-1]]]
        return np.asarray(np.maximum.reduceat(own, self._ends[:-1]), dtype=float)


def irreducible_conflict(
    form: Form,
    deadline: float | None = None,
    weights: FloatArray | None = None,
    whole: Callable[[Origin], Origin | None] | None = None,
) -> tuple[Origin | BoundOrigin, ...] | None:
    """The parts of a conflict, in the order of the model; None where no program shows one in time.

    Rows without a weight in a contradiction that is known are left out first, where `weights` has those
    of all rows. `whole` says of which part of the model as written a row is one: the entries of a matrix
    inequality are left out together.
    """
    relaxation = form.relaxation
    if form.proof is None or relaxation is None:
        return None
    parts = _parts(form, relaxation, whole)
    first = None if weights is None else _likely(relaxation, parts, weights)
    found = _Deletion(relaxation.least, parts, deadline).conflict(first)
    return None if found is None else tuple(each for part in found for each in part.origins)


def contradicts(form: Form, deadline: float | None = None) -> bool:
    """Whether the program of a proven form shows that no point satisfies all rows and bounds."""
    if form.proof is None or form.relaxation is None:
        return False
    least = form.relaxation.least
    left = np.inf if deadline is None else max(deadline - time.monotonic(), 0.0)
    solution = make_cone_backend().solve(least.program, ConeOptions(time_limit=left))
    return solution.usable and bool(solution.primal[least.amount] > RULES.relaxed)


def _likely(relaxation: LeastRelaxation, parts: _Parts, weights: FloatArray) -> list[Part] | None:
    """All bounds, and the rows with a weight; None where these are all."""
    least = relaxation.least
    if weights.size != least.rows.size or not parts.origins:
        return None
    sizes = np.full(least.program.offset.size, np.inf)
    for rows in (least.rows, least.others):
        sizes[rows[rows >= 0]] = np.abs(weights)[rows >= 0]
    involved = RULES.involved * float(np.max(np.abs(weights), initial=0.0))
    found = (parts.largest(sizes) > involved).nonzero()[0]
    return parts.chosen(found.tolist()) if found.size < len(parts.origins) else None


def _parts(
    form: Form, relaxation: LeastRelaxation, whole: Callable[[Origin], Origin | None] | None
) -> _Parts:
    """Every row and bound of the model. Bounds come first, so that they are left out where they can."""
    found: dict[Origin | BoundOrigin, list[int]] = {}
    members: dict[Origin, list[Origin]] = {}
    implied: list[int] = []
    layout, least = form.chain.end.before.layout, relaxation.least
    for bounds in relaxation.bounds:
        start = bounds.start
        for number, entry in enumerate(bounds.entries.tolist()):
            bound = _bound(layout, bounds.side, entry)
            origin = form.chain.bound_origin(bound)
            if origin is not None and bounds.side not in WHOLE:
                found.setdefault(origin, []).append(start + number)
            elif origin is None and form.chain.implies(bound):
                implied.append(start + number)
        if bounds.side in WHOLE:
            _, stop = _extent(least.program, start)
            origin = form.chain.bound_origin(_bound(layout, bounds.side, int(bounds.entries[0])))
            if origin is not None:
                found.setdefault(origin, []).extend(range(start, stop))
    rows, others = least.rows.tolist(), least.others.tolist()
    for origin, row, other in zip(form.chain.origins(), rows, others, strict=True):
        if origin is not None:
            part = origin if whole is None else whole(origin) or origin
            if part is not origin:
                members.setdefault(part, []).append(origin)
            found.setdefault(part, []).extend([row] if other < 0 else [row, other])
    return _Parts(found, implied, members)


def _bound(layout: Layout, side: str, entry: int) -> BoundOrigin:
    """The variable and the entry of it behind an entry of the vector."""
    for variable in layout.variables:
        own = layout.slice(variable)
        if own.start <= entry < own.stop:
            if side in WHOLE:
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

    def __init__(self, relaxed: RelaxedProgram, parts: _Parts, deadline: float | None) -> None:
        self.program, self.amount = relaxed.program, relaxed.amount
        self.parts, self.deadline = parts, deadline
        self._among: Sequence[Part] = ()
        self._smaller: tuple[ConeProgram, IndexArray, NDArray[np.bool_]] | None = None

    def conflict(self, first: Sequence[Part] | None = None) -> list[Part] | None:
        """Parts that contradict each other, none of which can be left out; None where none are found.

        It is looked for among the `first` ones, where these are given and contradict each other.
        """
        for among in self._choices(first):
            self._among, self._smaller = among, None
            if among is first and self._alone_contradict(among):
                return list(among)
            weights = self._weights(among)
            if weights is None:
                continue
            for quick in (True, False):
                found = self._filtered(among, weights if quick else None)
                if found is None or len(found) == len(among) or self._weights(found) is not None:
                    return found
        return None

    def _choices(self, first: Sequence[Part] | None) -> Iterator[Sequence[Part]]:
        if first is not None:
            yield first
        yield self.parts.whole()

    def _filtered(self, among: Sequence[Part], weights: FloatArray | None) -> list[Part] | None:
        """What is left when everything that can be left out is; None where the time is over.

        With weights, parts without one are left out at once; they are in different units, so that what
        is left has to be checked.
        """
        quick = weights is not None
        kept = list(among) if weights is None else _weighted(among, weights)
        if len(kept) > RULES.most:
            return None
        if quick and self._needs_all(kept):
            return kept
        needed: list[Part] = []
        for _ in range(RULES.rounds):
            failed: list[Part] = []
            while kept:
                tried, kept = kept[0], kept[1:]
                if self.deadline is not None and time.monotonic() >= self.deadline:
                    return None
                found = self._tested([*needed, *failed, *kept])
                if not found.known:
                    failed.append(tried)
                elif found.weights is None:  # without it there is a feasible point
                    needed.append(tried)
                elif quick:
                    kept = _weighted(kept, found.weights)
            kept = failed
        left = {id(part) for part in (*needed, *kept)}
        return [part for part in among if id(part) in left]

    def _weights(self, kept: Sequence[Part]) -> FloatArray | None:
        """Multipliers of all rows of the program of some parts; None where none are known."""
        return self._tested(kept).weights

    def _tested(self, kept: Sequence[Part]) -> _Tested:
        """Whether some parts contradict each other, by their program."""
        reduced, rows = self._program_of(kept)
        left = np.inf if self.deadline is None else max(self.deadline - time.monotonic(), 0.0)
        options, backend = ConeOptions(time_limit=left), make_cone_backend()
        large = float(np.abs(reduced.offset).max(initial=0.0)) > RULES.large
        like = in_like_units(reduced) if large else None
        if like is None:
            solution = backend.solve(reduced, options)
        else:
            solution = like.solution(backend.solve(like.program, options))
        if not solution.usable or solution.primal[self.amount] <= RULES.relaxed:
            return _Tested(solution.usable, None)
        weights = np.zeros(self.program.offset.size)
        weights[rows] = np.abs(solution.dual)
        return _Tested(True, weights)

    def _needs_all(self, kept: Sequence[Part]) -> bool:
        """Whether no contradiction of these parts can do without one of them, as their rows show."""
        return self._only_sum(kept) is not None

    def _alone_contradict(self, kept: Sequence[Part]) -> bool:
        """Whether these parts contradict each other and no fewer of them do, as their rows show."""
        found = self._only_sum(kept)
        if found is None:
            return False
        program, weights = found
        if any(cone.kind is not ConeKind.NONNEGATIVE for cone in program.cones):
            return False
        if weights.sum() < 0.0:
            weights = -weights
        own = slice(*program.matrix.indptr[[self.amount, self.amount + 1]])
        gives = -float(program.matrix.data[own] @ weights[program.matrix.indices[own]])
        lacks = -float(program.offset @ weights)
        return bool((weights >= 0.0).all()) and lacks > RULES.relaxed * gives > 0.0

    def _only_sum(self, kept: Sequence[Part]) -> tuple[ConeProgram, FloatArray] | None:
        """The program of these parts, and weights of its rows such that no unknown is in their sum.

        They are linear, and this is the only such sum; all parts have a weight in it. Else None.
        """
        reduced, rows = self._program_of(kept)
        if not reduced.is_linear or rows.size > RULES.most:
            return None
        entries = reduced.columns != self.amount
        at, unknowns = reduced.matrix.indices[entries], reduced.columns[entries]
        used, places = np.unique(unknowns, return_inverse=True)
        matrix = np.zeros((rows.size, used.size))
        matrix[at, places] = reduced.matrix.data[entries]
        products = matrix @ matrix.T
        lengths = np.sqrt(products.diagonal())
        of_parts = self._program_among()[2][rows]
        said = of_parts | (lengths > 0.0)  # all but the row of the relaxation itself
        own = lengths[said]
        if not own.all() or own.size < 2:
            return None
        squares, sums = np.linalg.eigh(products[np.ix_(said, said)] / np.outer(own, own))
        if squares[1] <= RULES.independent**2 * squares[-1]:
            return None
        shares = np.abs(sums[of_parts[said], 0])
        weights = np.zeros(rows.size)
        weights[said] = sums[:, 0] / own
        return (reduced, weights) if shares.min() > RULES.involved * shares.max() else None

    def _program_of(self, kept: Sequence[Part]) -> tuple[ConeProgram, IndexArray]:
        """The program of some parts, and its rows in the whole."""
        program, rows, _ = self._program_among()
        dropped = self._dropped(kept)
        reduced, own = without_idle(program, dropped[rows], self.amount + 1)
        return reduced, rows[own]

    def _program_among(self) -> tuple[ConeProgram, IndexArray, NDArray[np.bool_]]:
        """The program of the parts that are looked at, its rows in the whole, and those of all parts."""
        if self._smaller is None:
            of_parts = np.zeros(self.program.offset.size, dtype=bool)
            of_parts[self.parts.rows] = True
            smaller, kept = without_idle(self.program, self._dropped(self._among), self.amount + 1)
            self._smaller = smaller, np.flatnonzero(kept), of_parts
        return self._smaller

    def _dropped(self, kept: Sequence[Part]) -> NDArray[np.bool_]:
        """The rows that are left out with all parts but these."""
        dropped = np.zeros(self.program.offset.size, dtype=bool)
        dropped[self.parts.rows] = True
        for part in kept:
            dropped[part.rows] = False
        groups = self._groups
        idle = np.zeros(int(groups.max(initial=0)) + 1, dtype=bool)
        idle[groups[self.parts.rows]] = True
        for part in kept:
            idle[groups[part.rows]] = False
        idle[0] = False
        return dropped | idle[groups]

    @cached_property
    def _groups(self) -> IndexArray:
        """For each row of the program the group of cones that share unknowns of no variable; 0 for none.

        Such a group says what a function of a row is, and that it is defined, as log(−t) is where t < 0.
        This may follow from a bound, and is asked for no longer where the row is left out.
        """
        program, first = self.program, self.amount + 1
        added = program.columns >= first
        cones, columns = program.cone_of_row[program.matrix.indices[added]], program.columns[added]
        labels = joined(cones, columns, program.offset.size, program.linear.size)
        groups = np.zeros(program.offset.size, dtype=np.intp)
        groups[cones] = labels[cones] + 1
        return np.asarray(groups[program.cone_of_row])


def _weighted(parts: Sequence[Part], weights: FloatArray) -> list[Part]:
    """The parts that take part."""
    sizes = [float(np.max(weights[part.rows])) for part in parts]
    least = RULES.involved * max(sizes, default=0.0)
    return [part for part, size in zip(parts, sizes, strict=True) if size > least]
