"""Fig. 3: what the shift of the linearised functions does, step by step on compiled models."""

from __future__ import annotations

from dataclasses import dataclass

import models
import numpy as np
from numpy.typing import NDArray
from runs import geometric

from hcmodel.solvers import Evaluation, Oracle

FloatArray = NDArray[np.float64]

BEGIN = 0.891
# The paper prints no α for its picture (c); with τ = 0 this one leads where the picture does.
SHIFT = 0.6144
POINT = (1.34, 0.74)
# Neither for (b); this one can be seen.
CONSTRAINT_SHIFT = 0.3
# Ex-CGP: weak convexity and the map's constant.
RHO, MU_C = 1.0, 1.0 / 3.0


def cosine_steps(shift: float, count: int) -> FloatArray:
    """Points of (StarBL), shift = 1, or (S-StarBL) with τ = 0, on 1 − cos πx with its level 0.

    Each is the projection of the last onto its cut, and then onto X. Where cut and X meet that is the
    quadratic program; at ±0.95 they do not, and the program of the paper has no solution.
    """
    problem = models.cosine(BEGIN)
    oracle, domain = Oracle(problem.compile(), problem.canonical.outer), problem.canonical.domain
    points = [np.array([BEGIN])]
    for _ in range(count):
        at = oracle.at(points[-1])
        slope = at.gradient
        points.append(domain.project(at.point - shift * at.objective * slope / (slope @ slope)))
    return np.concatenate(points)


def cosine_at(x: float) -> Evaluation:
    problem = models.cosine()
    return Oracle(problem.compile(), problem.canonical.outer).at(np.array([x]))


@dataclass(frozen=True)
class ConstraintCut:
    """F2 linearised at `point`: ℓ(x) = value + gradient·(x − point), cut at `shifted` instead of 0."""

    point: FloatArray
    value: float
    gradient: FloatArray
    shifted: float
    tau: float
    target: FloatArray
    on_the_way: FloatArray
    """x_α = c⁻¹((1−α)c(x) + αc(x*))."""

    def linear(self, x: FloatArray) -> float:
        return self.value + float(self.gradient @ (x - self.point))


def constraint_cut() -> ConstraintCut:
    """ℓ <= (1−α)F2 + τ with τ = ρα²‖c(x*) − c(x)‖²/(2μ_c²), for Ex-CGP at (1.34, 0.74)."""
    plane = models.GEOMETRIC
    problem = plane.problem()
    at = Oracle(problem.compile(), problem.canonical.outer).at(np.array(POINT))
    target = geometric()[0].result.point
    here, there = plane.image([POINT, target])
    alpha = CONSTRAINT_SHIFT
    tau = RHO * alpha**2 * float(np.sum((there - here) ** 2)) / (2 * MU_C**2)
    between = (1 - alpha) * here + alpha * there
    return ConstraintCut(
        point=at.point,
        value=float(at.rows[0]),
        gradient=np.asarray(at.jacobian)[0],
        shifted=(1 - alpha) * float(at.rows[0]) + tau,
        tau=tau,
        target=target,
        on_the_way=np.array(plane.inverse(between[0], between[1])),
    )
