# H-infinity control by state feedback: a mass on a spring is pushed by a disturbance w. Which gain K keeps
# (position, force) below gamma times w, in mean square and whatever w is, with the least gamma?
param A[2,2] = [[0, 1], [-1, -0.2]]
param B[2,1] = [[0], [1]], disturbance[2,1] = [[0], [1]]
param C[2,2] = [[1, 0], [0, 0]], D[2,1] = [[0], [1]]
var P[2,2] symmetric in psd(1e-4, 1e4)
var K[1,2] in [-100, 100]
var gamma  >= 0

let F = (A + B @ K) @ P
let G = (C + D @ K) @ P

minimize gamma

subject to
    bounded_real: vstack(hstack(F + F.T, disturbance, G.T),
                         hstack(disturbance.T, -gamma * eye(1), zeros(1, 2)),
                         hstack(G, zeros(2, 1), -gamma * eye(2))) << 0
