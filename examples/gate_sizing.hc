# Sizes of a chain of eight inverters: least area within a delay. Optimum 32.2496.
param n         = 8
param wire[n-1] = [1, 1, 1, 80, 1, 1, 1]  # load on the way to the next gate
param output    > 0 = 20                  # load at the end
param unit > 0 = 0.69, limit > 0 = 20
var size[n] in [1, 20]

let stage[i in 1..n-1] = unit * (1 + wire[i]*size[i+1]/size[i])

minimize sum(size)

subject to
    delay: sum(stage) + unit*(1 + output/size[n]) <= limit

hidden log(size)
start size = 5
