"""Functions of the user in a model: how often they are called, and whether they contradict each other.

Maps and caches are looked at before the first run, as a wrong one gives wrong results. Gradients are
compared with their functions after a run that showed nothing: a good run takes no extra calls.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.code_map import map_of
from hcmodel.atoms.user_code import Differences, FunctionCalls, Program, program_of
from hcmodel.errors import HCWarning, ModelError
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SlopeTest:
    """How a gradient is compared with the function along one direction."""

    step: float = 6e-6  # near the cube root of the rounding unit, relative to max(1, |x|)
    # How far the slope may lie outside of the differences on both sides, relative to the largest
    # of the three: programs have noise, and only what is certainly wrong is reported.
    slack: float = 0.1
    seed: int = 0


SLOPE_TEST = SlopeTest()


def function_calls(model: Model) -> FunctionCalls:
    """The calls of the user's functions so far."""
    total = FunctionCalls()
    for calls in {id(calls): calls for calls in map(_calls, model.user_functions)}.values():
        total = total.plus(calls)
    return total


def check_functions(model: Model, start: Mapping[str, FloatArray]) -> None:
    """Compare maps that are code with their derivatives and inverses, and look at caches.

    Differences learn the bounds of the variables, so that no program is called outside of them.
    """
    nodes = model.user_functions
    _check_keys(nodes)
    for node in nodes:
        gradient = dict(node.params).get("grad")
        if isinstance(gradient, Differences):
            gradient.within([_bounds(argument) for argument in node.args])
        code = map_of(node)
        if code is not None:
            names = [each.name for each in node.args if isinstance(each, Variable)]
            code.check([np.asarray(start[name], dtype=float) for name in names])


def warn_about_gradients(model: Model, start: Mapping[str, FloatArray]) -> None:
    """Warn where gradients of the user contradict their functions, after a run that showed nothing."""
    for node in model.user_functions:
        gradient = dict(node.params)["grad"]
        if isinstance(gradient, Program):
            _warn_about_slope(node, gradient, start)
        elif isinstance(gradient, Differences) and gradient.noise is not None:
            warnings.warn(
                f"the values of '{gradient.__name__}' have noise: differences contradict each other for "
                f"{gradient.noise}, so that no status rests on them. Ask the program for more accuracy "
                "(tighter tolerances of its solvers, fixed seeds), or give its gradient as grad=…",
                HCWarning,
                stacklevel=4,
            )


def is_noisy(model: Model) -> bool:
    """Whether gradients by differences are noise."""
    gradients = [dict(node.params)["grad"] for node in model.user_functions]
    return any(isinstance(each, Differences) and each.noise is not None for each in gradients)


def _bounds(argument: Expression) -> tuple[FloatArray, FloatArray] | None:
    return (argument.lower, argument.upper) if isinstance(argument, Variable) else None


def _calls(node: Apply) -> FunctionCalls:
    return program_of(dict(node.params)).calls


def _check_keys(nodes: Sequence[Apply]) -> None:
    """Two functions that a cache cannot tell apart would get each other's values."""
    seen: dict[tuple[str, str], Program] = {}
    for node in nodes:
        program = program_of(dict(node.params))
        if program.store is None:
            continue
        key = (program.store.path, program.identity)
        if seen.setdefault(key, program).callable is not program.callable:
            raise ModelError(
                f"two functions '{program.__name__}' of the model share cache={program.store.path!r}, "
                "which tells functions apart by name and code; give each its own file"
            )


def _warn_about_slope(node: Apply, gradient: Program, start: Mapping[str, FloatArray]) -> None:
    """Warn where the gradient contradicts the function along a direction from the start."""
    program = program_of(dict(node.params))
    try:
        given, before, after = _slopes(node, program, gradient, start)
    except Exception:  # nothing is known of the slope
        return
    if not np.isfinite([given, before, after]).all():
        return
    size = max(abs(given), abs(before), abs(after))
    miss = max(min(before, after) - given, given - max(before, after))
    if miss <= SLOPE_TEST.slack * size:
        return
    found = (before + after) / 2
    wrong_sign = abs(given + found) <= SLOPE_TEST.slack * size
    warnings.warn(
        f"grad of '{program.__name__}' contradicts the function at the start: along a direction it gives "
        f"the slope {given:.4g}, but differences of the function give {found:.4g}"
        f'{" (the opposite sign)" if wrong_sign else ""}. Correct grad, or use grad="2-point"',
        HCWarning,
        stacklevel=5,
    )


def _slopes(
    node: Apply, program: Program, gradient: Program, start: Mapping[str, FloatArray]
) -> tuple[float, float, float]:
    """Along a direction: the slope by the gradient, and differences on both sides.

    A function with several values is summed up with random weights.
    """
    arrays = [_at(argument, start) for argument in node.args]
    generator = np.random.default_rng(SLOPE_TEST.seed)
    directions = [generator.normal(size=array.shape) for array in arrays]
    weights = generator.normal(size=node.shape)
    length = SLOPE_TEST.step * max(float(np.max(np.abs(array), initial=1.0)) for array in arrays)
    slopes = gradient(*arrays)
    parts = slopes if isinstance(slopes, (tuple, list)) else (slopes,)
    given = sum(
        float(np.sum(weights * np.tensordot(np.asarray(part, dtype=float), move, move.ndim)))
        for part, move in zip(parts, directions, strict=True)
    )
    sides = []
    for side in (-length, 0.0, length):
        moved = [array + side * move for array, move in zip(arrays, directions, strict=True)]
        sides.append(float(np.sum(weights * np.asarray(program(*moved), dtype=float))))
    below, here, above = sides
    return given, (here - below) / length, (above - here) / length


def _at(expression: Expression, start: Mapping[str, FloatArray]) -> FloatArray:
    """The value of an expression at a point by names."""
    values: dict[int, Any] = {}
    for node in topological_order([expression]):
        if isinstance(node, Variable):
            values[id(node)] = start[node.name]
        elif isinstance(node, Apply):
            arguments = [values[id(argument)] for argument in node.args]
            values[id(node)] = node.atom.numbers(arguments, dict(node.params))
        else:
            values[id(node)] = node.value
    return np.asarray(values[id(expression)], dtype=float)
