"""Paths that may lead an objective down to the end of the numbers; `descent` follows them.

There are five kinds: a ray x + t·d; factors x·e^(t·d), for entries that keep their signs; the way to an
edge of the domain at which a function has a pole; the way to a pole inside of it, behind which the next
number has no value or one that is not negative; and single entries behind a local minimum
(`far_entries`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.reduction import Claim
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import LARGEST_LOG, LARGEST_NUMBER
from hcmodel.solvers.oracle import Evaluation, Oracle
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class DescentRules:
    """How far and how closely a path is followed; the claims' tests (test_claims.py) chose them."""

    decade: float = 10.0
    """The factor between two points of a path."""
    first: float = 1e-2
    """Where a ray begins, relative to the size of its point."""
    farthest: float = 1e300
    """Where the range of floating point ends."""
    pieces: int = 40
    """Points on a path of factors, whose exponents are equally spaced."""
    nearest: float = 1e-300
    """How near a path comes to an edge at 0; next to another edge, rounding ends it earlier."""
    tail: int = 5
    """The last decreases, which must not shrink where an objective is said to have no bound."""
    fewest: int = 8
    """Points that a path has at least: fewer show nothing."""
    steady: float = 1e-6
    """The relative amount by which a decrease may be smaller than the one before it, by rounding."""
    digital: float = 1e12
    """How far out the way back of a map still has digits: it takes differences of what it is given."""
    digits: int = 6
    """The digits that a direction of a backend has for sure."""
    attempts: int = 3
    """Points beside one that fails, at which rounding is looked for."""
    last_digit: float = 1e-15
    """How far beside it they lie, relatively: several units in the last place."""
    share: float = 0.1
    """The share of a rise that must come from rounding for the rise to show nothing."""
    slowest: float = 1e-9
    """The share of the fastest entry from which an entry is said to move."""
    shortest: float = 20.0
    """The least change of a logarithm along a path of powers: eight decades."""
    steep: float = 1e6
    """The length of a way over the distance at which the slope expects a pole, at the least."""
    large: float = 1e6
    """Entries from this size on are taken to move out; used where no other direction is known."""
    flat: float = 1e-2
    """The curvature along a path of factors, relative to the largest one, up to which it is a valley."""
    unknowns: int = 50
    """Unknowns up to which valleys are looked for, which takes the Hessian's eigenvectors."""
    closest: float = 1e-4
    """Where such a path begins, as a share of its length: it must not step over a minimum."""
    level: float = 1e-9
    """The share of its first value by which a path along a valley may rise, by rounding."""
    corrections: int = 10
    """Steps of Newton's method onto the rows, as many as make a double root a thousand times smaller."""
    exact: float = 1e-12
    """The violation of a row, relative to its terms, that rounding explains."""
    overflow: int = 60
    """Steady decreases, the last ones, after which an overflow is one of numbers in between, as squares
    in a norm: at a slope that is the same over 60 decades."""
    halvings: int = 40
    """Points between the last one of such a path and one at which it overflows."""
    simple: int = 2
    """Digits of exponents that are simple numbers, as those of monomials are."""


RULES = DescentRules()


@dataclass(frozen=True)
class Run:
    """What a run tells of where to look: its form, its first and last point, and a direction.

    `start` is a point of the model, `last` and `direction` belong to the end of the form's chain; a
    cone program without a minimum has such a direction.
    """

    form: Form
    start: FloatArray
    last: FloatArray
    direction: FloatArray | None = None
    surrounded: bool = False
    """Whether functions of the user were evaluated all around the last point: then few calls are made."""
    passed: bool = False
    """Whether they were evaluated beyond it too, as seen from the start: then none is made."""
    recedes: bool = False
    """Whether all rows of the convex program can be followed along the direction without end."""
    convex: bool = False
    """Whether the model is proven convex, and a bound near the point is known: no hill is in the way."""


def far_out(domain: Domain, point: FloatArray) -> FloatArray:
    """The signs of the entries that are far out and that no bound holds, else 0."""
    lower, upper = domain.entry_bounds()
    free = np.where(point > 0, ~np.isfinite(upper), ~np.isfinite(lower))
    return np.where(free & (np.abs(point) >= RULES.large), np.sign(point), 0.0)


