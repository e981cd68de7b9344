"""A robot crosses a grid: as often as possible at the goal, seldom on dangerous cells.

The unknown is the policy, four probabilities for each cell. Rewards and dangers are linear in the
occupancy measure, which is the hidden variable; in the policy itself they are not even convex.
"""

import numpy as np

import hcmodel as hc

MAP = (
    ".......",
    "..###..",
    "..###..",
    "s.###.g",
    "..###..",
)  # s start, g goal, # danger
MOVES = {"^": (-1, 0), ">": (0, 1), "v": (1, 0), "<": (0, -1)}
SLIP = 0.1  # the chance to move in a random direction instead
GAMMA = 0.95
CELLS = [(row, column) for row in range(len(MAP)) for column in range(len(MAP[0]))]


def marked(letter):
    """1 for the cells with this letter on the map, 0 for the others."""
    return np.array([float(MAP[row][column] == letter) for row, column in CELLS])


def transitions():
    """The chance of each next cell, for a cell and a move; walls stop the robot, the goal holds it."""
    number = {cell: index for index, cell in enumerate(CELLS)}
    straight = np.zeros((len(CELLS), len(MOVES), len(CELLS)))
    for cell, index in number.items():
        for move, (down, right) in enumerate(MOVES.values()):
            target = cell if MAP[cell[0]][cell[1]] == "g" else (cell[0] + down, cell[1] + right)
            straight[index, move, number.get(target, index)] = 1
    return (1 - SLIP) * straight + SLIP * straight.mean(axis=1, keepdims=True)


def model(limit):
    """The most time at the goal, with at most the share `limit` of the time in danger."""
    states = len(CELLS)
    # A little mass everywhere: a cell that is never visited has no policy that could be told.
    mu = 0.9 * marked("s") + 0.1 / states
    policy = hc.Variable((states, len(MOVES)), name="policy", simplex=True)
    step = hc.einsum("sa,sat->st", policy, transitions())
    visits = (1 - GAMMA) * hc.solve(np.eye(states) - GAMMA * step.T, mu)
    occupancy = hc.reshape(visits, (states, 1)) * policy
    danger = (hc.sum(marked("#") * visits) <= limit).named("danger")
    problem = hc.Problem(hc.Maximize(hc.sum(marked("g") * visits)), [danger], hidden=[occupancy])
    return problem, policy, visits


def arrows(policy):
    """The likeliest move of each cell, as a map."""
    best = np.array(list(MOVES))[policy.argmax(axis=1)].reshape(len(MAP), -1)
    return "\n".join(" ".join(line) for line in best)


if __name__ == "__main__":
    problem, policy, visits = model(limit=0.05)
    problem.solve()
    print(f"{problem.status}: {problem.value:.4f} of the time at the goal")
    print(f"in danger: {marked('#') @ visits.value:.4f} of the time")
    print(f"one more unit of danger is worth {problem.solution.duals['danger']:.2f}")
    print(arrows(policy.value))
