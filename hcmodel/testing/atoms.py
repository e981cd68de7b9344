"""`check_atom`: an atom's value, derivatives, and every fact that it declares, by sampling.

Values are compared with a reference, derivatives with central differences. What an atom declares must
hold between drawn points: signs everywhere, monotonicity along rising pairs, curvatures at midpoints
(geometric ones where arguments are seen through logarithms), and the algebra of `atom_algebra`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Curvature, Monotonicity, Sign, sign_of
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable, as_expression
from hcmodel.solvers.algebra.storage import as_array
from hcmodel.testing import atom_algebra
from hcmodel.testing.samples import Sample
from hcmodel.testing.situations import Situation, situations

FloatArray = NDArray[np.float64]

# Pairs of points in each situation.
POINTS = 6
ROUNDING = 1e-9
VALUE_TOLERANCE = 1e-12
# First derivatives are compared with differences of values, second ones with differences of gradients.
FIRST_STEP, SECOND_STEP, DERIVATIVE_TOLERANCE = 1e-6, 1e-5, 1e-5
CHANNELS = {
    "curvature": (False, False),
    "log_curvature": (True, True),
    "log_to_plain": (True, False),
    "plain_to_log": (False, True),
}


def check_atom(
    atom: Atom, samples: Iterable[Sample], *, seed: int = 3, points: int = POINTS
) -> None:
    """Check an atom at samples of its arguments, and at pairs of points in each situation.

    Raises `AssertionError` with the atom, the sample and what does not hold.
    """
    checked = 0
    for sample in samples:
        for check in (
            _wrong_value,
            functools.partial(broken_facts, generator=np.random.default_rng(seed), points=points),
            _wrong_derivatives,
        ):
            wrong = dict.fromkeys(check(atom, sample))
            assert not wrong, f"{sample}: " + "; ".join(wrong)
        checked += 1
    assert checked, f"there is no sample of {atom!r}"


def broken_facts(
    atom: Atom, sample: Sample, generator: np.random.Generator, points: int = POINTS
) -> list[str]:
    """The facts that an atom declares and that fail at some drawn point."""
    broken: list[str] = []
    with np.errstate(all="ignore"):
        for case in situations(atom, sample, generator):
            for fact in (*_broken_channels(case, points), *_broken_algebra(case)):
                broken.append(f"{fact} fails for arguments {case}")
    return broken


def _broken_algebra(case: Situation) -> Iterator[str]:
    for check in atom_algebra.CHECKS:
        try:
            yield from check(case)
        except (ValueError, IndexError, np.linalg.LinAlgError) as error:
            yield f"{check.__name__} ({error})"


# ---- value and derivatives


def _wrong_value(atom: Atom, sample: Sample) -> Iterator[str]:
    node = atom.apply([as_expression(each) for each in sample.arguments], dict(sample.params))
    expected = np.asarray(sample.reference(*sample.arguments))
    found = np.shape(np.asarray(node.value))
    if node.shape != found:
        yield f"the shape rule says {node.shape}, the function returns {found}"
    elif node.shape != expected.shape:
        yield f"the shape is {node.shape}, the reference has {expected.shape}"
    elif not _close(node.value, expected, VALUE_TOLERANCE):
        yield f"the value is {node.value}, the reference has {expected}"


def _wrong_derivatives(atom: Atom, sample: Sample) -> Iterator[str]:
    operands: list[Any] = list(sample.arguments)
    moving = [i for i in range(len(operands)) if i not in sample.constant]
    for i in moving:
        operands[i] = Variable(sample.arguments[i].shape)
    layout = Layout([operands[i] for i in moving])
    node = atom.apply([as_expression(each) for each in operands], dict(sample.params))
    stack = compile_stack([node], layout, 0)
    point = layout.pack([sample.arguments[i] for i in moving])
    forward = stack.evaluate(point, "constraints")
    jacobian = as_array(forward.jacobian())
    expected = _differences(lambda x: stack.evaluate(x, "constraints").values, point, FIRST_STEP)
    if not _close(jacobian, expected, DERIVATIVE_TOLERANCE):
        yield "the first derivatives differ from differences of the value"
    weights = np.linspace(-1.0, 2.0, stack.size)
    if not _close(forward.pullback(weights), weights @ jacobian, ROUNDING):
        yield "gradients of weighted sums differ from the first derivatives"
    hessian = as_array(stack.hessian(point, weights))
    slopes = _differences(
        lambda x: stack.evaluate(x, "constraints").pullback(weights), point, SECOND_STEP
    )
    if not np.array_equal(hessian, hessian.T):
        yield "the second derivatives are not symmetric"
    if not _close(hessian, (slopes + slopes.T) / 2, DERIVATIVE_TOLERANCE):
        yield "the second derivatives differ from differences of the gradient"


def _differences(
    function: Callable[[FloatArray], FloatArray], point: FloatArray, step: float
) -> FloatArray:
    columns = [
        (function(point + unit) - function(point - unit)) / (2 * step)
        for unit in np.eye(point.size) * step
    ]
    return np.stack(columns, axis=-1)


def _close(found: Any, expected: Any, tolerance: float) -> bool:
    return bool(np.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True))


# ---- sign, monotonicity, curvature


def _broken_channels(case: Situation, points: int) -> Iterator[str]:
    atom, arguments, params = case.atom, case.arguments, case.params
    sign = atom.sign(arguments, params)
    moves = atom.monotonicity(arguments, params)
    curvatures = {channel: getattr(atom, channel)(arguments, params) for channel in CHANNELS}
    for _ in range(points):
        left, right = case.draw(), case.draw()
        ends = case.value(left), case.value(right)
        if not all(np.all(np.isfinite(end)) for end in ends):
            continue
        if not all(_has_sign(end, sign) for end in ends):
            yield f"sign {sign.value}"
        for channel, declared in curvatures.items():
            if _bends(case, (left, right), ends, CHANNELS[channel], declared):
                yield f"{channel} {declared.value}"
        for number, move in enumerate(moves):
            if not arguments[number].constant and _turns(case, left, right, number, move):
                yield f"monotonicity {move.value} in argument {number}"


def _has_sign(values: FloatArray, sign: Sign) -> bool:
    if sign is Sign.UNKNOWN or values.size == 0:
        return True
    found = sign_of(values)
    weaker = {
        Sign.NONNEGATIVE: (Sign.POSITIVE, Sign.NONNEGATIVE, Sign.ZERO),
        Sign.NONPOSITIVE: (Sign.NEGATIVE, Sign.NONPOSITIVE, Sign.ZERO),
    }
    return found in weaker.get(sign, (sign,))


def _bends(
    case: Situation,
    points: tuple[list[FloatArray], list[FloatArray]],
    ends: tuple[FloatArray, FloatArray],
    logs: tuple[bool, bool],
    declared: Curvature,
) -> bool:
    """Whether the declared curvature fails between two points."""
    if declared is Curvature.UNKNOWN:
        return False
    log_in, log_out = logs
    middle = []
    for a, b, argument in zip(*points, case.arguments, strict=True):
        if argument.constant:
            middle.append(a)
        elif log_in:
            if np.any(a <= 0) or np.any(b <= 0):
                return False
            middle.append(np.sqrt(a * b))
        else:
            middle.append((a + b) / 2)
    first, second, between = *ends, case.value(middle)
    keep = np.isfinite(between)
    if log_out:
        keep &= (first > 0) & (second > 0) & (between > 0)
        first, second, between = np.log(first), np.log(second), np.log(between)
    first, second, between = first[keep], second[keep], between[keep]
    excess = between - (first + second) / 2
    slack = ROUNDING * (1 + np.abs(first) + np.abs(second) + np.abs(between))
    below, above = bool(np.any(excess < -slack)), bool(np.any(excess > slack))
    if declared is Curvature.AFFINE:
        return below or above
    return above if declared is Curvature.CONVEX else below


def _turns(
    case: Situation,
    left: list[FloatArray],
    right: list[FloatArray],
    number: int,
    declared: Monotonicity,
) -> bool:
    """Whether the declared monotonicity fails between two points that differ in one argument."""
    if declared is Monotonicity.UNKNOWN:
        return False
    low, high = list(left), list(left)
    low[number] = np.minimum(left[number], right[number])
    high[number] = np.maximum(left[number], right[number])
    change = case.value(high) - case.value(low)
    change = change[np.isfinite(change)]
    slack = ROUNDING * (1 + np.abs(change))
    rises, falls = bool(np.any(change > slack)), bool(np.any(change < -slack))
    if declared is Monotonicity.CONSTANT:
        return rises or falls
    return falls if declared is Monotonicity.INCREASING else rises
