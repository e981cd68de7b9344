# Prices of five products in two nests: buyers choose a nest first, then one of its products (nested logit).
# Profit is concave in the shares of the products, though not in their prices.
set one = 1..3
set two = 4..5
param appeal[5] = [2.0, 1.5, 1.8, 2.2, 1.2]
param slope[5]  = [1.0, 1.0, 1.0, 0.8, 0.8]
param cost[5]   = [0.3, 0.2, 0.4, 0.1, 0.5]
param gamma[2]  = [0.6, 0.8]
var price[5] in [0, 20]

let value[i in 1..5]  = exp(appeal[i] - slope[i]*price[i])
let first             = sum(value[i] for i in one)
let second            = sum(value[i] for i in two)
let all               = 1 + first^gamma[1] + second^gamma[2]
let margin[i in 1..5] = (price[i] - cost[i]) * value[i]

maximize (sum(margin[i] for i in one)*first^(gamma[1] - 1) + sum(margin[i] for i in two)*second^(gamma[2] - 1)) / all

subject to
    capacity: first^gamma[1] / all <= 0.2
