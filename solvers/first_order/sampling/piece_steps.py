"""Steps to the least value of models of the smooth pieces that trials have shown (see `pieces`)."""

from __future__ import annotations

import numpy as np

from hcmodel.records import replace
from hcmodel.solvers.first_order.pieces import ModelStep, Pieces
from hcmodel.solvers.first_order.sampling.exact_penalty import ExactPenalty
from hcmodel.solvers.first_order.sampling.hull_steps import HullSteps
from hcmodel.solvers.first_order.sampling.trials import SamplingState
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.qp import QPBackend


class PieceSteps:
    """The phase "pieces"; where a model promises nothing more, the hull of gradients is asked."""

    def __init__(self, penalty: ExactPenalty, hulls: HullSteps, backend: QPBackend) -> None:
        self._penalty, self._rules = penalty, penalty.rules
        self._hulls, self._backend = hulls, backend

    def step(self, state: SamplingState) -> SamplingState:
        """A step to the least value of the model, or an evaluation that checks a piece of it."""
        here, rules = state.here, self._rules
        assert state.pieces is not None
        pieces = state.pieces.below(here.y, here.value)
        found = pieces.least(here.y, state.reach, self._penalty.limits(), self._backend)
        if found is None:
            return replace(state, phase="bfgs", inverse=None, idle=0)
        state = replace(state, pieces=pieces)
        gain = here.value - found.value
        if gain <= rules.model_progress * here.size(rules):
            return self._checked(state, pieces, found)
        shorter = rules.shorter * state.reach
        trial = self._penalty.at(here.y + found.step, state.weights)
        if trial is None:
            return replace(state, reach=shorter)
        after, was = pieces.noted(trial.y, trial.value, trial.slope, state.failures)
        state = replace(state, pieces=after).remembered([trial], rules)
        fall = here.value - trial.value
        if fall < rules.serious * gain:
            known = len(after.below(here.y, here.value).active)
            failures = state.failures + (was is not None)
            useless = known <= len(pieces.active) - (was is not None)  # it says nothing of here
            if useless or failures > rules.failures * here.y.size:
                return replace(state, reach=shorter, failures=0)
            return replace(state, failures=failures)
        length = float(np.max(np.abs(found.step)))
        longer = fall >= rules.good * gain and length >= rules.edge * state.reach
        reach = rules.longer * state.reach if longer else state.reach
        return replace(state.at(trial), reach=reach, failures=0)

    def _checked(self, state: SamplingState, pieces: Pieces, found: ModelStep) -> SamplingState:
        """Evaluate a piece that holds the point and was last seen far from it; else the hull's test."""
        here, rules = state.here, self._rules
        far = [
            (share, piece)
            for share, piece in zip(found.shares, pieces.active, strict=True)
            if share > rules.share and float(np.max(np.abs(piece.y - here.y))) > rules.radius
        ]
        if not far:
            return self._hulls.step(replace(state, idle=0))
        piece = max(far, key=lambda each: each[0])[1]
        slope = piece.at(here.y)[1]
        move = rules.inside * rules.radius * slope / max(float(np.max(np.abs(slope))), TINY)
        trial = self._penalty.at(here.y + move, state.weights)
        if trial is None:
            return replace(state, pieces=pieces.without([piece]), reach=rules.shorter * state.reach)
        after, was = pieces.noted(trial.y, trial.value, trial.slope)
        reach = state.reach
        if was is not piece:
            after, reach = after.without([piece]), rules.shorter * reach
        state = replace(state, pieces=after, reach=reach).remembered([trial], rules)
        return state.at(trial) if trial.value < here.value else state
