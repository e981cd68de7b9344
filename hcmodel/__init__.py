"""hcmodel: write a hidden-convex problem as it stands, get its global minimum."""

from hcmodel.atoms import (
    abs,
    concatenate,
    cos,
    cumsum,
    det,
    diag,
    dlyap,
    dot,
    einsum,
    entr,
    exp,
    function,
    hstack,
    inv,
    inv_pos,
    kl_div,
    kron,
    log,
    log1p,
    logdet,
    logsumexp,
    lyap,
    max,
    maximum,
    mean,
    min,
    minimum,
    norm,
    outer,
    power,
    prod,
    quad_form,
    reshape,
    sigmoid,
    sin,
    softmax,
    softplus,
    solve,
    sqrt,
    square,
    sum,
    tanh,
    trace,
    transpose,
    vstack,
)
from hcmodel.errors import (
    DataError,
    HCError,
    HCWarning,
    ModelError,
    ModelSyntaxError,
    NotHiddenConvexError,
    SolverError,
)
from hcmodel.expression import Constant, Constraint, Expression, Parameter, Variable
from hcmodel.problem import Maximize, Minimize, Problem
from hcmodel.solution import Certificate, Solution, Status
from hcmodel.solvers.result import Record, Termination

__version__ = "0.1.0"

__all__ = [name for name in dir() if not name.startswith("_")]