@dataclass(frozen=True)
class CandidatePath:
    """The points of a path in order. Those that approach an edge never reach it."""

    points: Callable[[], Iterator[FloatArray]]
    moves: FloatArray
    vanishing: NDArray[np.bool_]
    from_here: bool = False
    """Whether it continues from the point that was found, where its values may not rise."""
    edge: FloatArray | None = None
    inside: bool = False
    """Whether the edge is a pole inside of the domain, behind which the values are others."""
    throughout: bool = False
    """Whether no decrease may be smaller than the one before it, and not the last ones only."""
    valley: bool = False
    """Whether it may end on a level: small rises by rounding show nothing."""
    behind: bool = False
    """Whether higher points or bounds may lie on it: then a limit shows nothing."""
    convex: bool = False
    """Whether a convex program shows that it never rises, and only overflows end it."""


def candidate_paths(
    form: Form, oracle: Oracle, evaluation: Evaluation, run: Run
) -> Iterator[CandidatePath]:
    yield from _ways(form, evaluation, run)
    yield from _to_pole(form, oracle, evaluation)
    if not run.surrounded:
        yield from _valleys(form, oracle, evaluation)
        if not run.convex:
            yield from _behind(form, evaluation)


def _ways(form: Form, evaluation: Evaluation, run: Run) -> Iterator[CandidatePath]:
    point, domain = evaluation.point, form.domain
    first = domain.project(run.start)
    if run.direction is not None:
        yield from _hidden_rays(form, point, run)
    directions = [point - first]
    if run.surrounded:
        if run.passed:
            return
        unit = _unit(directions[0])
        if unit is not None:
            yield _ray(form, point, unit)
        return
    if evaluation.differentiable:
        directions.append(domain.normal_cone_distance(point, -evaluation.gradient))
    directions.append(np.where(np.abs(point) >= RULES.large, point, 0.0))
    for direction in directions:
        unit = _unit(direction)
        if unit is not None:
            yield _ray(form, point, unit)
            yield from _to_edge(form, first, unit)
    yield from _powers(form, point, first)


def _unit(direction: FloatArray) -> FloatArray | None:
    size = float(np.max(np.abs(direction), initial=0.0))
    return direction / size if np.isfinite(size) and size > 0.0 else None


def _decades(base: float) -> Iterator[float]:
    length = base
    while length <= RULES.farthest:
        yield length
        length *= RULES.decade


def _hidden_rays(form: Form, point: FloatArray, run: Run) -> Iterator[CandidatePath]:
    """Rays of the form in which the run was made; among logarithms, the exponents end early."""
    assert run.direction is not None
    unit = _unit(run.direction)
    if unit is None:
        return
    chain, domain = run.form.chain, form.domain
    # without some bounds the way back may put points at them: a limit shows nothing then
    behind = Claim.UNBOUNDED not in chain.keeps
    # a backend's direction is exact to some digits; simple numbers in it are when rounded
    for along in (np.round(unit, RULES.digits), unit):

        def at(length: float, along: FloatArray = along) -> FloatArray:
            return domain.project(chain.point_back(run.last + length * along))

        powers = _moves_logarithms(run.form, along)
        lengths = list(_decades(1.0))
        if powers:
            lengths = list(np.linspace(0, np.log(RULES.farthest), RULES.pieces))
        end = RULES.digital if behind else lengths[-1]
        far = at(LARGEST_LOG - np.max(np.abs(run.last)) if powers else end)
        change = np.clip(far, -LARGEST_NUMBER, LARGEST_NUMBER) - point
        moves = np.where(np.abs(change) > RULES.large, np.sign(change), 0.0)
        if powers:  # slow ones among them
            grows = (point > 0) & (far > RULES.decade * point)
            moves = np.where(grows, 1.0, moves)
        vanishing = (change != 0) & (moves == 0)
        edge = None if powers or moves.any() else far  # 0 is no value of a positive variable
        points = functools.partial(map, at, lengths)
        convex = run.recedes and not (behind or powers)
        yield CandidatePath(points, moves, vanishing, True, edge, behind=behind, convex=convex)


def _moves_logarithms(form: Form, direction: FloatArray) -> bool:
    """Whether a direction of a form moves coordinates that are logarithms."""
    layout, proof = form.canonical.layout, form.last
    kinds = {} if proof is None else {each.name: k for each, k in proof.coordinates.items()}
    return any(
        kinds.get(variable.name) == "log" and bool(direction[layout.slice(variable)].any())
        for variable in layout.variables
    )


