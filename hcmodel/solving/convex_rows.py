"""Contradictions among the rows that are convex, whatever the objective and the other rows are.

A model without a proof may have rows that are proven by themselves: straight ones beside a ratio, norms
beside a sine, posynomials beside a signomial. Where these alone have no common point, the model has none.
"""

from __future__ import annotations

from collections.abc import Iterator

from hcmodel.certify.conflicts import irreducible_conflict
from hcmodel.certify.infeasibility import dual_infeasibility
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.expressions.leaves import Constant
from hcmodel.expressions.model import Minimize, Model
from hcmodel.facts.curvature import can_be_log
from hcmodel.proof.prove import prove
from hcmodel.records import replace
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.solving.request import SolveRequest

Parts = tuple[Origin | BoundOrigin, ...]
CONVEX = "rows that are convex by themselves contradict each other"


def convex_contradiction(forms: Forms, request: SolveRequest) -> tuple[LowerBound, Parts] | None:
    """A proof that convex rows and bounds have no common point, and which; None where there is none."""
    for places in _convex_rows(forms.model):
        rows = tuple(forms.model.constraints[place] for place in places)
        part = Forms(Model(Minimize(Constant(0.0)), rows), forms.compiler.engine)
        form = part.hidden()
        if form is None or form.proof is None:
            continue
        there = form.oracle().at(form.domain.middle())
        found = dual_infeasibility(form, there, request.time_left)
        if found is None:
            continue
        parts = irreducible_conflict(form, request.deadline, found.multipliers)
        if parts is None or not form.chain.excludes(parts):
            continue
        parts = (*parts, *form.chain.fixings(parts), *form.chain.taken())
        named = tuple(_renumbered(part, each, places) for each in parts)
        return replace(found, conditions=(CONVEX, *found.conditions[1:])), named
    return None


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
    part: Forms, origin: Origin | BoundOrigin, places: tuple[int, ...]
) -> Origin | BoundOrigin:
    """A part of a conflict in the numbers of the whole model."""
    if isinstance(origin, BoundOrigin):
        return origin
    written = part.front.origin(origin)
    return origin if written is None else replace(written, position=places[written.position])
