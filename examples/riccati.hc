# A pendulum on a cart: X bounds the cost of the loop that K closes, by Riccati's inequality.
param n, m
param A[n,n] = [
    [0, 1, 0.0, 0],
    [0, 0, -1.0, 0],
    [0, 0, 0.0, 1],
    [0, 0, 11.0, 0]
]
param B[n,m] = [[0], [1], [0], [-1]]
param Q[n,n] = [[1, 0, 0, 0], [0, 0.1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0.1]]
param R[m,m] = [[0.1]]
var X[n,n] symmetric in psd
var K[m,n]

let closed = A + B @ K

minimize trace(X)

subject to
    riccati: closed.T @ X + X @ closed + Q + K.T @ R @ K << 0
