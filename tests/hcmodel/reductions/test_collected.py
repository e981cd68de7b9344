"""Geometric programs that loops write term by term are solved as sums over arrays."""

from __future__ import annotations

import operator
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.engines.registry import compile_stack
from hcmodel.expressions import posynomials
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.model import Model
from hcmodel.reductions.reduction import Duals, Origin
from hcmodel.reductions.sums.collected import Collected
from hcmodel.testing import check_reduction


def is_collected(problem: hc.Problem) -> bool:
    """Whether the terms of the problem are put in arrays."""
    found = problem.model.posynomials
    return found is not None and found.is_large


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small models are collected, too."""
    monkeypatch.setattr(posynomials, "LEAST_NODES", 0)


def program(seed: int, scalars: bool = False) -> hc.Problem:
    """Rows in all forms of geometric programs, with unknowns of all shapes."""
    generator = np.random.default_rng(seed)
    x = hc.Variable(3, name="x", bounds=(0.2, 5))
    y = hc.Variable((2, 2), name="y", pos=True)
    z = hc.Variable(name="z", bounds=(0.1, None))
    unknowns = [z, *x, *(y[i, j] for i in range(2) for j in range(2)), x[-1]]
    if scalars:
        unknowns = [hc.Variable(name=f"s{i}", bounds=(0.2, 5)) for i in range(8)]

    def term() -> Any:
        product: Any = float(generator.uniform(0.5, 2))
        for place in generator.choice(len(unknowns), 3, replace=False):
            product = product * unknowns[place] ** float(generator.uniform(-1.5, 1.5))
        return product

    def total(count: int) -> Any:
        result: Any = 0.0
        for _ in range(count):
            result = result + term()
        return result

    rows = [total(3) <= 20.0, (40 * hc.sqrt(unknowns[1]) >= total(2)).named("root"), total(2) <= 9]
    rows += [
        unknowns[2] / unknowns[4] == 1.5,
        unknowns[0] <= 4.0,
        term() * 2 <= 30 * unknowns[3] ** 2,
    ]
    rows += [each <= 8 for each in unknowns] + [each >= 0.05 for each in unknowns]
    return hc.Problem(hc.Minimize(total(4) + 1), rows)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("scalars", [False, True])
def test_both_sides_agree(scalars: bool) -> None:
    model = program(1, scalars).model
    reduction = Collected.of(model)
    assert model.posynomials is not None
    check_reduction(reduction, samples=4)
    ordered = [each for each in topological_order(model.roots) if isinstance(each, hc.Variable)]
    for found in (model.variables, reduction.after.variables):
        assert [each.name for each in found] == [each.name for each in ordered]


@pytest.mark.usefixtures("any_size")
def test_rows_between_sums_and_numbers_become_one_for_each_sense() -> None:
    model = program(1).model
    reduction = Collected.of(model)
    shapes = [(row.sense, row.shape) for row in reduction.after.constraints]
    both = [("<=", ()), (">=", ())]  # z itself is a leaf
    assert sorted(shapes) == sorted(
        [("<=", (10,)), (">=", ()), ("==", ()), ("<=", ()), ("<=", ()), (">=", (8,)), *both]
    )
    found = []
    for position, row in enumerate(reduction.after.constraints):
        for entry in np.ndindex(*row.shape):
            origin = reduction.origin(Origin(position, entry))
            assert origin is not None
            assert origin.entry == ()
            written = model.constraints[origin.position]
            assert written.sense == row.sense
            found.append(origin.position)
            for variable in model.variables:
                variable.value = np.full(variable.shape, 0.7)
            for own, other in ((row.lhs, written.lhs), (row.rhs, written.rhs)):
                value = np.broadcast_to(own.value, row.shape)[entry]
                assert value == pytest.approx(float(other.value), rel=1e-12)
    assert sorted(found) == list(range(len(model.constraints)))


@pytest.mark.usefixtures("any_size")
def test_multipliers_of_joined_rows_are_those_of_the_rows_as_written() -> None:
    model = program(1).model
    reduction = Collected.of(model)
    x = np.full(model.layout.size, 0.7)
    given = Duals(tuple(np.asarray(float(k)) for k in range(len(model.constraints))))
    there = reduction.duals(x, given)
    assert max(np.size(dual) for dual in there.rows if dual is not None) == 10
    assert [float(dual) for dual in reduction.duals_back(x, there).rows if dual is not None] == [
        float(k) for k in range(len(model.constraints))
    ]
    unknown = Duals((None, *given.rows[1:]))
    sizes = [None if dual is None else dual.size for dual in reduction.duals(x, unknown).rows]
    assert sizes.count(None) == 1  # that of the row that the first one is in


@pytest.mark.parametrize("seed", [2, 3])
def test_solutions_are_those_of_the_model_as_written(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(posynomials, "LEAST_NODES", 10_000)
    written = program(seed)
    written.solve(tol=1e-8)
    assert not is_collected(written)
    monkeypatch.setattr(posynomials, "LEAST_NODES", 0)
    collected = program(seed)
    collected.solve(tol=1e-8)
    assert is_collected(collected)
    assert collected.status == written.status == "optimal"
    assert collected.value == pytest.approx(written.value, rel=1e-7)
    assert collected.solution.duals.keys() == written.solution.duals.keys()
    for name, dual in written.solution.duals.items():
        assert collected.solution.duals[name] == pytest.approx(dual, rel=1e-4, abs=1e-5)
    assert str(collected.constraints[0]) == str(written.constraints[0])


def long(row: Callable[[Any], Any] | None = None, **options: Any) -> hc.Problem:
    """Enough terms to be collected, and one more row."""
    x = hc.Variable(4, name="x", **(options or {"pos": True}))
    total = sum((1 + k / 99) * x[k % 4] ** (k % 3 - 1.5) * x[(k + 1) % 4] for k in range(200))
    rows = [] if row is None else [row(x)]
    return hc.Problem(hc.Minimize(total), rows)


def test_a_long_loop_becomes_a_few_nodes() -> None:
    problem = long()
    assert len(topological_order(problem.model.roots)) > 1000
    assert len(Collected.of(problem.model).after.nodes) < 12
    copy = pickle.loads(pickle.dumps(problem))
    problem.solve()
    copy.solve()
    assert problem.status == copy.status == "optimal"
    assert copy.value == pytest.approx(problem.value, rel=1e-9)


@pytest.mark.parametrize(
    "row",
    [
        lambda x: x[0] - x[1] <= 1,
        lambda x: x[0] + x[1] >= 1,
        lambda x: x[0] + x[1] == 1,
        lambda x: -1.0 * x[0] <= 1,
        lambda x: hc.exp(x[0]) <= 3,
        lambda x: x[0] * x[1] <= hc.Parameter(name="cap", value=2.0),
        lambda x: x[0] ** hc.Parameter(name="power", value=2.0) <= 2.0,
        lambda x: hc.sum(x) <= 4,
        lambda x: x[:2] <= 4,
        lambda x: (x[0] + x[1]) * x[2] <= 4,
        lambda x: x[0] * 1e200 * 1e200 <= 4,
        lambda x: x[0] * x[1] <= 0,
    ],
)
def test_other_rows_leave_the_model_as_it_is(row: Callable[[Any], Any]) -> None:
    model = long(row).model
    assert model.posynomials is None
    assert Collected.of(model).after is model


def test_variables_that_may_be_zero_or_negative_leave_the_model_as_it_is() -> None:
    assert long(nonneg=True).model.posynomials is None
    assert long(bounds=(-1, 1)).model.posynomials is None
    problem = long()
    assert Model.checked(hc.Maximize(problem.objective.expression)).posynomials is None


@pytest.mark.usefixtures("any_size")
def test_shared_sums_are_not_written_out() -> None:
    x = hc.Variable(2, name="x", pos=True)
    total = x[0] + x[1]
    assert hc.Problem(hc.Minimize(total), [total <= 3]).model.posynomials is None
    assert hc.Problem(hc.Minimize(total), [x[0] + x[1] <= 3]).model.posynomials is not None


def test_a_conflict_has_the_names_of_the_rows() -> None:
    problem = long(lambda x: (x[0] * x[1] >= 4.0).named("large"), bounds=(0.1, 1.5))
    problem.solve()
    assert problem.status == "infeasible"
    assert any("large" in each for each in problem.solution.conflict)


def test_a_derivation_names_the_rows_as_written_and_needs_no_map() -> None:
    problem = program(3)
    assert is_collected(problem)
    found = problem.analyze()
    assert found.verdict == "proven"
    assert found.model is None  # logarithms: monomials are seen to be monomials
    assert found.derivation is not None
    heads = [line.split(":")[0] for line in found.derivation.splitlines() if line[:1].strip()]
    assert heads[1:] == ["c1 … c15 (10 rows)", "root", "c4", "c6", "c17 … c24 (8 rows)"]
    data = problem.get_problem_data()
    assert data.program.linear.size >= problem.model.layout.size


def test_a_conflict_between_joined_rows_has_their_own_names() -> None:
    x = hc.Variable(4, name="x", pos=True)
    rows = [
        sum((1 + k / 9) * x[(k + i) % 4] ** (k % 3 - 1.5) for k in range(9)) <= 1e4
        for i in range(8)
    ]
    rows[3:3] = [(x[0] * x[1] <= 2.0).named("small"), (2.0 * x[1] * x[0] >= 9.0).named("large")]
    problem = hc.Problem(hc.Minimize(x[2] * x[3] + 1 / x[2] + 1 / x[3]), rows)
    problem.solve()
    assert is_collected(problem)
    assert problem.status == "infeasible"
    assert problem.solution.conflict == ("small", "large")


def test_rows_of_a_conflict_are_in_the_order_in_which_they_are_written() -> None:
    """Rows of one sense are joined, so that those between them come behind."""
    x = hc.Variable(4, name="x", pos=True)
    rows = [x[k] * x[(k + 1) % 4] ** -0.5 <= 3.0 for k in range(4)]
    rows += [
        (x[0] * x[1] >= 9.0).named("large"),
        (x[0] <= 2.0).named("a"),
        (x[1] <= 2.0).named("b"),
    ]
    problem = hc.Problem(hc.Minimize(x[2] * x[3] + 1 / x[2] + 1 / x[3]), rows)
    problem.solve()
    assert is_collected(problem)
    assert problem.solution.conflict == ("large", "a", "b")


def test_a_model_of_a_readable_size_is_analysed_as_it_is_written() -> None:
    x = hc.Variable(4, name="x", pos=True)
    rows = [x[k] * x[(k + 1) % 4] <= 3.0 + k for k in range(4)]
    problem = hc.Problem(hc.Minimize(sum((1.0 + k) / x[k] for k in range(4))), rows)
    assert is_collected(problem)
    assert problem.is_hidden_convex()
    assert "x[0] * x[1]" in str(problem.analysis)
    assert "exp(" not in str(problem.analysis)
    assert "exp(" in str(long(lambda x: x[0] <= 1).analyze(samples=None))


def stacks(problem: hc.Problem) -> tuple[int, float]:
    """How many functions are not known, and how far the stack of the known ones is from what it is."""
    reduction = Collected.of(problem.model)
    roots, layout, known = reduction.after.roots, reduction.after.layout, reduction.known
    assert known is not None
    told = known.terms(roots, layout)
    point = np.random.default_rng(5).uniform(0.4, 2.0, size=layout.size)
    passes = []
    for each in (told, ()):
        stack = compile_stack(roots, layout, 1, known=each)
        stack.refresh()
        passes.append(stack.evaluate(point, "all"))
    values = [each.values for each in passes]
    slopes = [_dense(each.jacobian()) for each in passes]
    apart = [np.abs(one - two) / (1.0 + np.abs(two)) for one, two in (values, slopes)]
    return told.count(None), float(max(each.max() for each in apart))


def _dense(matrix: Any) -> np.ndarray:
    return np.asarray(matrix.toarray() if hasattr(matrix, "toarray") else matrix)


@pytest.mark.usefixtures("any_size")
@pytest.mark.parametrize("scalars", [False, True])
def test_nothing_has_to_be_recognised_in_what_was_collected(scalars: bool) -> None:
    unknown, apart = stacks(program(1, scalars))
    assert unknown == 0
    assert apart < 1e-12


@pytest.mark.parametrize("sense", ["<=", ">=", "=="])
def test_nothing_has_to_be_recognised_in_small_models_which_stay_as_they_are(sense: str) -> None:
    x, y = hc.Variable(2, name="x", bounds=(0.4, 3)), hc.Variable(name="y", pos=True)
    compared = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}[sense]
    rows = [compared(x[0] * y**0.5, 2.0), compared(1.5, x[1] / y), y <= x[0]]
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), rows)
    reduction = Collected.of(problem.model)
    assert reduction.after is problem.model
    unknown, apart = stacks(problem)
    assert unknown == 0
    assert apart < 1e-14


@pytest.mark.usefixtures("any_size")
def test_powers_of_0_and_of_1_and_repeated_factors_are_terms_like_others() -> None:
    x = hc.Variable(3, name="x", pos=True)
    cost = x[0] ** 0 * x[1] + x[0] * x[1] * x[0] ** -1 + x[2] ** 0 * 3.0 + x[0] / x[0]
    unknown, apart = stacks(hc.Problem(hc.Minimize(cost), [x[0] * x[0] >= 2.0, x[2] * x[1] >= 1]))
    assert unknown == 0
    assert apart < 1e-12


@pytest.mark.usefixtures("any_size")
def test_coefficients_far_from_1_are_looked_at_as_logarithms() -> None:
    x = hc.Variable(2, name="x", pos=True)
    rows = [1e-90 * x[0] * x[1] >= 1.0]
    unknown, apart = stacks(hc.Problem(hc.Minimize(1e-101 * x[0] + 2 * x[1]), rows))
    assert unknown == 1
    assert apart < 1e-12


def test_elasticities_of_joined_rows_are_those_of_the_rows_as_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def table(least: int) -> dict[str, float]:
        monkeypatch.setattr(posynomials, "LEAST_NODES", least)
        problem = program(2)
        problem.solve(tol=1e-8)
        assert is_collected(problem) == (least == 0)
        return {row.name: row.derivative for row in problem.elasticities().rows}

    joined, written = table(0), table(10_000)
    assert joined.keys() == written.keys()
    assert max(map(abs, written.values())) > 1e-3
    for name, slope in written.items():
        assert joined[name] == pytest.approx(slope, rel=1e-4, abs=1e-6)


def test_products_that_are_shared_are_not_written_out() -> None:
    """Squared 60 times, x has 2^60 factors."""
    x = hc.Variable(name="x", pos=True)
    power = x
    for _ in range(60):
        power = power * power
    problem = hc.Problem(hc.Minimize(power), [x >= 1])
    assert problem.model.posynomials is None