def _ray(form: Form, point: FloatArray, unit: FloatArray) -> CandidatePath:
    base = RULES.first * max(1.0, float(np.max(np.abs(point), initial=0.0)))
    far = form.domain.project(point + LARGEST_NUMBER * unit)
    reached = np.abs(far) >= RULES.share * LARGEST_NUMBER * np.abs(unit)
    moves = np.where(reached & (np.abs(unit) > RULES.slowest), np.sign(unit), 0.0)

    def points() -> Iterator[FloatArray]:
        return (form.domain.project(point + length * unit) for length in _decades(base))

    return CandidatePath(points, moves, np.zeros(point.size, dtype=bool), from_here=True)


def _to_edge(form: Form, first: FloatArray, unit: FloatArray) -> Iterator[CandidatePath]:
    """From the start towards the bounds that the direction runs into, the other entries fixed."""
    lower, upper = form.domain.entry_bounds()
    edge = np.where(unit < 0, lower, np.where(unit > 0, upper, first))
    held = np.isfinite(edge) & (unit != 0) & (edge != first)
    if not held.any():
        return
    edge = np.where(held, edge, first)

    def points() -> Iterator[FloatArray]:
        share = 1.0
        while share >= RULES.nearest:
            there = edge + share * (first - edge)
            if np.array_equal(there, edge):
                return
            yield there
            share /= RULES.decade

    yield CandidatePath(points, np.zeros(first.size), held, edge=edge)


def _to_pole(form: Form, oracle: Oracle, evaluation: Evaluation) -> Iterator[CandidatePath]:
    """Down the slope towards a pole next to the point: behind it the objective is not negative.

    Next to equations, along them: the steepest direction that leads off them meets the same pole.
    """
    point, value = evaluation.point, evaluation.objective
    unit = _unit(-evaluation.gradient) if evaluation.differentiable else None
    length = RULES.first * max(1.0, float(np.max(np.abs(point), initial=0.0)))
    if unit is None or not value < 0:
        return
    ahead = -value / float(np.max(np.abs(evaluation.gradient)))  # the distance of a simple pole
    if not RULES.steep * ahead < length:
        return
    yield from _to_zero(form, oracle, point, length)
    for along in (unit, _along_equations(evaluation, unit)):
        if along is not None:
            yield from _along_slope(form, oracle, point, along, ahead, length)


def _along_equations(evaluation: Evaluation, unit: FloatArray) -> FloatArray | None:
    """The part of a direction that moves no equation at first order; None where there is none."""
    jacobian: Any = evaluation.jacobian[evaluation.inequalities :]
    if not jacobian.shape[0] or jacobian.shape[1] > RULES.unknowns:
        return None
    slopes = jacobian.toarray() if is_sparse(jacobian) else np.asarray(jacobian)
    if not np.isfinite(slopes).all():
        return None
    left = unit - np.linalg.pinv(slopes) @ (slopes @ unit)
    return _unit(left) if np.max(np.abs(left)) > RULES.slowest else None


def _along_slope(
    form: Form, oracle: Oracle, point: FloatArray, unit: FloatArray, ahead: float, length: float
) -> Iterator[CandidatePath]:
    """Towards a pole on a line: up to the first number behind it."""

    def behind(there: FloatArray) -> bool:
        found = oracle.at(there).objective
        return not (np.isfinite(found) and found < 0)

    beyond = _crossed(behind, point, unit, ahead, length)
    if beyond is None or not form.domain.contains(beyond):
        return  # a pole outside is none of the model's

    def points() -> Iterator[FloatArray]:
        left = length
        while left >= RULES.nearest:
            there = beyond - left * unit
            left /= RULES.decade
            if np.array_equal(there, beyond) or behind(there):
                return
            if form.domain.contains(there):
                yield there

    yield CandidatePath(points, np.zeros(point.size), unit != 0, edge=beyond, inside=True)


def _to_zero(
    form: Form, oracle: Oracle, point: FloatArray, length: float
) -> Iterator[CandidatePath]:
    """To entries that are exactly 0, where numbers are so close that no next one lies behind a pole.

    All decreases have to grow: far closer to 0 than to other points, differences are lost to rounding,
    and what is left over a small number looks like a pole.
    """
    edge = np.where(np.abs(point) < length, 0.0, point)
    away = _unit(point - edge)
    if away is None or not form.domain.contains(edge) or np.isfinite(oracle.at(edge).objective):
        return

    def points() -> Iterator[FloatArray]:
        left = length
        while left >= RULES.nearest:
            yield edge + left * away
            left /= RULES.decade

    yield CandidatePath(
        points, np.zeros(point.size), away != 0, edge=edge, inside=True, throughout=True
    )


