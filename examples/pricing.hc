# Prices of an airline's journeys. Demand falls exponentially with the price, and each journey takes
# a seat on every flight that it uses:
#     hcmodel solve pricing.hc --data pricing.json
param J, L
param size[J] > 0, sensitivity[J] > 0, uses[L,J] >= 0, seats[L] > 0
var price[J] in [10, 1000]

let demand = size * exp(-sensitivity * price)

maximize sum(price * demand)

subject to
    flight[l in 1..L]: sum(uses[l,j] * demand[j] for j in 1..J) <= seats[l]
