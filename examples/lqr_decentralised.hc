# A regulator whose inputs see some states only. NOT hidden convex: the map (P, K P) bends the
# condition that entries of K are zero. A solution is a local one.
#     hcmodel solve lqr_decentralised.hc --data lqr_decentralised.json
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
param sees[m,n] in [0, 1]  # 0: the input does not see the state
var P[n,n] symmetric in psd(1e-3, 1e3)
var K[m,n] in [-50, 50]

let closed = A + B @ K

minimize trace((Q + K.T @ R @ K) @ P)

subject to
    lyapunov: closed @ P + P @ closed.T + W == 0
    blind[i in 1..m, j in 1..n if sees[i,j] == 0]: K[i,j] == 0
