# A tank of base x[1] and height x[2]: Ex-CGP of the paper.
# Not convex as it stands, convex in the logarithms. Optimum 5 at (2, 0.5).
var x[2] in [0.4, 3]

minimize x[1]*x[2] + 4/x[1] + 1/x[2]

subject to
    area: x[1] * x[2] <= 1

hidden log(x)
start x = [0.6, 1.6]
