# The same machine as in policy_value.hc, with the values as unknowns and Bellman's equations as rows.
param reward[3,3] = [[8, 5, 2], [5, 3, 1], [0, -2, -1]]
param run[3,3]    = [[0.7, 0.25, 0.05], [0, 0.6, 0.4], [0, 0, 1]]
param repair[3,3] = [[0.9, 0.1, 0], [0.7, 0.25, 0.05], [0.4, 0.4, 0.2]]
param replaced[3] = [0.95, 0.05, 0]
param gamma       = 0.9
var policy[3,3] in simplex
var value[3]

maximize value[1]

subject to
    bellman[s in 1..3]: value[s] ==
        policy[s,1]*(reward[s,1] + gamma * run[s,:] @ value) +
        policy[s,2]*(reward[s,2] + gamma * repair[s,:] @ value) +
        policy[s,3]*(reward[s,3] + gamma * replaced @ value)
