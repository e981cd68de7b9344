"""How `max_calls` is divided between a method and what judges its point, where functions are a user's."""

from __future__ import annotations

from hcmodel.atoms.call_memory import calls_judging
from hcmodel.certify.certificate_options import MAP_TEST
from hcmodel.reductions.form import Form
from hcmodel.reductions.forms import Forms
from hcmodel.solvers.loop import ENDED_WELL
from hcmodel.solvers.oracle import OracleCalls
from hcmodel.solvers.result import Result, Termination
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.strategy import Stage

# Judging a point from which other methods will go on may take one in four of the calls that are left.
# When it could take all of them, 2 of 200 functions with kinks (test_best_of_all_points.py) lost a better
# point to it.
SHARE_OF_JUDGING = 4


def calls_left(request: SolveRequest, calls: OracleCalls) -> int | None:
    """The calls that methods and what judged their points have left; None without a limit."""
    if request.max_calls is None:
        return None
    return max(int(request.max_calls) - calls.total - calls_judging(), 0)


def calls_for_judging(
    request: SolveRequest,
    calls: OracleCalls,
    last: Result,
    stage: Stage,
    forms: Forms,
    hidden: Form | None,
    more: bool,
) -> int | None:
    """The calls that judging the point of the last run may make, those that were held back at least.

    `more` methods may follow it.
    """
    if last.termination is Termination.CALL_LIMIT and not last.calls.points:
        return 0  # the start was evaluated although the limit is below what a point takes
    left = calls_left(request, calls)
    if left is None or not more or last.termination in ENDED_WELL:
        return left
    held = held_back(stage, forms, hidden, left + last.calls.total)
    return min(max(left // SHARE_OF_JUDGING, held), left)


def held_back(stage: Stage, forms: Forms, hidden: Form | None, left: int) -> int:
    """The calls that are kept for judging the point of a stage.

    A function that autograd takes apart is called again for each form that is not that of the run. A
    bound from cuts in coordinates that are declared needs samples; they are kept where they are at most
    half of the calls.
    """
    nodes = forms.sign.before.user_functions
    if not nodes:
        return 0
    traced = any(dict(node.params)["grad"] is None for node in nodes)
    others = {id(forms.written), id(forms.lifted)} - {id(stage.form)}
    again = len(nodes) * len(others) if traced else 0
    declared = hidden is not None and hidden.proof is None and stage.entry.takes_cuts
    samples = len(nodes) * MAP_TEST.fewest if declared else 0
    return again + samples if 2 * (again + samples) <= left else again
