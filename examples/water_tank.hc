# The least surface of a closed rectangular tank of given volume: equalities between monomials.
# Optimum 6 * volume^(2/3) = 1.29266 for a volume of 0.1.
param volume > 0 = 0.1
var area    in [0.001, 100]
var side[3] in [0.001, 100]

minimize area

subject to
    surface: area >= 2 * sum(side[i] * side[j] for i in 1..3, j in i+1..3)
    content: prod(side) == volume

hidden log(area), log(side)
start area = 2, side = 1
