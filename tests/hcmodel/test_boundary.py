"""Whatever leaves the package is an `HCError`: public functions with arguments that make no sense."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc


def problem() -> hc.Problem:
    x = hc.Variable(name="x", bounds=(0.5, 2))
    return hc.Problem(hc.Minimize(x + 1 / x))


HUGE = 10**400
SOLVE: list[dict[str, Any]] = [
    {"max_calls": HUGE},
    {"max_calls": -1},
    {"max_calls": "3"},
    {"max_calls": np.nan},
    {"max_calls": True},
    {"time_limit": HUGE},
    {"time_limit": float("nan")},
    {"tol": HUGE},
    {"tol": "a"},
    {"tol": [1]},
    {"optimal_value": 1j},
    {"start": 3},
    {"start": {"x": "a"}},
    {"start": {"x": [[1, 2], [3]]}},
    {"start": {3: 1}},
    {"method": 3},
    {"method": None},
    {"rule": ["theory"]},
    {"constants": 3},
    {"constants": hc.Constants(rho="a")},  # type: ignore[arg-type]
    {"engine": ["a"]},
    {"options": 3},
    {"callback": 3},
    {"method": "sbl-adals", "options": {"memory": "a"}},
    {"method": "sbl-adals", "options": {1: 2}},
]


@pytest.mark.parametrize("arguments", SOLVE, ids=lambda each: str(each)[:30])
def test_arguments_of_solve(arguments: dict[str, Any]) -> None:
    with pytest.raises(hc.HCError):
        problem().solve(**arguments)


def test_a_limit_of_23_digits_is_one() -> None:
    assert problem().solve(max_calls=10**23) == pytest.approx(2.0)


ANY: Any = hc
CALLS: dict[str, Callable[[], Any]] = {
    "variable: shape": lambda: ANY.Variable("a"),
    "variable: negative": lambda: ANY.Variable((2, -1)),
    "variable: fraction": lambda: ANY.Variable(2.5),
    "variable: too many entries": lambda: hc.Variable(10**12),
    "variable: too many by dimensions": lambda: hc.Variable((10**6, 10**7)),
    "parameter: too many entries": lambda: hc.Parameter(10**12),
    "variable: bounds": lambda: ANY.Variable(bounds=3),
    "variable: three bounds": lambda: ANY.Variable(bounds=(1, 2, 3)),
    "variable: text as a bound": lambda: ANY.Variable(bounds=("a", 1)),
    "variable: NaN as a bound": lambda: hc.Variable(bounds=(np.nan, 1)),
    "variable: empty box": lambda: hc.Variable(bounds=(2, 1)),
    "variable: name": lambda: ANY.Variable(name=3),
    "variable: start": lambda: hc.Variable(2, start=[1, 2, 3]),
    "variable: NaN as a start": lambda: hc.Variable(start=np.nan),
    "variable: semidefinite vector": lambda: hc.Variable(3, PSD=True),
    "variable: semidefinite by text": lambda: ANY.Variable((2, 2), PSD="a"),
    "parameter: text": lambda: ANY.Parameter(value="a"),
    "parameter: shape": lambda: hc.Parameter(2, value=[1, 2, 3]),
    "parameter: sign": lambda: hc.Parameter(pos=True, value=-1),
    "objective: text": lambda: ANY.Minimize("a"),
    "objective: vector": lambda: hc.Minimize(hc.Variable(3)),
    "problem: no objective": lambda: ANY.Problem(3),
    "problem: constraints": lambda: ANY.Problem(hc.Minimize(hc.Variable()), 3),
    "problem: a truth": lambda: ANY.Problem(hc.Minimize(hc.Variable()), [True]),
    "problem: hidden": lambda: ANY.Problem(hc.Minimize(hc.Variable()), hidden=["a"]),
    "load: number": lambda: ANY.load(3),
    "load: nothing there": lambda: hc.load("/nonexistent.hc"),
    "load: folder": lambda: hc.load("/"),
    "load: device": lambda: hc.load("/dev/zero"),
    "parse: number": lambda: ANY.parse(3),
    "parse: data": lambda: ANY.parse("var x\nminimize x", data=3),
    "parse: control character": lambda: hc.parse("\x00"),
    "analyze: samples": lambda: problem().analyze(samples=-1),
    "analyze: text": lambda: ANY.Problem.analyze(problem(), samples="a"),
    "analyze: seed": lambda: problem().analyze(seed=-1),
    "compile": lambda: ANY.Problem.compile(problem(), 3),
    "budget: method": lambda: ANY.Problem.budget(problem(), 3, 1e-3, hc.Constants()),
    "budget: constants": lambda: ANY.Problem.budget(problem(), "sbl-star", 1e-3, 3),
    "function": lambda: ANY.function(3, hc.Variable()),
    "exp: text": lambda: ANY.exp("a"),
    "exp: object": lambda: ANY.exp(object()),
    "norm: kind": lambda: ANY.norm(hc.Variable(2), "a"),
    "sum: axis": lambda: hc.sum(hc.Variable(2), axis=5),
    "reshape": lambda: hc.reshape(hc.Variable(3), (2, 2)),
    "index: far": lambda: hc.Variable(3)[5],
    "index: text": lambda: ANY.Variable(3)["a"],
    "index: fraction": lambda: ANY.Variable(3)[1.5],
    "einsum": lambda: ANY.einsum(3, hc.Variable()),
    "hstack: nothing": lambda: hc.hstack([]),
    "huber": lambda: ANY.huber(hc.Variable(), "a"),
    "sum_largest": lambda: hc.sum_largest(hc.Variable(3), 10),
    "inv": lambda: hc.inv(hc.Variable((2, 3))),
    "@": lambda: hc.Variable(3) @ hc.Variable(2),
    "name": lambda: ANY.Constraint.named(hc.Variable() <= 1, 3),
    "value": lambda: setattr(hc.Variable(), "value", "a"),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_arguments_of_public_functions(call: Callable[[], Any]) -> None:
    with pytest.raises(hc.HCError) as caught:
        call()
    assert "·" not in str(caught.value)  # names that hcmodel gives to its own variables


def test_a_kink_without_a_domain_is_named_by_what_the_user_wrote() -> None:
    y = hc.Variable(name="y", bounds=(-5, -1))
    problem = hc.Problem(hc.Minimize(hc.abs(hc.log(y))))
    problem.solve()
    assert problem.status == "infeasible"
    assert "log(y) is not defined where y <= -1 holds: y must be > 0" in problem.solution.message


def test_a_fixed_variable_may_have_a_declared_map() -> None:
    x, y = hc.Variable(name="x", bounds=(2, 2)), hc.Variable(name="y", bounds=(0.5, 1))
    problem = hc.Problem(hc.Minimize(x**2 * y), hidden=[x * y, y])
    assert problem.solve() == pytest.approx(2.0)


def test_a_map_that_is_defined_nowhere_does_no_harm() -> None:
    x = hc.Variable(name="x", bounds=(-2, -1))
    problem = hc.Problem(hc.Minimize(x**2), hidden=[hc.log(x) * x])
    with pytest.warns(hc.HCWarning, match="is not defined everywhere"):
        assert problem.solve() == pytest.approx(1.0)
