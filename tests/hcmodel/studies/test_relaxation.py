"""The least relaxation of infeasible models, against independent formulations of the same total."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import pytest
import scipy

import hcmodel as hc
from hcmodel.cli import main
from hcmodel.expressions.model import Model
from hcmodel.expressions.node import as_expression
from hcmodel.problem import Problem
from hcmodel.solving.naming import Naming
from hcmodel.studies.relaxation import Relaxation, RelaxedModel
from tests.problems.examples import data_of, loaded


def is_feasible_after(problem: hc.Problem, found: Relaxation) -> bool:
    """Whether the model with the relaxed right-hand sides has a point."""
    relaxed = Problem.of(relaxed_by(problem.model, found, 1e-5))
    relaxed.solve()
    return relaxed.status in ("optimal", "locally_optimal")


def relaxed_by(model: Model, relaxation: Relaxation, margin: float) -> Model:
    """The model with the right-hand sides that a relaxation asks for, and a margin for rounding."""
    constraints = []
    for name, constraint in zip(Naming.of(model).constraints, model.constraints, strict=True):
        given = relaxation.amounts.get(name, np.zeros(()))
        factor = relaxation.factors.get(name, np.ones(()))
        sense, rhs = constraint.sense, constraint.rhs
        if np.any(factor != 1):
            room = {"<=": 1 + margin, ">=": 1 / (1 + margin)}.get(sense, 1.0)
            rhs = rhs * (factor * room)
        elif np.any(given != 0):
            room = {"<=": margin, "<<": margin, ">=": -margin, ">>": -margin}.get(sense, 0.0)
            moved = as_expression(given + room * np.maximum(np.abs(given), 1.0))
            if constraint.is_semidefinite:
                moved = moved * np.eye(constraint.shape[0])
            rhs = rhs + moved if rhs.shape or not constraint.is_semidefinite else moved  # P >> 0
        constraints.append(constraint.like(rhs=rhs))
    return replace(model, constraints=tuple(constraints))


def linear(seed: int) -> tuple[hc.Problem, float]:
    """Random rows of three kinds; the total by scipy's linear programs."""
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=(6, 3)), generator.normal(size=6) - 1
    x = hc.Variable(3, name="x", bounds=(-1, 1))
    rows = [
        (a[:3] @ x <= b[:3]).named("upper"),
        (a[3:5] @ x >= -b[3:5]).named("lower"),
        (a[5] @ x == 5 + b[5]).named("equal"),
    ]
    signs = np.array([1, 1, 1, -1, -1])[:, None]
    limits = np.concatenate([b[:3], b[3:5]])  # −a x <= b for the rows of `lower`
    inequality = np.hstack([signs * a[:5], -np.eye(5), np.zeros((5, 2))])
    equality = np.concatenate([a[5], np.zeros(5), [-1.0, 1.0]])[None, :]
    best = scipy.optimize.linprog(
        [0] * 3 + [1] * 7,
        A_ub=inequality,
        b_ub=limits,
        A_eq=equality,
        b_eq=[5 + b[5]],
        bounds=[(-1, 1)] * 3 + [(0, None)] * 7,
    )
    return hc.Problem(hc.Minimize(hc.sum(x)), rows), float(best.fun)


def geometric() -> tuple[hc.Problem, float]:
    """Factors for rows between two posynomials; the product of all factors by CVXPY's DGP."""
    z = hc.Variable(2, name="z", pos=True)
    rows = [z[0] * z[1] >= 10, z[0] <= z[1], z[0] + z[1] <= 2 * z[0] ** 0.5, z[0] * z[1] ** 2 == 3]
    y, s, f = cp.Variable(2, pos=True), cp.Variable(4, pos=True), cp.Variable(pos=True)
    program = cp.Problem(
        cp.Minimize(cp.prod(s) * f),
        [
            *(y[0] * y[1] * s[0] >= 10, y[0] <= y[1] * s[1], s >= 1, f >= 1),
            *(y[0] + y[1] <= 2 * y[0] ** 0.5 * s[2], y[0] * y[1] ** 2 * f == 3 * s[3]),
        ],
    )
    program.solve(gp=True, solver=cp.CLARABEL)
    return hc.Problem(hc.Minimize(z[0]), rows), float(np.log(program.value))


