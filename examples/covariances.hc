# A cart under noise is to be near the origin and at rest after two seconds, with as little energy as possible.
# Gains act on position and speed every half second; what they do to the covariance is written as it is.
param A[2,2]     = [[1, 0.5], [0, 1]]
param B[2,1]     = [[0.125], [0.5]]
param noise[2,2] = [[0.01, 0], [0, 0.02]]
param begin[2,2] = [[1, 0.2], [0.2, 0.5]]
param aim[2,2]   = [[0.1, 0], [0, 0.1]]
var K0[1,2], K1[1,2], K2[1,2], K3[1,2]
var S1[2,2] symmetric in psd, S2[2,2] symmetric in psd, S3[2,2] symmetric in psd, S4[2,2] symmetric in psd

minimize trace(K0 @ begin @ K0.T) + trace(K1 @ S1 @ K1.T) + trace(K2 @ S2 @ K2.T) + trace(K3 @ S3 @ K3.T)

subject to
    S1 == (A + B @ K0) @ begin @ (A + B @ K0).T + noise
    S2 == (A + B @ K1) @ S1 @ (A + B @ K1).T + noise
    S3 == (A + B @ K2) @ S2 @ (A + B @ K2).T + noise
    S4 == (A + B @ K3) @ S3 @ (A + B @ K3).T + noise
    rest: S4 << aim
