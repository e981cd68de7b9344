"""Bounds from the dual of a cone program: valid for every z, tight for a dual solution.

The programs are made from a complementary pair of s in K and z in K*, so that their optimal value is
known without a solver: with b = A x + s and q = −P x − Aᵀz the point x is a minimiser.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy.linalg
from numpy.typing import NDArray
from scipy.optimize import linprog

import hcmodel as hc
from hcmodel.certify import infeasibility
from hcmodel.certify.duals import cone_duality
from hcmodel.certify.duals.cone_duality import ConeBound, cone_bound, into_dual_cone, without_small
from hcmodel.certify.duals.cone_ranges import ConePlaces, Range, ranges
from hcmodel.certify.duals.exact_duals import Shift
from hcmodel.certify.infeasibility import dual_infeasibility
from hcmodel.certify.minorants.search import Search
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.reduction import Refusal
from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.qp import ConeOptions, make_cone_backend
from hcmodel.solvers.qp.cone_program import (
    ConeBlock,
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    cone_program,
    cone_violation,
)
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

FloatArray = NDArray[np.float64]
Pair = tuple[list[ConeBlock], FloatArray, FloatArray]
Generator = np.random.Generator
REACH = 10.0
# The rounding of numpy's widest numbers, relative to that of others: on some machines it is the same.
DIGITS = float(np.finfo(np.longdouble).eps / np.finfo(float).eps)


def linear(random: Generator) -> Pair:
    """Equalities, and inequalities of which half are active."""
    active = np.arange(6) < 3
    s = np.concatenate([np.zeros(2), np.where(active, 0.0, random.uniform(1, 2, 6))])
    z = np.concatenate([random.normal(size=2), np.where(active, random.uniform(1, 2, 6), 0.0)])
    return [ConeBlock(ConeKind.ZERO, 2), ConeBlock(ConeKind.NONNEGATIVE, 6)], s, z


def second_order(random: Generator) -> Pair:
    blocks, s, z = [], [], []
    for size in (2, 3, 5):
        u = random.normal(size=size - 1)
        u /= np.linalg.norm(u)
        blocks.append(ConeBlock(ConeKind.SECOND_ORDER, size))
        s.append(random.uniform(1, 2) * np.append(1.0, u))
        z.append(random.uniform(1, 2) * np.append(1.0, -u))
    return blocks, np.concatenate(s), np.concatenate(z)


def exponential(random: Generator) -> Pair:
    s, z = [], []
    for _ in range(3):
        x, y = random.normal(), random.uniform(0.5, 2)
        r = x / y
        s.append([x, y, y * np.exp(r)])
        z.append(random.uniform(0.5, 2) * np.array([-np.exp(r), -np.exp(r) * (1 - r), 1.0]))
    return [ConeBlock(ConeKind.EXPONENTIAL, 9)], np.ravel(s), np.ravel(z)


def power(random: Generator) -> Pair:
    a, s, z = 0.3, [], []
    for _ in range(2):
        x, y = random.uniform(0.5, 2, 2)
        w = x**a * y ** (1 - a)
        s.append([x, y, w])
        z.append(random.uniform(0.5, 2) * np.array([a * w / x, (1 - a) * w / y, -1.0]))
    return [ConeBlock(ConeKind.POWER, 6, a)], np.ravel(s), np.ravel(z)


def semidefinite(random: Generator) -> Pair:
    blocks, s, z = [], [], []
    for order in (2, 4):
        basis = np.linalg.qr(random.normal(size=(order, order)))[0]
        first = np.arange(order) < order // 2
        values = random.uniform(1, 2, order)
        blocks.append(ConeBlock(ConeKind.PSD_TRIANGLE, order * (order + 1) // 2))
        s.append(to_vector(basis * np.where(first, values, 0.0) @ basis.T))
        z.append(to_vector(basis * np.where(first, 0.0, values) @ basis.T))
    return blocks, np.concatenate(s), np.concatenate(z)


PAIRS = (linear, second_order, exponential, power, semidefinite)


def made(
    kind: Callable[[Generator], Pair], seed: int, curved: bool = False
) -> tuple[ConeProgram, ConeSolution, float]:
    """A program with |x| <= REACH among its rows, its solution and its optimal value."""
    random = np.random.default_rng(seed)
    blocks, s, z = kind(random)
    size = 5
    x = random.uniform(-1, 1, size)
    matrix = np.vstack([random.normal(size=(s.size, size)), np.eye(size), -np.eye(size)])
    s, z = np.concatenate([s, REACH - x, REACH + x]), np.concatenate([z, np.zeros(2 * size)])
    root = random.normal(size=(size, 2))
    quadratic = root @ root.T if curved else np.zeros((size, size))
    constant = random.normal()
    linear_part = -quadratic @ x - matrix.T @ z
    blocks = [*blocks, ConeBlock(ConeKind.NONNEGATIVE, 2 * size)]
    program = cone_program(linear_part, matrix, matrix @ x + s, blocks, quadratic, constant)
    value = 0.5 * x @ quadratic @ x + linear_part @ x + constant
    return program, ConeSolution(ConeStatus.SOLVED, x, s, z), float(value)


def bound(program: ConeProgram, solution: ConeSolution, level: float) -> float:
    found = cone_bound(program, solution, level, np.zeros(0, dtype=bool), lambda _: False)
    return -np.inf if found is None else found.value


def size_of(program: ConeProgram, value: float) -> float:
    return 1.0 + abs(value) + float(np.abs(program.offset).sum())


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("kind", PAIRS)
def test_a_dual_solution_gives_the_optimal_value(
    kind: Callable[[Generator], Pair], curved: bool
) -> None:
    for seed in range(5):
        program, solution, value = made(kind, seed, curved)
        found = bound(program, solution, value + 1.0)
        assert found <= value + 1e-13 * size_of(program, value)
        assert found >= value - 1e-9 * size_of(program, value)


@pytest.mark.parametrize("curved", [False, True])
@pytest.mark.parametrize("kind", PAIRS)
def test_no_dual_gives_more_than_the_optimal_value(
    kind: Callable[[Generator], Pair], curved: bool
) -> None:
    random = np.random.default_rng(1)
    for seed in range(4):
        program, solution, value = made(kind, seed, curved)
        for size in (1e-12, 1e-8, 1e-4, 1.0, 100.0):
            noise = size * random.normal(size=solution.dual.size)
            other = solution.primal + size * random.normal(size=solution.primal.size)
            wrong = replace(solution, dual=solution.dual + noise, primal=other)
            found = bound(program, wrong, value + 1.0)
            assert found <= value + 1e-13 * size_of(program, value)
        assert found > -np.inf  # all unknowns have ranges


def test_small_errors_of_the_dual_cost_little() -> None:
    for kind in PAIRS:
        program, solution, value = made(kind, 0)
        noise = 1e-9 * np.random.default_rng(0).normal(size=solution.dual.size)
        found = bound(program, replace(solution, dual=solution.dual + noise), value + 1.0)
        assert found >= value - 1e-5 * size_of(program, value)


@pytest.mark.parametrize("kind", PAIRS)
def test_a_level_below_the_optimal_value_is_the_bound(kind: Callable[[Generator], Pair]) -> None:
    """Nothing is feasible below it, so that the ranges may be empty."""
    program, solution, value = made(kind, 3)
    assert bound(program, solution, value - 1.0) <= value - 1.0


def without_projection(places: ConePlaces, z: FloatArray) -> FloatArray:
    return z.copy()


def no_ranges(program: ConeProgram, *_: object, **__: object) -> Range:
    """As if the residual did not count."""
    return Range(np.zeros(program.linear.size), np.zeros(program.linear.size))


@pytest.mark.parametrize(
    ("name", "wrong"), [("into_dual_cone", without_projection), ("ranges", no_ranges)]
)
def test_a_wrong_formula_would_be_noticed(
    name: str, wrong: Callable[..., object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The noise of the tests above leads to bounds that are too high if a part is left out."""
    monkeypatch.setattr(cone_duality, name, wrong)
    random = np.random.default_rng(1)
    excess = -np.inf
    for kind in PAIRS:
        program, solution, value = made(kind, 0)
        for size in (1e-4, 1e-2, 1.0):
            noise = size * random.normal(size=solution.dual.size)
            noise[-2 * program.linear.size :] = 0.0  # weights of |x| <= REACH cost too much
            found = bound(program, replace(solution, dual=solution.dual + noise), value + 10.0)
            excess = max(excess, found - value)
    assert excess > 1e-6


