"""Geometric programs that are written term by term, as sums over arrays.

Proofs, compilers and certificates look at every node of a model several times, which takes a hundred
times as long as to build it in a loop. The terms that `expressions.posynomials` finds go into arrays,

    y = exp(E log x + log c),     sides of the rows: S y,

with sparse E and S, so that the model has a handful of nodes and one more for each side. Rows keep their
places, names and multipliers, and variables their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import scipy

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Expression
from hcmodel.expressions.model import Minimize, Model
from hcmodel.expressions.posynomials import Monomial
from hcmodel.expressions.table import ATOMS
from hcmodel.reductions.reduction import ModelReduction


class Collected(ModelReduction):
    """A geometric program with its terms in arrays; any other model, and a small one, as it is."""

    @staticmethod
    def of(model: Model) -> Collected:
        return Collected(model, model if model.posynomials is None else _rewritten(model))


def _rewritten(model: Model) -> Model:
    """The model with all sides that are no leaves as entries of one array of sums."""
    assert model.posynomials is not None
    pairs = zip(model.roots, model.posynomials.terms, strict=True)
    collected = {id(side): terms for side, terms in pairs if isinstance(side, Apply)}
    sums = _sums(model, list(collected.values()))
    new = {side: sums[place] for place, side in enumerate(collected)}

    def renewed(row: Constraint) -> Constraint:
        return row.like(new.get(id(row.lhs)), new.get(id(row.rhs)))

    objective = model.objective.expression
    return replace(
        model,
        objective=Minimize(new.get(id(objective), objective)),
        constraints=tuple([renewed(row) for row in model.constraints]),
    )


def _sums(model: Model, sides: Sequence[list[Monomial]]) -> Expression:
    """S exp(E log x + log c), an entry for each of `sides`."""
    terms = [term for side in sides for term in side]
    exponents = _compressed(
        np.array([power for term in terms for power in term[2]], dtype=float),
        np.array([column for term in terms for column in term[1]], dtype=np.intp),
        [len(term[1]) for term in terms],
        model.layout.size,
    )
    log, exp, reshape, stack = (ATOMS[name] for name in ("log", "exp", "reshape", "hstack"))
    logs = [log(each if each.ndim < 2 else reshape(each, (each.size,))) for each in model.variables]
    unknowns = logs[0] if len(logs) == 1 and logs[0].ndim == 1 else stack(logs)
    y = exp(exponents @ unknowns + np.log([term[0] for term in terms]))
    count = len(terms)
    sums = _compressed(np.ones(count), np.arange(count), [len(each) for each in sides], count)
    return ATOMS["matmul"](sums, y)


def _compressed(
    data: np.ndarray, columns: np.ndarray, lengths: Sequence[int], width: int
) -> scipy.sparse.csr_array:
    starts = np.concatenate([[0], np.cumsum(lengths)])
    return scipy.sparse.csr_array((data, columns, starts), shape=(len(lengths), width))
