# Nesterov's smooth Chebyshev-Rosenbrock function: a curved valley that slows local methods down.
# A triangular map makes it convex. Optimum 0 at (1, 1); harder with `--set n=5`.
param n = 2
var x[n] in [-3, 3]

let residual[i in 1..n-1] = x[i+1] - 2*x[i]^2 + 1

minimize (x[1] - 1)^2/4 + sum(residual[i]^2 for i in 1..n-1)

hidden x[1], residual
start x = ones(n) - 2*eye(n)[1,:]
