"""Programs without gradients, and what keeps their evaluations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.user_code import Differences

CUBE_ROOT = 4 ** (1 / 3)  # of the maximum of x + y and 1/(x y), at x = y and 2x = 1/x²


class Program:
    """A program with a kink that counts its calls, has no hash, and can break off."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, limit: float = np.inf) -> None:
        self.calls = 0
        self.limit = limit

    def __call__(self, x):
        if self.calls >= self.limit:
            self.limit = np.inf  # a user interrupts once
            raise KeyboardInterrupt
        self.calls += 1
        return np.maximum(x[0] + x[1], 1 / (x[0] * x[1]))


def solved(program: Program, **more) -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[3.0, 0.5])
    code = hc.function(program, x, **more)
    problem = hc.Problem(hc.Minimize(code), hidden=[hc.log(x)])
    problem.solve()
    return problem


@pytest.mark.parametrize("scheme", ["2-point", "3-point"])
def test_differences_take_the_place_of_a_gradient(scheme: str) -> None:
    problem = solved(Program(), grad=scheme)
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(CUBE_ROOT, rel=1e-6)
    assert problem.solution.certificate.lower_bound <= CUBE_ROOT * (1 + 1e-7)


def test_an_executor_evaluates_the_moved_points() -> None:
    with ThreadPoolExecutor(2) as executor:
        problem = solved(Program(), grad="2-point", executor=executor)
    assert problem.value == solved(Program(), grad="2-point").value


@pytest.mark.parametrize(
    ("scheme", "accuracy"), [("2-point", 1e-6), ("3-point", 1e-8), ("complex-step", 1e-14)]
)
def test_schemes_are_as_accurate_as_they_can_be(scheme: str, accuracy: float) -> None:
    differences = Differences(lambda a, b: np.array([np.sum(a**3), a[0] * b]), scheme)
    by_a, by_b = differences(np.array([1.0, 2.0]), np.array(3.0))
    assert np.allclose(by_a, [[3.0, 12.0], [3.0, 0.0]], atol=12 * accuracy, rtol=0)
    assert np.allclose(by_b, [0.0, 1.0], atol=12 * accuracy, rtol=0)


def test_central_differences_across_a_kink_are_a_slope_of_one_piece() -> None:
    slope = Differences(np.abs, "3-point")(np.array(1e-7))[0]
    assert abs(slope) == pytest.approx(1.0, abs=1e-6)


def test_a_real_program_is_not_differentiated_by_complex_steps() -> None:
    with pytest.raises(hc.ModelError, match="2-point"):
        Differences(lambda a: np.real(a) ** 2, "complex-step")(np.array(1.0))


def test_an_interrupted_run_goes_on_from_the_cache(tmp_path: Path) -> None:
    whole = Program()
    reference = solved(whole, grad="2-point", cache=tmp_path / "whole.db")
    store = tmp_path / "half.db"
    first = Program(limit=30)
    solved(first, grad="2-point", cache=store)
    second = Program()
    resumed = solved(second, grad="2-point", cache=store)
    assert resumed.value == reference.value
    assert 30 <= first.calls < whole.calls
    assert second.calls > 0
    # nothing is evaluated twice; what looks at the interrupted point takes a few calls more
    assert first.calls + second.calls <= whole.calls + 12
    third = Program()
    solved(third, grad="2-point", cache=store)
    assert third.calls == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"grad": "4-point"}, "3-point"),
        ({"grad": 3}, "callable"),
        ({"executor": object(), "grad": "2-point"}, "submit"),
        ({"cache": "/no/such/folder/c.db"}, "no folder"),
    ],
)
def test_wrong_arguments_are_explained(more: dict, message: str) -> None:
    x = hc.Variable(2, name="x")
    with pytest.raises(hc.ModelError, match=message):
        hc.function(Program(), x, **more)
