# Repair or replace? The value of a policy by a linear system, with a cap on expected downtime:
#     V = reward + gamma * step @ V
# A machine is good, worn or broken; it is run, repaired or replaced.
param reward[3,3]   = [[8, 5, 2], [5, 3, 1], [0, -2, -1]]
param downtime[3,3] = [[0, 1, 0.2], [0.3, 1, 0.2], [1, 1.5, 0.4]]
param run[3,3]      = [[0.7, 0.25, 0.05], [0, 0.6, 0.4], [0, 0, 1]]
param repair[3,3]   = [[0.9, 0.1, 0], [0.7, 0.25, 0.05], [0.4, 0.4, 0.2]]
param replaced[3]   = [0.95, 0.05, 0]
param first[3]      = [1, 0, 0]
param gamma         = 0.9
var policy[3,3] in simplex

let step[s in 1..3, t in 1..3] = policy[s,1]*run[s,t] + policy[s,2]*repair[s,t] + policy[s,3]*replaced[t]
let system                     = eye(3) - gamma*step
let value                      = solve(system, sum(policy * reward, axis=2))
let down                       = solve(system, sum(policy * downtime, axis=2))

maximize first @ value

subject to
    cap: first @ down <= 1.6