def _crossed(
    behind: Callable[[FloatArray], bool],
    point: FloatArray,
    unit: FloatArray,
    ahead: float,
    length: float,
) -> FloatArray | None:
    """The first number behind the pole; None where there is none within the length."""
    last, beyond = point, point + 2.0 * ahead * unit
    while not behind(beyond):
        ahead *= RULES.decade
        if ahead > length:
            return None
        last, beyond = beyond, point + ahead * unit
    while True:  # halved until no number lies between the two
        middle = 0.5 * (last + beyond)
        if np.array_equal(middle, last) or np.array_equal(middle, beyond):
            return beyond
        last, beyond = (last, middle) if behind(middle) else (middle, beyond)


def _powers(form: Form, point: FloatArray, first: FloatArray) -> Iterator[CandidatePath]:
    """From the start to the point and on by powers, on which equations between monomials hold throughout.

    Positive entries change by powers of what they have changed by; of others, those that are large
    grow from ±1.
    """
    lower, _ = form.domain.entry_bounds()
    positive = (lower >= 0) & (point > 0) & (first > 0)
    large = ~positive & (np.abs(point) >= RULES.large)
    begin, logs = np.zeros(point.size), np.zeros(point.size)
    begin[positive] = np.log(first[positive])
    logs[positive] = np.log(point[positive]) - begin[positive]
    logs[large] = np.log(np.abs(point[large]))
    size = float(np.max(np.abs(logs), initial=0.0))
    if size < RULES.shortest:
        return
    moving, signs = positive | large, np.sign(point)
    logs *= (np.log(RULES.farthest) - float(np.max(np.abs(begin)))) / size

    def points() -> Iterator[FloatArray]:
        for share in np.linspace(0.0, 1.0, RULES.pieces):
            there = signs * np.exp(begin + share * logs)
            yield form.domain.project(np.where(moving, there, point))

    moves = np.where(logs > RULES.shortest, signs, 0.0)
    yield CandidatePath(points, moves, logs < -RULES.shortest)


def _valleys(form: Form, oracle: Oracle, evaluation: Evaluation) -> Iterator[CandidatePath]:
    """By factors along the least curvature in logarithms, as x·y = 1 for (x·y − 1)² + x²."""
    point = evaluation.point
    moving = point != 0
    if not moving.any() or point.size > RULES.unknowns or form.compiled.has_black_boxes:
        return
    if not (evaluation.differentiable and form.affords_hessian) or form.stack.kinked:
        return
    slopes = evaluation.gradient * point
    hessian = as_dense(oracle.lagrangian_hessian(evaluation, np.zeros(evaluation.rows.size)))
    curvature = hessian * np.outer(point, point) + np.diag(slopes)
    if not np.isfinite(curvature).all():
        return
    values, vectors = np.linalg.eigh(curvature[np.ix_(moving, moving)])
    if not abs(values[0]) <= RULES.flat * np.max(np.abs(values)):
        return
    exponents = np.zeros(point.size)
    exponents[moving] = vectors[:, 0]
    unit = _unit(-exponents if exponents @ slopes > 0 else exponents)
    if unit is None:
        return
    for along in (np.round(unit, RULES.simple), unit):
        yield _by_factors(form, point, along)


def _by_factors(form: Form, point: FloatArray, along: FloatArray) -> CandidatePath:
    reach = np.log(RULES.farthest) - float(np.max(np.abs(np.log(np.abs(point[point != 0])))))

    def points() -> Iterator[FloatArray]:
        for length in reach * np.geomspace(RULES.closest, 1.0, RULES.pieces):
            yield form.domain.project(point * np.exp(length * along))

    moves = np.where(reach * along > RULES.shortest, np.sign(point), 0.0)
    return CandidatePath(
        points, moves, reach * along < -RULES.shortest, from_here=True, valley=True
    )


def _behind(form: Form, evaluation: Evaluation) -> Iterator[CandidatePath]:
    """Along single entries, from where enclosures show that the objective falls."""
    from hcmodel.certify.paths.far_entries import falling_entries

    for path in falling_entries(form, evaluation):
        moved = np.zeros(evaluation.point.size)
        moved[path.entry] = path.outward
        finite = bool(np.isfinite(path.edge))
        edge = path.points[-1].copy()
        edge[path.entry] = path.edge
        yield CandidatePath(
            functools.partial(iter, path.points),
            np.zeros(moved.size) if finite else moved,
            (moved != 0) & finite,
            edge=edge if finite else None,
            behind=True,
        )
