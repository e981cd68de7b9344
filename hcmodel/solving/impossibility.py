"""Proofs that no point satisfies the rows, and the rows and bounds that they cannot do without."""

from __future__ import annotations

import numpy as np

from hcmodel.certify.conflicts import irreducible_conflict
from hcmodel.certify.impossible_rows import impossible_row
from hcmodel.certify.infeasibility import dual_infeasibility, infeasibility
from hcmodel.certify.lower_bound import LowerBound
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin
from hcmodel.solvers.oracle import CallsExhausted, Evaluation
from hcmodel.solving.convex_rows import convex_contradiction
from hcmodel.solving.evidence import Outcome
from hcmodel.solving.judge import LIMITS
from hcmodel.solving.replaced_bounds import with_replaced_bounds
from hcmodel.solving.request import SolveRequest


def contradiction(
    forms: Forms,
    hidden: Form | None,
    outcome: Outcome,
    evaluation: Evaluation,
    request: SolveRequest,
) -> tuple[LowerBound | None, tuple[Origin | BoundOrigin, ...] | None, bool]:
    """A proof that no point satisfies the rows, and the rows and bounds that it cannot do without.

    The last one says that no point with an image does, where the model has others.
    """
    near = False
    if hidden is not None and outcome.result.termination not in LIMITS:
        try:
            conflict = _conflict(forms, hidden, outcome, request)
        except CallsExhausted:  # coordinates that were not tested show nothing
            conflict = None
        if conflict is not None:
            whole = forms.front.semidefinite.origin if forms.front.slacks else None
            parts = irreducible_conflict(hidden, request.deadline, conflict.multipliers, whole)
            if hidden.chain.excludes(parts):
                if (
                    parts is not None
                ):  # bounds of replaced variables alone may contradict each other
                    parts = with_replaced_bounds(hidden, parts, request.deadline)
                return conflict, _with_taken(hidden, parts), False
            near = True
    parts = forms.bounds.contradiction()
    if not parts and not any(parameter.value is None for parameter in forms.model.parameters):
        # beside an objective that is hard on a solver, rows that contradict each other are easy
        found = convex_contradiction(forms, request)
        if found is not None:
            return *found, False
        row = impossible_row(forms.bounds.before)
        parts = () if row is None else (row,)
    if not parts:
        return None, None, near
    # two bounds, or a row and all values that it can have, whatever the other functions are
    return LowerBound(np.inf, (), 0, evaluation.point, np.zeros(0)), parts, False


def _with_taken(
    hidden: Form, parts: tuple[Origin | BoundOrigin, ...] | None
) -> tuple[Origin | BoundOrigin, ...] | None:
    """The parts, and the rows that hold at every point that they were tested at."""
    chain = hidden.chain
    return None if parts is None else (*parts, *chain.fixings(parts), *chain.taken())


def _conflict(
    forms: Forms, hidden: Form, outcome: Outcome, request: SolveRequest
) -> LowerBound | None:
    """A proof in hidden coordinates that no feasible point exists."""
    if outcome.form is hidden and outcome.result.conflict is not None and outcome.result.weighted:
        from hcmodel.certify.cut_bounds import cut_conflict  # of a method of its own

        return cut_conflict(hidden, outcome.result.weighted)
    if outcome.form is hidden:
        there = hidden.oracle().at(outcome.result.point)
        weights = outcome.result.conflict
    else:
        there = hidden.oracle().at(hidden.chain.point(outcome.point(forms)))
        weights = None
    found = dual_infeasibility(hidden, there, request.time_left, weights)
    if found is None and there.finite and there.differentiable:
        found = infeasibility(hidden, there, weights)
    if found is None:
        found = dual_infeasibility(hidden, there, request.time_left, within_reach=True)
    return found
