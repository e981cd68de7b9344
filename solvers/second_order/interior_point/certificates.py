"""Certificates that a program is infeasible or unbounded, verified from its data.

**Infeasible.** For weights w >= 0 of the rows and y of the equalities,

    Σ w_i f_i(u) + y·(A u − b) >= q·u + constant    for all u,

since every part has an affine function below it: with shares p >= 0, Σ p = 1 and values v > 0,

    log Σ exp(e_k) >= Σ p_k (e_k − log p_k),     exp(e_k) >= v_k (1 + e_k − log v_k)

(arithmetic and geometric mean; tangent of exp at log v), and a smooth part has its tangent. If the least
value of q·u + constant over the bounds is positive, no u satisfies the rows. Where a logarithm has no
bound, |u| <= reach takes its place: a statement about all u needs q = 0 there, which rounding excludes.
Other variables without bounds need q = 0, for nothing is known of their size.

**Unbounded.** A direction d with A d = 0, along which no row grows, no bound is met, and the objective
falls. Along a direction a logarithm grows like its largest term and a plain term must not grow at all, so
d solves a linear program.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import SUM_ROUNDING, TINY
from hcmodel.solvers.qp import (
    ConeBlock,
    ConeKind,
    ConeOptions,
    ConeStatus,
    cone_program,
    solve_cone,
)
from hcmodel.solvers.second_order.interior_point.convex_program import (
    FloatArray,
    SmoothConvexProgram,
)

# A linear program that falls by less than this, relative to its objective, is taken for one that does
# not: the default feasibility tolerance of HiGHS.
LEAST_FALL = 1e-7


@dataclass(frozen=True)
class FarkasCertificate:
    """Weights with which the rows exclude each other; `bound` > 0 is the least value of their sum.

    The weights add up to 1. `reach` limits the logarithms without a bound: |u| <= reach.
    """

    row_weights: FloatArray
    equality_weights: FloatArray
    log_terms: FloatArray  # the shares p, group by group
    plain_terms: FloatArray  # the values v
    point: FloatArray  # where smooth parts have their tangents
    reach: float
    bound: float = -np.inf

    @property
    def proves(self) -> bool:
        return self.bound > 0


def verified(program: SmoothConvexProgram, certificate: FarkasCertificate) -> FarkasCertificate:
    """The same weights with the bound that they prove, computed from the data of the program."""
    rows = np.maximum(certificate.row_weights, 0.0)
    equalities = certificate.equality_weights
    total = float(rows.sum() + np.abs(equalities).sum())
    if not total > 0 or not np.isfinite(total):
        return replace(certificate, bound=-np.inf)
    rows, equalities = rows / total, equalities / total
    weights = np.concatenate([[0.0], rows])
    slope = np.asarray(program.affine.T @ weights, dtype=float)
    summands = [weights * program.constants]
    if program.log_sums is not None:
        part = program.log_sums
        shares = np.maximum(certificate.log_terms, TINY)
        sums = np.bincount(part.groups, shares, minlength=len(part.rows))
        shares = shares / sums[part.groups]
        used = weights[part.rows][part.groups] * shares
        slope += part.exponents.T @ used
        summands.append(used * (part.offsets - np.log(shares)))
    if program.sums is not None:
        plain = program.sums
        values = np.maximum(certificate.plain_terms, TINY)
        used = (plain.weights.T @ weights) * values
        slope += plain.exponents.T @ used
        summands.append(used * (1 + plain.offsets - np.log(values)))
    for smooth in program.smooth:
        tangents = smooth.jacobian(certificate.point)
        own = weights[smooth.rows]
        slope += tangents.T @ own
        heights = smooth.values(certificate.point) - tangents @ certificate.point
        summands.append(own * heights)
    if program.equality is not None and program.equality_bound is not None:
        slope += program.equality.T @ equalities
        summands.append(-equalities * program.equality_bound)
    reach = np.full(slope.size, certificate.reach)
    if program.logarithms is not None:
        reach[~program.logarithms] = np.inf
    lower = np.where(np.isfinite(program.lower), program.lower, -reach)
    upper = np.where(np.isfinite(program.upper), program.upper, reach)
    tilted = slope != 0  # 0 times an infinite bound is 0
    own = slope[tilted]
    summands.append(np.minimum(own * lower[tilted], own * upper[tilted]))
    parts = np.concatenate(summands)
    if not np.isfinite(parts).all():
        return replace(certificate, bound=-np.inf)
    rounding = SUM_ROUNDING * np.sqrt(parts.size) * float(np.abs(parts).sum())
    return replace(
        certificate,
        row_weights=rows,
        equality_weights=equalities,
        bound=float(parts.sum()) - rounding,
    )


def recession_direction(program: SmoothConvexProgram, time_limit: float) -> FloatArray | None:
    """A direction along which the objective of a program without smooth parts falls for ever.

    Variables of the linear program: d in [−1, 1]ⁿ, then one t_g >= E_k·d per logarithm.
    """
    if program.smooth:
        return None
    size, head = program.dimension, program.row_count + 1
    groups = 0 if program.log_sums is None else len(program.log_sums.rows)
    affine = sparse.csr_array(program.affine)
    blocks = [affine]
    if program.log_sums is not None:
        logs = program.log_sums
        place = sparse.csr_array(
            (np.ones(groups), (logs.rows, np.arange(groups))), shape=(head, groups)
        )
        blocks.append(place)
    rows = sparse.csr_array(sparse.hstack(blocks, format="csr"))
    inequalities = [rows[1:]]
    limits = [np.zeros(head - 1)]
    if program.log_sums is not None:
        terms = logs.exponents.shape[0]
        largest = sparse.csr_array(
            (-np.ones(terms), (np.arange(terms), logs.groups)), shape=(terms, groups)
        )
        inequalities.append(sparse.hstack([sparse.csr_array(logs.exponents), largest]))
        limits.append(np.zeros(terms))
    if program.sums is not None:
        used = np.flatnonzero(np.asarray(abs(program.sums.weights).sum(axis=0)).ravel() > 0)
        inequalities.append(_widened(sparse.csr_array(program.sums.exponents)[used], groups))
        limits.append(np.zeros(used.size))
    identity = _widened(sparse.eye_array(size, format="csr"), groups)
    inequalities += [identity, -identity]
    limits += [
        np.where(np.isfinite(program.upper), 0.0, 1.0),
        np.where(np.isfinite(program.lower), 0.0, 1.0),
    ]
    equalities = sparse.csr_array((0, size + groups))
    if program.equality is not None:
        equalities = _widened(sparse.csr_array(program.equality), groups)
    matrix = sparse.vstack([equalities, *inequalities])
    offset = np.concatenate([np.zeros(equalities.shape[0]), *limits])
    cones = (
        ConeBlock(ConeKind.ZERO, equalities.shape[0]),
        ConeBlock(ConeKind.NONNEGATIVE, offset.size - equalities.shape[0]),
    )
    objective = rows[[0]].toarray().ravel()
    answer = solve_cone(
        cone_program(objective, matrix, offset, cones), "highs", ConeOptions(time_limit=time_limit)
    )
    if answer.status is not ConeStatus.SOLVED:
        return None
    fall = -float(objective @ answer.primal)
    scale = float(np.max(np.abs(objective), initial=0.0))
    return answer.primal[:size] if fall > LEAST_FALL * scale else None


def _widened(matrix: sparse.csr_array, more: int) -> sparse.csr_array:
    """With columns of zeros on the right."""
    parts = (matrix.data, matrix.indices, matrix.indptr)
    return sparse.csr_array(parts, shape=(matrix.shape[0], matrix.shape[1] + more))
