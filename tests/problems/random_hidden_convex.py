"""Random hidden-convex problems whose optimum is known by construction.

A convex problem in u is built around a chosen minimiser u*: random convex functions, random rows that
are active or slack there, random multipliers; the objective gets the linear term that makes the KKT
conditions hold at u*. It is then written in x, with u = c(x) for a random invertible map c. Nothing here
comes from a solver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

import hcmodel as hc

FloatArray = NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class KnownProblem:
    """A model, its least value, a minimiser, and what is known of it to the solver.

    `multipliers` belong to the constraints as written: by them a point that breaks rows a little may be
    better than the optimum. `unit` is the size of the objective's own terms.
    """

    name: str
    problem: hc.Problem
    optimum: float
    point: Mapping[str, FloatArray]
    multipliers: tuple[FloatArray, ...]
    unit: float
    knowledge: str
    traits: tuple[str, ...]

    def bonus(self) -> float:
        """What the violations of the point found are worth, by the multipliers."""
        worth = 0.0
        for row, multiplier in zip(self.problem.constraints, self.multipliers, strict=True):
            worth += float(np.sum(np.abs(multiplier) * row.violation()))
        return worth

    def error(self) -> float:
        """How far the value found is off, relatively, beyond what its violations explain."""
        value = self.problem.value
        if value is None or not np.isfinite(value):
            return np.inf
        size = max(abs(self.optimum), self.unit)
        off = value - self.optimum
        return (off if off >= 0 else max(0.0, -off - self.bonus())) / size


# ---- convex pieces in u --------------------------------------------------------------------------


class Piece(Protocol):
    """A convex function of u: as an expression, and a sub-gradient of it at u*."""

    def of(self, u: Any) -> hc.Expression: ...

    def slope(self) -> FloatArray: ...


@dataclass(frozen=True)
class Squares:
    """‖R u − r‖²"""

    root: FloatArray
    shift: FloatArray
    optimum: FloatArray

    def of(self, u: Any) -> hc.Expression:
        return hc.sum((self.root @ u - self.shift) ** 2)

    def slope(self) -> FloatArray:
        return 2 * self.root.T @ (self.root @ self.optimum - self.shift)


@dataclass(frozen=True)
class LogSumExp:
    """log Σ exp(C u + d)"""

    slopes: FloatArray
    shift: FloatArray
    optimum: FloatArray

    def of(self, u: Any) -> hc.Expression:
        return hc.logsumexp(self.slopes @ u + self.shift)

    def slope(self) -> FloatArray:
        terms = self.slopes @ self.optimum + self.shift
        weights = np.exp(terms - terms.max())
        return self.slopes.T @ (weights / weights.sum())


@dataclass(frozen=True)
class Absolutes:
    """Σ w |E (u − u*) + e|; where e is 0 the minimiser sits in the kink, with the slope `signs`."""

    rows: FloatArray
    weights: FloatArray
    shift: FloatArray
    signs: FloatArray
    optimum: FloatArray

    def of(self, u: Any) -> hc.Expression:
        return hc.sum(
            self.weights * hc.abs(self.rows @ u + (self.shift - self.rows @ self.optimum))
        )

    def slope(self) -> FloatArray:
        return self.rows.T @ (self.weights * self.signs)


@dataclass(frozen=True)
class Largest:
    """max(P (u − u*) + p); the entries with p = 0 are the largest at u*, mixed by `weights`."""

    rows: FloatArray
    shift: FloatArray
    weights: FloatArray
    optimum: FloatArray

    def of(self, u: Any) -> hc.Expression:
        return hc.max(self.rows @ u + (self.shift - self.rows @ self.optimum))

    def slope(self) -> FloatArray:
        return self.rows.T @ self.weights


def random_piece(generator: Generator, optimum: FloatArray, kinked: bool) -> Piece:
    size = optimum.size
    rank = int(generator.integers(1, size + 1))
    rows = generator.normal(size=(rank, size)) / np.sqrt(size)
    choice = int(generator.integers(4 if kinked else 2))
    if choice == 0:
        return Squares(rows, generator.normal(size=rank), optimum)
    if choice == 1:
        count = size + 2
        slopes = generator.normal(size=(count, size))
        return LogSumExp(slopes, generator.normal(size=count), optimum)
    if choice == 2:
        at_kink = generator.random(rank) < 0.5
        shift = np.where(at_kink, 0.0, generator.normal(size=rank))
        signs = np.where(at_kink, generator.uniform(-0.9, 0.9, rank), np.sign(shift))
        return Absolutes(rows, generator.uniform(0.5, 2, rank), shift, signs, optimum)
    count = size + 1
    tied = int(generator.integers(1, count + 1))
    shift = np.concatenate([np.zeros(tied), -generator.uniform(0.2, 1, count - tied)])
    weights = np.concatenate([generator.dirichlet(np.ones(tied)), np.zeros(count - tied)])
    return Largest(generator.normal(size=(count, size)), shift, weights, optimum)


# ---- maps ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Coordinates:
    """u = c(x) as an expression, the minimiser x*, and the pull of bounds that are active there."""

    expression: hc.Expression
    declared: tuple[hc.Expression, ...]
    point: Mapping[str, FloatArray]
    pull: FloatArray
    optimum: FloatArray


def _units(generator: Generator, size: int, traits: set[str]) -> FloatArray:
    wide = "magnitudes" in traits
    return 10.0 ** generator.uniform(-8, 8, size) if wide else np.ones(size)


def separable(generator: Generator, size: int, traits: set[str], logs: int) -> Coordinates:
    """The first `logs` coordinates are logarithms, the others plain; boxes, active here and there."""
    best = generator.normal(size=size)
    at_bound = generator.choice([-1, 0, 0, 1], size=size) if "bounds" in traits else np.zeros(size)
    below = np.where(at_bound < 0, 0.0, generator.uniform(0.5, 4, size))
    above = np.where(at_bound > 0, 0.0, generator.uniform(0.5, 4, size))
    pull = -at_bound * generator.uniform(0.1, 2, size)
    units = _units(generator, size, traits)
    log, plain = slice(0, logs), slice(logs, size)
    parts, point = [], {}
    if logs:
        low, high = np.exp(best - below)[log] * units[log], np.exp(best + above)[log] * units[log]
        x = hc.Variable(logs, name="x", bounds=(low, high))
        parts.append(hc.log(x / units[log]))
        point["x"] = np.exp(best[log]) * units[log]
    if logs < size:
        low, high = (best - below)[plain] * units[plain], (best + above)[plain] * units[plain]
        z = hc.Variable(size - logs, name="z", bounds=(low, high))
        parts.append(z / units[plain])
        point["z"] = best[plain] * units[plain]
    u = parts[0] if len(parts) == 1 else hc.concatenate(parts)
    return Coordinates(u, tuple(parts), point, pull, best)


def _bent(
    generator: Generator,
    size: int,
    traits: set[str],
    bend: Callable[[Any], list[Any]],
) -> Coordinates:
    """A map of one variable in a box so wide that it never matters."""
    best = generator.uniform(-1.5, 1.5, size)
    units = _units(generator, size, traits)
    start = generator.uniform(-2, 2, size) * units
    x = hc.Variable(size, name="x", bounds=(-50 * units, 50 * units), start=start)
    entries = bend(x / units)
    optimum = np.array([float(entry.value) for entry in bend(hc.Constant(best))])
    u = hc.hstack(entries)
    return Coordinates(u, (u,), {"x": best * units}, np.zeros(size), optimum)


def triangular(generator: Generator, size: int, traits: set[str]) -> Coordinates:
    """u_k = x_k + a polynomial of the entries before."""
    square, cube, cross = generator.normal(size=(3, size)) * np.array([[0.5], [0.1], [0.3]])

    def bend(x: Any) -> list[Any]:
        entries = [x[0]]
        for k in range(1, size):
            extra = square[k] * x[k - 1] ** 2 + cube[k] * x[k - 1] ** 3
            entries.append(x[k] + extra + cross[k] * x[0] * x[k - 1])
        return entries

    return _bent(generator, size, traits, bend)


def monotone(generator: Generator, size: int, traits: set[str]) -> Coordinates:
    """Each entry through an increasing function of its own: sinh x, x + x³ or x + tanh x."""
    kinds = generator.integers(3, size=size)

    def bend(x: Any) -> list[Any]:
        shapes: list[Callable[[Any], Any]] = [
            lambda t: (hc.exp(t / 4) - hc.exp(-t / 4)) * 2,
            lambda t: t + t**3 / 3,
            lambda t: t + hc.tanh(t) / 2,
        ]
        return [shapes[kind](x[k]) for k, kind in enumerate(kinds)]

    return _bent(generator, size, traits, bend)


def rotated(generator: Generator, size: int, traits: set[str]) -> Coordinates:
    """A rotation of an increasing map of each entry: no entry of u is one of x."""
    turn = np.linalg.qr(generator.normal(size=(size, size)))[0]

    def bend(x: Any) -> list[Any]:
        bent = [x[k] + x[k] ** 3 / 5 for k in range(size)]
        return [sum(turn[i, k] * bent[k] for k in range(size)) for i in range(size)]

    return _bent(generator, size, traits, bend)


# ---- problems ------------------------------------------------------------------------------------

# kind: the map, and what the solver is told of it
KINDS: dict[str, tuple[Callable[[Generator, int, set[str]], Coordinates], str]] = {
    "convex": (lambda g, n, t: separable(g, n, t, 0), "proven"),
    "logarithms": (lambda g, n, t: separable(g, n, t, n), "proven"),
    "mixed": (lambda g, n, t: separable(g, n, t, max(1, n // 2)), "proven"),
    "logarithms declared": (lambda g, n, t: separable(g, n, t, n), "declared"),
    "triangular": (triangular, "declared"),
    "monotone": (monotone, "declared"),
    "rotated": (rotated, "declared"),
    "triangular, not told": (triangular, "nothing"),
    "monotone, not told": (monotone, "nothing"),
}
TRAITS = {"kinks": 0.4, "bounds": 0.5, "magnitudes": 0.3, "redundant": 0.25, "degenerate": 0.25}


def random_problem(kind: str, seed: int) -> KnownProblem:
    """A problem of a kind of `KINDS`, with random traits of `TRAITS`."""
    generator = np.random.default_rng([list(KINDS).index(kind), seed])
    traits = {name for name, share in TRAITS.items() if generator.random() < share}
    make, knowledge = KINDS[kind]
    size = int(generator.integers(2, 9))
    c = make(generator, size, traits)
    best, u, kinked = c.optimum, c.expression, "kinks" in traits
    equalities_only = generator.random() < 0.2
    rows, multipliers, slope = [], [], -c.pull
    for number in range(0 if equalities_only else int(generator.integers(0, 4))):
        piece = random_piece(generator, best, kinked)
        level = float(piece.of(hc.Constant(best)).value)
        active = generator.random() < 0.7
        none = not active or ("degenerate" in traits and generator.random() < 0.5)
        multiplier = 0.0 if none else generator.uniform(0.1, 2)
        bound = level if active else level + generator.uniform(0.1, 1)
        weight = _row_weight(generator, traits)
        row = weight * piece.of(u) <= weight * bound
        rows.append(row.named(f"g{number}"))
        multipliers.append(np.array(multiplier / weight))
        slope = slope + multiplier * piece.slope()
    if equalities_only or generator.random() < 0.4:
        count = int(generator.integers(1, max(2, size // 2 + 1)))
        matrix = generator.normal(size=(count, size))
        if "redundant" in traits:
            matrix = np.vstack([matrix, matrix.sum(axis=0)])
        weight = _row_weight(generator, traits)
        nu = generator.normal(size=matrix.shape[0])
        rows.append((weight * (matrix @ u) == weight * (matrix @ best)).named("h"))
        multipliers.append(nu / weight)
        slope = slope + matrix.T @ nu
    pieces = [random_piece(generator, best, kinked) for _ in range(int(generator.integers(1, 4)))]
    unit = _row_weight(generator, traits)
    offset = generator.normal() - float(sum(p.of(hc.Constant(best)).value for p in pieces))
    linear = -(slope + sum(piece.slope() for piece in pieces))
    offset -= float(linear @ best)
    cost = unit * (sum(piece.of(u) for piece in pieces) + linear @ u + offset)
    declared = c.declared if knowledge == "declared" else None
    at_best = sum(float(p.of(hc.Constant(best)).value) for p in pieces) + linear @ best + offset
    return KnownProblem(
        f"{kind} {seed}",
        hc.Problem(hc.Minimize(cost), rows, hidden=declared),
        unit * float(at_best),
        c.point,
        tuple(unit * multiplier for multiplier in multipliers),
        unit,
        knowledge,
        (*sorted(traits), *(["equalities only"] if equalities_only else [])),
    )


def _row_weight(generator: Generator, traits: set[str]) -> float:
    return float(10.0 ** generator.uniform(-4, 8)) if "magnitudes" in traits else 1.0


def random_geometric_program(seed: int) -> KnownProblem:
    """A posynomial under posynomials and a monomial equality: convex in logarithms, both ways.

    The objective is a posynomial times the monomial that makes x* stationary for log F + Σ λ log g.
    """
    generator = np.random.default_rng([1000, seed])
    size = int(generator.integers(2, 9))
    best = generator.normal(size=size)
    wide = {"magnitudes"} if generator.random() < 0.4 else set()
    units = _units(generator, size, wide)
    below, above = generator.uniform(1, 8, size=(2, size))
    bounds = units * np.exp(best - below), units * np.exp(best + above)
    x = hc.Variable(size, name="x", bounds=bounds)

    def terms() -> tuple[FloatArray, FloatArray, FloatArray]:
        """Exponents, coefficients that sum to 1 at x*, and the gradient of the logarithm there."""
        powers = generator.normal(size=(size + 1, size))
        shares = generator.dirichlet(np.ones(size + 1))
        return powers, shares * np.exp(-powers @ best), shares @ powers

    def posynomial(powers: FloatArray, coefficients: FloatArray) -> hc.Expression:
        return hc.sum(coefficients * hc.prod((x / units) ** powers, axis=1))

    rows, multipliers, slope = [], [], np.zeros(size)
    for _ in range(int(generator.integers(1, size))):
        powers, coefficients, gradient = terms()
        multiplier = generator.uniform(0.1, 2)
        rows.append(posynomial(powers, coefficients) <= 1)
        multipliers.append(multiplier)
        slope += multiplier * gradient
    if generator.random() < 0.5:
        powers = generator.normal(size=size)
        multiplier = generator.normal()
        rows.append(hc.prod((x / units) ** powers) == float(np.exp(powers @ best)))
        multipliers.append(multiplier * np.exp(-powers @ best))
        slope += multiplier * powers
    powers, coefficients, gradient = terms()
    monomial = -(gradient + slope)
    unit = float(10.0 ** generator.uniform(-3, 3))
    cost = posynomial(powers + monomial, unit * coefficients * np.exp(-monomial @ best))
    return KnownProblem(
        f"geometric {seed}",
        hc.Problem(hc.Minimize(cost), rows),
        unit,
        {"x": units * np.exp(best)},
        tuple(np.array(unit * multiplier) for multiplier in multipliers),
        unit,
        "proven",
        tuple(wide),
    )


def infeasible_problem(kind: str, seed: int) -> hc.Problem:
    """A convex row that asks for less than its least value, or two equalities in conflict."""
    generator = np.random.default_rng([2000, list(KINDS).index(kind), seed])
    make, knowledge = KINDS[kind]
    size = int(generator.integers(2, 6))
    c = make(generator, size, set())
    u = c.expression
    direction = generator.normal(size=size)
    if seed % 2:
        rows = [hc.sum((u - c.optimum) ** 2) <= -0.5]
    else:
        rows = [direction @ u == 1.0, direction @ u == 1.5]
    declared = c.declared if knowledge == "declared" else None
    return hc.Problem(hc.Minimize(hc.sum((u - 1) ** 2)), rows, hidden=declared)


def without_slater_point() -> tuple[hc.Problem, hc.Variable]:
    """x₁ + x₂ over (x₁x₂ − 1)² <= 0: the optimum is 2 at (1, 1), and no multiplier exists."""
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=np.array([3.0, 0.5]))
    return hc.Problem(hc.Minimize(x[0] + x[1]), [(x[0] * x[1] - 1) ** 2 <= 0]), x
