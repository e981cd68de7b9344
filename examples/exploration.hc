# Exploration of a Markov decision process: the policy with the most even visits of the states.
#     hcmodel solve exploration.hc --data exploration.json
param S, A
param transition[S,A,S] >= 0, mu[S] >= 0
param gamma >= 0 < 1
var policy[S,A] in simplex

let step[s in 1..S, t in 1..S]      = sum(policy[s,a] * transition[s,a,t] for a in 1..A)
let visits                          = (1 - gamma) * solve(eye(S) - gamma*step.T, mu)
let occupancy[s in 1..S, a in 1..A] = visits[s] * policy[s,a]

maximize sum(entr(visits))
