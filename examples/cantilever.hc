# A cantilever beam of N segments, tip first: least volume under stress, deflection and aspect limits.
# Boyd and Vandenberghe, exercise 4.31. Optimum 42.3965.
param N = 8
var w[N] in [0.1, 100], h[N] in [0.1, 6]

minimize sum(w[i] * h[i] for i in 1..N)

subject to
    aspect[i in 1..N]: 0.2 <= h[i] / w[i] <= 5
    stress[i in 1..N]: 6 * i / (w[i] * h[i]^2) <= 1
    deflection: sum(0.4 * (3*i^2 - 3*i + 1) / (w[i] * h[i]^3) for i in 1..N) <= 1

hidden log(w), log(h)
start w = 3, h = 5
