"""`check_reduction`: points, values, violations, duals and tangents walk there and back.

The model before a reduction and what it gives are two problems, and the two must agree at every point,
as in the bridge tests of MathOptInterface.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.graph import values_at
from hcmodel.expressions.model import Model
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.reductions.reduction import Duals, Reduction, moved_point
from hcmodel.reductions.semidefinite import difference
from hcmodel.reductions.sign import Sign
from hcmodel.reductions.smooth import Compiler, Smooth, SmoothProgram
from hcmodel.solvers.sets.domain import Domain

FloatArray = NDArray[np.float64]

# Walks are compositions of a few functions of one point: a relative error of 1e-9 leaves room for the
# condition of exp and log at the samples.
ACCURACY = 1e-9
# Tangents are compared with extrapolated differences, whose error is about the step to the fourth.
STEP, TANGENT_ACCURACY = 1e-5, 1e-6
# Random points that are drawn for each one at which the sides are compared.
ATTEMPTS = 10


class NoSampleError(AssertionError):
    """At none of the random points both sides of a reduction could be compared."""


def check_reduction(
    reduction: Reduction[Any, Any],
    *,
    samples: int = 5,
    seed: int = 0,
    settle: Callable[[FloatArray], FloatArray | None] | None = None,
    tangents: bool = True,
) -> None:
    """Raise AssertionError where the two sides of a reduction disagree at a random point of `before`.

    Where a point has no image, the one that its image leads back to is taken in its place, or the one
    that `settle` gives. Where that is None, the sides are not compared. `tangents` says whether
    `tangent_back` and `cotangent` are checked.
    """
    name = type(reduction).__name__
    generator = np.random.default_rng(seed)
    domain = _domain(reduction.before)
    checked, values = 0, []
    start = _start(reduction.before, domain)
    for attempt in range(ATTEMPTS * samples):
        # every other point lies near the start, since some models are defined in a small part of X
        x = domain.sample(generator)
        if attempt % 2:
            x = domain.project(start + 1e-3 * (x - start))
        settled = _with_image(reduction, x) if settle is None else settle(x)
        if settled is None:
            continue
        x = settled
        with np.errstate(all="ignore"):
            value = _objective(reduction.before, x)
        if not np.isfinite(value):
            continue
        values.append(value)
        _check_points(name, reduction, x)
        _check_values(name, reduction, x)
        _check_duals(name, reduction, x, generator)
        if tangents:
            _check_tangents(name, reduction, x, generator)
        checked += 1
        if checked == samples:
            break
    if not checked:
        raise NoSampleError(f"{name}: no sample at which the model is defined")
    _check_order(name, reduction, values)


def _with_image(reduction: Reduction[Any, Any], x: FloatArray) -> FloatArray:
    return x if reduction.has_image(x) else reduction.point_back(reduction.point(x))


def _check_order(name: str, reduction: Reduction[Any, Any], values: Sequence[float]) -> None:
    """Between values that the objective has, `value` and `value_back` are inverse and increase."""
    low, high = min(values), max(values)
    between = np.linspace(low, high, 5) if high > low else np.array([low])
    after = [reduction.value(value) for value in between.tolist()]
    for value, image in zip(between.tolist(), after, strict=True):
        back = reduction.value_back(image)
        agree = np.isclose(back, value, rtol=ACCURACY, atol=ACCURACY)
        assert agree, f"{name}: value_back(value({value})) is {back}"
    if not isinstance(reduction, Sign) and high - low > ACCURACY * max(abs(low), abs(high), 1.0):
        assert (np.diff(after) > 0).all(), f"{name}: value does not increase"


def _check_points(name: str, reduction: Reduction[Any, Any], x: FloatArray) -> None:
    u = reduction.point(x)
    again = reduction.point_back(u)
    assert np.allclose(again, x, rtol=ACCURACY, atol=ACCURACY), (
        f"{name}: point_back(point(x)) is {again}, not {x}"
    )
    inside = _domain(reduction.before).contains(x, ACCURACY)
    assert not inside or _domain(reduction.after).contains(u, _rounding(u)), (
        f"{name}: the image of a point of `before` lies outside the domain of `after`"
    )


def _rounding(u: FloatArray) -> float:
    return ACCURACY * (1 + float(np.max(np.abs(u), initial=0.0)))


def _check_values(name: str, reduction: Reduction[Any, Any], x: FloatArray) -> None:
    u = reduction.point(x)
    with np.errstate(all="ignore"):
        plain, walked = _objective(reduction.before, x), _objective(reduction.after, u)
        walked = reduction.value_back(walked)
    assert np.isclose(walked, plain, rtol=ACCURACY, atol=ACCURACY, equal_nan=True), (
        f"{name}: the objective is {plain} before and {walked} after the walk back"
    )
    violated, after = _violation(reduction.before, x), _violation(reduction.after, u)
    assert (violated > ACCURACY) == (after > ACCURACY), (
        f"{name}: the violation is {violated:.2e} before and {after:.2e} after"
    )


def _check_duals(
    name: str, reduction: Reduction[Any, Any], x: FloatArray, generator: np.random.Generator
) -> None:
    if not isinstance(reduction.before, Model):
        return
    duals = Duals(tuple(_random_dual(each, generator) for each in reduction.before.constraints))
    forward = reduction.duals(x, duals)
    if isinstance(reduction, Smooth):
        forward = reduction.by_constraint(reduction.multipliers(duals))
    back = reduction.duals_back(reduction.point(x), forward)
    for position, (one, other) in enumerate(zip(duals.rows, back.rows, strict=True)):
        kept = reduction.before.constraints[position].rows
        if one is None or other is None or not np.isfinite(other).all():
            continue
        assert np.allclose(
            np.ravel(one)[kept], np.ravel(other)[kept], rtol=ACCURACY, atol=ACCURACY
        ), f"{name}: the dual of constraint {position} walks to {other}, not back to {one}"


def _check_tangents(
    name: str, reduction: Reduction[Any, Any], x: FloatArray, generator: np.random.Generator
) -> None:
    u = reduction.point(x)
    natural = np.where(u == 0, 1.0, np.minimum(np.abs(u), 1.0))  # small moves near a bound at 0
    direction, weights = natural * generator.normal(size=u.size), generator.normal(size=x.size)
    moved = reduction.tangent_back(u, direction)
    coarse, fine = (
        (reduction.point_back(u + step * direction) - reduction.point_back(u - step * direction))
        / (2 * step)
        for step in (STEP, STEP / 2)
    )
    expected = (4 * fine - coarse) / 3  # Richardson's extrapolation
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    assert np.allclose(moved, expected, atol=TANGENT_ACCURACY * size), (
        f"{name}: tangent_back differs from a difference of point_back"
    )
    left, right = float(moved @ weights), float(direction @ reduction.cotangent(u, weights))
    assert np.isclose(left, right, rtol=ACCURACY, atol=ACCURACY * size), (
        f"{name}: cotangent is not the transpose of tangent_back"
    )


def _start(side: Model | SmoothProgram, domain: Domain) -> FloatArray:
    """The start that the variables declare, at the middle of the domain elsewhere."""
    x = domain.middle()
    if not isinstance(side, Model):
        return x
    for variable in side.variables:
        if variable.start is not None:
            x[side.layout.slice(variable)] = variable.set.store(variable.start)
    return x


def _random_dual(constraint: Any, generator: np.random.Generator) -> FloatArray:
    dual = generator.normal(size=constraint.shape)
    if constraint.sense != "==":
        return np.asarray(np.abs(dual))
    square = len(constraint.shape) == 2 and constraint.shape[0] == constraint.shape[1]
    return np.asarray(dual + dual.T if square else dual)


def _program(side: Model | SmoothProgram) -> SmoothProgram:
    if isinstance(side, SmoothProgram):
        return side
    return Smooth.of(Sign.of(side).after, Compiler()).after


def _domain(side: Model | SmoothProgram) -> Domain:
    return make_domain(side.variables) if isinstance(side, Model) else side.domain


def _objective(side: Model | SmoothProgram, x: FloatArray) -> float:
    if isinstance(side, SmoothProgram):
        return side.oracle().at(x).objective
    value = float(np.sum(values_at(side.layout, x, [side.objective.expression])[0]))
    if side.objective_form == "plain":
        return value
    return _program(side).oracle().at(x).objective


def _violation(side: Model | SmoothProgram, x: FloatArray) -> float:
    matrices = (
        [each for each in side.constraints if each.is_semidefinite]
        if isinstance(side, Model)
        else []
    )
    if isinstance(side, Model) and matrices:
        others = tuple(each for each in side.constraints if not each.is_semidefinite)
        rest = replace(side, constraints=others)
        worst = _violation(rest, moved_point(side, rest, x)) if rest.variables else 0.0
        for value in values_at(side.layout, x, [difference(each) for each in matrices]):
            worst = max(worst, -float(np.linalg.eigvalsh((value + value.T) / 2)[0]))
        return worst
    return _program(side).oracle().at(x).relative_violation
