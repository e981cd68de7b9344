"""Infeasible proven models: the conflict is complete, and nothing can be left out of it."""

from __future__ import annotations

import functools
import itertools
import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

import hcmodel as hc
from hcmodel.certify import conflicts
from hcmodel.expressions.variable_sets import BoxSet
from hcmodel.records import replace
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import Origin
from hcmodel.solvers.qp import ConeOptions, ConeProgram, ConeSolution, ConeStatus
from hcmodel.solving import conclude, replaced_bounds
from tests.extent import ALL
from tests.problems.examples import loaded

PROVEN = (
    *("box_volume", "cantilever", "gate_sizing", "hyperbola", "kelly", "mixed"),
    *("power_control", "tank", "transformer", "water_tank"),
)


FEASIBLE = ("optimal", "locally_optimal", "optimal_inaccurate")
ROW = re.compile(r"([\w.]+)(?:\[([\d, ]+)\])?")
BOUND = re.compile(r"(\w+)(?:\[([\d, ]+)\])? ([<>]=) .*")


def entry(index: str | None) -> tuple[int, ...]:
    return () if index is None else tuple(int(i) for i in index.split(","))


def rows_of(problem: hc.Problem, conflict: list[str]) -> list[hc.Constraint]:
    """Just the rows of a conflict."""
    found = []
    for each in conflict:
        name, index = ROW.fullmatch(each).groups()
        whole = next(row for row in problem.constraints if row.name == name)
        left, right = (side + np.zeros(whole.shape) for side in (whole.lhs, whole.rhs))
        if index is not None:
            left, right = left[entry(index)], right[entry(index)]
        found.append({"<=": left <= right, ">=": left >= right, "==": left == right}[whole.sense])
    return found


def keep_bounds(problem: hc.Problem, conflict: list[str]) -> None:
    """Widen every bound of the variables that is not in a conflict."""
    for variable in problem.variables:
        positive = bool((variable.lower > 0).all())
        lower = np.full(variable.shape, 1e-12 if positive else -1e12)
        upper = np.full(variable.shape, 1e12)
        for each in conflict:
            name, index, sign = BOUND.fullmatch(each).groups()
            if name == variable.name:
                own, ends = (lower, variable.lower) if sign == ">=" else (upper, variable.upper)
                own[entry(index)] = np.broadcast_to(ends, variable.shape)[entry(index)]
        variable.set = BoxSet(variable.name, variable.shape, lower, upper, variable.pos)


@functools.cache
def optimum(name: str) -> float:
    return loaded(name).solve()


def impossible(name: str) -> hc.Problem:
    """An example with a goal that is five percent out of reach."""
    problem = loaded(name)
    value, aim = optimum(name), problem.objective
    goal = 0.95 * value if isinstance(aim, hc.Minimize) else 1.05 * value
    row = aim.expression <= goal if isinstance(aim, hc.Minimize) else aim.expression >= goal
    return hc.Problem(aim, [*problem.constraints, row.named("goal")])


# `mixed` takes as long as the others together.
# Examples whose smaller models take most of the time.
SLOW = ("mixed", "hyperbola")


@pytest.mark.parametrize("name", [name for name in PROVEN if ALL or name not in SLOW])
def test_a_goal_out_of_reach_is_in_an_irreducible_conflict(name: str) -> None:
    problem = impossible(name)
    problem.solve()
    assert problem.status == "infeasible"
    conflict = list(problem.solution.conflict)
    assert "goal" in conflict
    bounds = [each for each in conflict if BOUND.fullmatch(each)]
    rows = [each for each in conflict if each not in bounds]
    for left_out in (None, *conflict):
        smaller = impossible(name)
        kept = rows_of(smaller, [each for each in rows if each != left_out])
        keep_bounds(smaller, [each for each in bounds if each != left_out])
        smaller = hc.Problem(hc.Minimize(0 * hc.sum(smaller.variables[0])), kept)
        smaller.solve()
        feasible = smaller.status in FEASIBLE
        assert feasible == (left_out is not None), f"{conflict} without {left_out}"


def test_entries_of_a_distribution_are_named_with_the_bound_that_they_have() -> None:
    p = hc.Variable(4, name="p", simplex=True)
    problem = hc.Problem(hc.Minimize(hc.sum_squares(p)), [(p[0] + p[1] >= 1.1).named("most")])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("most", "p[2] >= 0", "p[3] >= 0", "the set of p")


