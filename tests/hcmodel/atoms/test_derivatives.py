"""Every atom of the table: value against numpy, derivatives against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from tests.hcmodel.atoms.samples import ALL_SAMPLES, SAMPLES, Sample


def compiled(sample: Sample) -> tuple[CompiledStack, np.ndarray]:
    operands: list[Any] = list(sample.arguments)
    moving = [i for i in range(len(operands)) if i not in sample.constant]
    for i in moving:
        operands[i] = Variable(sample.arguments[i].shape)
    layout = Layout([operands[i] for i in moving])
    stack = compile_stack([sample.build(*operands)], layout, 0)
    return stack, layout.pack([sample.arguments[i] for i in moving])


def differences(function, point: np.ndarray, step: float = 1e-6) -> np.ndarray:
    columns = []
    for unit in np.eye(point.size) * step:
        columns.append((function(point + unit) - function(point - unit)) / (2 * step))
    return np.stack(columns, axis=-1)


def test_every_atom_has_a_sample() -> None:
    assert sorted(ATOMS) == sorted(SAMPLES)


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=str)
def test_value_and_shape_are_numpys(sample: Sample) -> None:
    expression = sample.build(*sample.arguments)
    expected = np.asarray(sample.reference(*sample.arguments))
    assert expression.shape == expected.shape
    np.testing.assert_allclose(expression.value, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=str)
def test_jacobian_equals_finite_differences(sample: Sample) -> None:
    stack, point = compiled(sample)
    forward = stack.evaluate(point, "constraints")
    expected = differences(lambda x: stack.evaluate(x, "constraints").values, point)
    found = forward.jacobian()
    found = found if isinstance(found, np.ndarray) else found.toarray()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    weights = np.linspace(-1.0, 2.0, stack.size)
    np.testing.assert_allclose(forward.pullback(weights), weights @ found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("sample", ALL_SAMPLES, ids=str)
def test_hessian_equals_finite_differences_of_the_gradient(sample: Sample) -> None:
    stack, point = compiled(sample)
    weights = np.linspace(0.5, 2.0, stack.size)
    expected = differences(
        lambda x: stack.evaluate(x, "constraints").pullback(weights), point, step=1e-5
    )
    found = stack.hessian(point, weights)
    assert np.array_equal(found, found.T)
    np.testing.assert_allclose(found, (expected + expected.T) / 2, rtol=1e-5, atol=1e-5)
