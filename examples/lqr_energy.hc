# The regulator under a cap on the energy of its control, which is convex in (P, K P):
#     hcmodel solve lqr_energy.hc --data lqr.json --set cap=0.5
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
param cap > 0 = 0.5
var P[n,n] symmetric in psd(1e-3, 1e3)
var K[m,n] in [-50, 50]

let closed = A + B @ K

minimize trace(Q @ P)

subject to
    lyapunov: closed @ P + P @ closed.T + W == 0
    energy: trace(R @ K @ P @ K.T) <= cap