@pytest.mark.parametrize("kind", PAIRS)
def test_vectors_are_moved_into_the_dual_cone(kind: Callable[[Generator], Pair]) -> None:
    program, solution, _ = made(kind, 0)
    places, random = ConePlaces.of(program), np.random.default_rng(2)
    with np.errstate(all="ignore"):
        for size in (0.0, 1e-9, 1.0):
            noise = size * random.normal(size=solution.dual.size)
            z = into_dual_cone(places, solution.dual + noise)
            assert cone_violation(program.cones, z, dual=True) <= 1e-14 * np.abs(z).max()
    unmoved = into_dual_cone(places, solution.dual)
    assert np.abs(unmoved - solution.dual).max() <= 1e-13


@pytest.mark.parametrize("kind", PAIRS)
def test_ranges_hold_the_points_of_the_level_set(kind: Callable[[Generator], Pair]) -> None:
    """The least and the largest value of each unknown, by a solver, lie within its range."""
    program, _, value = made(kind, 1)
    level = value + 0.1
    known = ranges(program, ConePlaces.of(program), level)
    assert program.constant is not None
    matrix = np.vstack([program.matrix.toarray(), program.linear])
    offset = np.append(program.offset, level - program.constant)
    cones = [*program.cones, ConeBlock(ConeKind.NONNEGATIVE, 1)]
    for j in range(program.linear.size):
        for sign in (1.0, -1.0):
            goal = sign * np.eye(program.linear.size)[j]
            end = make_cone_backend().solve(
                cone_program(goal, matrix, offset, cones), ConeOptions()
            )
            assert known.lower[j] - 1e-6 <= end.primal[j] <= known.upper[j] + 1e-6


