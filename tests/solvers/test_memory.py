"""The collector of garbage pauses while models are made ready, and is left as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

import hcmodel as hc
from hcmodel.solvers.memory import CollectionPaused


@pytest.fixture(autouse=True)
def collecting() -> Iterator[None]:
    yield
    gc.enable()


def test_nothing_is_collected_inside_and_everything_afterwards() -> None:
    with CollectionPaused():
        assert not gc.isenabled()
        with CollectionPaused():
            assert not gc.isenabled()
        assert not gc.isenabled()  # the outer one is not over
    assert gc.isenabled()


def test_an_exception_ends_the_pause() -> None:
    with pytest.raises(KeyboardInterrupt), CollectionPaused():
        raise KeyboardInterrupt
    assert gc.isenabled()


def test_a_user_who_collects_nothing_is_left_alone() -> None:
    gc.disable()
    with CollectionPaused():
        assert not gc.isenabled()
    assert not gc.isenabled()


def test_functions_of_the_user_run_with_the_collector() -> None:
    seen = []

    def square(x: float) -> float:
        seen.append(gc.isenabled())
        return x * x

    x = hc.Variable(name="x", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(hc.function(square, x, grad=lambda x: 2 * x)))
    problem.solve()
    assert seen
    assert all(seen)
    assert gc.isenabled()
