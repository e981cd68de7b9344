# The policy whose features come nearest to those that were seen of an expert:
#     hcmodel solve apprenticeship.hc --data apprenticeship.json
param S, A, F
param transition[S,A,S] >= 0, mu[S] >= 0, feature[F,S,A], seen[F]
param gamma >= 0 < 1
var policy[S,A] in simplex

let step[s in 1..S, t in 1..S]      = sum(policy[s,a] * transition[s,a,t] for a in 1..A)
let visits                          = (1 - gamma) * solve(eye(S) - gamma*step.T, mu)
let occupancy[s in 1..S, a in 1..A] = visits[s] * policy[s,a]
let mine[f in 1..F]                 = sum(feature[f,s,a] * occupancy[s,a] for s in 1..S, a in 1..A)

minimize sum((mine - seen)^2)