def test_an_unknown_without_a_range_gives_no_bound_but_for_an_exact_dual() -> None:
    """minimise x s.t. x − y >= 0, x + y >= 0: the level bounds x from above only."""
    matrix = np.array([[-1.0, 1.0], [-1.0, -1.0]])
    blocks = [ConeBlock(ConeKind.NONNEGATIVE, 2)]
    program = cone_program(np.array([1.0, 0.0]), matrix, np.zeros(2), blocks, None, 0.0)
    halves = ConeSolution(ConeStatus.SOLVED, np.zeros(2), np.zeros(2), np.array([0.5, 0.5]))
    assert bound(program, halves, 1.0) <= 0.0
    unknown = replace(program, constant=None)
    assert bound(unknown, halves, 1.0) == -np.inf


def test_the_objective_bounds_the_trace_of_a_block_that_it_weighs() -> None:
    """minimise <Q, P> over P >= 0 with P[0, 1] >= 1: Q is definite, so that no entry is unbounded."""
    weights = np.array([[2.0, -0.5], [-0.5, 1.0]])
    matrix = np.vstack([-np.eye(3), [[0.0, -1.0, 0.0]]])
    blocks = [ConeBlock(ConeKind.PSD_TRIANGLE, 3), ConeBlock(ConeKind.NONNEGATIVE, 1)]
    offset = np.append(np.zeros(3), -np.sqrt(2.0))
    program = cone_program(to_vector(weights), matrix, offset, blocks, None, 0.0)
    known = ranges(program, ConePlaces.of(program), 10.0)
    largest = 10.0 / float(np.linalg.eigvalsh(weights)[0])
    assert np.isfinite(known.lower).all()
    assert (known.upper[[0, 2]] <= largest * (1 + 1e-9)).all()
    solution = make_cone_backend().solve(program, ConeOptions())
    # 2 a + b − c with a b = c², c >= 1, is least at c = 1, a = 1/√2
    value = 2 * np.sqrt(2.0) - 1
    found = bound(program, solution, value + 1)
    assert value - 1e-8 <= found <= value + 1e-14


def test_unknowns_that_no_row_bounds_alone_have_ranges_by_a_dual_inside_the_cone() -> None:
    """Occupancies of a decision process are nonnegative with Σ_a λ_s − 0.9 Σ P λ = μ."""
    random = np.random.default_rng(3)
    states, actions = 4, 3
    moves = random.dirichlet(np.ones(states), size=states * actions)
    flow = np.kron(np.eye(states), np.ones(actions)) - 0.9 * moves.T
    start, cost = np.full(states, 1 / states), random.uniform(size=states * actions)
    matrix = np.vstack([flow, -np.eye(cost.size)])
    offset = np.append(start, np.zeros(cost.size))
    blocks = [ConeBlock(ConeKind.ZERO, states), ConeBlock(ConeKind.NONNEGATIVE, cost.size)]
    program = cone_program(cost, matrix, offset, blocks, None, 0.0)
    peer = linprog(cost, A_eq=flow, b_eq=start)
    known = ranges(program, ConePlaces.of(program), 2 * peer.fun)
    assert np.isfinite(known.upper).all()
    for j in range(cost.size):
        most = linprog(-np.eye(cost.size)[j], A_ub=[cost], b_ub=2 * peer.fun, A_eq=flow, b_eq=start)
        assert known.upper[j] >= -most.fun
    solution = make_cone_backend().solve(program, ConeOptions())
    found = bound(program, solution, 2 * peer.fun)
    assert peer.fun - 1e-8 <= found <= peer.fun + 1e-12


def quadratic_with_offset() -> hc.Problem:
    x = hc.Variable(3, name="x", bounds=(-5, 5))
    return hc.Problem(hc.Minimize(hc.sum_squares(x - 1.5) + 7 + x[0]), [hc.sum(x) <= 2])


def maximised_product() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.1, 5))
    return hc.Problem(hc.Maximize(3 * x[0] * x[1] ** 2), [x[0] + 2 * x[1] <= 4])


def affine_with_offset() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0, 5))
    return hc.Problem(hc.Maximize(x[0] + 2 * x[1] - 11), [x[0] + x[1] <= 4])


def sum_of_powers() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1] + 2), [x[0] * x[1] <= 1])


def regulated() -> hc.Problem:
    return regulator(3, 1)[0]


@pytest.mark.parametrize(
    "make",
    [quadratic_with_offset, maximised_product, affine_with_offset, sum_of_powers, regulated],
)
def test_cone_programs_have_the_value_of_their_form(make: Callable[[], hc.Problem]) -> None:
    """A bound of the program is one of the form: the constants of objectives are in it."""
    forms = make().forms()
    forms.refresh()
    form = forms.hidden()
    assert form is not None
    cone, whole = form.cone, form.whole("cone")
    assert isinstance(cone, Cone)
    assert not isinstance(whole, Refusal)
    for program in (cone.after, whole.program):
        solution = make_cone_backend().solve(program, ConeOptions())
        x = solution.primal
        own = 0.5 * x @ (program.quadratic @ x) + program.linear @ x + program.constant
        there = form.oracle().at(form.domain.project(x[: form.domain.dimension]))
        assert own == pytest.approx(there.objective, rel=1e-6, abs=1e-6)


# ---- models


