# Prices of competing products: buyers choose by a multinomial logit, and products share scarce parts:
#     hcmodel solve logit.hc --data logit.json
param N, M
param appeal[N], sensitivity[N] > 0, cost[N] >= 0, parts[M,N] >= 0, stock[M] > 0, buyers > 0
var price[N] in [0, 500]

let weight = exp(appeal - sensitivity*price)
let share  = weight / (1 + sum(weight))  # the rest buys nothing

maximize buyers * sum((price - cost) * share)

subject to
    part[k in 1..M]: buyers * sum(parts[k,i] * share[i] for i in 1..N) <= stock[k]
