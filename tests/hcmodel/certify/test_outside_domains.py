"""Rows and bounds that leave no point at which every function is defined.

All answers are known by hand: a function is not defined at the only points that satisfy the rows, or the
model beside it has a point at which everything is.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.domains.nowhere import nowhere_in
from hcmodel.cli.command import main
from hcmodel.solving.solution import Solution
from tests.extent import several

Build = Callable[..., tuple[Any, ...]]
SINGULAR = np.array([[1.0, 1.0], [1.0, 1.0]])


def solved(build: Build, shape: tuple[int, ...] = (), **kind: Any) -> Solution:
    """The solution of a model of one or two variables of this kind."""
    x, y = (hc.Variable(shape, name=name, **kind) for name in "xy")
    objective, *rows = build(x, y)
    problem = hc.Problem(objective, rows)
    problem.solve()
    assert problem.solution is not None
    return problem.solution


def low(objective: Any, *rows: Any) -> tuple[Any, ...]:
    return hc.Minimize(objective), *rows


def high(objective: Any, *rows: Any) -> tuple[Any, ...]:
    return hc.Maximize(objective), *rows


# ---- a row says the value

FIXED: dict[str, Build] = {
    # these ended `unbounded` or `optimal`, which are false
    "log": lambda x, y: low(hc.log(x), x == 0),
    "log beside others": lambda x, y: low(hc.log(x) + y**2, x == 0),
    "x/x": lambda x, y: low(x / x + y**2, x == 0),
    "0/0": lambda x, y: low(y / x, x == 0, y == 0),
    "x log x": lambda x, y: low(x * hc.log(x) + y**2, x == 0),
    # these took up to 20 s, or ended at a value such as -6e31
    "log in a row": lambda x, y: low(y, x == 0, y >= hc.log(x)),
    "maximised log": lambda x, y: high(hc.log(x), x == 0),
    "y/x": lambda x, y: low(y / x, x == 0, y >= -1),
    "1/x": lambda x, y: low(1 / x, x == 0),
    "negative power": lambda x, y: low(x**-2 + y**2, x == 0),
    "negative root": lambda x, y: low(x**-0.5 + y**2, x == 0),
    "inv_pos": lambda x, y: low(hc.inv_pos(x) + y**2, x == 0),
    "sqrt": lambda x, y: low(hc.sqrt(x) + y**2, x == -1),
    "entr": lambda x, y: high(hc.entr(x) - y**2, x == -1),
    "log1p": lambda x, y: low(hc.log1p(x) + y**2, x == -1),
    "quad_over_lin": lambda x, y: low(hc.quad_over_lin(y, x), x == 0),
    "shifted": lambda x, y: low(y / (x - 1), x == 1, y >= -1),
    "a multiple": lambda x, y: low(hc.log(x) + y**2, 2 * x == 0),
    "a product": lambda x, y: low(hc.log(x * y), x == 0),
    "a function of it": lambda x, y: low(1 / hc.abs(x) + y**2, x == 0),
    "from above": lambda x, y: high(hc.log(x), x <= 0),
    "its square": lambda x, y: low(y / x, x**2 <= 0, y >= -1),
}


@pytest.mark.parametrize("name", FIXED)
def test_a_row_that_leads_out_of_a_domain_is_the_conflict(name: str) -> None:
    found = solved(FIXED[name])
    assert found.status == "infeasible"
    assert found.conflict == ("c1",)
    assert "is not defined where c1 holds" in found.message
    assert found.oracle_calls.total == 0


# ---- several rows, bounds and sets lead there together

TOGETHER: dict[str, tuple[Build, dict[str, Any], tuple[str, ...]]] = {
    "a difference": (lambda x, y: low(hc.log(x - y), x == 1, y == 1), {}, ("c1", "c2")),
    "the same difference": (lambda x, y: high(hc.log(x - y), x <= y), {}, ("c1",)),
    "a divided difference": (lambda x, y: low((x + 1) / (2 * x - 2 * y), x == y), {}, ("c1",)),
    "a chain": (lambda x, y: low(hc.log(x), x == 2 * y, y == 0, x <= 3), {}, ("c1", "c2")),
    "an opposite": (lambda x, y: low(hc.log(x), x == -y, y >= 0), {}, ("c1", "c2")),
    "a sum": (lambda x, y: low(hc.log(x) + y, x + y <= 0), {"nonneg": True}, ("c1", "y >= 0")),
    "both logarithms": (lambda x, y: high(hc.log(x) + hc.log(y), x + y <= 0), {}, ("c1",)),
    "two ends": (lambda x, y: low(1 / x, x <= 0, x >= 0), {}, ("c1", "c2")),
    "bounds": (lambda x, y: low(hc.log(x) + y), {"bounds": (0, 0)}, ("x <= 0",)),
    "an upper bound": (lambda x, y: high(hc.log(x) + y), {"bounds": (-1, 0)}, ("x <= 0",)),
    "a sum of squares": (lambda x, y: low(1 / (x**2 + y**2), x == 0, y == 0), {}, ("c1", "c2")),
    "1 log(1/0)": (lambda x, y: low(hc.rel_entr(x, y), y == 0, x >= 1), {}, ("c1", "c2")),
    "positive": (lambda x, y: low(x * y, x == 0), {"pos": True}, ("c1", "x > 0")),
    "an exponential": (lambda x, y: low(x, hc.exp(x) <= 0), {}, ("c1",)),
    "a reciprocal": (lambda x, y: low(x, 1 / x <= 0, x >= 0), {}, ("c1", "c2")),
    # the sum of rows, which a linear program finds
    "a sum of rows": (lambda x, y: high(hc.log(x), x + y <= 1, x - y <= -1), {}, ("c1", "c2")),
    "equations": (lambda x, y: low(1 / x + y, x + y == 1, x - y == -1), {}, ("c1", "c2")),
    # kinks are rows
    "a kink": (lambda x, y: low(1 / x + y**2, hc.abs(x) <= 0), {}, ("c1",)),
    "a minimum": (lambda x, y: low(-hc.log(hc.minimum(x, y)), x + y <= 0), {}, ("c1",)),
    # functions and their inverses
    "exp(x) == 1": (lambda x, y: low(hc.log(x), hc.exp(x) == 1), {}, ("c1",)),
    "log(log(x))": (lambda x, y: low(hc.log(hc.log(x)), x <= 1), {}, ("c1",)),
    "tanh(x) >= 1": (lambda x, y: high(x, hc.tanh(x) >= 1), {}, ("c1",)),
    "exp(-exp(-x)) >= 1": (lambda x, y: high(x, hc.exp(-hc.exp(-x)) >= 1), {}, ("c1",)),
    "log(1 + 1/x) <= 0": (lambda x, y: high(x, hc.log(1 + 1 / x) <= 0, x >= 1), {}, ("c1", "c2")),
    "an exponential below 0": (lambda x, y: high(y, hc.exp(x) <= y, y <= 0), {}, ("c1", "c2")),
}


@pytest.mark.parametrize("name", TOGETHER)
def test_a_conflict_has_what_it_needs_and_nothing_else(name: str) -> None:
    build, kind, conflict = TOGETHER[name]
    found = solved(build, **kind)
    assert found.status == "infeasible"
    assert found.conflict == conflict


# ---- limits that no point attains; all of these but for few ended `unbounded`

UNATTAINED: dict[str, Build] = {
    "sigmoid": lambda x, y: high(x, hc.sigmoid(x) >= 1),
    "sigmoid, minimised": lambda x, y: low(x, hc.sigmoid(x) >= 1),
    "sigmoid as an equality": lambda x, y: high(x, hc.sigmoid(3 * x + 2) == 1),
    "a multiple": lambda x, y: high(x, 0.3 * hc.sigmoid(x) >= 0.3),
    "a level": lambda x, y: high(x, hc.sigmoid(x) >= y, y >= 1),
    "a sum": lambda x, y: high(x + y, hc.sigmoid(x) + hc.sigmoid(y) >= 2),
    "a sum of tanh": lambda x, y: high(x, hc.tanh(x) + hc.tanh(2 * x) >= 2),
    "a product": lambda x, y: high(x, hc.sigmoid(x) * hc.sigmoid(y) >= 1),
    "a square": lambda x, y: high(x, hc.tanh(x) ** 2 >= 1),
    "an absolute value": lambda x, y: high(x, hc.abs(hc.tanh(x)) >= 1),
    "the larger one": lambda x, y: high(x, hc.maximum(hc.sigmoid(x), hc.sigmoid(y)) >= 1),
    "the smaller one": lambda x, y: high(x, hc.minimum(hc.sigmoid(x), x) >= 1),
    "its logarithm": lambda x, y: high(x, hc.log(hc.sigmoid(x)) >= 0),
    "written out": lambda x, y: high(x, 1 / (1 + hc.exp(-x)) >= 1),
    "a ratio of exponentials": lambda x, y: high(x, hc.exp(x) / (hc.exp(x) + hc.exp(y)) >= 1),
    "softmax": lambda x, y: high(x, hc.softmax(hc.hstack([x, y]))[0] >= 1),
    "x/(1 + x)": lambda x, y: high(x, x / (1 + x) >= 1, x >= 0),
    "x/(x + y)": lambda x, y: high(x, x / (x + y) >= 1, x >= 1, y >= 1),
    "softplus": lambda x, y: high(x, hc.softplus(x) <= x),
    "logsumexp": lambda x, y: high(x, hc.logsumexp(hc.hstack([x, y])) <= x),
    "log(1 + exp(x))": lambda x, y: high(x, hc.log(1 + hc.exp(x)) <= x),
    "logarithms": lambda x, y: high(x, hc.log(x + 1) <= hc.log(x), x >= 1),
    "roots": lambda x, y: high(x, hc.sqrt(x + 1) <= hc.sqrt(x)),
    "a root": lambda x, y: high(x, hc.sqrt(x**2 + 1) <= x),
    "a norm": lambda x, y: high(x, hc.norm(hc.hstack([x, 1])) <= x),
}


@pytest.mark.parametrize("name", UNATTAINED)
def test_what_holds_by_rounding_only_has_no_point(name: str) -> None:
    found = solved(UNATTAINED[name])
    assert found.status == "infeasible"
    assert found.conflict is not None
    assert "c1" in found.conflict


ATTAINED: dict[str, Build] = {
    "below the limit": lambda x, y: high(x, hc.sigmoid(x) >= 1 - 1e-3),
    "its other side": lambda x, y: high(x, hc.sigmoid(x) <= 1),
    "both ends": lambda x, y: high(x, hc.tanh(x) + hc.tanh(y) <= 2),
    "one of two": lambda x, y: high(x, hc.maximum(hc.sigmoid(x), y) >= 1, y == 1),
    "the same functions": lambda x, y: high(x, hc.softplus(x) <= hc.softplus(x + y), y <= 1),
    "a norm": lambda x, y: high(x, hc.norm(hc.hstack([x, y])) <= x, y == 0),
    "x/(1 + x)": lambda x, y: high(x, x / (1 + x) >= 1 - 1e-6, x >= 0),
    "a root": lambda x, y: high(x, hc.sqrt(x**2 + 1) <= x + 1),
}


@pytest.mark.parametrize("name", ATTAINED)
def test_rows_beside_a_limit_have_points(name: str) -> None:
    x, y = (hc.Variable(name=name) for name in "xy")
    objective, *rows = ATTAINED[name](x, y)
    assert nowhere_in(hc.Problem(objective, rows).forms(), every=True) is None


def test_a_row_beside_a_limit_leaves_the_model_unbounded() -> None:
    assert solved(ATTAINED["below the limit"]).status == "unbounded"


VECTORS: dict[str, tuple[Build, dict[str, Any]]] = {
    "one entry": (lambda x, y: low(hc.sum(hc.log(x)), x[0] == 0), {}),
    "one entry, alone": (lambda x, y: low(hc.log(x[0]) + x[1], x[0] == 0, x[1] >= 0), {}),
    "some entries": (lambda x, y: high(hc.sum(hc.log(x)), x[:2] <= 0, x[2] <= 1), {}),
    "the sum": (lambda x, y: high(hc.sum(hc.log(x)), hc.sum(x) <= 0), {}),
    "the norm": (lambda x, y: low(1 / hc.norm(x), x == 0), {}),
    "a face": (lambda x, y: low(hc.log(x[2]), x[0] + x[1] >= 1), {"simplex": True}),
    "a vertex": (lambda x, y: low(-hc.sum(hc.log(x)), x[0] == 1), {"simplex": True}),
    "a ratio at a vertex": (lambda x, y: low(x[0] / (x[1] + x[2]), x[0] == 1), {"simplex": True}),
    "divergence": (
        lambda x, y: low(hc.sum(hc.kl_div(np.array([0.2, 0.3, 0.5]), x)), x[0] == 0),
        {"simplex": True},
    ),
}


@pytest.mark.parametrize("name", VECTORS)
def test_single_entries_count(name: str) -> None:
    build, kind = VECTORS[name]
    found = solved(build, (3,), **kind)
    assert found.status == "infeasible"
    assert found.conflict
    assert "is not defined where" in found.message


MATRICES: dict[str, tuple[Build, dict[str, Any]]] = {
    "fixed": (lambda x, y: high(hc.logdet(x), x == SINGULAR), {"PSD": True}),
    "minimised": (lambda x, y: low(hc.logdet(x), x == SINGULAR), {"symmetric": True}),
    "by entries": (
        lambda x, y: low(hc.trace(x) - hc.logdet(x), x[0, 0] == 4, x[0, 1] == 2, x[1, 1] == 1),
        {"PSD": True},
    ),
    "diagonal": (lambda x, y: high(hc.logdet(x), x[0, 0] == 0), {"PSD": True}),
    "trace": (lambda x, y: high(hc.logdet(x), hc.trace(x) <= 0), {"PSD": True}),
    "negative": (lambda x, y: high(hc.logdet(x), x << 0), {"symmetric": True}),
    "inverse": (lambda x, y: low(hc.trace(hc.inv(x)), x == SINGULAR), {}),
    "inverse of 0": (lambda x, y: low(hc.trace(hc.inv(x)), hc.trace(x) == 0), {"PSD": True}),
    "equations": (lambda x, y: low(hc.sum(hc.solve(x, np.ones(2))), x == SINGULAR), {}),
    "fraction": (
        lambda x, y: low(hc.matrix_frac(np.array([1.0, -1.0]), x), x == SINGULAR),
        {"PSD": True},
    ),
    "largest eigenvalue": (lambda x, y: low(1 / hc.lambda_max(x), x == 0), {"symmetric": True}),
}


@pytest.mark.parametrize("name", MATRICES)
def test_singular_matrices_are_found_exactly(name: str) -> None:
    build, kind = MATRICES[name]
    found = solved(build, (2, 2), **kind)
    assert found.status == "infeasible"
    assert found.conflict
    assert "is not defined where" in found.message


# ---- models beside these, which have a point

DEFINED: dict[str, tuple[Build, dict[str, Any], float]] = {
    "sqrt at 0": (lambda x, y: low(hc.sqrt(x) + y**2, x == 0), {}, 0.0),
    "entr at 0": (lambda x, y: high(hc.entr(x) - y**2, x == 0), {}, 0.0),
    "0 log(0/y)": (lambda x, y: low(hc.rel_entr(x, y), x == 0, y >= 1), {}, 0.0),
    "divergence from 0": (lambda x, y: low(hc.kl_div(x, y), x == 0, y >= 1), {}, 1.0),
    "0/y": (lambda x, y: low(x / y, x == 0, y >= 1), {}, 0.0),
    "log of a small number": (lambda x, y: low(hc.log(x) + y**2, x == 1e-9), {}, math.log(1e-9)),
    "1/x of a small number": (lambda x, y: low(y / x, x == 1e-6, y >= -1), {}, -1e6),
    "1/x below 0": (lambda x, y: low(1 / x, x == -1), {}, -1.0),
    "x - y of a row": (lambda x, y: low(hc.log(x - y), x - y == 1), {}, 0.0),
    "sqrt of 0": (lambda x, y: low(hc.sqrt(x - y), x == y), {}, 0.0),
    "sqrt between": (lambda x, y: low(hc.sqrt(x), x == -y, y >= 0), {}, 0.0),
    "bounds at 0": (lambda x, y: low(hc.sqrt(x) + y), {"bounds": (0, 0)}, 0.0),
    "log up to 1": (lambda x, y: high(hc.log(x), x >= 0, x <= 1), {}, 0.0),
}


@pytest.mark.parametrize("name", DEFINED)
def test_edges_that_belong_to_a_domain_are_points(name: str) -> None:
    build, kind, value = DEFINED[name]
    found = solved(build, **kind)
    assert found.status == "optimal"
    assert found.value == pytest.approx(value, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("rows", [["x >= 0", "x <= 1"], ["x >= 0"], []], ids=str)
def test_a_logarithm_next_to_its_pole_is_unbounded(rows: list[str]) -> None:
    text = "var x\nminimize log(x)\n" + ("subject to\n" if rows else "")
    problem = hc.parse(text + "\n".join(f"    {row}" for row in rows))
    problem.solve()
    assert problem.status == "unbounded"


def test_rounding_in_the_data_is_not_a_contradiction() -> None:
    """0.1 + 0.2 is above 0.3 by 5e-17: sqrt(0.3 - x) is meant to be 0."""
    found = solved(lambda x, y: low(y**2 + hc.sqrt(0.3 - x), x >= 0.1 + 0.2))
    assert found.status != "infeasible"


def test_a_user_s_function_is_not_called_for_it() -> None:
    calls = []

    def square(value: Any) -> Any:
        calls.append(value)
        return value**2

    found = solved(lambda x, y: low(hc.function(square, y) + hc.log(x), x == 0))
    assert found.status == "infeasible"
    assert found.function_calls.values <= 1  # the look at the function before a solve


def test_parameters_are_read_anew() -> None:
    x = hc.Variable(name="x")
    level = hc.Parameter(name="level", value=0.0)
    problem = hc.Problem(hc.Minimize(hc.log(x)), [x == level])
    problem.solve()
    assert problem.status == "infeasible"
    assert x.value is None
    level.value = 2.0
    assert problem.solve() == pytest.approx(math.log(2.0))
    assert problem.status == "optimal"


def test_text_and_json_say_which_function(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "edge.hc"
    path.write_text("var x[2]\nminimize log(x[1]) + x[2]^2\nsubject to\n    zero: x[1] == 0\n")
    assert main(["solve", str(path), "--json"]) == 4
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "infeasible"
    assert found["conflict"] == ["zero"]
    assert found["value"] is None
    assert main(["solve", str(path)]) == 4
    text = capsys.readouterr().out
    assert "log(x[1]) is not defined where zero holds: x[1] must be > 0" in text


def test_a_relaxation_says_that_any_amount_is_enough() -> None:
    x = hc.Variable(name="x")
    problem = hc.Problem(hc.Maximize(hc.log(x)), [(x == 0).named("zero")])
    found = problem.relax()
    assert not found.is_feasible
    assert "zero leaves no point at which every function is defined" in str(found)
    assert hc.Problem(hc.Maximize(hc.sqrt(x)), [x == 0]).relax().is_feasible


EXACT: list[tuple[Any, float]] = [
    *((function, 0.0) for function in (hc.exp, hc.sqrt, hc.tanh, hc.log1p)),
    *((function, 1.0) for function in (hc.log, hc.sqrt, hc.inv_pos)),
]
"""Functions and arguments at which they are whole numbers."""


AROUND_0: list[tuple[Any, float]] = [
    (lambda d: hc.sigmoid(d[0]) + 1 / (1 + hc.exp(-d[1])), 1.0),
    (lambda d: (1 + d[0]) / (1 + d[1] ** 2), 1.0),
    (lambda d: hc.norm(hc.hstack([d[0] + 3, d[2] + 4])) - hc.sqrt((d[1] + 3) ** 2 + 16), 0.0),
    (lambda d: hc.log(1 + hc.exp(d[0])) - hc.softplus(d[1]), 0.0),
    (lambda d: hc.tanh(d[0]) * hc.tanh(d[1]) + hc.abs(hc.tanh(d[2])), 0.0),
    (lambda d: hc.logsumexp(hc.hstack([d[0], d[1]])) - hc.logsumexp(hc.hstack([d[1], d[2]])), 0.0),
]
"""Functions with limits that they do not attain, and their values at 0."""


def random_rows(
    generator: np.random.Generator, x: hc.Variable, point: Any
) -> tuple[list[Any], list[Any]]:
    """Rows in whole numbers that hold at a point, many of them as equalities, and defined functions."""
    rows, functions = [], []
    for _ in range(generator.integers(1, 6)):
        weights = generator.integers(-2, 3, size=(2, x.size)).astype(float)
        chosen = int(generator.integers(12))
        left, there = weights[0] @ x, float(weights[0] @ point)
        if chosen == 1:
            left, there = left + weights[1] @ x**2, there + float(weights[1] @ point**2)
        elif chosen == 2:
            left, there = left + x[0] * x[1], there + float(point[0] * point[1])
        elif chosen == 3:
            place = int(generator.integers(x.size))
            left, there = x[place] - 1, float(point[place]) - 1
        elif chosen == 4:
            left, there = left + hc.abs(x[1] - 1), there + abs(float(point[1]) - 1)
        elif chosen == 5:
            given = [function for function, at in EXACT if point[2] == at]
            left = left + sum(function(x[2]) for function in given)
            there = there + sum(round(float(function(point[2]).value)) for function in given)
        elif chosen > 5:
            from_here, value = AROUND_0[chosen - 6]
            sign = float(generator.choice([-1.0, 1.0]))
            left = sign * from_here(x - point) + float(generator.integers(2)) * (left - there)
            there = sign * value
        room = float(generator.integers(3))
        rows += [[left <= there + room, left >= there - room, left == there][int(room)]]
    for _ in range(generator.integers(1, 4)):
        weights = generator.integers(-2, 3, size=x.size).astype(float)
        inside, there = weights @ x, float(weights @ point)
        if there > 0:
            functions.append(hc.log(inside) if generator.integers(2) else inside**-1.5)
        if there >= 0:
            functions.append(hc.sqrt(inside) if generator.integers(2) else hc.entr(inside))
        if there:
            functions.append(1 / inside)
    return rows, functions


@pytest.mark.parametrize("seed", range(several(2, 40)))
def test_models_with_a_point_are_never_excluded(seed: int) -> None:
    """All numbers are whole, so that the point satisfies every row exactly."""
    generator = np.random.default_rng(seed)
    for _ in range(several(4, 10)):
        point = generator.integers(-2, 4, size=3).astype(float)
        low = point - generator.integers(0, 3, size=3)
        high = point + generator.integers(0, 3, size=3)
        x = hc.Variable(3, name="x", bounds=(low, high))
        rows, functions = random_rows(generator, x, point)
        objective = hc.Minimize(hc.sum(x) + sum(functions))
        forms = hc.Problem(objective, rows).forms()
        assert nowhere_in(forms, every=True) is None


@pytest.mark.parametrize("seed", range(20))
def test_rows_that_hold_an_argument_at_0_are_always_seen(seed: int) -> None:
    """The same rows, the last of which holds what a logarithm is taken of at 0."""
    generator = np.random.default_rng(seed)
    x = hc.Variable(3, name="x", bounds=(-3, 3))
    point = generator.integers(-2, 3, size=3).astype(float)
    rows, functions = random_rows(generator, x, point)
    weights = generator.integers(1, 3, size=3).astype(float)
    total = float(weights @ point)
    rows.append(weights @ x == total)
    forms = hc.Problem(
        hc.Minimize(hc.log(2 * weights @ x - 2 * total) + sum(functions)), rows
    ).forms()
    assert nowhere_in(forms, every=True) is not None


UNDERFLOWS: dict[str, Build] = {
    "exp of a number": lambda x, y: low(hc.exp(x) + hc.log(y), x == -1000, y >= 1),
    "exp below a number": lambda x, y: low(hc.exp(x) + hc.log(y), x <= -1000, y >= 1),
    "its reciprocal": lambda x, y: low(1 / hc.exp(x) + hc.log(y), x == -1000, y >= 1),
    "a power of a large number": lambda x, y: low(hc.log(x**-1.5) + y**2, x == 1e300),
    "a power of a small number": lambda x, y: low(hc.log(x**2.5) + y**2, x == 1e-200),
    "a large logarithm": lambda x, y: low(hc.sqrt(x) + y**2, hc.log(x) >= 800),
    "a small root": lambda x, y: low(hc.log(x) + y**2, hc.sqrt(x) <= 1e-170),
}


@pytest.mark.parametrize("name", UNDERFLOWS)
def test_what_leaves_the_range_of_numbers_is_not_0(name: str) -> None:
    x, y = (hc.Variable(name=name) for name in "xy")
    objective, *rows = UNDERFLOWS[name](x, y)
    assert nowhere_in(hc.Problem(objective, rows).forms(), every=True) is None


@pytest.mark.parametrize("exponent", [0.0, 1.0, 2.0, 3.0, -1.0, -2.0])
@pytest.mark.parametrize("language", [False, True])
def test_a_parameter_that_is_a_whole_number_is_an_exponent_of_negative_bases_too(
    exponent: float, language: bool
) -> None:
    """Such models were said to be infeasible, as if every base had to be positive."""
    if language:
        problem = hc.parse("param k\nvar x in [-2, -1]\nminimize x^k", data={"k": exponent})
    else:
        x, k = hc.Variable(name="x", bounds=(-2, -1)), hc.Parameter(name="k", value=exponent)
        problem = hc.Problem(hc.Minimize(x**k))
    value = problem.solve()
    assert problem.status == "optimal"
    assert value == pytest.approx(min((-1.0) ** exponent, (-2.0) ** exponent))


def test_a_new_exponent_may_leave_no_base() -> None:
    x, k = hc.Variable(name="x", bounds=(-2, -1)), hc.Parameter(name="k", value=2.0)
    problem = hc.Problem(hc.Minimize(x**k))
    assert problem.solve() == pytest.approx(1.0)
    k.value = 0.5
    problem.solve()
    assert problem.status == "infeasible"
    k.value = 3.0
    assert problem.solve() == pytest.approx(-8.0)