def regulator(order: int, inputs: int, least: float = 1e-4) -> tuple[hc.Problem, float]:
    """A linear-quadratic regulator without declared coordinates, and Riccati's value."""
    random = np.random.default_rng(5)
    a = random.normal(size=(order, order))
    a += (0.5 - np.linalg.eigvals(a).real.max()) * np.eye(order)
    b = random.normal(size=(order, inputs))
    p = hc.Variable((order, order), PSD=(least, 1e4), symmetric=True, name="P")
    k = hc.Variable((inputs, order), bounds=(-100, 100), name="K")
    closed = a + b @ k
    cost = hc.trace((np.eye(order) + k.T @ k) @ p)
    problem = hc.Problem(hc.Minimize(cost), [closed @ p + p @ closed.T + np.eye(order) == 0])
    riccati = scipy.linalg.solve_continuous_are(a, b, np.eye(order), np.eye(inputs))
    return problem, float(np.trace(riccati))


def test_a_regulator_is_certified_without_a_search(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(*_: object) -> None:
        raise AssertionError("the dual of the cone program is enough")

    monkeypatch.setattr(Search, "improve", search)
    problem, value = regulator(4, 2)
    problem.solve()
    assert problem.status == "optimal"
    assert problem.value == pytest.approx(value, rel=1e-10)
    certificate = problem.solution.certificate
    assert certificate.lower_bound <= value * (1 + 1e-13)
    assert 0 <= certificate.gap <= 1e-8 * value


def test_a_bound_of_a_matrix_that_holds_the_solution_is_not_left_out() -> None:
    free, value = regulator(3, 1)
    free.solve()
    least = 1.05 * float(np.linalg.eigvalsh(free.solution.point["P"])[0])
    held, _ = regulator(3, 1, least)
    held.solve()
    assert held.status == "optimal"
    assert held.value > value * (1 + 1e-6)
    assert float(np.linalg.eigvalsh(held.solution.point["P"])[0]) == pytest.approx(least, rel=1e-6)


@pytest.mark.parametrize("name", list(GEOMETRIC_PROGRAMS)[:6])
def test_bounds_of_geometric_programs_hold_in_the_units_of_their_objective(name: str) -> None:
    """The objective is a logarithm in the cone program."""
    problem, published = geometric_program(name)
    forms = problem.forms()
    forms.refresh()
    form = forms.hidden()
    assert form is not None
    cone = form.cone
    assert isinstance(cone, Cone)
    solution = make_cone_backend().solve(cone.after, ConeOptions())
    there = form.oracle().at(form.domain.project(solution.primal[: form.domain.dimension]))
    level = there.objective + 1e-3 * abs(there.objective)
    found = cone_bound(cone.after, solution, level, cone.logs, lambda _: False)
    assert isinstance(found, ConeBound)
    bounded = form.chain.value_back(found.value)
    value = forms.sign.value(published)
    assert bounded <= value + 1e-5 * abs(value)  # as many digits as are published
    assert bounded >= value - 1e-5 * abs(value)
    best = form.chain.value_back(there.objective)
    assert bounded <= best + 1e-9 * abs(best)


@pytest.mark.parametrize("ends", [(0.0, 1e6), (-1e6, 0.0), (-1e6, 1e6)])
def test_the_rounding_of_a_residual_counts_over_the_whole_range(ends: tuple[float, float]) -> None:
    # q + Aᵀz = 1 − 1 is 0 but for rounding, and that times 1e6 is what z does not prove
    inequality = [ConeBlock(ConeKind.NONNEGATIVE, 1)]
    none = np.zeros((1, 1))
    program = cone_program(np.ones(1), -np.ones((1, 1)), np.zeros(1), inequality, none, 0.0)
    known = Range(np.array([ends[0]]), np.array([ends[1]]))
    dual = cone_duality._Dual(program, ConePlaces.of(program), np.zeros(1), known)
    error = float(dual.rounding[0]) * 2  # of |q| + |A||z|
    assert error > 0
    assert dual.value(np.ones(1)) == pytest.approx(-1e6 * error, rel=1e-3)


def test_the_rounding_of_a_quadratic_part_is_that_of_its_terms() -> None:
    # |q| + |P x| = 1 + 2·1000, and a part of |P||x| = 2000 as small as the digits of products allow
    program = cone_program(
        np.array([-1.0]),
        -np.ones((1, 1)),
        np.zeros(1),
        [ConeBlock(ConeKind.NONNEGATIVE, 1)],
        np.array([[2.0]]),
    )
    known = Range(np.array([-1e6]), np.array([1e6]))
    dual = cone_duality._Dual(program, ConePlaces.of(program), np.array([-1e3]), known)
    assert dual.terms == pytest.approx([2001 + DIGITS * 2000])
    assert dual.slope == pytest.approx([-2001])


# ---- contradictions


def opposed(total: float) -> hc.Problem:
    """Three products of powers whose exponents cancel with irrational weights; e^total is their limit."""
    x = hc.Variable(2, name="x", pos=True)
    exponents = np.array([[1.3, 0.7], [-np.pi, np.sqrt(2)], [0.2, -1.9]])
    weights = scipy.linalg.null_space(exponents.T)[:, 0]
    weights /= weights.sum()
    assert (weights > 0).all()
    rows = hc.exp(exponents @ hc.log(x) - total) <= 1
    return hc.Problem(hc.Minimize(x[0] + x[1]), [rows])


@pytest.mark.parametrize(("total", "impossible"), [(-0.1, True), (0.1, False)])
def test_the_dual_of_a_cone_program_shows_that_there_is_no_feasible_point(
    total: float, impossible: bool
) -> None:
    """Σ w_i e_i·u = 0 has to be at most the sum of the limits; no range of u is known."""
    form = opposed(total).forms().hidden()
    assert form is not None
    found = dual_infeasibility(form, form.oracle().at(form.domain.middle()), np.inf)
    assert (found is not None) == impossible
    if found is not None:
        assert found.value > 0
        assert found.conditions == ("proven convex in log(x)",)


def test_rows_without_a_weight_are_left_out_of_a_contradiction_where_it_holds_without_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    x = hc.Variable(3, name="x", pos=True)
    rows = [x[0] + x[1] <= 1, x[0] * x[1] >= 1, x[1] + x[2] <= 2 * x[0], x[2] * x[0] <= 3]
    form = hc.Problem(hc.Minimize(1 / (x[1] * x[2])), rows).forms().hidden()
    assert form is not None
    sizes, solve = [], infeasibility.make_cone_backend().solve

    def counting(program: ConeProgram, options: Any) -> Any:
        sizes.append(program.offset.size)
        return solve(program, options)

    monkeypatch.setattr(infeasibility, "make_cone_backend", lambda: SimpleNamespace(solve=counting))
    here = form.oracle().at(form.domain.middle())
    for weights, programs in (([1.0, 1.0, 0.0, 1e-9], 1), ([1.0, 0.0, 0.0, 0.0], 2), (None, 1)):
        sizes.clear()
        given = None if weights is None else np.array(weights)
        found = dual_infeasibility(form, here, np.inf, given)
        assert found is not None
        assert found.value > 0
        assert len(sizes) == programs
    assert sizes[0] > 2 + 3 * 2  # the whole program
    found = dual_infeasibility(form, here, np.inf, np.array([1.0, 1.0, 0.0, 0.0]))
    assert sizes[-1] == 2 + 3 * 2  # two rows, and a cone for each term of the sum
    assert found is not None
    assert (found.multipliers[:2] > 0).all()
    assert found.multipliers[2:].tolist() == [0.0, 0.0]


def test_a_conflict_without_bounds_is_reported_at_once() -> None:
    problem = opposed(-0.1)
    problem.solve()
    assert problem.status == "infeasible"
    assert problem.solution is not None
    assert problem.solution.conflict == ("c1[0]", "c1[1]", "c1[2]")
    assert "then" not in problem.solution.method


def test_the_trace_of_a_block_counts_what_its_offset_adds() -> None:
    # <Q, P> <= 10 with P + I >= 0 is <Q, S> <= 10 + tr Q for S = P + I: along the least eigenvector v the
    # point S = 13/λ·vvᵀ attains it, and its P has to be in the ranges
    weights = np.array([[2.0, -0.5], [-0.5, 1.0]])
    program = cone_program(
        to_vector(weights),
        -np.eye(3),
        to_vector(np.eye(2)),
        [ConeBlock(ConeKind.PSD_TRIANGLE, 3)],
        None,
        0.0,
    )
    known = ranges(program, ConePlaces.of(program), 10.0)
    values, vectors = np.linalg.eigh(weights)
    farthest = to_vector(13 / values[0] * np.outer(vectors[:, 0], vectors[:, 0]) - np.eye(2))
    assert to_vector(weights) @ farthest == pytest.approx(10)
    assert np.isfinite(known.upper).all()
    assert (farthest <= known.upper + 1e-9).all()
    assert (farthest >= known.lower - 1e-9).all()
    assert (known.upper[[0, 2]] <= 13 / values[0]).all()


def at_least_three(quadratic: np.ndarray | None) -> ConeProgram:
    """Minimise 2x + ¼, and a quadratic term, with x >= 3."""
    return cone_program(
        np.array([2.0]),
        -np.ones((1, 1)),
        np.array([-3.0]),
        [ConeBlock(ConeKind.NONNEGATIVE, 1)],
        quadratic,
        0.25,
    )


def test_rounding_is_counted_in_every_sum_of_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    # minimise 2x with x >= 3 and x in [1, 4]: z = 1.5 proves 4.5 + 0.5·1, less rounding of 0.01 a sum and
    # 0.001 an operation, which are made so large that they show
    monkeypatch.setattr(cone_duality, "SUM_ROUNDING", 0.01)
    monkeypatch.setattr(cone_duality, "OPERATION_ROUNDING", 0.001)
    program = at_least_three(None)
    known = Range(np.array([1.0]), np.array([4.0]))
    dual = cone_duality._Dual(program, ConePlaces.of(program), np.zeros(1), known)
    error = (0.01 + 0.001 * 2) * (2 + 1.5)  # one entry of the column and the slope
    least = 0.5 - error  # at the lower end, 1
    terms = 0.25 + 4.5 + least
    assert dual.value(np.array([1.5])) == pytest.approx(terms - 0.01 * terms)


def rough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cone_duality, "SUM_ROUNDING", 0.1)
    monkeypatch.setattr(cone_duality, "OPERATION_ROUNDING", 0.05)


