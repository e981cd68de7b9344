"""Options of the interior-point method, and what it returns."""

from __future__ import annotations

import math
from enum import Enum

from hcmodel.records import dataclass
from hcmodel.solvers.second_order.interior_point.certificates import FarkasCertificate
from hcmodel.solvers.second_order.interior_point.convex_program import FloatArray


@dataclass(frozen=True)
class InteriorPointOptions:
    """Numbers after "benchmark" come from `tests/benchmarks/interior_point.py ablation`.

    As they are, it solves 174 of the 180 random programs that Clarabel solves in 4,644 iterations, proves
    158 of 164 infeasible ones, and solves the 55 problems of the test set in 482 iterations.
    """

    # Residuals of the optimality conditions, relative; a certificate of 1e-8 follows from 1e-9.
    tolerance: float = 1e-9
    """Residuals and gap at which the method stops, relative."""
    # What still counts as almost solved where rounding or rows without interior prevent more.
    acceptable: float = 1e-6
    """What still counts as solved to reduced accuracy."""
    # 5 to 25 are usual; the hardest of the test set (varun) takes 36.
    max_iterations: int = 200
    """Iterations, at most."""
    # Share of the way to the boundary (Mehrotra 1992 takes 0.9 to 0.9995; Wright 1997, section 10, 0.99;
    # benchmark: 0.999 is equal).
    boundary: float = 0.99
    """Share of the way to the boundary that a step takes at least."""
    # σ = (μ after the predictor / μ)^3 (Mehrotra 1992; benchmark: 2 takes 11 % more iterations on the
    # random programs).
    centring_power: int = 3
    """Power of the predicted decrease in Mehrotra's centring rule."""
    # Largest second-order correction of a term's logarithm (benchmark: 3 and 30 are equal, without the
    # correction 21 % more iterations on the test set, where one is not solved).
    correction_limit: float = 10.0
    """Largest second-order correction of the logarithm of a term."""
    # Terms are put to what u says where this changes their group's weight by less than this multiple
    # of μ and less than the largest weight (benchmark: 10 and ∞ are equal, 0 takes 50 % more iterations
    # on the random programs and proves 3 more infeasible ones).
    synchronised: float = 100.0
    """Terms that change by less than this multiple of the gap are put to what the point says."""
    # Largest ratio of the primal and the dual step length (benchmark: with 1 twice as many iterations and
    # 14 fewer solved, with ∞ 7 fewer infeasible programs proven).
    step_ratio: float = 10.0
    """Largest ratio of primal and dual step length."""
    # Operations that an iteration may spend on orthogonal transformations where Cholesky is not
    # accurate: 0.1 s (ablation: without it two programs are not solved, demb761 to reduced accuracy).
    orthogonal_work: float = 3e8
    """Operations for orthogonal transformations in one iteration."""
    # Iterations without any smaller residual before the method gives up (benchmark: 30 solves no more,
    # and proves 3 more infeasible programs; ablation: without it varun is solved to reduced accuracy).
    patience: int = 15
    """Iterations without progress before the method gives up."""
    # Shares of the tolerance (ablation: without them 400 gates are solved to reduced accuracy only). The
    # second one counts where products are many: a chain of 100,000 takes 11 iterations with it and 17
    # without, in which the sum of its products halves from 4e-6 to 1e-9.
    least_gap: float = 0.01
    """Share of the tolerance that a product of slack and multiplier does not aim below on average."""
    least_sum: float = 0.5
    """Share of the tolerance that the sum of these products need not aim below."""
    # The share of its smallest value so far below which a residual counts as progress (ablation:
    # half and double are equal).
    progress: float = 0.9
    """Factor by which a residual has to fall to be progress."""
    # Refinement ends at this share of the dual residual; where a direction leaves more than the other
    # share, the linear algebra becomes orthogonal (ablation: off, half and double are equal).
    refined: float = 1e-3
    """Share of the dual residual at which refinement ends."""
    inaccurate: float = 0.1
    """Share of the dual residual left by a step above which the linear algebra becomes orthogonal."""
    # |u| at which a direction of recession is looked for, and the factor to the next such |u|: a linear
    # program each time, so that few of them are solved (ablation: half and double are equal).
    far: float = 1e4
    """Size of the point at which a direction of recession is looked for, and the factor to the next."""
    # |u| of variables without bounds in certificates of infeasibility; e^±700 are the largest doubles.
    reach: float = 700.0
    """Largest logarithm of an unbounded variable in proofs of infeasibility."""


class InteriorPointStatus(Enum):
    SOLVED = "solved"
    ALMOST_SOLVED = "solved to reduced accuracy"
    INFEASIBLE = "no point satisfies the rows; the certificate proves it"
    UNBOUNDED = "the objective decreases without bound along the direction"
    ITERATION_LIMIT = "the iteration limit was reached"
    TIME_LIMIT = "the time limit was reached"
    FAILED = "no further progress"


@dataclass(frozen=True)
class KKTResiduals:
    """From the functions at the point, not from the iterates; rows are scaled to slopes of about 1."""

    primal: float  # the largest violation of a row or an equality
    dual: float  # |∇f_0 + Jᵀλ + Aᵀη − z_lower + z_upper| / (1 + |∇f_0|)
    complementarity: float  # (Σ λ_i |f_i| + Σ z |u − bound|) / (1 + |f_0|)

    @property
    def largest(self) -> float:
        """Infinite where one of them is no number, as where a function is not defined."""
        parts = (self.primal, self.dual, self.complementarity)
        return math.inf if any(map(math.isnan, parts)) else max(parts)


@dataclass(frozen=True)
class InteriorPointResult:
    """Multipliers are those of f_0 + λ·f + η·(A u − b) + z_upper·(u − upper) − z_lower·(u − lower)."""

    status: InteriorPointStatus
    point: FloatArray
    value: float
    row_multipliers: FloatArray
    equality_multipliers: FloatArray
    lower_multipliers: FloatArray
    upper_multipliers: FloatArray
    residuals: KKTResiduals
    iterations: int
    certificate: FarkasCertificate | None = None  # with INFEASIBLE
    direction: FloatArray | None = None  # with UNBOUNDED

    @property
    def usable(self) -> bool:
        return self.status in (InteriorPointStatus.SOLVED, InteriorPointStatus.ALMOST_SOLVED)
