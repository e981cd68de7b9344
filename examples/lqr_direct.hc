# The regulator as a function of its gain alone, from a gain that stabilises the plant:
#     hcmodel solve lqr_direct.hc --data lqr_direct.json
param n, m
param A[n,n], B[n,m], Q[n,n] = eye(n), R[m,m] = eye(m), W[n,n] = eye(n)
var K[m,n] in [-50, 50]

let P = lyap(A + B @ K, W)

minimize trace((Q + K.T @ R @ K) @ P)

start K = 0  # the aircraft of the data (an L-1011) is stable without control