def test_vectors_enter_the_dual_cone_with_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    rough(monkeypatch)  # so large that each place where rounding counts shows
    # −u·exp(v/u − 1) = exp(−2), times 1 + 0.1·(2 + 1); a u that is not negative is 0, with v, w >= 0
    triples = np.array([[-1.0, 1.0, 0.0], [0.5, -1.0, -1.0], [-1.0, 1.0, 7.0]])
    assert cone_duality._exponential(triples) == pytest.approx(
        np.array([[-1.0, 1.0, 1.3 * np.exp(-2.0)], [0.0, 0.0, 0.0], [-1.0, 1.0, 7.0]])
    )
    # ‖(3, 4)‖ times 1 + 0.1 + 0.05·2
    program = cone_program(
        np.zeros(1), np.zeros((3, 1)), np.zeros(3), [ConeBlock(ConeKind.SECOND_ORDER, 3)]
    )
    for top, expected in ((1.0, 6.0), (6.5, 6.5)):
        z = np.array([top, -3.0, 4.0])
        cone_duality._second_order(ConePlaces.of(program), z)
        assert z == pytest.approx([expected, -3, 4])
    # (u/α)^α (v/(1−α))^(1−α) = (½/¼)^¼ (3/¾)^¾, and less by its own margin
    margin = 1 - cone_duality.CONE_DUALITY.power_rounding
    found = cone_duality._power(np.array([[0.5, 3.0, -9.0]]), np.array([0.25]))
    assert found == pytest.approx(np.array([[0.5, 3.0, -margin * 2**0.25 * 4**0.75]]))


