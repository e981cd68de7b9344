# Profit per unit of cost, for two products that share two machines: a ratio of affine functions.
# The optimum is at a vertex of the polygon: 9/7 at (0, 3); the others have 0, 10/11 and 235/209.
var amount[2] >= 0

let profit = 5*amount[1] + 3*amount[2]
let cost   = 5*amount[1] + 2*amount[2] + 1

maximize profit / cost

subject to
    first: 3*amount[1] + 5*amount[2] <= 15
    second: 5*amount[1] + 2*amount[2] <= 10
