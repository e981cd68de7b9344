# The portfolio with the largest Sharpe ratio: expected excess return over standard deviation.
# No bound is active, so that the weights are proportional to inv(covariance) @ excess, and the
# optimum is the square root of excess @ inv(covariance) @ excess.
param excess[3]       = [0.0673, 0.0337, 0.0227]
param covariance[3,3] = [[0.02778, 0.00387, 0.00021], [0.00387, 0.01112, -0.0002], [0.00021, -0.0002, 0.00115]]
var weight[3] in [0, 1]

maximize excess @ weight / sqrt(weight @ covariance @ weight)

subject to
    budget: sum(weight) == 1
