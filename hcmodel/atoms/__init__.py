"""The atoms, one module a family; importing them fills the table `ATOMS`."""

from hcmodel.atoms.aggregates import cumsum, mean, prod, sum
from hcmodel.atoms.arithmetic import add, div, mul, neg, power, sub
from hcmodel.atoms.atom import Atom, atom
from hcmodel.atoms.black_box import function
from hcmodel.atoms.elementwise import (
    cos,
    exp,
    inv_pos,
    log,
    log1p,
    sigmoid,
    sin,
    softplus,
    sqrt,
    square,
    tanh,
)
from hcmodel.atoms.linalg import dot, einsum, kron, matmul, outer, quad_form, trace
from hcmodel.atoms.matrix_equations import det, dlyap, inv, logdet, lyap, solve
from hcmodel.atoms.piecewise import abs, max, maximum, min, minimum, norm
from hcmodel.atoms.probability import entr, kl_div, logsumexp, softmax
from hcmodel.atoms.structure import (
    broadcast_to,
    concatenate,
    diag,
    hstack,
    index,
    reshape,
    transpose,
    vstack,
)
from hcmodel.expressions.table import ATOMS

__all__ = [
    "ATOMS",
    "Atom",
    "abs",
    "add",
    "atom",
    "broadcast_to",
    "concatenate",
    "cos",
    "cumsum",
    "det",
    "diag",
    "div",
    "dlyap",
    "dot",
    "einsum",
    "entr",
    "exp",
    "function",
    "hstack",
    "index",
    "inv",
    "inv_pos",
    "kl_div",
    "kron",
    "log",
    "log1p",
    "logdet",
    "logsumexp",
    "lyap",
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mul",
    "neg",
    "norm",
    "outer",
    "power",
    "prod",
    "quad_form",
    "reshape",
    "sigmoid",
    "sin",
    "softmax",
    "softplus",
    "solve",
    "sqrt",
    "square",
    "sub",
    "sum",
    "tanh",
    "trace",
    "transpose",
    "vstack",
]
