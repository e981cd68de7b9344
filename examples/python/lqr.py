"""The linear-quadratic regulator, five ways: which of them are hidden convex, and what each finds.

Plant: a helicopter near hover (HE1 of COMPleib), unstable without control. The noise has unit
intensity, so the cost is the stationary mean of xᵀQx + uᵀRu.
"""

import numpy as np
from scipy.linalg import expm, solve_continuous_are, solve_discrete_are

import hcmodel as hc

A = np.array(
    [
        [-0.0366, 0.0271, 0.0188, -0.4555],
        [0.0482, -1.01, 0.0024, -4.0208],
        [0.1002, 0.3681, -0.707, 1.42],
        [0, 0, 1, 0],
    ]
)
B = np.array([[0.4422, 0.1761], [3.5446, -7.5922], [-5.52, 4.49], [0, 0]])
Q = np.diag([2, 0.5, 0, 0])
R = np.diag([0.5, 0.5])
W = np.eye(4)


def unknowns():
    """A covariance and a gain, and the drift of the covariance under that gain."""
    P = hc.Variable((4, 4), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((2, 4), name="K", bounds=(-50, 50))
    closed = A + B @ K
    return P, K, closed @ P + P @ closed.T + W


def lyapunov_form():
    """In (P, K): hidden convex through (P, K P), and no stabilising gain is needed to start."""
    P, K, drift = unknowns()
    cost = hc.trace((Q + K.T @ R @ K) @ P)
    return hc.Problem(hc.Minimize(cost), [(drift == 0).named("lyapunov")], hidden=[P, K @ P])


def direct_form():
    """In K alone, from a gain that stabilises the plant."""
    K = hc.Variable((2, 4), name="K", bounds=(-50, 50), start=[[0, 0, 1, 1], [0, 0, 0, 0]])
    P = hc.lyap(A + B @ K, W)
    return hc.Problem(hc.Minimize(hc.trace((Q + K.T @ R @ K) @ P)), hidden=[P, K @ P])


def energy_form(cap):
    """The least deviation with a cap on the energy of the control."""
    P, K, drift = unknowns()
    energy = (hc.trace(R @ K @ P @ K.T) <= cap).named("energy")
    constraints = [(drift == 0).named("lyapunov"), energy]
    return hc.Problem(hc.Minimize(hc.trace(Q @ P)), constraints, hidden=[P, K @ P])


def discrete_form(A, B, first):
    """In discrete time, in K alone, from a gain that stabilises the plant."""
    K = hc.Variable((2, 4), name="K", bounds=(-50, 50), start=first)
    P = hc.dlyap(A + B @ K, W)
    return hc.Problem(hc.Minimize(hc.trace((Q + K.T @ R @ K) @ P)))


def decentralised_form():
    """Each input sees two states. NOT hidden convex: the minimum found may be a local one."""
    P, K, drift = unknowns()
    cost = hc.trace((Q + K.T @ R @ K) @ P)
    blind = [(K[0, [0, 3]] == 0).named("first input"), (K[1, 1:3] == 0).named("second input")]
    return hc.Problem(hc.Minimize(cost), [(drift == 0).named("lyapunov"), *blind])


def report(name, problem, reference=None):
    problem.solve()
    beside = "" if reference is None else f" (Riccati: {reference:.6f})"
    print(f"{name}: {problem.value:.6f}{beside}, {problem.status}")


if __name__ == "__main__":
    best = np.trace(solve_continuous_are(A, B, Q, R))
    report("in (P, K)", lyapunov_form(), best)
    report("in K alone", direct_form(), best)
    report("energy at most 0.5", energy_form(0.5))
    sampled = expm(0.2 * np.block([[A, B], [np.zeros((2, 6))]]))  # a control that is held 0.2 s
    A2, B2 = sampled[:4, :4], sampled[:4, 4:]
    best = np.trace(solve_discrete_are(A2, B2, Q, R))
    report("discrete time", discrete_form(A2, B2, [[0, 0, 1, 1], [0, 0, 0, 0]]), best)
    report("decentralised, local only", decentralised_form())
