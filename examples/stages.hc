# A machine over three weeks with a budget for repairs: how often it is in which state follows from the weeks before.
# The weeks are multiplied out, with a policy for each of them; rows are states, columns are run and repair.
param S, A
param move[S,A,S] = [
    [[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]],  # new
    [[0.0, 0.6, 0.4], [0.9, 0.1, 0.0]],  # worn
    [[0.0, 0.0, 1.0], [0.6, 0.4, 0.0]]   # broken
]
param profit[S,A] = [[10, 7], [8, 4], [0, -2]]
param begin[S]    = [0.2, 0.5, 0.3]
param budget      = 0.9
var policy[3,S,A] in simplex

let week2[z in 1..S]            = sum(begin[s] * policy[1,s,a] * move[s,a,z] for s in 1..S, a in 1..A)
let week3[z in 1..S]            = sum(week2[s] * policy[2,s,a] * move[s,a,z] for s in 1..S, a in 1..A)
let often[s in 1..S, a in 1..A] = begin[s]*policy[1,s,a] + week2[s]*policy[2,s,a] + week3[s]*policy[3,s,a]

maximize sum(profit * often)

subject to
    repairs: sum(often[s,2] for s in 1..S) <= budget
