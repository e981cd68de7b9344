# The regulator in discrete time. P is at least the covariance of the state, S what it has too much:
#     hcmodel solve lqr_discrete.hc --data lqr_discrete.json
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
var P[n,n] symmetric in psd(1e-3, 1e3), S[n,n] symmetric in psd
var K[m,n] in [-50, 50]

let closed = A + B @ K
let next   = closed @ P @ closed.T + W

minimize trace((Q + K.T @ R @ K) @ P)

subject to
    balance: P == next + S
