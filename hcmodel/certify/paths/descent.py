"""Paths of feasible points along which the objective falls all the way to the end of the numbers.

The size of a value shows nothing: x² − 10¹² x is below −10²⁰ near its minimum. What shows an unbounded
model is a path on which each further factor of ten lowers the objective by as much as the last one
did, or more. Where the decreases shrink along the whole path, the infimum is not attained.

There are five kinds of paths: a ray x + t·d; factors x·e^(t·d), for entries that keep their signs; the
way to an edge of the domain at which a function has a pole; the way to a pole inside of it, behind which
the next number has no value or one that is not negative; and single entries behind a local minimum
(`far_entries`). All are followed by evaluating the model as written.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.reductions.form import Form
from hcmodel.reductions.reduction import Claim
from hcmodel.solvers.algebra.hessians import as_dense
from hcmodel.solvers.algebra.marks import all_are_0
from hcmodel.solvers.algebra.storage import is_sparse
from hcmodel.solvers.numerics import LARGEST_LOG, LARGEST_NUMBER, MERIT_ROUNDING
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
class Descent:
    """A path of feasible points on which the objective never rises.

    `endless` where the objective has no lower bound on it, else it approaches `limit`. `lowest` is
    the farthest point that counts as inside the model, `moves` has the signs of the entries that run
    away to ±∞, and `vanishing` marks those that approach an edge.
    """

    endless: bool
    limit: float
    lowest: Evaluation
    moves: FloatArray
    vanishing: NDArray[np.bool_]
    pole: FloatArray | None = None
    """The point inside of the domain that the path approaches, where the objective has no value."""
    valley: bool = False
    """Whether it continues a valley in which the run was: other methods would follow it more slowly."""


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


def falling_path(
    form: Form, evaluation: Evaluation, run: Run, tolerance: float, slack: float
) -> Descent | None:
    """A path that shows an unbounded objective, else one that shows a limit that is not attained.

    `form` is the model as written. A path ends at most by `slack` above the value of the evaluation.
    """
    oracle, found = form.oracle(), None
    model = _Followed(oracle, form.domain, tolerance, _positive(form))
    with np.errstate(all="ignore"):
        for way in _all_ways(form, oracle, evaluation, run):
            descent = _followed(model, way, evaluation, slack)
            if descent is None or not descent.endless:
                found = found or descent
            elif not _rests_on_violations(model, descent.lowest, evaluation.objective):
                return descent
    return found


def _positive(form: Form) -> NDArray[np.bool_]:
    layout = form.canonical.layout
    marks = np.zeros(form.domain.dimension, dtype=bool)
    for variable in layout.variables:
        marks[layout.slice(variable)] = variable.pos
    return marks


def runs_away(form: Form, evaluation: Evaluation) -> bool:
    """Whether a point is far out in an entry that no bound holds: perhaps nothing attains its value."""
    return not all_are_0(_far_out(form.domain, evaluation.point))


def _far_out(domain: Domain, point: FloatArray) -> FloatArray:
    """The signs of the entries that are far out and that no bound holds, else 0."""
    lower, upper = domain.entry_bounds()
    free = np.where(point > 0, ~np.isfinite(upper), ~np.isfinite(lower))
    return np.where(free & (np.abs(point) >= RULES.large), np.sign(point), 0.0)


@dataclass(frozen=True)
class _Way:
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


def _all_ways(form: Form, oracle: Oracle, evaluation: Evaluation, run: Run) -> Iterator[_Way]:
    yield from _ways(form, evaluation, run)
    yield from _to_pole(form, oracle, evaluation)
    if not run.surrounded:
        yield from _valleys(form, oracle, evaluation)
        if not run.convex:
            yield from _behind(form, evaluation)


def _ways(form: Form, evaluation: Evaluation, run: Run) -> Iterator[_Way]:
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


def _hidden_rays(form: Form, point: FloatArray, run: Run) -> Iterator[_Way]:
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
        yield _Way(points, moves, vanishing, True, edge, behind=behind, convex=convex)


def _moves_logarithms(form: Form, direction: FloatArray) -> bool:
    """Whether a direction of a form moves coordinates that are logarithms."""
    layout, proof = form.canonical.layout, form.last
    kinds = {} if proof is None else {each.name: k for each, k in proof.coordinates.items()}
    return any(
        kinds.get(variable.name) == "log" and bool(direction[layout.slice(variable)].any())
        for variable in layout.variables
    )


def _ray(form: Form, point: FloatArray, unit: FloatArray) -> _Way:
    base = RULES.first * max(1.0, float(np.max(np.abs(point), initial=0.0)))
    far = form.domain.project(point + LARGEST_NUMBER * unit)
    reached = np.abs(far) >= RULES.share * LARGEST_NUMBER * np.abs(unit)
    moves = np.where(reached & (np.abs(unit) > RULES.slowest), np.sign(unit), 0.0)

    def points() -> Iterator[FloatArray]:
        return (form.domain.project(point + length * unit) for length in _decades(base))

    return _Way(points, moves, np.zeros(point.size, dtype=bool), from_here=True)


def _to_edge(form: Form, first: FloatArray, unit: FloatArray) -> Iterator[_Way]:
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

    yield _Way(points, np.zeros(first.size), held, edge=edge)


def _to_pole(form: Form, oracle: Oracle, evaluation: Evaluation) -> Iterator[_Way]:
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
) -> Iterator[_Way]:
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

    yield _Way(points, np.zeros(point.size), unit != 0, edge=beyond, inside=True)


def _to_zero(form: Form, oracle: Oracle, point: FloatArray, length: float) -> Iterator[_Way]:
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

    yield _Way(points, np.zeros(point.size), away != 0, edge=edge, inside=True, throughout=True)


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


def _powers(form: Form, point: FloatArray, first: FloatArray) -> Iterator[_Way]:
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
    yield _Way(points, moves, logs < -RULES.shortest)


def _valleys(form: Form, oracle: Oracle, evaluation: Evaluation) -> Iterator[_Way]:
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


def _by_factors(form: Form, point: FloatArray, along: FloatArray) -> _Way:
    reach = np.log(RULES.farthest) - float(np.max(np.abs(np.log(np.abs(point[point != 0])))))

    def points() -> Iterator[FloatArray]:
        for length in reach * np.geomspace(RULES.closest, 1.0, RULES.pieces):
            yield form.domain.project(point * np.exp(length * along))

    moves = np.where(reach * along > RULES.shortest, np.sign(point), 0.0)
    return _Way(points, moves, reach * along < -RULES.shortest, from_here=True, valley=True)


def _behind(form: Form, evaluation: Evaluation) -> Iterator[_Way]:
    """Along single entries, from where enclosures show that the objective falls."""
    from hcmodel.certify.paths.far_entries import falling_entries

    for path in falling_entries(form, evaluation):
        moved = np.zeros(evaluation.point.size)
        moved[path.entry] = path.outward
        finite = bool(np.isfinite(path.edge))
        edge = path.points[-1].copy()
        edge[path.entry] = path.edge
        yield _Way(
            functools.partial(iter, path.points),
            np.zeros(moved.size) if finite else moved,
            (moved != 0) & finite,
            edge=edge if finite else None,
            behind=True,
        )


@dataclass(frozen=True)
class _Followed:
    """What a path is followed with."""

    oracle: Oracle
    domain: Domain
    tolerance: float
    positive: NDArray[np.bool_] | bool = False
    """The entries of positive variables, which are never 0."""

    def far_out(self, there: Evaluation) -> FloatArray:
        return _far_out(self.domain, there.point)

    def unheld(self, moves: FloatArray) -> FloatArray:
        """The entries of moves that no bound holds: those of a distribution go nowhere."""
        lower, upper = self.domain.entry_bounds()
        return np.where(np.isfinite(np.where(moves > 0, upper, lower)), 0.0, moves)

    def attains(self, lowest: Evaluation, vanishing: NDArray[np.bool_]) -> bool:
        """Whether the model has the point that a path ends at, which is as good as its last one."""
        if (vanishing & self.positive).any():
            return False
        there = self.oracle.at(self.domain.project(np.where(vanishing, 0.0, lowest.point)))
        room = MERIT_ROUNDING * abs(lowest.objective)
        return there.finite and self.inside(there) and there.objective <= lowest.objective + room

    def inside(self, there: Evaluation) -> bool:
        units = self.domain.metric(there.point)
        return there.violation_in_units(units) <= self.tolerance

    def satisfies(self, there: Evaluation) -> bool:
        """Whether the rows hold but for rounding, which is relative to the terms of their slopes."""
        if not there.violations.any():
            return True
        with np.errstate(all="ignore"):
            reach = np.abs(there.point) + self.domain.metric(there.point)
            sizes = abs(scipy.sparse.csr_array(there.jacobian)) @ reach
            return bool((there.violations <= RULES.exact * sizes).all())


def _followed(model: _Followed, way: _Way, evaluation: Evaluation, slack: float) -> Descent | None:
    """The path as a descent; None where it rises, leaves the rows or is too short."""
    if not _leads_out(model, way):
        return None
    values, lowest = [evaluation.objective] if way.from_here else list[float](), evaluation
    last = evaluation.point
    fewest = RULES.fewest
    for point in way.points():
        there = model.oracle.at(point)
        if there.objective == -np.inf:
            fewest = 2  # it has passed all numbers, however soon
            break
        allowed = RULES.level * abs(values[0]) if way.valley and values else 0.0
        if not _is_lower(model, there, values, allowed):
            if len(values) < fewest or _ends(model, way, last, there, values):
                return None
            break
        if _is_lost(model, there, values):
            break
        values.append(there.objective)
        last = there.point
        if there.finite and there.objective <= lowest.objective + allowed:
            lowest = there
    least = MERIT_ROUNDING * abs(values[0]) if values else 0.0  # less is rounding next to a minimum
    if len(values) < fewest or not values[-1] < values[0] - least:
        return None
    if values[-1] > evaluation.objective + slack:
        return None
    endless = _steady(np.diff(values), len(values) if way.throughout else RULES.tail)
    endless &= not way.valley  # whose points are not equally spaced
    if (way.edge is not None or way.behind) and not endless:
        return None
    pole = way.edge if way.inside else None
    moves = model.unheld(way.moves)
    if endless:
        return Descent(True, values[-1], lowest, moves, way.vanishing, pole)
    return _with_limit(model, way, values[-1], lowest, moves)


def _leads_out(model: _Followed, way: _Way) -> bool:
    """Whether a way goes to infinity, or to an edge at which the objective has no value: a pole."""
    if not (way.moves.any() or way.vanishing.any()):
        return False
    if way.edge is None or way.inside:
        return True
    return not np.isfinite(model.oracle.at(way.edge).objective)


def _rests_on_violations(model: _Followed, lowest: Evaluation, before: float) -> bool:
    """Whether a gain is lost where the rows hold exactly: x·y with x == 0 grows with y at x = 1e-12.

    Rows that were broken once stay among those that are corrected. Where they cannot be satisfied but for
    rounding, nothing is known of the gain: x <= (1 − 1e-7) x + 1 holds within the tolerance far out.
    """
    there = lowest
    found = np.zeros(there.rows.size, dtype=bool)
    for _ in range(RULES.corrections):
        violations = there.violations
        if not violations.any() or not np.isfinite(there.rows).all():
            break
        found |= violations > 0
        broken = np.flatnonzero(found)
        slopes = scipy.sparse.csr_array(there.jacobian)[broken]
        if not np.isfinite(slopes.data).all():
            return False
        lacking = np.where(violations > 0, there.rows, 0.0)[broken]
        step = scipy.sparse.linalg.lsmr(slopes, -lacking)[0]
        there = model.oracle.at(model.domain.project(there.point + step))
    if not model.satisfies(there):
        return True
    return not before - there.objective >= RULES.share * (before - lowest.objective)


def _with_limit(
    model: _Followed, way: _Way, limit: float, lowest: Evaluation, moves: FloatArray
) -> Descent | None:
    """A path on which the decreases shrink; None where it ends at a point of the model."""
    moves = np.where(moves == 0, model.far_out(lowest), moves)
    if not moves.any() and model.attains(lowest, way.vanishing):
        return None
    return Descent(False, limit, lowest, moves, way.vanishing, valley=way.valley)


def _is_lower(
    model: _Followed, there: Evaluation, values: list[float], allowed: float = 0.0
) -> bool:
    """Whether a point continues a path: feasible, and not above the one before it."""
    if not np.isfinite(there.objective) or not np.isfinite(there.rows).all():
        return False
    rises = bool(values) and there.objective > values[-1] + allowed
    return not rises and model.inside(there)


def _is_computable(model: _Followed, there: Evaluation, values: list[float]) -> bool:
    """Whether a point that does not continue a path shows that it ends; else rounding hides it."""
    if not np.isfinite(there.point).all():
        return False
    if not np.isfinite(there.objective):  # ∞ − ∞ far out shows nothing, +∞ does
        far = np.max(np.abs(there.point)) > LARGEST_NUMBER
        return not (far and np.isnan(there.objective))
    return not (values and _is_rounding(model, there, values[-1]))


def _ends(
    model: _Followed, way: _Way, last: FloatArray, there: Evaluation, values: list[float]
) -> bool:
    """Whether a path ends at a point that does not continue it; rounding or an overflow may hide more."""
    if way.convex and _overflows(model, last, there, values):
        return False
    return _is_computable(model, there, values)


def _overflows(model: _Followed, last: FloatArray, there: Evaluation, values: list[float]) -> bool:
    """Whether a point behind one of a convex path has no value, though all points up to it are lower.

    Squares in a norm overflow where the norm is a number. Exponentials rise before they overflow.
    """
    if not _has_no_value(there) or not np.isfinite(there.point).all():
        return False
    if len(values) <= RULES.overflow or not _steady(np.diff(values), RULES.overflow):
        return False
    beyond = there.point
    for _ in range(RULES.halvings):
        middle = model.oracle.at(model.domain.project(0.5 * last + 0.5 * beyond))
        if _has_no_value(middle):
            beyond = middle.point
        elif _is_lower(model, middle, values):
            last = middle.point
        else:
            return False
    return True


def _has_no_value(there: Evaluation) -> bool:
    return not (np.isfinite(there.objective) and np.isfinite(there.rows).all())


def _is_lost(model: _Followed, there: Evaluation, values: list[float]) -> bool:
    """Whether the decreases were steady up to a point at which rounding makes up the next one."""
    if len(values) < RULES.fewest or not _steady(np.diff(values)):
        return False
    falls, before = values[-1] - there.objective, values[-2] - values[-1]
    if falls >= (1.0 - RULES.steady) * before:
        return False
    changes = [near.objective - there.objective for near in _beside(model, there)]
    return bool(np.max(np.abs(changes)) >= RULES.share * before)


def _beside(model: _Followed, there: Evaluation) -> Iterator[Evaluation]:
    """Points next to one, whose values differ from its own by rounding."""
    generator = np.random.default_rng(0)
    for _ in range(RULES.attempts):
        noise = generator.choice([-1.0, 0.0, 1.0], size=there.point.size)
        beside = model.domain.project(there.point * (1.0 + RULES.last_digit * noise))
        yield model.oracle.at(beside)


def _is_rounding(model: _Followed, there: Evaluation, before: float) -> bool:
    """Whether a point fails only because a direction is known to a last digit."""
    broken = there.violations > model.tolerance * there.magnitudes
    if broken.any() and there.differentiable:
        moves = RULES.last_digit * (abs(there.jacobian) @ np.abs(there.point))
        if (there.violations <= moves)[broken].all():
            return True
    for near in _beside(model, there):
        rise = abs(near.objective - there.objective) >= RULES.share * (there.objective - before)
        moved = np.abs(near.violations - there.violations) >= RULES.share * there.violations
        if (there.objective > before and rise) or (broken.any() and moved[broken].all()):
            return True
    return False


def _steady(changes: FloatArray, tail: int = RULES.tail) -> bool:
    """Whether the last decreases are at least as large as those before them."""
    decreases = -changes[-tail:]
    if not (decreases > 0).all():
        return False
    return bool((decreases[1:] >= (1.0 - RULES.steady) * decreases[:-1]).all())
