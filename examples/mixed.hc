# Logarithmic coordinates for some variables, the others as they are.
# At the optimum the three products are equal to exp(z/3), and exp(z/3) = 2 (1 - z).
var x in [0.01, 100], y in [0.01, 100]
var z in [-5, 5]

minimize x*y + exp(z)/x + 1/y + (z - 1)^2

hidden log(x), log(y), z