def dual_of_two(lower: list[float], upper: list[float]) -> cone_duality._Dual:
    """minimise x + y with −x + 3y <= −2."""
    program = cone_program(
        np.ones(2),
        np.array([[-1.0, 3.0]]),
        np.array([-2.0]),
        [ConeBlock(ConeKind.NONNEGATIVE, 1)],
        None,
        0.0,
    )
    known = Range(np.array(lower), np.array(upper))
    return cone_duality._Dual(program, ConePlaces.of(program), np.zeros(2), known)


def test_logarithms_without_ends_are_those_of_doubles() -> None:
    reach = cone_duality.SEARCH.largest_logarithm
    dual = dual_of_two([-np.inf, -np.inf], [5.0, np.inf])
    assert dual.limit_logarithms(np.array([True, False]))
    assert dual.known.lower.tolist() == [-reach, -np.inf]
    assert dual.known.upper.tolist() == [5.0, np.inf]
    # those with ends are left alone
    bounded = dual_of_two([-2 * reach, 0.0], [2 * reach, 1.0])
    assert not bounded.limit_logarithms(np.array([True, True]))
    assert bounded.known.lower.tolist() == [-2 * reach, 0.0]


def test_a_dual_that_is_shifted_costs_what_the_shift_may_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # the residual of x, which has no range, is taken away by moving z by at most ½, times 1.1: that costs
    # 2·0.55 of the right-hand side, and 3·0.55 joins the error of the residual of y over [0, 10]
    rough(monkeypatch)
    dual = dual_of_two([-np.inf, 0.0], [np.inf, 10.0])
    seen: list[FloatArray] = []

    def shift(
        matrix: object,
        places: object,
        z: object,
        columns: object,
        residual: FloatArray,
        others: FloatArray,
    ) -> Shift:
        assert np.asarray(columns).tolist() == [0]
        assert not others.size
        seen.append(residual)
        return Shift(np.array([0]), 0.5)

    monkeypatch.setattr(cone_duality, "exact_shift", shift)
    rest, error = np.array([-0.25, 0.5]), np.array([0.01, 0.02])
    found = dual._shifted(np.ones(1), rest, error)
    assert found is not None
    assert seen[0] == pytest.approx([0.26])  # |rest| and its error
    moved = 0.02 + 3 * 0.55 * (1 + dual.rounding[1])
    assert found[0] == pytest.approx([0.0, 10 * (0.5 - moved)])
    assert found[1] == pytest.approx([-2 * 0.55])
    monkeypatch.setattr(cone_duality, "exact_shift", lambda *a: None)
    assert dual._shifted(np.ones(1), rest, error) is None
    assert dual.value(np.array([2.0])) == -np.inf  # an unknown without a range has a residual


def test_weights_that_a_backend_leaves_of_0_are_none() -> None:
    cones = (
        ConeBlock(ConeKind.NONNEGATIVE, 2),
        ConeBlock(ConeKind.SECOND_ORDER, 2),
        ConeBlock(ConeKind.EXPONENTIAL, 6),
    )
    program = cone_program(np.zeros(1), np.ones((10, 1)), np.zeros(10), cones)
    tiny = 1e-9
    z = np.array([2.0, tiny, 1.0, tiny, -tiny, tiny, tiny, -1.0, tiny, 1.0])
    expected = [2.0, 0.0, 1.0, tiny, 0.0, 0.0, 0.0, -1.0, tiny, 1.0]  # cones stay whole, or go
    assert without_small(program, z, 0).tolist() == expected
    assert without_small(program, tiny * z, 0).tolist() == (tiny * np.array(expected)).tolist()


