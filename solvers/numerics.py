"""What rounding, infinity and smallness mean in floating point, each stated once.

Everything here follows from IEEE double precision (53 bits: one operation is exact to 2⁻⁵³ ≈ 1.1e-16,
numbers range from about 1e-308 to 1e308) or from what the backends deliver. It is not tuning: parameters
of methods are fields of options dataclasses. Roundings are relative, to be multiplied with the size
of the terms that were added.
"""

from __future__ import annotations

# ---- rounding, from a single operation to the answer of a backend

# One operation on two numbers: the machine epsilon 2⁻⁵² = 2.2e-16, rounded down.
OPERATION_ROUNDING = 2e-16
# A sum of a few terms, such as a Lagrangian or a decrease of a merit: several epsilons.
SUM_ROUNDING = 1e-15
# An inner product or a matrix product: the errors of a hundred terms. Also the relative singular
# value under which least squares on such products take a direction for dependent.
PRODUCT_ROUNDING = 1e-14
# A merit function along a run: its value is a composition of products, computed by a user's formula.
MERIT_ROUNDING = 1e-13
# Data and points that were computed elsewhere or read from text: a symmetric matrix, a sign, a point
# that a projection has put on the edge of its set. Also the safety margin of an interval's ends.
DATA_ROUNDING = 1e-12
# The eigenvalues of a matrix that Lanczos or a sparse factorisation has estimated.
EIGENVALUE_ROUNDING = 1e-11
# The answer of an interior-point backend, which is asked for this accuracy.
BACKEND_ROUNDING = 1e-10

# ---- smallness

# Singular values of a Jacobian under this share of the largest belong to dependent rows or columns: its
# entries are exact to about PRODUCT_ROUNDING, and four digits are left for their condition.
DEPENDENT = 1e-10

# Divisors are kept above this, so that 0/0 becomes 0: no size of a model comes near it, and its
# reciprocal is still a number.
TINY = 1e-300

# ---- infinity

# A bound as large as this is treated as absent, as in most solvers (Ipopt 1e19, Gurobi 1e20).
INFINITE = 1e20
# An objective under −BOTTOM that still decreases ends a run: it is likely to be unbounded. The size of
# a value shows nothing, so whether it is unbounded is found out afterwards, by following a path.
BOTTOM = 1e50
# So does a point beyond FAR in a direction without a bound, at which a negative objective decreases.
FAR = 1e30
# Points farther out count as outside every domain: products leave the range of floating point there,
# and a slope that underflows would be mistaken for a minimum.
LARGEST_NUMBER = 1e100
# The logarithm of LARGEST_NUMBER (230.26), rounded down: coordinates log x are kept within it.
LARGEST_LOG = 230.0
