# Linear-quadratic regulator without a stabilising start, with a helicopter (HE1 of COMPleib) as data:
#     hcmodel solve lqr.hc --data lqr.json
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
var P[n,n] symmetric in psd(1e-3, 1e3)
var K[m,n] in [-50, 50]

let closed = A + B @ K

minimize trace((Q + K.T @ R @ K) @ P)

subject to
    lyapunov: closed @ P + P @ closed.T + W == 0
