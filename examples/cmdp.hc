# A machine that wears out: run, service or replace it, with limits on expected costs:
#     hcmodel solve cmdp.hc --data cmdp.json
param S, A, C
param transition[S,A,S] >= 0, mu[S] >= 0, reward[S,A], cost[C,S,A], limit[C]
param gamma >= 0 < 1
var policy[S,A] in simplex

let step[s in 1..S, t in 1..S]      = sum(policy[s,a] * transition[s,a,t] for a in 1..A)
let visits                          = (1 - gamma) * solve(eye(S) - gamma*step.T, mu)
let occupancy[s in 1..S, a in 1..A] = visits[s] * policy[s,a]

maximize sum(reward * occupancy)

subject to
    budget[c in 1..C]: sum(cost[c,s,a] * occupancy[s,a] for s in 1..S, a in 1..A) <= limit[c]
