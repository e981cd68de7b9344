"""How long a millisecond of an allowance is on this machine.

Speed is a ratio to a peer in the same run. Where a job may take "2 × Clarabel + 6 ms", the 6 ms are those
of the machine on which the allowance was written; CVXPY's DGP needs 7 ms there for the example with two
variables, the whole job with everything imported. What DGP needs here, in turns with the other jobs,
says how many milliseconds that machine's are.
"""

from __future__ import annotations

import cvxpy as cp

# Seconds of the job below on the machine on which allowances in milliseconds were written.
THERE = 7e-3


def job() -> float:
    """Ex-CGP by CVXPY's DGP: build, reduce, solve."""
    x = cp.Variable(2, pos=True)
    cost = x[0] * x[1] + 4 / x[0] + 1 / x[1]
    rows = [x[0] * x[1] <= 1, x >= 0.4, x <= 3]
    return float(cp.Problem(cp.Minimize(cost), rows).solve(gp=True, solver="CLARABEL"))


def slowness(seconds: float) -> float:
    """How many times as long as there the job takes here."""
    return seconds / THERE
