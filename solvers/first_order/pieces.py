"""Quadratic models of the smooth pieces of a function, for functions with kinks.

Close to a point most functions with kinks are the maximum of a few smooth pieces. Each evaluation shows
value and gradient of one of them. Where its gradient is what the model of a known piece predicts, it
belongs to that piece and improves the model; else it opens a new piece:

    p_j(y) = f_j + g_j·(y − y_j) + ½ (y − y_j)ᵀ H_j (y − y_j),    H_j by Powell's symmetric update.

The next point minimises max_j p_j in a trust region (Lukšan and Vlček, A bundle-Newton method for
nonsmooth unconstrained minimization, 1998, with second derivatives; that few pieces matter, and that
they can be told apart by their gradients: Lewis and Wylie, A simple Newton method for local nonsmooth
optimization, 2019). With second derivatives of each piece a curved valley of kinks is followed in long
steps, where one linearisation of each piece allows short ones only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import MERIT_ROUNDING, TINY
from hcmodel.solvers.qp.program import QuadraticProgram, StepRows

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class PieceRules:
    """Numbers of the models. *black boxes*: measured with tests/benchmarks/simulators.py."""

    # An evaluation belongs to a piece where its error is this share of that for the next best piece …
    likeness: float = 0.3  # black boxes
    # … and the trapezoidal rule between the two points fails by at most this share of that error.
    trapezoid: float = 0.1  # black boxes
    # The length, in natural units, on which gradients of one piece may change by their own size.
    feature: float = 1e-3  # black boxes
    # How much less may be alike after each step that has failed.
    doubt: float = 0.1  # black boxes
    # Pieces in the model, and pieces that are remembered, for each unknown.
    active: int = 4  # black boxes
    dormant: int = 6  # black boxes
    # Linearisations of the pieces for one step, and the change, in radii, that ends them.
    rounds: int = 6  # black boxes
    settled: float = 1e-3  # black boxes
    # The least curvature of a step's program, relative to the slopes over the radius.
    regular: float = 1e-6  # so that the program has one solution


RULES = PieceRules()


@dataclass(frozen=True, eq=False)
class Piece:
    """A smooth piece: where it was seen last, its value and gradient there, second derivatives."""

    y: FloatArray
    value: float
    slope: FloatArray
    hessian: FloatArray
    seen: int = 0

    def at(self, y: FloatArray) -> tuple[float, FloatArray]:
        """Value and gradient that the model predicts."""
        step = y - self.y
        bend = self.hessian @ step
        return self.value + float(step @ (self.slope + bend / 2)), self.slope + bend

    def moved(self, y: FloatArray, value: float, slope: FloatArray, seen: int) -> Piece:
        """The piece after one more evaluation of it (Powell, symmetric Broyden)."""
        step, hessian = y - self.y, self.hessian
        length = float(step @ step)
        if length > TINY:
            error = slope - self.slope - hessian @ step
            cross = np.outer(error, step)
            hessian = hessian + (cross + cross.T) / length
            hessian = hessian - float(error @ step) / length**2 * np.outer(step, step)
        return Piece(y, value, slope, hessian, seen)


@dataclass(frozen=True, eq=False)
class ModelStep:
    """Where the model has its least value in a trust region, and the pieces that meet there."""

    step: FloatArray
    value: float
    shares: FloatArray


@dataclass(frozen=True, eq=False)
class Pieces:
    """The pieces whose maximum is the model, and those that are out of it and may come back."""

    active: tuple[Piece, ...]
    dormant: tuple[Piece, ...] = ()
    count: int = 0

    def noted(
        self, y: FloatArray, value: float, slope: FloatArray, failures: int = 0
    ) -> tuple[Pieces, Piece | None]:
        """With one more evaluation, and the piece that it belonged to (None: a new one).

        After steps that failed, two pieces may have been taken for one: then less is alike.
        """
        alike = RULES.likeness * RULES.doubt**failures
        errors = [float(np.linalg.norm(slope - piece.at(y)[1])) for piece in self.active]
        best = int(np.argmin(errors))
        piece, count = self.active[best], self.count + 1
        rest = self.active[:best] + self.active[best + 1 :]
        if _belongs(piece, errors, best, y, value, slope, alike):
            moved = piece.moved(y, value, slope, count)
            return replace(self, active=(*rest, moved), count=count), piece
        dormant, hessian = self.dormant, np.zeros((y.size, y.size))
        if dormant:
            others = [float(np.linalg.norm(slope - other.at(y)[1])) for other in dormant]
            chosen = int(np.argmin(others))
            if others[chosen] <= RULES.likeness * errors[best]:
                hessian = dormant[chosen].moved(y, value, slope, count).hessian
                dormant = dormant[:chosen] + dormant[chosen + 1 :]
        new = Piece(y, value, slope, hessian, count)
        active = (*self.active, new)
        most = RULES.active * (y.size + 1)
        if len(active) > most:
            active = tuple(sorted(active, key=lambda each: each.seen)[-most:])
        return Pieces(active, dormant, count), None

    def without(self, dropped: list[Piece]) -> Pieces:
        """With pieces put aside."""
        gone = {id(piece) for piece in dropped}
        kept = tuple(piece for piece in self.active if id(piece) not in gone)
        most = RULES.dormant * (dropped[0].y.size if dropped else 1)
        return replace(self, active=kept, dormant=(*self.dormant, *dropped)[-most:])

    def below(self, y: FloatArray, value: float) -> Pieces:
        """With pieces bent so that none exceeds the value of the function at a point.

        A piece that exceeds it close to where it was seen is on the other side of a concave kink.
        """
        found, beyond = [], []
        size = max(float(np.linalg.norm(piece.slope)) for piece in self.active)
        for piece in self.active:
            excess, step = piece.at(y)[0] - value, y - piece.y
            length = float(np.linalg.norm(step))
            if excess > MERIT_ROUNDING * max(1.0, abs(value)):
                allowed = RULES.likeness * length * min(1.0, length / RULES.feature)
                if excess > allowed * size:
                    beyond.append(piece)
                    continue
                bend = 2 * excess / length**4 * np.outer(step, step)
                piece = replace(piece, hessian=piece.hessian - bend)
            found.append(piece)
        kept = replace(self, active=tuple(found))
        return kept.without(beyond) if found and beyond else kept if found else self

    def least(
        self, y: FloatArray, radius: float, limits: tuple[FloatArray, FloatArray], backend: Any
    ) -> ModelStep | None:
        """The step to the least value of the model within the radius and limits of y.

        Newton's method for the maximum of the quadratic functions: each is linearised but for the
        curvature of their weighted sum, as far as that is convex.
        """
        size, step = y.size, np.zeros(y.size)
        lower = np.maximum(limits[0] - y, -radius)
        upper = np.minimum(limits[1] - y, radius)
        shares = np.full(len(self.active), 1.0 / len(self.active))
        hessians = np.array([piece.hessian for piece in self.active])
        best: ModelStep | None = None
        for _ in range(RULES.rounds):
            known = [piece.at(y + step) for piece in self.active]
            values = np.array([value for value, _ in known])
            slopes = np.array([slope for _, slope in known])
            scale = max(float(np.max(np.abs(slopes), initial=0.0)), TINY)
            bend = _convex(np.tensordot(shares, hessians, 1)) + (
                RULES.regular * scale / radius
            ) * np.eye(size)
            # in units of the radius and the largest slope, so that the backend sees numbers near 1
            unit = scale * radius
            linear = slopes - bend @ step
            offsets = values - float(np.max(values)) - linear @ step - float(step @ bend @ step) / 2
            matrix = np.zeros((size + 1, size + 1))
            matrix[:size, :size] = bend * radius**2 / unit
            program = QuadraticProgram(
                matrix,
                np.concatenate([np.zeros(size), np.ones(1)]),
                np.hstack([linear / scale, -np.ones((len(known), 1))]),
                -offsets / unit,
                np.zeros((0, size + 1)),
                np.zeros(0),
                StepRows(np.append(lower / radius, -np.inf), np.append(upper / radius, np.inf)),
            )
            answer = backend.solve(program)
            if not answer.usable:
                break
            moved = np.clip(radius * answer.step[:size], lower, upper)
            shares = np.maximum(answer.inequality_multipliers, 0.0)
            shares = shares / max(float(np.sum(shares)), TINY)
            value = max(piece.at(y + moved)[0] for piece in self.active)
            if best is None or value < best.value:
                best = ModelStep(moved, value, shares)
            if float(np.max(np.abs(moved - step))) <= RULES.settled * radius:
                break
            step = moved
        return best


def _belongs(
    piece: Piece,
    errors: list[float],
    best: int,
    y: FloatArray,
    value: float,
    slope: FloatArray,
    alike: float,
) -> bool:
    """Whether an evaluation is one of the piece whose gradient it resembles most."""
    step = y - piece.y
    change = float((slope - piece.slope) @ step) / 2
    missed = abs(value - piece.value - float(piece.slope @ step) - change)
    if len(errors) == 1:
        return missed <= RULES.trapezoid * abs(change)
    second = min(error for i, error in enumerate(errors) if i != best)
    if errors[best] <= MERIT_ROUNDING * float(np.linalg.norm(slope)):
        return True
    length = float(np.linalg.norm(step))
    alike = alike * min(1.0, length / RULES.feature)
    return errors[best] <= alike * second and missed <= RULES.trapezoid * second * length


def _convex(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    if values[0] >= 0:
        return matrix
    return np.asarray((vectors * np.maximum(values, 0.0)) @ vectors.T)
