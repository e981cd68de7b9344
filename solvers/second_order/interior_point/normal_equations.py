"""The linear system of one iteration, factorised once:

    [ M   Aᵀ ] [ du ]   [ r   ]
    [ A   0  ] [ dη ] = [ r_e ]     M = Eᵀ diag(ν) E − Ĵᵀ diag(ω) Ĵ + Jᵀ diag(d) J + bounds + smooth parts

with ν the weights of the terms, Ĵ the Jacobian of the logarithms, ω their weights, J that of the rows,
and d = λ/s.
Five ways, chosen by `normal_equations` from sizes and sparsity:

- `DenseEquations`: the matrices are arrays; n × n Cholesky.
- `LowRankEquations`: arrays with fewer rows than variables, and a bound for every variable: M = D + BᵀB
  with D diagonal, solved by Woodbury's formula with a matrix of the order of B's rows.
- `PackedEquations`: sparse matrices, and an array for M, where it is small or nearly full.
- `SparseEquations`: the pattern of M is found once, and its entries are sparse products of the weights.
  Rows with many entries stay out of M: they are further rows of a quasi-definite matrix.
- `GenericEquations`: sparse matrices and smooth parts; products by scipy.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sparse

from hcmodel.solvers.second_order.interior_point.dense_equations import (
    DenseEquations,
    LowRankEquations,
)
from hcmodel.solvers.second_order.interior_point.linear_system import NormalEquations
from hcmodel.solvers.second_order.interior_point.operators import Operators
from hcmodel.solvers.second_order.interior_point.sparse_equations import (
    LONG_ROW,
    SMALL_ORDER,
    GenericEquations,
    PackedEquations,
    SparseEquations,
)

# Above this density of M an array is used, up to this order: Cholesky of order 5,000 takes 42 GFlop.
FULL = 0.2
LARGEST_ORDER = 5000
# Woodbury's formula takes R²n + R³/3 operations for R rows of B, Cholesky R n² + n³/3: equal at R = n.
LOW_RANK = 0.7


def normal_equations(operators: Operators) -> NormalEquations:
    form = operators.form
    size, terms = form.size, form.offsets.size
    arrays = isinstance(form.exponents, np.ndarray) and isinstance(form.affine, np.ndarray)
    if arrays:
        order = terms + form.rows
        low_rank = order <= min(LOW_RANK * size, LARGEST_ORDER) and size > SMALL_ORDER // 4
        bounded = np.union1d(form.lower_index, form.upper_index).size == size
        if low_rank and bounded and not form.smooth:
            return LowRankEquations(operators)
        if size <= LARGEST_ORDER:
            return DenseEquations(operators)
    if form.smooth:
        return GenericEquations(operators)
    if size <= SMALL_ORDER or (size <= LARGEST_ORDER and _nearly_full(operators)):
        return PackedEquations(operators)
    return SparseEquations(operators)


def _nearly_full(operators: Operators) -> bool:
    """Whether the rows have about as many pairs of entries as M has entries, long rows left out."""
    form = operators.form
    lengths = np.diff(sparse.csr_array(form.exponents).indptr).astype(float)
    lengths = lengths[lengths <= LONG_ROW]
    return bool(np.sum(lengths**2) > FULL * form.size**2)
