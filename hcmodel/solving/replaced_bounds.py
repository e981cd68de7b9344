"""Bounds of variables that maps have replaced, in conflicts.

A conflict in hidden coordinates names rows, and bounds of variables that are still there. Bounds of
prices are rows of the map between shares, which stay in every program of the deletion filter and have no
name. Which of them a conflict needs is found in the model as written: with the rows of the conflict
alone, bounds are left out one after the other for as long as what remains is shown to have no point.
A bound without which nothing is proven stays, so that what is named contradicts itself: without
visits >= 0 the flow equations of a decision process may have points. Sets of distributions and matrices
are part of every such model and are not named; tighter bounds on the entries of distributions are.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence

import numpy as np

from hcmodel.certify.conflicts import contradicts
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.exchanged import follow
from hcmodel.expressions.leaves import Constant, Expression, Variable
from hcmodel.expressions.model import Minimize, Model
from hcmodel.records import replace
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.reductions.substitution import Substitution

Part = Origin | BoundOrigin

# Bounds up to which they are left out one by one: a proof and a program each, of 10 ms for small models.
# If there are more, those of one side of a variable are left out together.
MOST = 40


def with_replaced_bounds(
    hidden: Form, parts: tuple[Part, ...], deadline: float | None
) -> tuple[Part, ...]:
    """The parts of a conflict, and the bounds of replaced variables that it cannot do without.

    Of some entries of a matrix equation nothing may be proven; the constraint then takes their place.
    """
    candidates = _candidates(hidden.chain, parts)
    if not candidates:
        return parts
    for rows in dict.fromkeys((parts, _whole_constraints(parts))):
        shown = _Shown(hidden.chain, rows, deadline)
        if shown(()):
            return rows
        if shown(candidates):
            return (*rows, *_needed(candidates, shown, deadline))
    return (*parts, *candidates)  # the program has the rows of the map for all of these


class _Shown:
    """Whether the model has no point with some rows and bounds; None where nothing is proven."""

    def __init__(self, chain: Chain, rows: Sequence[Part], deadline: float | None) -> None:
        self._model, self._always = chain.before, (*rows, *_taken(chain))
        self._deadline = deadline

    def __call__(self, bounds: Sequence[Part]) -> bool | None:
        form = Forms(_part_of(self._model, [*self._always, *bounds])).hidden()
        return None if form is None or form.proof is None else contradicts(form, self._deadline)


def _needed(candidates: Sequence[Part], shown: _Shown, deadline: float | None) -> tuple[Part, ...]:
    """Those of some bounds that are left when all are that can be left out."""
    kept: list[Part] = []
    groups = _groups(candidates) if len(candidates) > MOST else [[each] for each in candidates]
    while groups and not is_over(deadline):
        tried, *groups = groups
        if not shown([*kept, *itertools.chain.from_iterable(groups)]):
            kept += tried
    return (*kept, *itertools.chain.from_iterable(groups))


def is_over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() >= deadline


def _groups(candidates: Sequence[Part]) -> list[list[Part]]:
    """Bounds of one side of a variable together, and the entries of a constraint."""
    found: dict[object, list[Part]] = {}
    for part in candidates:
        own = part.position if isinstance(part, Origin) else (part.variable.name, part.side)
        found.setdefault(own, []).append(part)
    return list(found.values())


def _whole_constraints(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The same with constraints in the place of entries of them."""
    rows = [Origin(each.position) if isinstance(each, Origin) else each for each in parts]
    return tuple(dict.fromkeys(rows))


def _taken(chain: Chain) -> list[Origin]:
    """The rows that a map takes out of the model, entry by entry: they are part of every conflict."""
    rows = [(each.position, chain.before.constraints[each.position]) for each in chain.taken()]
    return [
        Origin(position, place)
        for position, constraint in rows
        for place in _places(np.ones(constraint.shape))
    ]


def _candidates(chain: Chain, parts: tuple[Part, ...]) -> list[Part]:
    """Bounds of variables that maps replace, and rows of the model that are no rows of the program."""
    steps = [each for step in chain.steps if isinstance(step, Substitution) for each in step.steps]
    names = {variable.name for step in steps for variable in step.gone}
    names -= {name for step in steps for name in step.released}  # which no program has
    gone = [each for each in chain.before.variables if each.name in names and _has_own(each)]
    if not names:
        return []
    found: list[Part] = []
    for variable in gone:
        always = _always(variable)
        lower, upper = (
            np.broadcast_to(end, variable.shape) for end in (variable.lower, variable.upper)
        )
        for side, marks in (("lower", lower > always[0]), ("upper", upper < always[1])):
            found += [BoundOrigin(variable, side, place) for place in _places(marks)]
    here = {origin.position for origin in chain.origins() if origin is not None}
    here |= {part.position for part in parts if isinstance(part, Origin)}
    here |= {origin.position for origin in chain.taken()}
    for position, constraint in enumerate(chain.before.constraints):
        if position not in here:
            found += [Origin(position, place) for place in _places(np.ones(constraint.shape))]
    return found


def _has_own(variable: Variable) -> bool:
    """Whether a variable is in a box, or its distributions have bounds of their own."""
    return variable.set.is_box or (variable.set.is_distribution and variable.has_bounds)


def _always(variable: Variable) -> tuple[float, float]:
    """The bounds that are no part of a conflict: those of the set."""
    if variable.set.is_distribution:
        return 0.0, 1.0
    return (0.0 if variable.set.positive else -np.inf), np.inf


def _places(marks: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(place) for place in np.argwhere(marks).tolist()]


def _part_of(model: Model, parts: Sequence[Part]) -> Model:
    """The model with these rows and bounds alone, and nothing to minimise."""
    bounds = [part for part in parts if isinstance(part, BoundOrigin)]
    new: dict[int, Expression] = {}
    for variable in model.variables:
        if _has_own(variable):
            own = [part for part in bounds if part.variable.name == variable.name]
            new[id(variable)] = _bounded(variable, own)
    follow(model.nodes, new)
    rows = [part for part in parts if isinstance(part, Origin)]
    constraints = [_entry(model.constraints[row.position], row, new) for row in rows]
    nothing = Minimize(Constant(0.0))
    return replace(model, objective=nothing, constraints=tuple(constraints), hidden=None)


def _bounded(variable: Variable, bounds: Sequence[BoundOrigin]) -> Variable:
    """A variable with some of its bounds."""
    lower, upper = (np.full(variable.shape, end) for end in _always(variable))
    for bound in bounds:
        for side, ends, own in (
            ("upper", lower, variable.lower),
            ("lower", upper, variable.upper),
        ):
            if bound.side != side:
                ends[bound.entry] = np.broadcast_to(own, variable.shape)[bound.entry]
    kind = {"simplex": True} if variable.set.is_distribution else {"pos": variable.set.positive}
    return Variable(variable.shape, variable.name, bounds=(lower, upper), **kind)


def _entry(constraint: Constraint, row: Origin, new: dict[int, Expression]) -> Constraint:
    """A row of a constraint in other variables."""
    sides = [new.get(id(side), side) for side in (constraint.lhs, constraint.rhs)]
    if constraint.shape and not constraint.is_semidefinite and constraint.entries is None:
        sides = [(side + np.zeros(constraint.shape))[row.entry] for side in sides]
    return constraint.like(*sides)
