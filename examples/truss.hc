# A truss of five bars between a wall and two nodes, one above the other: the areas that bend least under a load.
# Bars are stretched by B @ u where the nodes move by u, two numbers for each. The stiffness has products of areas and
# displacements.
param bars, moves
param length[bars] = [1, 1, 1, 1.414213562, 1.414213562]
param B[bars,moves] = [
    [1, 0, 0, 0],
    [0, 0, 1, 0],
    [0, -1, 0, 1],
    [0, 0, 0.7071067812, 0.7071067812],
    [0.7071067812, -0.7071067812, 0, 0]
]
param load[moves] = [0, -1, 0, 0]
var area[bars] >= 0.1, u[moves]

minimize load @ u

subject to
    balance: B.T @ (area / length * (B @ u)) == load
    material: length @ area <= 10
