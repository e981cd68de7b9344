"""Random expressions over the atoms, and the check of everything that is claimed of them.

Claims are checked at midpoints in the hidden coordinates: of two points u, v of the domain and their
middle, convex functions are not above the mean of the ends there, concave ones not below, logarithms
alike. Every node of an expression is checked, with its sign and its interval.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hcmodel.atoms.rules import Sign
from hcmodel.expressions.leaves import Expression, Variable, as_expression
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.bits import CONCAVE, CONVEX
from hcmodel.facts.curvature import Channels, Curvatures, can_be_log
from hcmodel.facts.node_facts import Facts, Node

TOLERANCE = 1e-8
UNBOUNDED = 5.0  # how far points go where a variable has no bound
UNARY = ("exp", "log", "log1p", "sqrt", "square", "inv_pos", "neg", "abs", "tanh")
UNARY += ("sigmoid", "softplus", "entr", "sin")
EXPONENTS = (-2.0, -1.0, -0.5, 0.5, 1.5, 1.5, 2.0, 2.5, 3.0, 4.0)
DESIGN = np.array([[1.0, 0.5], [-1.0, 1.0], [0.0, 2.0]])
REDUCTIONS = ("sum", "mean", "prod", "max", "min", "norm", "logsumexp")


def variables() -> list[Variable]:
    """Boxes of every kind: positive, of one sign, around 0, and a positive definite matrix."""
    return [
        Variable(name="p", bounds=(0.2, 3.0)),
        Variable(name="q", bounds=(1.5, 4.0)),
        Variable(name="r", bounds=(0.1, 0.8)),
        Variable(name="z", bounds=(-2.0, 2.0)),
        Variable(name="n", bounds=(-3.0, -0.5)),
        Variable(name="w", bounds=(0.0, 2.0)),
        Variable(3, name="v", bounds=(0.3, 2.0)),
        Variable(3, name="s", bounds=([-1.0, 0.2, -2.0], [1.0, 2.0, -0.5])),
        Variable((2, 2), name="X", PSD=(0.2, 3.0)),
    ]


class Generator:
    """Draws expressions of a given depth."""

    def __init__(self, rng: np.random.Generator) -> None:
        self.rng = rng
        self.variables = variables()
        *self.scalars, self.v, self.s, self.X = self.variables

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def number(self) -> Expression:
        return as_expression(self.pick((-2.0, -1.0, -0.5, 0.5, 1.0, 2.0, 5.0)))

    def expression(self) -> Expression:
        """An expression of any depth up to 4, now and then one on whose domain rules may stumble."""
        if self.rng.uniform() < 0.03:
            return self.trap()
        return self.scalar(int(self.rng.integers(1, 5)))

    def trap(self) -> Expression:
        z, w, p = self.scalars[3], self.scalars[5], self.scalars[0]
        return self.pick(
            (
                (z**2 - 1) ** 1.5,
                (ATOMS["abs"](z) - 0.5) ** 2.5 / p,
                ATOMS["exp"](-ATOMS["log"](z**2)),
                1 / (z**2 - 1),
                ATOMS["log"](w) * ATOMS["log"](w),
                ATOMS["square"](ATOMS["sqrt"](z)),
            )
        )

    def scalar(self, depth: int) -> Expression:
        if depth == 0:
            return self.pick(self.scalars)
        kind = self.rng.uniform()
        if kind < 0.25:
            return ATOMS[self.pick(UNARY)](self.scalar(depth - 1))
        if kind < 0.4:
            return self.with_constant(depth)
        if kind < 0.75:
            name = self.pick(("add", "sub", "mul", "div", "maximum", "minimum", "add", "mul"))
            return ATOMS[name](self.scalar(depth - 1), self.scalar(self.depth_below(depth)))
        if kind < 0.8:
            return self.square_over(depth)
        if kind < 0.84:
            return self.of_matrix()
        if kind < 0.86:
            return ATOMS["kl_div"](self.scalar(depth - 1), self.scalar(self.depth_below(depth)))
        return self.reduction(depth)

    def depth_below(self, depth: int) -> int:
        return int(self.rng.integers(depth))

    def with_constant(self, depth: int) -> Expression:
        inner, k = self.scalar(depth - 1), self.number()
        kind = self.rng.integers(9)
        if kind < 3:
            return ATOMS["power"](inner, self.pick(EXPONENTS))
        if kind == 3:
            return ATOMS["power"](self.pick((0.5, 2.0)), inner)
        name = ("add", "mul", "div", "sub", "maximum")[kind - 4]
        pair = (inner, k) if self.rng.uniform() < 0.5 else (k, inner)
        return ATOMS[name](*pair)

    def square_over(self, depth: int) -> Expression:
        top, below = self.scalar(depth - 1), self.scalar(self.depth_below(depth))
        squared = self.pick(
            (ATOMS["square"](top), top * top, ATOMS["power"](top, 2.0), top * top + top**4)
        )
        if self.rng.uniform() < 0.3:
            return ATOMS["sqrt"](squared + ATOMS["square"](below))
        return self.pick((squared / below, squared * below**-1.0, squared * (2 / below)))

    def of_matrix(self) -> Expression:
        X, inverse = self.X, ATOMS["inv"](self.X)
        weights = np.array([[2.0, 0.3], [0.3, 1.0]])
        x = ATOMS["hstack"](self.pick(self.scalars), self.pick(self.scalars))
        return self.pick(
            (
                ATOMS["logdet"](X + self.pick((0.0, 1.0)) * np.eye(2)),
                ATOMS["det"](X),
                ATOMS["trace"](weights @ X),
                ATOMS["trace"](weights @ inverse),
                ATOMS["trace"](inverse),
                ATOMS["quad_form"](x, inverse),
                ATOMS["quad_form"](as_expression([1.0, -2.0]), inverse),
                x @ ATOMS["solve"](X, x),
                ATOMS["quad_form"](x, weights),
                ATOMS["quad_form"](x, np.array([[0.5, 2.0], [2.0, 0.5]])),
                x @ (weights @ x),
                ATOMS["logdet"](DESIGN.T @ ATOMS["diag"](self.v) @ DESIGN),
                ATOMS["trace"](ATOMS["inv"](DESIGN.T @ (ATOMS["diag"](self.v) @ DESIGN))),
                ATOMS["quad_form"](x, ATOMS["inv"](weights + self.pick(self.scalars) * X)),
            )
        )

    def reduction(self, depth: int) -> Expression:
        vector = self.vector(depth - 1)
        name = self.pick(REDUCTIONS)
        if name == "norm":
            return ATOMS["norm"](vector, self.pick((1, 2, 3, np.inf)))
        if self.rng.uniform() < 0.2:
            return self.pick(
                (
                    vector @ vector,
                    vector @ as_expression([0.5, 0.0, 2.0]),
                    vector @ as_expression([1.0, -1.0, 0.5]),
                    vector @ as_expression([0.0, 0.0, 2.0]),
                    ATOMS["cumsum"](vector)[1],
                    vector[1],
                )
            )
        return ATOMS[name](vector)

    def table(self, depth: int) -> Expression:
        """A vector made from a table with three rows: masked, contracted, reduced along an axis."""
        left, right = self.vector(depth - 1), self.vector(0)
        mask = np.array([[1.0, 0.0, 1.0], [0.0, 0.0, 2.0], [1.0, 1.0, 0.0]])
        signed = mask - np.diag([0.0, 3.0, 1.0])
        return self.pick(
            (
                ATOMS["sum"](mask * ATOMS["outer"](left, right), axis=1),
                ATOMS["einsum"]("ij,j->i", self.pick((mask, signed)), left),
                ATOMS["einsum"]("ij,i,j->i", mask, left, right),
                self.pick((mask, signed)) @ left,
                ATOMS["prod"](ATOMS["broadcast_to"](left, (3, 3)) ** mask, axis=1),
                ATOMS["max"](mask * ATOMS["reshape"](left, (3, 1)), axis=0),
                ATOMS["cumsum"](left * right),
                ATOMS["diag"](ATOMS["outer"](left, left)),
                ATOMS["concatenate"](left[:1], right[1:]),
                -left * right,
                left / -ATOMS["exp"](right),
            )
        )

    def vector(self, depth: int) -> Expression:
        if depth > 0 and self.rng.uniform() < 0.25:
            return self.table(depth)
        kind = self.rng.integers(6)
        if kind == 0 or depth <= 0:
            return self.pick((self.v, self.s))
        if kind == 1:
            return ATOMS["hstack"](*(self.scalar(self.depth_below(depth)) for _ in range(3)))
        if kind == 2:
            return ATOMS[self.pick(UNARY)](self.vector(depth - 1))
        if kind == 3:
            factor = self.pick(([1.0, 0.0, 2.0], [1.0, -1.0, 3.0], [2.0, 0.5, 1.0]))
            return as_expression(factor) * self.vector(depth - 1)
        if kind == 4:
            exponents = self.pick(([1.0, 2.0, -1.0], [2.0, 2.0, 4.0], [0.5, 0.5, 0.25]))
            return self.vector(depth - 1) ** np.array(exponents)
        name = self.pick(("add", "mul", "sub", "div"))
        return ATOMS[name](self.vector(depth - 1), self.vector(0))


@dataclass(frozen=True)
class Checked:
    """Some expressions: of how many something was proven, and the claims that fail."""

    proven: int
    broken: tuple[str, ...]


def random_coordinates(facts: Facts, rng: np.random.Generator) -> int:
    """Each variable that can be is in logarithms with probability one half."""
    bits = [can_be_log(v) and rng.uniform() < 0.5 for v in facts.variables]
    return sum(1 << place for place, log in enumerate(bits) if log)


def check(expressions: Sequence[Expression], rng: np.random.Generator, pairs: int) -> Checked:
    """All claims about expressions in random coordinates, at `pairs` midpoints each."""
    facts = Facts()
    numbers = [facts.add(expression) for expression in expressions]
    curvatures = Curvatures(facts, random_coordinates(facts, rng))
    proven = [
        number
        for number in numbers
        if any(curvatures.channels[number][:2]) and not facts.nodes[number].constant
    ]
    if not proven:
        return Checked(0, ())
    broken: list[str] = []
    values = _evaluate(facts, curvatures.logs, rng, pairs)
    for node, value in zip(facts.nodes, values, strict=True):
        if not node.constant:
            found = _broken(node, curvatures.channels[node.number], value)
            broken.extend(f"{node.expression}: {claim}" for claim in found)
    return Checked(len(proven), tuple(broken))


def bends_at_midpoints(
    expression: Expression,
    coordinates: Mapping[Variable, str],
    claim: int,
    rng: np.random.Generator,
    pairs: int,
) -> list[str]:
    """How a claim about one expression in given coordinates fails; an empty list if it does not."""
    facts = Facts()
    facts.add(expression)
    places = enumerate(facts.variables)
    logs = sum(1 << place for place, each in places if coordinates[each] == "log")
    value = _evaluate(facts, logs, rng, pairs)[-1]
    inside = np.all(np.isfinite(value[:2]), axis=0)
    broken = ["domain"] if np.any(inside & np.isnan(value[2])) else []
    return broken + _bends(value, claim, inside)


def _evaluate(facts: Facts, logs: int, rng: np.random.Generator, pairs: int) -> list[np.ndarray]:
    """The values of all nodes: first axis the ends and the middle, second the pairs."""
    values: list[np.ndarray] = []
    place = {variable: i for i, variable in enumerate(facts.variables)}
    with np.errstate(all="ignore"):
        for node in facts.nodes:
            if isinstance(node.expression, Variable):
                log = bool(logs >> place[node.expression] & 1)
                values.append(_points(node.expression, log, rng, pairs))
            elif node.constant:
                values.append(np.broadcast_to(node.value, (3, pairs, *node.shape)))
            else:
                values.append(_apply(node, [values[i] for i in node.arguments], pairs))
    return values


def _apply(node: Node, arguments: Sequence[np.ndarray], pairs: int) -> np.ndarray:
    result = np.empty((3, pairs, *node.shape))
    for place in np.ndindex(3, pairs):
        result[place] = node.atom.function(np, *(a[place] for a in arguments), **node.params)
    outside = [~np.all(np.isfinite(a), axis=tuple(range(2, a.ndim))) for a in arguments]
    result[np.any(outside, axis=0)] = np.nan  # where an argument is undefined
    return result


def _points(variable: Variable, log: bool, rng: np.random.Generator, pairs: int) -> np.ndarray:
    shape = (2, pairs, *variable.shape)
    if variable.eigenvalue_bounds is not None:
        low, high = variable.eigenvalue_bounds
        bases = np.linalg.qr(rng.normal(size=shape))[0]
        ends = np.einsum("abij,abj,abkj->abik", bases, rng.uniform(low, high, shape[:-1]), bases)
    else:
        share = rng.uniform(size=shape)
        corners = rng.uniform(size=(1, pairs, *[1] * variable.ndim)) < 0.25
        share = np.where(corners, np.round(share), share)
        low = np.maximum(variable.lower, -UNBOUNDED)
        high = np.minimum(variable.upper, UNBOUNDED)
        if log:
            low, high = np.log(low), np.log(high)
        ends = low + share * (high - low)
    middle = ends.mean(axis=0, keepdims=True)
    points = np.concatenate([ends, middle])
    return np.exp(points) if log else points


def _broken(node: Node, channels: Channels, value: np.ndarray) -> list[str]:
    """The claims about a node that its values contradict."""
    plain, log, root = channels
    broken: list[str] = []
    low, high = node.interval
    finite = np.isfinite(value)
    with np.errstate(all="ignore"):
        scale = TOLERANCE * (1 + np.abs(value))
        outside = (value < low - scale) | (value > high + scale)
    if np.any(outside & finite):
        broken.append(f"interval [{low}, {high}]")
    if not _has_sign(value, node.sign):
        broken.append(f"sign {node.sign.value}")
    if not (plain or log or root):
        return broken
    ends = value[:2]
    inside = np.all(np.isfinite(ends), axis=0)
    if np.any(inside & np.isnan(value[2])):
        broken.append("a domain that is not convex")
    broken += [f"{word}" for word in _bends(value, plain, inside)]
    with np.errstate(all="ignore"):
        size = np.abs(value)
        usable = inside & np.all(size > 0, axis=0)
        if node.supported:
            broken += [f"log-{word}" for word in _bends(np.log(size), log, usable)]
        if root:
            broken += [f"root {word}" for word in _bends(np.sqrt(value), CONVEX, inside)]
    return broken


def _bends(value: np.ndarray, claim: int, usable: np.ndarray) -> list[str]:
    first, second, middle = value
    with np.errstate(all="ignore"):
        excess = middle - (first + second) / 2
        slack = TOLERANCE * (1 + np.abs(first) + np.abs(second) + np.abs(middle))
        usable = usable & np.isfinite(excess)
        above, below = np.any(usable & (excess > slack)), np.any(usable & (excess < -slack))
    found = ["convex"] if claim & CONVEX and above else []
    return found + (["concave"] if claim & CONCAVE and below else [])


def _has_sign(value: np.ndarray, sign: Sign) -> bool:
    known = value[np.isfinite(value)]
    slack = TOLERANCE * (1 + np.abs(known))
    if sign.is_nonnegative and np.any(known < -slack):
        return False
    return not (sign.is_nonpositive and np.any(known > slack))
