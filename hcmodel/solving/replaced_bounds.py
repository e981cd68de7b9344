"""Bounds of variables that maps have replaced, in conflicts.

A conflict in hidden coordinates names rows, and bounds of variables that are still there. Bounds of
prices are rows of the map between shares, which stay in every program of the deletion filter and have no
name. Which of them a conflict needs is found in the model as written: with the rows of the conflict
alone, bounds are left out one after the other for as long as what remains is shown to have no point.
Bounds without which nothing is proven stay, and are not named: without its signs a policy is none.
"""

from __future__ import annotations

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
MOST = 40


def with_replaced_bounds(
    hidden: Form, parts: tuple[Part, ...], deadline: float | None
) -> tuple[Part, ...]:
    """The parts of a conflict, and the bounds of replaced variables that it cannot do without."""
    candidates = _candidates(hidden.chain, parts)
    if not candidates or len(candidates) > MOST:
        return parts
    model, always = hidden.chain.before, [*parts, *_taken(hidden.chain)]

    def shown(bounds: Sequence[Part]) -> bool | None:
        """Whether there is no point with these bounds; None where nothing is proven."""
        form = Forms(_part_of(model, [*always, *bounds])).hidden()
        return None if form is None or form.proof is None else contradicts(form, deadline)

    if shown(()) or not shown(candidates):  # of some entries of a matrix nothing may be proven
        return parts
    kept: list[Part] = []
    needed: list[Part] = []
    while candidates:
        tried, *candidates = candidates
        if deadline is not None and time.monotonic() >= deadline:
            return parts
        without = shown([*kept, *candidates])
        if not without:
            kept.append(tried)
        if without is False:
            needed.append(tried)
    return (*parts, *needed)


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
    gone = [each for each in chain.before.variables if each.name in names and each.set.is_box]
    if not gone:
        return []
    found: list[Part] = []
    for variable in gone:
        for side, ends in (("lower", variable.lower), ("upper", variable.upper)):
            finite = np.isfinite(np.broadcast_to(ends, variable.shape))
            if side == "lower" and variable.set.positive:
                finite &= np.broadcast_to(ends, variable.shape) > 0
            found += [BoundOrigin(variable, side, place) for place in _places(finite)]
    here = {origin.position for origin in chain.origins() if origin is not None}
    here |= {part.position for part in parts if isinstance(part, Origin)}
    here |= {origin.position for origin in chain.taken()}
    for position, constraint in enumerate(chain.before.constraints):
        if position not in here:
            found += [Origin(position, place) for place in _places(np.ones(constraint.shape))]
    return found


def _places(marks: np.ndarray) -> list[tuple[int, ...]]:
    return [tuple(place) for place in np.argwhere(marks).tolist()]


def _part_of(model: Model, parts: Sequence[Part]) -> Model:
    """The model with these rows and bounds alone, and nothing to minimise."""
    bounds = [part for part in parts if isinstance(part, BoundOrigin)]
    new: dict[int, Expression] = {}
    for variable in model.variables:
        if variable.set.is_box:
            own = [part for part in bounds if part.variable.name == variable.name]
            new[id(variable)] = _bounded(variable, own)
    follow(model.nodes, new)
    rows = [part for part in parts if isinstance(part, Origin)]
    constraints = [_entry(model.constraints[row.position], row, new) for row in rows]
    nothing = Minimize(Constant(0.0))
    return replace(model, objective=nothing, constraints=tuple(constraints), hidden=None)


def _bounded(variable: Variable, bounds: Sequence[BoundOrigin]) -> Variable:
    """A variable with some of its bounds."""
    lower, upper = np.full(variable.shape, -np.inf), np.full(variable.shape, np.inf)
    if variable.set.positive:
        lower = np.zeros(variable.shape)
    for bound in bounds:
        for side, ends, own in (
            ("upper", lower, variable.lower),
            ("lower", upper, variable.upper),
        ):
            if bound.side != side:
                ends[bound.entry] = np.broadcast_to(own, variable.shape)[bound.entry]
    return Variable(variable.shape, variable.name, bounds=(lower, upper), pos=variable.set.positive)


def _entry(constraint: Constraint, row: Origin, new: dict[int, Expression]) -> Constraint:
    """A row of a constraint in other variables."""
    sides = [new.get(id(side), side) for side in (constraint.lhs, constraint.rhs)]
    if constraint.shape and not constraint.is_semidefinite and constraint.entries is None:
        sides = [(side + np.zeros(constraint.shape))[row.entry] for side in sides]
    return constraint.like(*sides)