def exponentials_out_of_reach() -> hc.Problem:
    """c3 contradicts itself; the objective is a Huber function and a norm of free variables."""
    x = hc.Variable(3, name="x")
    fit = np.array([[0.63, -0.34, 0.36], [-1.63, 1.77, -0.14]]) @ x + [1.02, -0.43]
    exponents = np.array(
        [[-1.24, -0.1, -0.97], [0.49, 0.54, -1.24], [0.83, -1.4, -0.5], [-0.02, -0.13, 1.78]]
    )
    rows = [
        hc.max(np.array([[-0.05, -1.81, 0.06], [-0.71, -1.84, -2.37]]) @ x) <= 2,
        hc.sum_squares(np.array([[-1, 0.51, 1.89], [1.22, 0.4, -1.21]]) @ x) <= 5,
        hc.sum(hc.exp(exponents @ x + [-0.39, 0.48, 0.45, 1.59])) <= 5,
    ]
    return hc.Problem(hc.Minimize(hc.sum(hc.huber(fit, 0.5)) + hc.norm(fit, 1)), rows)


def largest_sums_out_of_reach() -> hc.Problem:
    """c1 and c2 contradict each other; the objective has exponentials, too."""
    x = hc.Variable(2, name="x")
    costs = np.array([[-0.26, -2.45], [0.81, -1.61], [-0.89, -0.48]]) @ x + [-0.72, 3.01, 1.04]
    exponents = np.array([[-0.46, 0.69], [2.2, -1.87], [0.98, 0.43]]) @ x + [2.51, 0.66, -1.45]
    sums = np.array([[0.89, -0.14], [-0.21, 0.34], [-1.48, -1.44]]) @ x + [-0.2, -0.07, 1.25]
    rows = [
        hc.sum(hc.exp(exponents)) <= 2,
        hc.sum_largest(sums, 2) <= 0.5,
        np.array([-1.6, 1.5]) @ x == 0.8,
    ]
    return hc.Problem(hc.Minimize(hc.sum(hc.exp(costs))), rows)


def eigenvalues_out_of_reach() -> hc.Problem:
    """c1, c3 and c4 contradict each other, by way of a free symmetric matrix."""
    x, matrix = hc.Variable(4, name="x"), hc.Variable((2, 2), name="S", symmetric=True)
    near = np.array(
        [
            [-0.03, -0.05, 0.03, -0.37],
            [-1.61, -1.16, 0.16, -0.29],
            [1.44, -0.95, 0.43, -0.29],
            [-0.73, 0.67, 1.23, 0.57],
        ]
    )
    rows = [
        hc.norm(near @ x + [-0.62, -0.57, 1.18, 0.43]) <= 0.5,
        np.array([-0.9, -0.5, 0.7, -1.6]) @ x == -0.6,
        matrix << np.array([[-1.48, -0.92], [-0.92, -3.16]]) + np.eye(2) * x[0],
        hc.trace(matrix) == 1,
    ]
    costs = hc.sum(hc.exp(near @ x)) + hc.lambda_max(matrix)
    return hc.Problem(hc.Minimize(costs), rows)


OUT_OF_REACH = {
    exponentials_out_of_reach: ("c3",),
    largest_sums_out_of_reach: ("c1", "c2"),
    eigenvalues_out_of_reach: ("c1", "c3", "c4"),
}


@pytest.mark.parametrize("model", OUT_OF_REACH)
def test_an_objective_of_free_variables_hides_no_contradiction(
    model: Callable[[], hc.Problem],
) -> None:
    """What a backend ends with has weights of 1e-10 in the cones of the objective, and no range."""
    problem = model()
    problem.solve("cone")
    assert problem.status == "infeasible"
    assert problem.solution.conflict == OUT_OF_REACH[model]


KINKS: dict[str, tuple[Any, Callable[[hc.Variable], hc.Constraint], tuple[str, ...]]] = {
    "largest entry": ((1, 3), lambda x: hc.max(x) <= 0.5, ("row", "x[1] >= 1")),
    "smallest entry": ((1, 3), lambda x: hc.min(x) >= 3.5, ("row", "x[1] <= 3")),
    "largest sum": (
        (0, None),
        lambda x: hc.sum_largest(hc.hstack([x, 2 * x]), 2) <= -1,
        ("row", "x[1] >= 0"),
    ),
    "sum of sizes": ((2, 4), lambda x: hc.norm1(x) <= 3, ("row", "x[0] >= 2", "x[1] >= 2")),
    "size": ((2, 4), lambda x: hc.norm_inf(x) <= 1, ("row", "x[1] >= 2")),
    "positive part": ((-1, 1), lambda x: hc.sum(hc.maximum(x, 0.0)) <= -1, ("row",)),
    "positive part of what is": ((1, 2), lambda x: hc.sum(hc.maximum(x, 0.0)) <= -1, ("row",)),
}


