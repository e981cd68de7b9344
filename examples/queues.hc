# Capacities of a network of queues with feedback: the fewest customers in it that a budget buys.
# Of the customers who leave a queue, parts go to others or come back. A queue with arrivals lam and service mu, both
# a second, holds lam/(mu - lam) customers where mu > lam, and each of them costs something.
param n
param outside[n] = [1, 0.5, 0.2]
param next[n,n] = [
    [0, 0.6, 0.2],
    [0.1, 0, 0.7],
    [0.3, 0, 0.1]
]
param worth[n] = [1, 2, 3], price[n] = [1, 1.5, 2]
var lam[n] in [0.01, 100], mu[n] in [0.01, 100]

minimize sum(worth[i] * lam[i] / (mu[i] - lam[i]) for i in 1..n)

subject to
    traffic[j in 1..n]: lam[j] >= outside[j] + sum(next[i,j] * lam[i] for i in 1..n)
    stable: lam <= 0.95 * mu
    budget: price @ mu <= 20
