# The most rewarding policy whose occupancy stays within a distance of an expert's:
#     hcmodel solve near_expert.hc --data near_expert.json
param S, A
param transition[S,A,S] >= 0, mu[S] >= 0, reward[S,A], expert[S,A] >= 0, radius >= 0
param gamma >= 0 < 1
var policy[S,A] in simplex

let step[s in 1..S, t in 1..S]      = sum(policy[s,a] * transition[s,a,t] for a in 1..A)
let visits                          = (1 - gamma) * solve(eye(S) - gamma*step.T, mu)
let occupancy[s in 1..S, a in 1..A] = visits[s] * policy[s,a]

maximize sum(reward * occupancy)

subject to
    near: sum((occupancy - expert)^2) <= radius^2
