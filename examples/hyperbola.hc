# The point of a hyperbola with the least weighted sum: an equality that is not affine in x.
# Optimum 2 sqrt(2) at (sqrt(2), 1/sqrt(2)).
var x in [0.001, 1000], y in [0.001, 1000]

minimize x + 2*y

subject to
    curve: x * y == 1

hidden log(x), log(y)
start x = 3, y = 1
