"""A water tank: non-convex in its dimensions, convex in their logarithms (Ex-CGP of the paper)."""

import hcmodel as hc

x = hc.Variable(2, name="x", bounds=(0.4, 3))
cap = hc.Parameter(name="cap", value=1.0)
area = (x[0] * x[1] <= cap).named("area")
problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [area], hidden=[hc.log(x)])

problem.solve(method="sbl-adals")
print(problem.solution)
print("dual of area:", area.dual_value)
