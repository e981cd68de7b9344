# How much to stake on a repeated bet: the largest expected growth of the logarithm of wealth.
# With even odds and chance 0.6 the stake is 0.2. Optimum 0.6 log(1.2) + 0.4 log(0.8).
set outcomes = 1..2
param chance[outcomes] in [0, 1] = [0.6, 0.4]
param gain[outcomes]   = [1, -1]
var stake in [0, 0.95]

maximize sum(chance[s] * log(1 + gain[s]*stake) for s in outcomes)

start stake = 0.5