def test_ranges_go_through_an_exponential_cone() -> None:
    # 2·exp(x/2) <= z with z <= 2e² and x >= −2: x is at most 2·log(e²) = 4
    program = cone_program(
        np.zeros(2),
        np.array([[-1.0, 0], [0, 0], [0, -1], [0, 1], [-1, 0]]),
        np.array([0.0, 2.0, 0.0, 2 * np.exp(2.0), 2.0]),
        [ConeBlock(ConeKind.EXPONENTIAL, 3), ConeBlock(ConeKind.NONNEGATIVE, 2)],
        None,
        0.0,
    )
    known = ranges(program, ConePlaces.of(program), 1.0)
    assert known.upper == pytest.approx([4.0, 2 * np.exp(2.0)], rel=1e-6)
    assert known.upper[0] >= 4.0
    assert known.lower[0] == pytest.approx(-2.0)
    assert 0 <= known.lower[1] <= 2 * np.exp(-1.0)


def test_the_rounding_of_a_quadratic_part_is_counted_in_the_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # 2x² + 2x + ¼ with x >= 3 and x in [1, 4], at x̄ = ½: the slope is 4, and −½·4·¼ = −½ is added
    monkeypatch.setattr(cone_duality, "SUM_ROUNDING", 0.01)
    monkeypatch.setattr(cone_duality, "OPERATION_ROUNDING", 0.001)
    program = at_least_three(np.array([[4.0]]))
    known = Range(np.array([1.0]), np.array([4.0]))
    dual = cone_duality._Dual(program, ConePlaces.of(program), np.array([0.5]), known)
    error = (0.01 + 0.001 * 3) * (
        2 + 2 * (1 + DIGITS) + 1.5
    )  # two entries of columns and the slope
    least = 4 - 1.5 - error
    size = 0.25 + 0.5 + 4.5 + least
    expected = 0.25 - 0.5 + 4.5 + least - (0.01 + 0.001) * size
    assert dual.value(np.array([1.5])) == pytest.approx(expected)


@pytest.mark.parametrize("size", [40, 300])
def test_a_quadratic_objective_that_is_hardly_curved_is_certified(size: int) -> None:
    """Fourth differences, whose condition is up to 1e9: no unknown has a range, but each is curved."""
    D = 2 * np.eye(size) - np.eye(size, k=1) - np.eye(size, k=-1)
    slope, x = np.random.default_rng(0).normal(size=size), hc.Variable(size, name="x")
    problem = hc.Problem(hc.Minimize(x @ (D @ D) @ x - slope @ x))
    problem.solve()
    assert problem.status == "optimal"
    root = np.linalg.solve(D, slope)  # ½ D⁻¹D⁻¹ slope is the minimum, −¼ |D⁻¹ slope|² its value
    assert problem.value == pytest.approx(-0.25 * root @ root, rel=1e-7)
    assert problem.solution is not None
    assert problem.solution.certificate.conditions == ("proven convex in x",)


@pytest.mark.parametrize(("size", "seed"), [(400, 4), (400, 7), (3000, 1)])
def test_total_variation_is_certified_by_sparse_corrections(size: int, seed: int) -> None:
    """A residual of 1e-10 times ranges of 1e4 was too much, and dense corrections too large."""
    noise = np.random.default_rng(seed).normal(size=size)
    y, x = np.cumsum(noise), hc.Variable(size, name="x")
    differences = scipy.sparse.diags_array(
        [-np.ones(size - 1), np.ones(size - 1)], offsets=[0, 1], shape=(size - 1, size)
    )
    cost = hc.sum_squares(x - y) + 5 * hc.norm(scipy.sparse.csr_array(differences) @ x, 1)
    problem = hc.Problem(hc.Minimize(cost))
    problem.solve()
    assert problem.status == "optimal"
    assert problem.solution is not None
    assert problem.solution.certificate.conditions == ("proven convex in x",)


@pytest.mark.parametrize(
    ("quadratic", "expected"),
    [
        (np.diag([2.0, 0.0]), [2.0, 0.0]),
        (np.array([[2.0, 1.0], [1.0, 2.0]]), [0.5, 0.5]),  # half of the least eigenvalue 1
        (np.array([[1.0, 1.0], [1.0, 1.0]]), [0.0, 0.0]),
    ],
)
def test_curvature_that_each_unknown_has_for_itself(
    quadratic: FloatArray, expected: list[float]
) -> None:
    found = cone_duality.least_curvature(scipy.sparse.csc_array(quadratic))
    assert found == pytest.approx(expected, rel=1e-9)
    assert np.linalg.eigvalsh(quadratic - np.diag(found))[0] >= min(
        np.diag(quadratic).min(), -1e-15
    )


def test_products_that_cancel_are_added_with_more_digits() -> None:
    P = scipy.sparse.csc_array(np.array([[1.0, -1.0, 0.0], [-1.0, 1.0, 0.0], [0.0, 0.0, 0.0]]))
    x = np.array([1e8 + 1.0, 1e8, 5.0])
    pull, sizes, value = cone_duality._products(P, x)
    assert pull.tolist() == [1.0, -1.0, 0.0]
    assert sizes == pytest.approx([1 + DIGITS * (2e8 + 1)] * 2 + [0.0])
    assert value[0] + value[1] == pytest.approx(1.0, abs=value[2])
    assert 1.0 <= sum(value) <= 1 + 1e-16 * 2e16