@pytest.mark.parametrize("name", KINKS)
def test_ranges_of_kinks_are_no_facts_without_the_bounds_they_come_from(name: str) -> None:
    bounds, row, expected = KINKS[name]
    x = hc.Variable(2, name="x", bounds=bounds)
    problem = hc.Problem(hc.Minimize(hc.sum(x)), [row(x).named("row")])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == expected


OBJECTIVES: dict[str, Callable[[hc.Variable], hc.Expression]] = {
    "falling": lambda x: hc.max(hc.hstack([0.7 - 1.4 * x, 2 - 0.3 * x])),
    "zero": lambda x: hc.maximum(-1 - x, 0),
}


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("beside", [True, False])
def test_a_bound_is_missing_in_no_conflict_beside_kinks_and_signs(name: str, beside: bool) -> None:
    """For x >= 0 the objective has an upper bound, and the sum of exponentials is below 1."""
    x = hc.Variable(name="x", nonneg=True)
    rows = [(0.8 * x == -1.4).named("below")]
    if beside:
        rows.append(hc.logsumexp(hc.hstack([-0.1 * x - 1.4, -1.1 * x - 1.2])) <= -0.3)
    problem = hc.Problem(hc.Minimize(OBJECTIVES[name](x)), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("below", "x >= 0")


def test_bounds_and_sets_take_part() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    product = (hc.prod(x) >= 10).named("product")
    problem = hc.Problem(hc.Minimize(x[0] / x[1]), [product, x[0] * x[1] ** 2 >= 1])
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("product", "x[0] <= 3", "x[1] <= 3")
    assert json.loads(json.dumps(problem.solution.to_json()))["conflict"] == [
        *problem.solution.conflict
    ]
    assert "x[1] <= 3" in str(problem.solution)
    P = hc.Variable((2, 2), name="P", PSD=(1e-4, 1.0))
    small = hc.Problem(hc.Minimize(hc.trace(P)), [(P[0, 0] <= 1e-6).named("entry")])
    small.solve()
    assert small.status == "infeasible"
    assert small.solution.conflict == ("entry", "the set of P")
    p = hc.Variable(3, name="p", simplex=True)
    rows = [(p[0] + p[1] >= 0.8).named("two"), (p[2] >= 0.3).named("third")]
    shares = hc.Problem(hc.Minimize(p[0]), rows)
    shares.solve()
    assert shares.solution.conflict == ("two", "third", "the set of p")


def test_rows_that_are_bounds_are_named_as_rows() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    rows = [(x[0] >= 2.5).named("low"), (hc.sum(x) <= 3).named("total"), x[1] <= 2.9]
    problem = hc.Problem(hc.Minimize(hc.sum(x)), rows)
    problem.solve()
    assert problem.solution.conflict == ("low", "total", "x[1] >= 1")


def test_the_language_counts_from_one() -> None:
    problem = hc.parse(
        "var x[3] in [0.1, 2]\nminimize sum(x)\nsubject to\n"
        "  product: x[1]*x[2] >= 9\n  pair[i in 1..2]: x[i] <= 1.9*x[3]\n"
    )
    problem.solve()
    assert problem.solution.conflict == ("product", "x[1] <= 2", "x[2] <= 2")


def test_large_differences_of_scale_do_no_harm() -> None:
    x = hc.Variable(3, name="x", bounds=(1e-9, 1e90))
    rows = [
        (x[0] * x[1] <= 1e60).named("little"),
        (x[0] >= 1e20 * x[2]).named("more"),
        (x[1] * x[2] >= 1e50).named("much"),
        (x[0] <= 1e80).named("harmless"),
    ]
    problem = hc.Problem(hc.Minimize(hc.sum(x)), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("little", "more", "much")


def test_what_weights_leave_open_is_decided_by_leaving_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a threshold above every weight but one the quick filter is wrong, and found out."""
    monkeypatch.setattr(conflicts, "RULES", conflicts.ConflictRules(involved=0.999999))
    x = hc.Variable(2, name="x", bounds=(1, 3))
    problem = hc.Problem(hc.Minimize(x[0] / x[1]), [(hc.prod(x) >= 10).named("product")])
    problem.solve()
    assert set(problem.solution.conflict) == {"product", "x[0] <= 3", "x[1] <= 3"}


def test_a_program_without_an_answer_is_no_feasible_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program of some rows fails; it has an answer when fewer of the others are left."""
    x = hc.Variable(4, name="x", pos=True)
    rows = [x[i] + 1 / x[i] <= 1 for i in range(4)]  # each alone is a contradiction
    problem = hc.Problem(hc.Minimize(hc.sum(x)), rows)
    make, count = conflicts.make_cone_backend, itertools.count()

    class FailsTwice:
        def solve(self, program: ConeProgram, options: ConeOptions) -> ConeSolution:
            solution = make().solve(program, options)
            failed = next(count) in (1, 2)  # of all four rows, there is an answer first
            return replace(solution, status=ConeStatus.FAILED) if failed else solution

    monkeypatch.setattr(conflicts, "make_cone_backend", FailsTwice)
    problem.solve("cone")
    assert problem.status == "infeasible"
    assert next(count) > 3
    assert len(problem.solution.conflict) == 1


def test_without_time_the_rows_are_named_by_their_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conflicts, "RULES", conflicts.ConflictRules(most=0))
    x = hc.Variable(3, name="x", bounds=(1e-3, 1e3))
    rows = [(hc.prod(x) >= 1000).named("product"), (hc.sum(x) <= 20).named("total")]
    problem = hc.Problem(hc.Minimize(x[0] / x[1]), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"product", "total"}


def is_feasible(matrix: np.ndarray, bounds: np.ndarray) -> bool:
    found = linprog(
        np.zeros(matrix.shape[1]), matrix, bounds, bounds=[(None, None)] * matrix.shape[1]
    )
    return found.status == 0


@pytest.mark.parametrize("seed", range(6))
def test_linear_conflicts_are_minimal_whether_rows_or_programs_show_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of random monomials, one of which contradicts a few of the others."""
    rng = np.random.default_rng(seed)
    exponents, logs = rng.normal(size=(12, 5)), rng.uniform(0.1, 1.0, size=12)
    weights = rng.uniform(0.5, 2.0, size=3 + seed % 3)
    exponents[-1] = -weights @ exponents[: weights.size]
    logs[-1] = -weights @ logs[: weights.size] - 0.5
    programs = []
    tested = conflicts._Deletion._tested
    monkeypatch.setattr(
        conflicts._Deletion, "_tested", lambda *given: programs.append(1) or tested(*given)
    )
    counts = []
    for independent in (conflicts.RULES.independent, 2.0):  # the second leaves rows out one by one
        rules = conflicts.ConflictRules(independent=independent)
        monkeypatch.setattr(conflicts, "RULES", rules)
        x = hc.Variable(5, name="x", pos=True)
        row = (hc.exp(exponents @ hc.log(x) - logs) <= 1).named("row")
        problem = hc.Problem(hc.Minimize(hc.prod(x)), [row])
        programs.clear()
        problem.solve()
        counts.append(len(programs))
        assert problem.status == "infeasible"
        members = [entry(ROW.fullmatch(each)[2])[0] for each in problem.solution.conflict]
        assert not is_feasible(exponents[members], logs[members])
        for left_out in members:
            rest = [each for each in members if each != left_out]
            assert is_feasible(exponents[rest], logs[rest])
    assert counts[0] < len(members) < counts[1]


def test_rows_that_are_nearly_dependent_are_left_out_one_by_one() -> None:
    """x <= 1 and x >= 2 contradict each other; two rows beside them contradict them as well."""
    x = hc.Variable(2, name="x", pos=True)
    rows = [
        (x[0] <= 1).named("low"),
        (x[0] >= 2).named("high"),
        (x[0] * x[1] <= 1).named("product"),
        (x[0] * x[1] >= 2).named("other"),
    ]
    problem = hc.Problem(hc.Minimize(hc.prod(x)), rows)
    problem.solve()
    assert set(problem.solution.conflict) in ({"low", "high"}, {"product", "other"})


@pytest.mark.parametrize("as_rows", [False, True])
def test_bounds_of_variables_that_a_map_replaces_are_named(as_rows: bool) -> None:
    """In shares, bounds of prices are rows of the map; without p[1] >= 0.5 there are points."""
    p = hc.Variable(2, name="p", bounds=None if as_rows else (0.5, 5))
    attraction = hc.exp(1 - p)
    shares = attraction / (1 + hc.sum(attraction))
    rows = [(shares[i] >= 0.45).named(f"share{i}") for i in range(2)] + [shares[0] <= 0.9]
    if as_rows:
        rows += [(p >= 0.5).named("low"), (p <= 5).named("high")]
    problem = hc.Problem(hc.Maximize(p @ shares), rows)
    problem.solve()
    assert problem.status == "infeasible"
    low = "low[1]" if as_rows else "p[1] >= 0.5"
    assert problem.solution.conflict == ("share0", "share1", low)


def test_a_conflict_without_bounds_of_replaced_variables_has_none() -> None:
    p = hc.Variable(2, name="p", bounds=(-5, 5))
    attraction = hc.exp(1 - p)
    shares = attraction / (1 + hc.sum(attraction))
    rows = [(shares[i] >= 0.55).named(f"share{i}") for i in range(2)]
    problem = hc.Problem(hc.Maximize(p @ shares), rows)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("share0", "share1")


def test_groups_of_cones_are_those_that_shared_unknowns_join() -> None:
    rng = np.random.default_rng(3)
    for _ in range(50):
        ones, others, links = rng.integers(1, 40, size=3)
        one, other = rng.integers(0, ones, size=links), rng.integers(0, others, size=links)
        graph = coo_array((np.ones(links), (one, ones + other)), shape=(ones + others,) * 2)
        wanted = connected_components(graph, directed=False)[1][:ones].tolist()
        labels = conflicts.joined(one, other, int(ones), int(others)).tolist()
        pairs = set(zip(labels, wanted, strict=True))
        assert len(pairs) == len(set(labels)) == len(set(wanted))


def budgeted_process(first: int = 0, **visits: Any) -> hc.Problem:
    """Occupancies as a product of visits and a policy, with a budget that no policy keeps."""
    rng, states = np.random.default_rng(3), 6
    moves = rng.dirichlet(np.ones(states), size=(states, 3))
    reward, cost = rng.random((states, 3)), rng.random((states, 3))
    policy = hc.Variable((states, 3), "policy", simplex=True)
    d = hc.Variable(states, "d", **visits)
    drawn = d[:, None] * policy
    arrivals = 1 / states + 0.95 * hc.einsum("sa,sat->t", drawn, moves)
    flow = (d[first:] == arrivals[first:]).named("flow")
    limit = (hc.sum(cost * drawn) <= 0.5).named("limit")
    return hc.Problem(hc.Maximize(hc.sum(reward * drawn)), [flow, limit])


@pytest.mark.parametrize("most", [40, 2])
def test_signs_without_which_nothing_is_proven_are_named(
    most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With d of any sign these rows have points: the conflict is one of the signs, too."""
    monkeypatch.setattr(replaced_bounds, "MOST", most)
    problem = budgeted_process(nonneg=True)
    problem.solve()
    assert problem.status == "infeasible"
    signs = [f"d[{state}] >= 0" for state in range(6)]
    assert problem.solution.conflict[-7:] == ("limit", *signs)
    assert all(each.startswith("flow[") for each in problem.solution.conflict[:-7])
    assert "flow[0]" not in problem.solution.conflict  # with which the rows imply the signs
    free = budgeted_process(first=1, bounds=(-1e3, 1e4))
    free.solve()
    assert free.status in FEASIBLE


def test_bounds_that_no_time_was_left_for_stay_in_the_conflict(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    answers = replaced_bounds._Shown.__call__

    def counted(self: Any, bounds: Any) -> bool | None:
        asked.append(len(bounds))
        return answers(self, bounds)

    monkeypatch.setattr(replaced_bounds._Shown, "__call__", counted)
    form = Forms(budgeted_process(nonneg=True).model).hidden()
    assert form is not None
    rows = (*(Origin(0, (state,)) for state in range(1, 6)), Origin(1))
    for over, programs in ((False, [0, 6, *[5] * 6]), (True, [0, 6])):
        asked.clear()
        monkeypatch.setattr(replaced_bounds, "is_over", lambda deadline, over=over: over)
        found = replaced_bounds.with_replaced_bounds(form, rows, None)
        assert found[:6] == rows
        assert [each.entry for each in found[6:]] == [(state,) for state in range(6)]
        assert asked == programs


@pytest.mark.parametrize("row", ["trace", "matrix"])
def test_other_blocks_of_a_matrix_have_no_names(row: str) -> None:
    """P == G P Gᵀ + W is a block matrix of twice the size; entries of the user's matrix are named."""
    rng, n = np.random.default_rng(1), 4
    A, B, W = rng.normal(size=(n, n)) * 0.6, rng.normal(size=(n, 2)), np.eye(n) + 0.1
    P, K = hc.Variable((n, n), "P", PSD=True), hc.Variable((2, n), "K")
    G = A + B @ K
    limit = hc.trace(P) <= 1.05 * np.trace(W) if row == "trace" else P << 1.01 * W
    covariance = (P == G @ P @ G.T + W).named("covariance")
    problem = hc.Problem(hc.Minimize(hc.trace(P)), [covariance, limit.named("limit")])
    problem.solve()
    assert problem.status == "infeasible"
    *entries, last = problem.solution.conflict
    assert last == "limit"
    assert entries
    for each in entries:
        name, index = ROW.fullmatch(each).groups()
        assert name == "covariance"
        assert max(entry(index), default=0) < n
    assert problem.solution.to_json()["conflict"] == [*entries, last]


def test_a_matrix_is_named_where_only_its_other_blocks_contradict() -> None:
    forms = Forms(budgeted_process(nonneg=True).model)
    assert conclude.named_parts(forms, [Origin(0)]) == ("flow",)
    assert conclude.named_parts(forms, [Origin(0), Origin(0, (2,))]) == ("flow[2]",)


def test_bounds_of_a_policy_that_visits_replace_are_named() -> None:
    """Without pi[1, 1] <= 0.9 the row can be satisfied."""
    moves = np.random.default_rng(0).dirichlet(np.ones(2), size=(2, 2))

    def problem(bounds: tuple[float, float] | None) -> hc.Problem:
        pi = hc.Variable((2, 2), name="pi", simplex=True, bounds=bounds)
        step = hc.einsum("sa,sat->ts", pi, moves)
        visits = hc.solve(np.eye(2) - 0.9 * step, np.ones(2) * 0.05)
        occupancy = hc.reshape(visits, (2, 1)) * pi
        row = (hc.sum(occupancy * np.eye(2)) >= 0.95).named("c")
        return hc.Problem(hc.Minimize(hc.sum(occupancy * np.array([[1, 2], [3, 4.0]]))), [row])

    bounded = problem((0.1, 0.9))
    bounded.solve()
    assert bounded.status == "infeasible"
    assert bounded.solution.conflict == ("c", "pi[1, 1] <= 0.9")
    free = problem(None)
    free.solve()
    assert free.status == "optimal"


def _demand(least: float) -> hc.Problem:
    p, d = hc.Variable(name="p", bounds=(0, 10)), hc.Variable(name="d", nonneg=True)
    law = (d == 20 * hc.exp(-0.5 * p)).named("law")
    return hc.Problem(
        hc.Maximize((p - 1) * d),
        [law, (d >= 15).named("floor"), (p >= least).named("least")],
    )


def _covariance() -> hc.Problem:
    S = hc.Variable((2, 2), name="S", PSD=(1e-3, 1e3))
    rows = [(S << 10 * np.eye(2)).named("most"), (hc.trace(hc.inv(S)) <= 0.1).named("t")]
    return hc.Problem(hc.Minimize(hc.logdet(S) + hc.trace(hc.inv(S))), rows)


def _regulator(inverse: bool) -> hc.Problem:
    """9 >= trace(M) and M >= 4 I contradict each other, M <= 10 I does not count."""
    A, B = np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [1.0]])
    M, K = hc.Variable((2, 2), name="M", PSD=True), hc.Variable((1, 2), name="K")
    F = A + B @ K
    cost = F.T @ M + M @ F + np.eye(2) + K.T @ K << 0
    rows = [
        (M << 10 * np.eye(2)).named("b"),
        (M >> 4 * np.eye(2)).named("g"),
        (hc.trace(M) <= 7).named("t"),
        cost if inverse else F @ M + M @ F.T + np.eye(2) == 0,
    ]
    return hc.Problem(hc.Minimize(hc.trace(M)), rows)


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        (_demand(1.0), {"law", "floor", "least"}),
        (_demand(0.0), None),
        (_covariance(), {"most", "t"}),
        (_regulator(inverse=True), {"g", "t"}),
        (_regulator(inverse=False), {"g", "t"}),
    ],
    ids=["demand", "feasible demand", "covariance", "cost", "covariances"],
)
def test_rows_that_have_become_sets_of_new_variables_are_named(
    problem: hc.Problem, expected: set[str] | None
) -> None:
    problem.solve()
    assert problem.solution is not None
    if expected is None:
        assert problem.status == "optimal"
    else:
        assert problem.status == "infeasible"
        assert set(problem.solution.conflict) == expected
