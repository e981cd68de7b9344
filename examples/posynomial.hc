# A posynomial in 100 variables under a posynomial constraint, with data:
#     hcmodel solve posynomial.hc --data posynomial.json
# The paper's large geometric program. Optimum 0.0711365.
param d, K, M
param b[K] > 0, a[K,d]  # coefficients and exponents of the objective
param q[M] > 0, r[M,d]  # and of the constraint
var x[d] in [0.5, 2]

minimize sum(b[k] * prod(x[i]^a[k,i] for i in 1..d) for k in 1..K)

subject to
    budget: sum(q[m] * prod(x[i]^r[m,i] for i in 1..d) for m in 1..M) <= 1

hidden log(x)
start x = ones(d)