def test_corrections_are_weighed_by_how_far_a_dual_is_inside_its_cone() -> None:
    blocks = [
        ConeBlock(ConeKind.ZERO, 1),
        ConeBlock(ConeKind.NONNEGATIVE, 1),
        ConeBlock(ConeKind.PSD_TRIANGLE, 3),
    ]
    program = cone_program(np.zeros(1), np.zeros((5, 1)), np.zeros(5), blocks)
    places = ConePlaces.of(program)
    for free, expected in ((-5.0, 5.0), (0.1, 4.0)):  # the largest of all
        z = np.concatenate([[free, 0.25], to_vector(np.diag([4.0, -9.0]))])
        z[4] = -0.5
        root = cone_duality._RootWeights(places, z)
        assert root.weights[:2] == pytest.approx([expected, 0.25])
        # √Z = diag(2, 0): an eigenvalue below 0 has no root
        columns = np.zeros((5, 2))
        columns[2:, 1] = to_vector(np.ones((2, 2)))
        columns[1, 0] = 8.0
        found = root.applied(columns)
        assert found[1, 0] == 2.0
        assert found[2:, 1] == pytest.approx(to_vector(np.diag([4.0, 0.0])))
        assert not found[2:, 0].any()
    whole = np.concatenate([[0.0, 1.0], to_vector(np.diag([4.0, 9.0]))])
    found = cone_duality._RootWeights(places, whole).applied(columns)
    assert found[2:, 1] == pytest.approx(to_vector(np.array([[4.0, 6.0], [6.0, 9.0]])))
    assert found[:2, 1].tolist() == [0.0, 0.0]
    small = cone_duality._RootWeights(places, np.full(5, 0.0))
    assert small.weights[0] == 1.0  # at least 1


def test_a_corrected_dual_leaves_no_residual() -> None:
    program, solution, _ = made(linear, 2)
    noise = 1e-4 * np.random.default_rng(3).normal(size=solution.dual.size)
    known = Range(np.full(5, -REACH), np.full(5, REACH))
    dual = cone_duality._Dual(program, ConePlaces.of(program), solution.primal, known)
    corrected = dual.corrected(solution.dual + noise)
    assert corrected is not None
    assert np.abs(dual.residual(solution.dual + noise)).max() > 1e-5
    assert dual.residual(corrected) == pytest.approx(np.zeros(5), abs=1e-12)


def test_power_cones_are_entered_with_their_own_rounding(monkeypatch: pytest.MonkeyPatch) -> None:
    rough_options = replace(cone_duality.CONE_DUALITY, power_rounding=0.25)
    monkeypatch.setattr(cone_duality, "CONE_DUALITY", rough_options)
    # |w| <= (u/½)^½ (v/½)^½ = 2·√(uv) = 12 for u = 4, v = 9, a quarter less
    triples = np.array([[4.0, 9.0, -50.0], [4.0, 9.0, 50.0], [4.0, 9.0, 1.0], [-1.0, 9.0, 1.0]])
    found = cone_duality._power(triples, np.full(4, 0.5))
    assert found[:, 2] == pytest.approx([-9.0, 9.0, 1.0, 0.0])
    assert found[3, 0] == 0.0


def test_a_dual_that_is_no_number_gives_no_bound() -> None:
    program, solution, value = made(linear, 0)
    broken = solution.dual.copy()
    broken[0] = np.nan
    assert bound(program, replace(solution, dual=broken), value + 1.0) == -np.inf


def test_matrices_enter_the_dual_cone_with_a_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    rough(monkeypatch)
    program = cone_program(
        np.zeros(1), np.zeros((3, 1)), np.zeros(3), [ConeBlock(ConeKind.PSD_TRIANGLE, 3)]
    )
    places = ConePlaces.of(program)
    # 0.1 of the order 2 and of the largest eigenvalue 4 is what the least has to be
    moved = into_dual_cone(places, to_vector(np.diag([4.0, -1.0])))
    assert moved == pytest.approx(to_vector(np.diag([5.8, 0.8])))
    inside = to_vector(np.diag([4.0, 0.9]))
    assert into_dual_cone(places, inside) == pytest.approx(inside)


def test_the_best_of_a_dual_and_its_corrections_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Values 1, 3, 2 of the dual and of two corrections."""
    program, solution, _ = made(linear, 0)
    answers = iter([1.0, 3.0, 2.0, 1.0, 3.0, 1.0])
    dual = cone_duality._Dual(
        program, ConePlaces.of(program), solution.primal, Range(np.zeros(5), np.ones(5))
    )
    monkeypatch.setattr(dual, "value", lambda z: next(answers))
    monkeypatch.setattr(dual, "corrected", lambda z: z)
    assert cone_duality._best(dual, solution.dual, lambda value: False) == 3.0
    assert cone_duality._best(dual, solution.dual, lambda value: value >= 2) == 3.0
    assert next(answers) == 1.0  # the second correction was not asked for
