"""What the trials of a run have seen around its end, so that these are not looked at again."""

from __future__ import annotations

import numpy as np

from hcmodel.records import replace
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty
from hcmodel.solvers.first_order.sampling.trials import SamplingState


def looked_around(state: SamplingState, penalty: ExactPenalty) -> SamplingState:
    rules = penalty.rules
    return replace(
        state,
        surrounded=_is_surrounded(state, rules.spread),
        passed=_has_passed(state, penalty, rules.ahead),
    )


def _has_passed(state: SamplingState, penalty: ExactPenalty, least: float) -> bool:
    """Whether a trial lies beyond the point, as seen from the start, in about that direction."""
    here = state.here
    way = here.y - penalty.first
    beyond = np.array([trial.y - here.y for trial in state.trials])
    lengths = np.linalg.norm(beyond, axis=1) * float(np.linalg.norm(way))
    along = beyond @ way
    return bool(np.any((along > 0) & (along >= least * lengths)))


def _is_surrounded(state: SamplingState, least: float) -> bool:
    """Whether trials lie in all directions from the point."""
    here = state.here
    moves = np.array([trial.y - here.y for trial in state.trials if trial is not here])
    if moves.shape[0] < here.y.size:
        return False
    lengths = np.linalg.norm(moves, axis=1)
    units = moves[lengths > 0] / lengths[lengths > 0, None]
    if units.shape[0] < here.y.size:
        return False
    return float(np.linalg.svd(units, compute_uv=False)[-1]) > least