def tank() -> tuple[hc.Problem, float]:
    """An amount under a constant limit, though the model is convex in logarithms only."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    rows = [(x[0] * x[1] <= 0.1).named("area"), (x[0] >= 2 * x[1]).named("ratio")]
    return hc.Problem(hc.Minimize(x[0] + x[1]), rows), 0.4 * 0.8 - 0.1  # y = 0.4, x = 2 y


def balls() -> tuple[hc.Problem, float]:
    x, y = hc.Variable(2, name="x"), cp.Variable(2)
    first, second = np.array([3.0, 0.0]), np.array([0.0, 2.0])
    rows = [hc.norm(x) <= 1, hc.norm(x - first) <= 1, hc.norm(x - second) <= 0.5]
    over = [
        cp.pos(cp.norm(y) - 1),
        cp.pos(cp.norm(y - first) - 1),
        cp.pos(cp.norm(y - second) - 0.5),
    ]
    program = cp.Problem(cp.Minimize(cp.sum(cp.hstack(over))))
    program.solve(solver=cp.CLARABEL)
    return hc.Problem(hc.Minimize(x[0]), rows), float(program.value)


def matrices() -> tuple[hc.Problem, float]:
    a = np.array([[2.0, 0.7], [0.7, 1.0]])
    x = hc.Variable((2, 2), name="X", symmetric=True)
    rows = [
        (x >> a).named("low"),
        (x << np.eye(2)).named("high"),
        (hc.trace(x) <= 1).named("trace"),
    ]
    y, s = cp.Variable((2, 2), symmetric=True), cp.Variable(3, nonneg=True)
    both = [y + s[0] * np.eye(2) >> a, np.eye(2) + s[1] * np.eye(2) >> y, cp.trace(y) <= 1 + s[2]]
    program = cp.Problem(cp.Minimize(cp.sum(s)), both)
    program.solve(solver=cp.CLARABEL)
    return hc.Problem(hc.Minimize(hc.trace(x)), rows), float(program.value)


def process() -> tuple[hc.Problem, float]:
    """A decision process whose limits are too low; the total by a program over occupancies."""
    problem, data = loaded("cmdp"), data_of("cmdp")
    problem.parameters["limit"].value = np.full(2, -0.05)
    transition, cost = np.array(data["transition"]), np.array(data["cost"])
    gamma, mu = float(data["gamma"]), np.array(data["mu"])
    states, actions = transition.shape[:2]
    d, s = cp.Variable((states, actions), nonneg=True), cp.Variable(2, nonneg=True)
    inflow = [cp.sum(cp.multiply(transition[:, :, t], d)) for t in range(states)]
    rows = [cp.sum(d[t]) == (1 - gamma) * mu[t] + gamma * inflow[t] for t in range(states)]
    rows += [cp.sum(cp.multiply(cost[c], d)) <= s[c] - 0.05 for c in range(2)]
    program = cp.Problem(cp.Minimize(cp.sum(s)), rows)
    program.solve(solver=cp.CLARABEL)
    return problem, float(program.value)


def regulator() -> tuple[hc.Problem, float]:
    """A regulator with too little energy: the total by a semidefinite program in (P, K P)."""
    a, b = np.array([[0.0, 1.0], [0.5, -0.2]]), np.array([[0.0], [1.0]])
    p = hc.Variable((2, 2), name="P", PSD=(1e-3, 1e3))
    k = hc.Variable((1, 2), name="K", bounds=(-50, 50))
    closed = a + b @ k
    rows = [(closed @ p + p @ closed.T + np.eye(2) == 0).named("lyapunov")]
    rows += [(hc.trace(k @ p @ k.T) <= 0.1).named("energy")]
    q, y, w = cp.Variable((2, 2), PSD=True), cp.Variable((1, 2)), cp.Variable((1, 1))
    flow = a @ q + b @ y
    program = cp.Problem(
        cp.Minimize(cp.pos(w[0, 0] - 0.1)),
        [flow + flow.T + np.eye(2) == 0, cp.bmat([[w, y], [y.T, q]]) >> 0, q << 1e3 * np.eye(2)],
    )
    program.solve(solver=cp.CLARABEL)
    return hc.Problem(hc.Minimize(hc.trace(p)), rows), float(program.value)


CASES: dict[str, Any] = {
    **{f"linear{seed}": (lambda seed=seed: linear(seed)) for seed in range(4)},
    **{each.__name__: each for each in (geometric, tank, balls, matrices, process)},
}


@pytest.mark.parametrize("name", CASES)
def test_the_total_is_that_of_an_independent_program(name: str) -> None:
    problem, total = CASES[name]()
    found = problem.relax()
    assert found.status == "optimal"
    assert found.total == pytest.approx(total, abs=1e-6 * max(1.0, total))
    assert found.total > 1e-3
    assert is_feasible_after(problem, found)


def test_rows_may_be_chosen() -> None:
    # with the equation exact, only the limit on the energy gives
    problem, total = regulator()
    found = problem.relax(rows=["energy"])
    assert found.total == pytest.approx(total, abs=1e-6 * max(1.0, total))
    assert [row.name for row in found.rows] == ["energy"]


def test_weights_move_the_burden() -> None:
    x = hc.Variable(name="x")
    problem = hc.Problem(hc.Minimize(x), [(x <= 1).named("top"), (x >= 3).named("bottom")])
    cheap = problem.relax(weights={"top": 0.5})
    assert cheap["top"].amount == pytest.approx(2)
    assert cheap.total == pytest.approx(1)
    assert problem.relax(weights={"top": 5})["bottom"].amount == pytest.approx(-2)
    assert x.value is None  # nothing of the problem is changed
    with pytest.raises(KeyError, match="rows that have to: bottom"):
        problem.relax(weights={"top": 5})["top"]


def test_a_feasible_model_gives_nothing() -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    found = hc.Problem(hc.Minimize(x), [x <= 3]).relax()
    assert found.is_feasible
    assert found.total == 0
    assert "feasible" in str(found)


def test_rows_that_may_not_give_can_leave_no_relaxation() -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    rows = [(x >= 2).named("far"), (x <= 0.5).named("near")]
    found = hc.Problem(hc.Minimize(x), rows).relax(rows="near")
    assert found.total is None
    assert "no relaxation was found" in str(found)


def test_mistakes_are_answered_in_words() -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    problem = hc.Problem(hc.Minimize(x), [(x >= 2).named("far")])
    with pytest.raises(hc.ModelError, match="no row named fra; the rows are: far"):
        problem.relax(rows=["fra"])
    with pytest.raises(hc.ModelError, match="positive number"):
        problem.relax(weights={"far": -1})
    with pytest.raises(hc.ModelError, match="has no rows"):
        hc.Problem(hc.Minimize(x)).relax()


def test_the_command_names_rows_in_the_users_units(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = tmp_path / "tank.hc"
    model.write_text(
        "var x[2] in [0.4, 3]\nminimize x[1] + x[2]\nsubject to\n"
        "    area: x[1]*x[2] <= 0.1\n    side[i in 1..2]: x[i] >= 4 - i\n"
    )
    assert main(["solve", str(model), "--relax"]) == 0
    printed = capsys.readouterr().out
    assert "side[1]" in printed
    assert "area" in printed
    assert main(["solve", str(model), "--relax", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in report["rows"]} <= {"area", "side[1]", "side[2]"}
    assert report["status"] == "optimal"


def test_one_row_is_relaxed_where_one_is_enough() -> None:
    """Relaxing x <= 0.5 by 1e-1 spares as much of the other row: all these totals are 8.5."""
    x = hc.Variable(3, name="x", bounds=(0, 1))
    rows = [(hc.sum(x) >= 10).named("need"), (x <= 0.5).named("cap")]
    found = hc.Problem(hc.Minimize(hc.sum(x)), rows).relax()
    assert [row.name for row in found.rows] == ["need"]
    assert found["need"].amount == pytest.approx(-8.5)
    assert found.total == pytest.approx(8.5)
    assert found.status == "optimal"
    assert np.array_equal(found.amounts["cap"], np.zeros(3))
    assert str(found).startswith("1 row has to be relaxed, by 8.5 in total (optimal):")


@pytest.mark.parametrize("seed", range(8))
def test_few_rows_are_relaxed_by_the_same_total(seed: int) -> None:
    """A sum that is too large by more than its parts may grow: alike for any part that grows."""
    rng = np.random.default_rng(seed)
    caps = rng.uniform(0.1, 1.0, size=6)
    x = hc.Variable(6, name="x", bounds=(0, 10))
    rows = [(hc.sum(x) >= caps.sum() + 2).named("need"), (x <= caps).named("cap")]
    found = hc.Problem(hc.Minimize(hc.sum_squares(x)), rows).relax()
    assert found.total == pytest.approx(2.0, rel=1e-6)
    assert len(found.rows) == 1


@pytest.mark.parametrize("solves", [1, 2, 3])
def test_without_time_the_first_relaxation_is_what_there_is(
    solves: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = hc.Variable(3, name="x", bounds=(0, 1))
    rows = [(hc.sum(x) >= 10).named("need"), (x <= 0.5).named("cap")]
    least, count = RelaxedModel.least, itertools.count(1)

    def limited(self: RelaxedModel, solve: Any, tolerance: float) -> Relaxation:
        return least(self, lambda model: solve(model) if next(count) <= solves else None, tolerance)

    monkeypatch.setattr(RelaxedModel, "least", limited)
    found = hc.Problem(hc.Minimize(hc.sum(x)), rows).relax(time_limit=60)
    assert found.total == pytest.approx(8.5)
    assert (len(found.rows) == 1) == (solves == 3)
