"""The layout of the flat vector."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from hcmodel.errors import ModelError
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable


def test_packing_and_unpacking_are_inverse() -> None:
    x, y, z = Variable((2, 3)), Variable(), Variable(4)
    layout = Layout([x, y, z])
    values = [np.arange(6.0).reshape(2, 3), np.array(7.0), np.arange(4.0)]
    vector = layout.pack(values)
    np.testing.assert_array_equal(vector, [0, 1, 2, 3, 4, 5, 7, 0, 1, 2, 3])
    for array, value in zip(layout.unpack(np, vector), values, strict=True):
        np.testing.assert_array_equal(array, value)
    assert layout.size == 11
    assert layout.slice(z) == slice(7, 11)


def test_no_variables_are_a_normal_case() -> None:
    layout = Layout([])
    assert layout.size == 0
    assert layout.unpack(np, layout.pack([])) == []


def test_wrong_use_names_the_variable() -> None:
    x, y = Variable(2, name="x"), Variable(name="y")
    layout = Layout([x])
    with pytest.raises(ModelError, match="'y'"):
        layout.slice(y)
    with pytest.raises(ModelError, match="'x'"):
        layout.pack([np.ones(3)])
    with pytest.raises(ModelError, match="twice"):
        Layout([x, x])


def test_layouts_pickle_with_their_variables() -> None:
    x = Variable(2)
    layout, twin = pickle.loads(pickle.dumps((Layout([x]), x)))
    assert layout.slice(twin) == slice(0, 2)
