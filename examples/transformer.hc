# Transformer design, problem 93 of Hock and Schittkowski. Optimum 135.076.
var x[6] in [0.1, 100]

let core = x[1] * x[4] * (x[1] + x[2] + x[3])
let coil = x[2] * x[3] * (x[1] + 1.57*x[2] + x[4])

minimize 0.0204*core + 0.0187*coil + 0.0607*core*x[5]^2 + 0.0437*coil*x[6]^2

subject to
    rating: prod(x) >= 2070
    losses: 0.00062*core*x[5]^2 + 0.00058*coil*x[6]^2 <= 1

hidden log(x)
start x = [5.54, 4.4, 12.02, 11.82, 0.702, 0.852]
