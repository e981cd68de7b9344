# Strengths of seven baseball teams from who beat whom: the likelihood of Bradley and Terry, 1987 season.
# Only ratios of the strengths count, and the row that makes them sum to 1 is not needed in w / w[1].
param n
param wins[n,n] = [
    [0, 7, 9, 7, 7, 9, 11],  # Milwaukee
    [6, 0, 7, 5, 11, 9, 9],  # Detroit
    [4, 6, 0, 7, 7, 8, 12],  # Toronto
    [6, 8, 6, 0, 6, 7, 10],  # New York
    [6, 2, 6, 7, 0, 7, 12],  # Boston
    [4, 4, 5, 6, 6, 0, 6],   # Cleveland
    [2, 4, 1, 3, 1, 7, 0]    # Baltimore
]
var w[n] > 0

maximize sum(wins[i,j] * (log(w[i]) - log(w[i] + w[j])) for i in 1..n, j in 1..n if i != j)

subject to
    total: sum(w) == 1
