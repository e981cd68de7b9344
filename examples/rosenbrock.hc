# Nesterov's Chebyshev-Rosenbrock function, |x1 - 1|/4 + sum |x(i+1) - 2 x(i)^2 + 1|, on whose kinks
# local methods stall. Each absolute value is bounded by a variable of its own, which makes the rows
# smooth. Optimum 0 at (1, …, 1); each further n takes about five times the calls.
param n = 3
var x[n]      in [-3, 3]
var first     in [0, 4]
var rest[n-1] in [0, 30]

let residual[i in 1..n-1] = x[i+1] - 2*x[i]^2 + 1

minimize first/4 + sum(rest)

subject to
    near: -first <= x[1] - 1 <= first
    valley: -rest <= residual <= rest

hidden x[1], residual, first, rest
start x = ones(n) - 2*eye(n)[1,:]
