"""The numbers and options of `gradient-sampling`."""

from __future__ import annotations

from hcmodel.records import dataclass
from hcmodel.solvers.qp import DEFAULT_BACKEND, make_backend


@dataclass(frozen=True)
class SamplingRules:
    """Numbers of the method. *black boxes*: measured with tests/benchmarks/black_boxes.py."""

    # Sufficient decrease and the weak curvature condition.
    decrease: float = 1e-4  # Lewis and Overton, section 4
    curvature: float = 0.5  # Lewis and Overton, section 4
    # Trials of a line search.
    trials: int = 30  # Lewis and Overton: 30 halvings exhaust the accuracy of doubles near a kink
    # Points within this distance, in natural units, count as near.
    radius: float = 1e-6  # the default tolerance
    # Null steps for each unknown, and the share of the predicted decrease that makes a step serious.
    null_steps: int = 4  # black boxes
    serious: float = 0.1  # Kiwiel 1985
    # Points sampled in a ball, for each unknown, and one more.
    samples: int = 1  # Burke et al.: n + 1 at least
    # The least norm in the hull, relative to the gradients, at which a point counts as stationary.
    stationary: float = 5e-5  # black boxes
    # How often more points are sampled in the smallest ball before a run counts as stalled.
    tries: int = 5  # black boxes
    # The decrease of P that a model has to predict, relative to its size.
    model_progress: float = 1e-8  # black boxes
    # The decrease of P, relative to its size, below which an iteration is idle, and how many end BFGS.
    progress: float = 1e-8  # black boxes
    idle: int = 8  # black boxes
    # The least size that P is taken to have, in slopes.
    smallest: float = 1e-3  # black boxes (optima of 0)
    # The KKT residual, in tolerances, at which a smooth function without rows has its minimum.
    smooth: float = 1.0  # what is asked for
    # Unknowns up to which the smooth pieces are modelled, and the first trust region.
    modelled: int = 50  # each piece has a dense matrix
    reach: float = 0.1  # black boxes
    # A kink: how much the trapezoidal rule fails, trials of a search, and how many steps show kinks.
    trapezoid: float = 1 / 3  # cubic terms make it fail by that much at the most
    searches: int = 8  # black boxes
    kinks: int = 3  # black boxes
    # The same where the function looks convex; where the level lies, and the first box.
    convex_trapezoid: float = 0.25  # black boxes
    convex_searches: int = 2  # black boxes
    convex_kinks: int = 1  # black boxes
    clear: float = 0.6  # one such step shows a kink
    level: float = 0.5  # Lemaréchal, Nemirovskii and Nesterov 1995: any number between 0 and 1
    box: float = 1.0  # a natural unit
    # The share of the largest gradient below which one shows no kink at the minimum (at kinks gradients
    # keep their size), and how often BFGS takes over again.
    flat: float = 0.1  # black boxes
    returns: int = 3  # black boxes
    # The errors of a quadratic model, over those of all linearisations, at which BFGS takes over again.
    foreseen: float = 0.3  # black boxes
    # How the box grows where one of its sides holds the bound.
    wider: float = 10.0
    # Linearisations that are kept, for each unknown.
    linearisations: int = 20  # black boxes
    # Trials lie all around a point where the least singular value of their directions is this large.
    spread: float = 0.01  # black boxes
    # The least cosine of the angle between the way from the start and that to a trial beyond the point.
    ahead: float = 0.5  # 60 degrees
    # Steps for each unknown within which the value has to decrease.
    patience: int = 20  # black boxes
    stalled: float = 1e-5  # by this share of its size; noise decreases slower
    # The share of a predicted decrease that makes a step long, and steps in a row that fail.
    good: float = 0.5  # Conn, Gould and Toint 2000, section 6.1
    # A step of this share of the trust region ends at its edge; how the region grows and shrinks.
    edge: float = 0.9  # black boxes
    longer: float = 2.0  # Conn, Gould and Toint 2000, section 17.1
    shorter: float = 0.5  # Conn, Gould and Toint 2000, section 17.1
    # The share of a piece that counts, and where in the radius it is looked at again.
    share: float = 1e-6  # above the accuracy of the backends
    inside: float = 0.5  # black boxes
    failures: int = 1  # for each unknown, black boxes
    # How much a linearisation exceeds the function, in slopes times radius, at a concave kink.
    contradiction: float = 0.05  # black boxes
    # Points sampled to find concave kinks, if the function is not convex.
    probes: int = 20  # black boxes
    # How often they are sampled where there are concave kinks.
    probe_rounds: int = 4  # black boxes
    # Gradients of the past that are looked at, for each unknown.
    memory: int = 3  # black boxes
    # The first penalty weights over the ratio of slopes, their growth, and how often they may grow.
    penalty: float = 2.0  # above a multiplier of that ratio
    penalty_growth: float = 10.0  # Nocedal and Wright, framework 17.2
    penalty_rounds: int = 6  # black boxes


@dataclass(frozen=True)
class SamplingOptions:
    """Options of `gradient-sampling`."""

    seed: int = 0
    """Of the points that are sampled."""
    backend: str = DEFAULT_BACKEND
    """The backend of the quadratic programs."""
    rules: SamplingRules = SamplingRules()
    """Numbers that seldom have to be changed."""

    def __post_init__(self) -> None:
        make_backend(self.backend)
