"""The scalar constraint of the paper: F2(x) = max( max_i g_i(x), max_j |h_j(x)| ).

The methods that linearise each row do not need it; the sub-gradient methods do. A sub-gradient is
that of one active piece, the first of the largest, with the sign of the equality's value (+ at 0).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.solvers.oracle import Evaluation

FloatArray = NDArray[np.float64]


def max_of_abs(evaluation: Evaluation) -> tuple[float, FloatArray]:
    """F2 and a sub-gradient; −∞ and 0 where there are no rows, so that F2 <= 0 holds."""
    if not evaluation.rows.size:
        return -np.inf, np.zeros(evaluation.point.size)
    count = evaluation.inequalities
    signs = np.where((np.arange(evaluation.rows.size) < count) | (evaluation.rows >= 0), 1.0, -1.0)
    pieces = signs * evaluation.rows
    active = int(np.argmax(pieces))
    row: Any = evaluation.jacobian[[active]]
    gradient = row.toarray() if scipy.sparse.issparse(row) else np.asarray(row)
    return float(pieces[active]), signs[active] * gradient.reshape(-1)
