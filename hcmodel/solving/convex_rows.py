"""Contradictions among the rows that are convex, whatever the objective and the other rows are.

A model without a proof may have rows that are proven by themselves: straight ones beside a ratio, norms
beside a sine, posynomials beside a signomial. Where these alone have no common point, the model has none.
All rows together may be proven too, where only the objective is not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from hcmodel.certify.conflicts import irreducible_conflict
from hcmodel.certify.domains.domain_conditions import (
    SIDES,
    Condition,
    conditions_of,
    is_of_the_model,
)
from hcmodel.certify.domains.nowhere import Nowhere
from hcmodel.certify.infeasibility import dual_infeasibility
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Constant
from hcmodel.expressions.model import Minimize, Model
from hcmodel.facts.curvature import can_be_log
from hcmodel.proof.prove import prove
from hcmodel.records import replace
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin, Refusal
from hcmodel.solving.replaced_bounds import with_replaced_bounds
from hcmodel.solving.request import SolveRequest

Parts = tuple[Origin | BoundOrigin, ...]
CONVEX = "rows that are convex by themselves contradict each other"


def convex_contradiction(forms: Forms, request: SolveRequest) -> tuple[LowerBound, Parts] | None:
    """A proof that convex rows and bounds have no common point, and which; None where there is none."""
    tried: tuple[int, ...] = ()
    for tried in _convex_rows(forms.model):
        found = _among(forms, tried, request)
        if found is not None:
            return found
    every = tuple(range(len(forms.model.constraints)))
    if every == tried or forms.model.user_functions:
        return None
    return _among(forms, every, request)  # ratios may be convex in coordinates that maps know


def convex_nowhere(forms: Forms, request: SolveRequest) -> Nowhere | None:
    """The same where no point was found at which all functions are defined."""
    for places in _convex_rows(forms.model):
        for asked in ((), _conditions(forms)):
            found = _among(forms, places, request, asked)
            if found is not None:
                return _nowhere(found[1])
    return None


def irreducible(forms: Forms, nowhere: Nowhere, request: SolveRequest) -> Nowhere:
    """A conflict none of whose rows can be left out, where they are convex.

    Ranges that are narrowed row by row use more rows than a sum of them does, and what functions ask for
    may take the place of rows.
    """
    places = _places(nowhere.parts)
    for asked in (_conditions(forms), ()) if places else ():
        if nowhere.condition is not None and not asked:
            continue
        found = _among(forms, places, request, asked)
        if found is None:
            continue
        parts = found[1]
        for place in _places(parts) if asked else ():
            others = [each for each in _places(parts) if each != place]
            fewer = _among(forms, others, request, asked)
            parts = parts if fewer is None else fewer[1]
        return _nowhere(parts)
    return nowhere


def _conditions(forms: Forms) -> list[Condition]:
    """What functions ask of their arguments, as far as it is a row."""
    found = conditions_of(forms.model)
    return [each for each in found if each.domain in SIDES and is_of_the_model(each)]


def _nowhere(parts: Sequence[Any]) -> Nowhere:
    own = [each for each in parts if not isinstance(each, Condition)]
    used = [each for each in parts if isinstance(each, Condition)]
    return Nowhere(tuple(own), used[0] if used else None)


def _places(parts: Sequence[Any]) -> list[int]:
    """The positions of the constraints among some parts."""
    return sorted({each.position for each in parts if isinstance(each, Origin)})


def _among(
    forms: Forms,
    places: Sequence[int],
    request: SolveRequest,
    conditions: Sequence[Condition] = (),
) -> tuple[LowerBound, tuple[Any, ...]] | None:
    """The contradiction of some rows of the model and of what functions ask for, if these are convex."""
    rows = tuple(forms.model.constraints[place] for place in places)
    rows += tuple(each.argument >= SIDES[each.domain][0] for each in conditions)
    part, form = _form_of(rows, forms)
    if form is not None and isinstance(form.whole("cone"), Refusal):  # a row has no cone form
        kept = [place for place, row in zip(places, rows, strict=False) if _has_cone((row,), forms)]
        return _among(forms, kept, request) if 0 < len(kept) < len(places) else None
    if form is None or form.proof is None:
        return None
    there = form.oracle().at(form.domain.middle())
    found = dual_infeasibility(form, there, request.time_left)
    if found is None:
        return None
    parts = irreducible_conflict(form, request.deadline, found.multipliers)
    if parts is None or not form.chain.excludes(parts):
        return None
    parts = with_replaced_bounds(form, parts, request.deadline)
    parts = (*parts, *form.chain.fixings(parts), *form.chain.taken())
    named = tuple(_renumbered(part, each, (*places, *conditions)) for each in parts)
    return replace(found, conditions=(CONVEX, *found.conditions[1:])), named


def _form_of(rows: tuple[Constraint, ...], forms: Forms) -> tuple[Forms, Form | None]:
    """The rows by themselves, in the coordinates in which they are proven convex."""
    part = Forms(Model(Minimize(Constant(0.0)), rows), forms.compiler.engine)
    form = part.hidden()
    return part, form if form is not None and form.proof is not None else None


def _has_cone(rows: tuple[Constraint, ...], forms: Forms) -> bool:
    form = _form_of(rows, forms)[1]
    return form is not None and not isinstance(form.whole("cone"), Refusal)


def _convex_rows(model: Model) -> Iterator[tuple[int, ...]]:
    """The rows that are convex in the variables, and those that are in logarithms of positive ones."""
    seen: tuple[int, ...] = ()
    for logarithms in (False, True):
        found = []
        for place, row in enumerate(model.constraints):
            kinds = {
                each: "log" if logarithms and can_be_log(each) else "identity"
                for each in (*row.lhs.variables(), *row.rhs.variables())
            }
            if prove(Constant(0.0), 1.0, [row], fixed=kinds).proven:
                found.append(place)
        if set(found) - set(seen):
            seen = tuple(found)
            yield seen


def _renumbered(
    part: Forms, origin: Origin | BoundOrigin, places: Sequence[int | Condition]
) -> Origin | BoundOrigin | Condition:
    """A part of a conflict in the numbers of the whole model."""
    if isinstance(origin, BoundOrigin):
        return origin
    written = part.front.origin(origin)
    if written is None:
        return origin
    place = places[written.position]
    return place if isinstance(place, Condition) else written._replace(position=place)
