# Transmitter powers for a signal-to-interference ratio at every receiver, with data:
#     hcmodel solve power_control.hc --data power_control.json
# Optimum 17.0014.
param n
param G[n,n] >= 0  # gain from transmitter j to receiver i
param noise > 0 = 0.5, ratio > 0 = 2
var p[n] in [0.1, 5]

minimize sum(p)

subject to
    signal[i in 1..n]:
        G[i,i] * p[i] >= ratio * (noise + sum(G[i,j] * p[j] for j in 1..n if j != i))

hidden log(p)
start p = 4.75
