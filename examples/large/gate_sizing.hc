# Gate sizing on a circuit (Joshi and Boyd 2008): least area within a delay. Data: generate.py.
# Sizes are convex in their logarithms, arrival times as they are: geometric programming alone refuses it.
param n, E
param source[E], sink[E]                # wires, sorted by the gate that they come from
param first[n], last[n]                 # the wires of each gate: first[i]..last[i]
param R[n], C[n], L[n], T
var x[n] in [1, 64]
var t[n] in [0, T]

let delay[i in 1..n] = R[i] * (C[i]*x[i] + L[i] + sum(x[sink[e]] for e in first[i]..last[i])) / x[i]

minimize sum(x)

subject to
    arrival[e in 1..E]: t[source[e]] + delay[sink[e]] <= t[sink[e]]
    inputs[i in 1..n]:  delay[i] <= t[i]
