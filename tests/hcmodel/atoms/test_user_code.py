"""Programs without gradients, and what keeps their evaluations."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import autograd.numpy as anp
import numpy as np
import pytest

import hcmodel as hc
from hcmodel.atoms.autodiff import detached
from hcmodel.atoms.user_code import differences_of
from tests.extent import ALL

CUBE_ROOT = 4 ** (1 / 3)  # of the maximum of x + y and 1/(x y), at x = y and 2x = 1/x²


class Program:
    """A program with a kink that notes its calls, has no hash, and can break off."""

    __hash__ = None  # type: ignore[assignment]

    def __init__(self, limit: float = np.inf) -> None:
        self.points: list[bytes] = []
        self.limit = limit

    def __call__(self, x):
        if len(self.points) >= self.limit:
            self.limit = np.inf  # a user interrupts once
            raise KeyboardInterrupt
        self.points.append(np.asarray(detached(x)).tobytes())
        return anp.maximum(x[0] + x[1], 1 / (x[0] * x[1]))


def slope(x):
    return np.ones(2) if x[0] + x[1] >= 1 / (x[0] * x[1]) else -1 / (x * np.prod(x))


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
    differences = differences_of(lambda a, b: np.array([np.sum(a**3), a[0] * b]), scheme)
    by_a, by_b = differences(np.array([1.0, 2.0]), np.array(3.0))
    assert np.allclose(by_a, [[3.0, 12.0], [3.0, 0.0]], atol=12 * accuracy, rtol=0)
    assert np.allclose(by_b, [0.0, 1.0], atol=12 * accuracy, rtol=0)


def test_central_differences_across_a_kink_are_a_slope_of_one_piece() -> None:
    slope = differences_of(np.abs, "3-point")(np.array(1e-7))[0]
    assert abs(slope) == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize("scheme", ["2-point", "3-point"])
def test_differences_at_a_kink_are_those_of_one_piece(scheme: str) -> None:
    pieces = np.array([[1.0, 2.0, -1.0], [-3.0, 1.0, 1.0], [0.5, -2.0, 4.0]])
    taken = differences_of(lambda a: np.max(pieces @ a), scheme)(np.zeros(3))[0]
    assert np.min(np.max(np.abs(pieces - taken), axis=1)) <= 1e-6


def test_a_real_program_is_not_differentiated_by_complex_steps() -> None:
    with pytest.raises(hc.ModelError, match="2-point"):
        differences_of(lambda a: np.real(a) ** 2, "complex-step")(np.array(1.0))


@pytest.mark.parametrize("grad", ["2-point", slope, None], ids=["differences", "own", "autograd"])
def test_an_interrupted_run_goes_on_without_repeating_a_call(tmp_path: Path, grad) -> None:
    whole = Program()
    reference = solved(whole, grad=grad)
    assert len(whole.points) == reference.solution.function_calls.values
    store = tmp_path / "evaluations.db"
    first = Program(limit=15)
    solved(first, grad=grad, cache=store)
    assert 15 <= len(first.points) < len(whole.points)  # the point that was found is looked at
    second = Program()
    resumed = solved(second, grad=grad, cache=store)
    assert resumed.value == pytest.approx(reference.value, rel=1e-7)
    assert not set(first.points) & set(second.points)
    assert len(set(second.points)) == len(second.points) == resumed.solution.function_calls.values
    assert resumed.solution.function_calls.cached >= 15
    third = Program()
    solved(third, grad=grad, cache=store)
    assert third.points == []


def test_calls_of_an_executor_are_counted_and_cached(tmp_path: Path) -> None:
    program = Program()
    with ThreadPoolExecutor(2) as executor:
        more = {"grad": "3-point", "executor": executor, "cache": tmp_path / "c.db"}
        problem = solved(program, **more)
    assert problem.solution.function_calls.values == len(program.points)
    assert problem.solution.function_calls.values > 6 * problem.solution.oracle_calls.points / 2
    assert len(set(program.points)) == len(program.points)


def test_two_functions_that_a_cache_cannot_tell_apart_are_refused(tmp_path: Path) -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))
    store = tmp_path / "c.db"
    codes = [lambda x, w=w: w * np.sum(x) for w in (1.0, -1.0)]
    parts = [hc.function(code, x, grad="2-point", cache=store) for code in codes]
    problem = hc.Problem(hc.Minimize(hc.maximum(*parts)))
    with pytest.raises(hc.ModelError, match="its own file"):
        problem.solve()


def test_a_gradient_of_the_wrong_sign_is_noticed() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[3.0, 0.5])
    problem = hc.Problem(hc.Minimize(hc.function(Program(), x, grad=lambda x: -slope(x))))
    with pytest.warns(hc.HCWarning, match="opposite sign"):
        problem.solve("prox-linear")


def test_a_difference_turns_round_where_a_function_ends() -> None:
    edge = differences_of(lambda a: np.log(2.0 - a) if a <= 1.0 else np.nan, "2-point")
    assert edge(np.array(1.0))[0] == pytest.approx(-1.0, rel=1e-6)
    edge = differences_of(lambda a: np.log(2.0 - a) if a <= 1.0 else np.nan, "3-point")
    assert edge(np.array(1.0))[0] == pytest.approx(-1.0, rel=1e-4)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"grad": "4-point"}, "3-point"),
        ({"grad": 3}, "callable"),
        ({"executor": object(), "grad": "2-point"}, "submit"),
        ({"cache": "/no/such/folder/c.db"}, "no folder"),
        ({"cache": 3}, "path of a file"),
        ({"cache": Path(__file__)}, "a new file"),
    ],
)
def test_wrong_arguments_are_explained(more: dict, message: str) -> None:
    x = hc.Variable(2, name="x")
    with pytest.raises(hc.ModelError, match=message):
        hc.function(Program(), x, **more)


def test_a_function_without_a_return_statement_is_named() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10))

    def forgetful(x):
        np.sum(x)

    with pytest.raises(hc.ModelError, match="'forgetful' returned None"):
        hc.Problem(hc.Minimize(hc.function(forgetful, x, grad="2-point"))).solve()


def test_a_function_may_change_its_arguments() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=[3.0, 0.5])

    def careless(x):
        x -= 1
        return np.sum(x**2)

    problem = hc.Problem(hc.Minimize(hc.function(careless, x, grad="2-point")))
    problem.solve()
    assert np.allclose(x.value, 1.0, atol=1e-5)


def test_noise_is_told_apart_from_kinks() -> None:
    generator = np.random.default_rng(0)

    def noisy(x):
        return float(np.sum(x**2)) * (1 + 1e-5 * generator.normal())

    for code, found in ((noisy, True), (lambda x: float(np.max(np.abs(x))), False)):
        gradient = differences_of(code, "2-point")
        for _ in range(20):
            gradient(generator.choice([1.0, 2.0], 3))  # the second is often on a kink
        assert (gradient.noise is not None) == found


@pytest.mark.skipif(not ALL, reason="a long run: noise does not end a method early")
def test_no_status_rests_on_gradients_that_are_noise() -> None:
    generator = np.random.default_rng(0)
    x = hc.Variable(name="x", bounds=(0.1, 10), start=3)

    def noisy(x):
        return float(max(x, 1 / x)) * (1 + 1e-7 * generator.normal())

    problem = hc.Problem(hc.Minimize(hc.function(noisy, x, grad="2-point")))
    with pytest.warns(hc.HCWarning, match="have noise"):
        problem.solve()
    assert problem.status == "optimal_inaccurate"


def test_code_that_autograd_cannot_trace_is_explained() -> None:
    x = hc.Variable(2, name="x", bounds=(0.1, 10), start=1)
    code = hc.function(lambda x: np.linalg.norm(np.asarray(x, dtype=float)), x)
    with pytest.raises(hc.ModelError, match="autograd cannot differentiate"):
        hc.Problem(hc.Minimize(code)).solve()


@pytest.mark.parametrize("scheme", ["2-point", "3-point", "complex-step"])
def test_no_evaluation_lies_outside_of_the_bounds(scheme) -> None:
    """The start and the minimum (1/2, 3, 1) are on bounds; the third entry is fixed."""
    outside = []

    def careful(z):
        low, high = np.array([0.5, 0.5, 1.0]), np.array([4.0, 3.0, 1.0])
        outside.append(bool((np.real(z) < low).any() or (np.real(z) > high).any()))
        return (z[0] - 0.4) ** 2 + (z[1] - 5) ** 2 * z[2]

    x = hc.Variable(3, name="x", bounds=([0.5, 0.5, 1.0], [4.0, 3.0, 1.0]), start=[4.0, 0.5, 1.0])
    for hidden in (None, [hc.log(x)]):
        problem = hc.Problem(hc.Minimize(hc.function(careful, x, grad=scheme)), hidden=hidden)
        problem.solve()
        assert problem.value == pytest.approx(4.01, abs=1e-5)
    assert not any(outside)


def test_differences_at_a_bound_are_as_accurate_as_inside() -> None:
    """Of x³ at the upper bound 2, where central differences would leave the bounds: 12."""
    gradient = differences_of(lambda a: a**3, "3-point")
    gradient.within([(np.array(0.0), np.array(2.0))])
    assert gradient(np.array(2.0))[0] == pytest.approx(12.0, rel=1e-8)
    gradient.within([(np.array(2.0), np.array(2.0))])
    assert gradient(np.array(2.0))[0] == 0.0
