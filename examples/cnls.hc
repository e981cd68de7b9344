# Non-linear least squares in the maximum norm: Ex-CNLS of the paper, with kinks everywhere.
# Optimum 0.15 at (0.85, 0.85).
var x[2] in [-1, 2.5]

let c = [x[1] - 1, 2*abs(x[1]) - x[2] - 1]

minimize max(abs(c))

subject to
    near: norm(c - [-0.5, -0.6], 1) <= 0.8

hidden c
start x = [0.5, 0.5]
