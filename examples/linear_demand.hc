# Prices of two products that compete: the demand for each falls with its own price and rises with the other's.
# Revenue is a product of prices and demands, and convex after it was multiplied out.
param base[2]    = [50, 40]
param slope[2,2] = [[4, -1], [-1.5, 3]]
param cost[2]    = [2, 3]
var price[2] >= 0

let demand = base - slope @ price

maximize (price - cost) @ demand

subject to
    served: demand >= 0
    capacity: sum(demand) <= 30
