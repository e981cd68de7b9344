"""`sbl-star` and `sbl-adals` on plain numpy oracles whose optimum is known by theory or construction."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.optimize import linprog

from hcmodel.solvers import (
    Box,
    Evaluation,
    Oracle,
    Product,
    Result,
    Termination,
    function_oracle,
    kkt,
    minimize,
)
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.qp import BACKENDS, QPSolution, QPStatus, QuadraticProgram
from hcmodel.solvers.qp.clarabel_ import ClarabelBackend
from tests.solvers.models import (
    Map,
    Model,
    hidden_convex,
    linear_rows,
    quadratic,
    separable_map,
    tank,
    triangular_map,
)

FloatArray = NDArray[np.float64]
METHODS = ["sbl-adals", "sbl-star"]
MAPS = [separable_map, triangular_map]


def solve(model: Model, method: str = "sbl-adals", **settings: Any) -> Result:
    if method == "sbl-star":
        settings.setdefault("optimal_value", model.value)
    return minimize(model.oracle, model.domain, model.start, method=method, **settings)


def found(result: Result) -> Evaluation:
    assert result.evaluation is not None
    return result.evaluation


def check_honest(result: Result, domain: Any, tolerance: float = 1e-6) -> None:
    """`CONVERGED` means a feasible KKT point, by an evaluation of our own."""
    if result.termination is Termination.CONVERGED:
        evaluation = found(result)
        assert evaluation.relative_violation <= tolerance
        assert kkt.residual(evaluation, domain, result.multipliers) <= tolerance
        assert (result.multipliers[: evaluation.inequalities] >= 0).all()


# Ex-CGP of the paper


@pytest.mark.parametrize("start", [(0.6, 1.6), (0.5, 2.5), (3.0, 3.0), (0.4, 0.4), (2.9, 0.41)])
def test_the_tank_is_solved_without_knowing_its_value(start: tuple[float, float]) -> None:
    model = tank(start)
    result = solve(model)
    assert result.termination is Termination.CONVERGED
    assert found(result).objective == pytest.approx(5.0, abs=1e-6)
    assert found(result).relative_violation <= 1e-6
    np.testing.assert_allclose(result.multipliers, [1.0], atol=1e-4)
    assert result.calls.total <= 400  # issue 2
    check_honest(result, model.domain)


@pytest.mark.parametrize("start", [(0.6, 1.6), (0.5, 2.5), (3.0, 3.0), (0.4, 0.4)])
def test_the_tank_is_solved_in_few_calls_when_its_value_is_known(
    start: tuple[float, float],
) -> None:
    result = solve(tank(start), "sbl-star")
    assert found(result).objective == pytest.approx(5.0, abs=1e-7)
    assert found(result).relative_violation <= 1e-7
    assert result.calls.total <= 60  # issue 2


@pytest.mark.parametrize("scale", [1e-6, 1e6])
@pytest.mark.parametrize("row", [1e-6, 1.0, 1e6])
def test_units_of_objective_and_row_do_not_matter(scale: float, row: float) -> None:
    model = tank(scale=scale, row=row)
    result = solve(model)
    assert found(result).objective == pytest.approx(model.value, rel=1e-6)
    assert found(result).point == pytest.approx([2.0, 0.5], rel=2e-3)
    np.testing.assert_allclose(result.multipliers, [scale / row], rtol=1e-3)
    assert result.calls.total <= 400


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_a_variable_do_not_matter(unit: float) -> None:
    plain = tank().oracle.stack

    def objective(z: FloatArray) -> tuple[float, FloatArray]:
        value, gradient = plain.objective(z / np.array([unit, 1.0]))
        return value, gradient / np.array([unit, 1.0])

    def area(z: FloatArray) -> tuple[FloatArray, FloatArray]:
        values, jacobian = plain.rows(z / np.array([unit, 1.0]))
        return values, jacobian / np.array([unit, 1.0])

    oracle = function_oracle(2, objective, inequalities=area, sizes=(1, 0))
    box = Box(0.4 * np.array([unit, 1.0]), 3.0 * np.array([unit, 1.0]))
    result = minimize(oracle, box, np.array([0.6 * unit, 1.6]))
    assert found(result).objective == pytest.approx(5.0, abs=1e-6)
    assert result.calls.total <= 400


# Random hidden-convex programs


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make_map", MAPS)
@pytest.mark.parametrize("seed", range(3))
def test_hidden_convex_programs_are_solved_globally(method: str, make_map: Map, seed: int) -> None:
    model = hidden_convex(seed, 5, make_map)
    result = solve(model, method)
    assert found(result).relative_violation <= 1e-6
    assert found(result).objective == pytest.approx(model.value, rel=2e-6, abs=2e-6)
    assert result.calls.total <= 1500
    check_honest(result, model.domain)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make_map", MAPS)
def test_equalities_in_hidden_coordinates(method: str, make_map: Map) -> None:
    model = hidden_convex(7, 6, make_map, equalities=2)
    result = solve(model, method)
    assert found(result).relative_violation <= 1e-6
    assert found(result).objective == pytest.approx(model.value, rel=2e-6, abs=2e-6)
    check_honest(result, model.domain)


# Shapes of problems


def test_equality_multipliers_have_the_sign_of_the_lagrangian() -> None:
    # min ½‖x‖² s.t. x0 + x1 == 2: x = (1, 1), x + ν(1, 1) = 0, ν = −1
    oracle = function_oracle(
        2,
        quadratic(np.zeros(2)),
        equalities=linear_rows(np.ones((1, 2)), np.array([2.0])),
        sizes=(0, 1),
    )
    result = minimize(oracle, Box.of(2), np.array([5.0, -1.0]))
    np.testing.assert_allclose(result.point, [1.0, 1.0], atol=1e-5)
    np.testing.assert_allclose(result.multipliers, [-1.0], atol=1e-4)


@pytest.mark.parametrize("method", METHODS)
def test_no_constraints_are_a_normal_case(method: str) -> None:
    centre = np.array([1.0, -2.0, 0.5])
    plain = quadratic(centre)
    oracle = function_oracle(3, lambda x: (plain(x)[0] + 1.0, plain(x)[1]))
    model = Model(oracle, Box.of(3), np.zeros(3), 1.0)
    result = solve(model, method)
    assert found(result).objective == pytest.approx(1.0, abs=1e-6)
    assert result.multipliers.size == 0
    assert result.calls.constraints == 0


def test_one_dimension_and_an_active_bound() -> None:
    oracle = function_oracle(1, quadratic(np.array([3.0])))
    result = minimize(oracle, Box.of(1, -1.0, 2.0), np.array([0.0]))
    assert result.termination is Termination.CONVERGED
    assert result.point[0] == 2.0  # on the bound, exactly


def test_a_fixed_coordinate_stays_where_it_is() -> None:
    oracle = function_oracle(2, quadratic(np.array([3.0, 3.0])))
    result = minimize(oracle, Box(np.array([1.0, 0.0]), np.array([1.0, 9.0])))
    np.testing.assert_allclose(result.point, [1.0, 3.0], atol=1e-5)


def test_a_degenerate_vertex_is_found() -> None:
    # a linear program in the plane with three rows through its optimal vertex (1, 1)
    matrix = np.array([[1.0, 2.0], [2.0, 1.0], [1.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    bound = np.array([3.0, 3.0, 2.0, 0.0, 0.0])
    cost = np.array([-1.0, -1.0])
    peer = linprog(cost, matrix, bound, bounds=[(None, None)] * 2)
    oracle = function_oracle(
        2, lambda x: (float(cost @ x), cost), inequalities=linear_rows(matrix, bound), sizes=(5, 0)
    )
    result = minimize(oracle, Box.of(2), np.array([0.3, 0.1]))
    assert result.termination is Termination.CONVERGED
    assert found(result).objective == pytest.approx(peer.fun, abs=1e-6)
    check_honest(result, Box.of(2))


@pytest.mark.parametrize("seed", range(3))
def test_random_linear_programs_agree_with_scipy(seed: int) -> None:
    generator = np.random.default_rng(seed)
    matrix, cost = generator.standard_normal((6, 4)), generator.standard_normal(4)
    bound = generator.uniform(0.1, 1.0, 6)
    peer = linprog(cost, matrix, bound, bounds=[(-1.0, 1.0)] * 4)
    oracle = function_oracle(
        4, lambda x: (float(cost @ x), cost), inequalities=linear_rows(matrix, bound), sizes=(6, 0)
    )
    result = minimize(oracle, Box.of(4, -1.0, 1.0))
    assert found(result).objective == pytest.approx(peer.fun, abs=1e-5)
    assert found(result).relative_violation <= 1e-6


def test_a_maximum_is_the_minimum_of_the_negative() -> None:
    # AM–GM: max xyz s.t. x + y + z <= 6 is 8 at (2, 2, 2), with multiplier ∂8(s/6)³/∂s = 4
    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return -float(np.prod(x)), -np.prod(x) / x

    oracle = function_oracle(
        3,
        objective,
        inequalities=linear_rows(np.ones((1, 3)), np.array([6.0])),
        sizes=(1, 0),
    )
    result = minimize(oracle, Box.of(3, 0.1, 10.0), np.array([0.5, 1.0, 4.0]))
    assert -found(result).objective == pytest.approx(8.0, rel=1e-6)
    np.testing.assert_allclose(result.multipliers, [4.0], rtol=1e-3)


def test_a_product_of_boxes_is_a_domain_like_any_other() -> None:
    model = tank()
    product = Product([Box.of(1, 0.4, 3.0), Box.of(1, 0.4, 3.0)])
    result = minimize(model.oracle, product, model.start)
    assert found(result).objective == pytest.approx(5.0, abs=1e-6)


def test_functions_undefined_in_part_of_the_box() -> None:
    # min x − y s.t. y <= log x: y = log x, and x − log x is least, 1, at x = 1. The box reaches below 0.
    def rows(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        with np.errstate(all="ignore"):
            return np.array([x[1] - np.log(x[0])]), np.array([[-1 / x[0], 1.0]])

    oracle = function_oracle(
        2,
        lambda x: (float(x[0] - x[1]), np.array([1.0, -1.0])),
        inequalities=rows,
        sizes=(1, 0),
    )
    for start in (np.array([4.0, 0.0]), np.array([-3.0, 1.0])):
        result = minimize(oracle, Box.of(2, -5.0, 5.0), start)
        assert found(result).finite
        assert found(result).objective == pytest.approx(1.0, abs=1e-5)


# Models without a solution


def test_conflicting_rows_are_named() -> None:
    # x0 + x1 >= 4 cannot hold with x0 <= 1 and x1 <= 1; the fourth row has nothing to do with it
    matrix = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 1.0], [1.0, -1.0]])
    bound = np.array([-4.0, 1.0, 1.0, 9.0])
    oracle = function_oracle(
        2, quadratic(np.zeros(2)), inequalities=linear_rows(matrix, bound), sizes=(4, 0)
    )
    result = minimize(oracle, Box.of(2, -10.0, 10.0))
    assert result.termination is Termination.INFEASIBLE_STATIONARY
    assert result.conflict is not None
    # minimax: the violation is least, ⅔, where all three are violated alike, with weights ⅓ each
    assert np.max(found(result).violations) == pytest.approx(2 / 3, rel=1e-3)
    np.testing.assert_allclose(result.conflict, [1 / 3, 1 / 3, 1 / 3, 0.0], atol=1e-3)


def test_a_row_that_conflicts_with_the_box_is_named() -> None:
    oracle = function_oracle(
        1,
        quadratic(np.zeros(1)),
        equalities=linear_rows(np.ones((1, 1)), np.array([5.0])),
        sizes=(0, 1),
    )
    result = minimize(oracle, Box.of(1, 0.0, 2.0))
    assert result.termination is Termination.INFEASIBLE_STATIONARY
    np.testing.assert_allclose(result.point, [2.0], atol=1e-3)
    np.testing.assert_allclose(result.conflict, [1.0])


def test_an_objective_without_a_bottom_is_said_to_be_unbounded() -> None:
    oracle = function_oracle(2, lambda x: (float(-x[0] + x[1] ** 2), np.array([-1.0, 2 * x[1]])))
    result = minimize(oracle, Box.of(2))
    assert result.termination is Termination.UNBOUNDED
    bounded = function_oracle(
        2,
        lambda x: (float(-x[0] + x[1] ** 2), np.array([-1.0, 2 * x[1]])),
        inequalities=linear_rows(np.array([[1.0, 0.0]]), np.array([7.0])),
        sizes=(1, 0),
    )
    result = minimize(bounded, Box.of(2), np.array([0.0, 1.0]))
    assert found(result).objective == pytest.approx(-7.0, rel=1e-6)


# A wrong optimal value


@pytest.mark.parametrize("value", [4.0, 0.0, -1e6])
def test_an_optimal_value_too_low_still_leads_to_the_optimum(value: float) -> None:
    model = tank()
    result = solve(model, "sbl-star", optimal_value=value, max_calls=600)
    assert result.termination is Termination.CONVERGED
    assert found(result).relative_violation <= 1e-6
    assert found(result).objective == pytest.approx(5.0, abs=1e-6)
    check_honest(result, model.domain)


@pytest.mark.parametrize("value", [5.5, 7.0])
def test_an_optimal_value_too_high_is_not_called_converged(value: float) -> None:
    model = tank()
    result = solve(model, "sbl-star", optimal_value=value, max_calls=600)
    assert found(result).relative_violation <= 1e-6
    assert found(result).objective <= value + 1e-6
    assert found(result).objective >= 5.0 - 1e-5
    assert result.termination is Termination.LEVEL_PASSED


# Traps


def corner_posynomial(start: float) -> Model:
    """Π x_i³ + Σ 1/x_i over [0.01, 100]⁴: by symmetry x_i = t with 3 t¹³ = 1, value t¹² + 4/t."""

    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        product = float(np.prod(x**3))
        return product + float(np.sum(1 / x)), 3 * product / x - 1 / x**2

    t = 3.0 ** (-1 / 13)
    return Model(
        function_oracle(4, objective), Box.of(4, 0.01, 100.0), np.full(4, start), t**12 + 4 / t
    )


@pytest.mark.parametrize("start", [1.0, 10.0, 100.0])
def test_a_geometric_program_is_solved_from_where_its_objective_is_huge(start: float) -> None:
    # once wrong: called converged at F1 = 8e16 (the optimum is 4.7). The step x − Π(x − ∇L) is
    # at most as long as the box, ‖∇F1‖∞ is 1e16, so their ratio is small anywhere in a bounded box; and
    # the residual in natural units is excused up to a thousandth of the objective at the start.
    model = corner_posynomial(start)
    result = solve(model)
    assert found(result).objective == pytest.approx(model.value, rel=1e-6)


@pytest.mark.parametrize("target", [1e3, 1e6, 1e9])
def test_a_far_feasible_set_is_not_called_empty(target: float) -> None:
    # once wrong: min x s.t. x >= target, x > 0, from 1. A positive coordinate may rise by a
    # factor of 4, which is less than 1e-7 of the violation: taken for a stationary point.
    oracle = function_oracle(
        1,
        lambda x: (float(x[0]), np.ones(1)),
        inequalities=lambda x: (target - x, -np.ones((1, 1))),
        sizes=(1, 0),
    )
    box = Box(np.zeros(1), np.array([np.inf]), positive=np.array([True]))
    result = minimize(oracle, box, np.ones(1), max_calls=500)
    assert found(result).relative_violation <= 1e-6
    assert found(result).objective == pytest.approx(target, rel=1e-5)


def test_one_large_slope_does_not_hide_the_other_coordinates() -> None:
    # once wrong: min 1e8 x + (y − 40)² over x >= 1 is 1e8, at y = 40. The residual is divided by
    # ‖∇F1‖∞ = 1e8, which the bound of x holds, so y = 0 passes: an error of 1.6e-5, called converged.
    def objective(x: FloatArray) -> tuple[float, FloatArray]:
        return float(1e8 * x[0] + (x[1] - 40) ** 2), np.array([1e8, 2 * (x[1] - 40)])

    box = Box(np.array([1.0, -np.inf]), np.array([10.0, np.inf]))
    result = minimize(function_oracle(2, objective), box)
    assert found(result).objective == pytest.approx(1e8, rel=1e-6)


@pytest.mark.parametrize("condition", [1.0, 10.0, 1e4])
def test_a_convex_quadratic_is_not_given_up_on_while_it_falls(condition: float) -> None:
    # once wrong: the non-monotone search jumps from 0.13 to 26.6; all steps after it count as
    # stagnant beside the old lowest point, and the run stalls at 0.05 though it still falls.
    weights = np.array([1.0, np.sqrt(condition), 1 / np.sqrt(condition)])
    oracle = function_oracle(3, quadratic(np.array([1.0, -2.0, 0.5]), weights))
    result = minimize(oracle, Box.of(3), np.zeros(3), max_calls=2000)
    assert result.termination is not Termination.STALLED
    assert found(result).objective <= 1e-3


def test_an_optimal_value_of_zero_costs_no_more_than_another() -> None:
    # the residual in natural units is relative to |F1|, which is 0 at the minimum of a sum of squares
    calls = []
    for offset in (1.0, 0.0):
        plain = quadratic(np.array([1.0, -2.0, 0.5]))
        oracle = function_oracle(3, lambda x, c=offset, f=plain: (f(x)[0] + c, f(x)[1]))
        calls.append(minimize(oracle, Box.of(3), np.zeros(3)).calls.total)
    assert calls[1] <= 1.5 * calls[0]


@pytest.mark.parametrize("bound", [1e5, 1e7, 1e10, 1e20])
def test_bounds_that_mean_no_bound_do_no_harm(bound: float) -> None:
    # once wrong: every QP is refused, and the run stalls where it started.
    oracle = function_oracle(
        2,
        quadratic(np.full(2, 3.0)),
        inequalities=linear_rows(np.ones((1, 2)), np.array([2.0])),
        sizes=(1, 0),
    )
    result = minimize(oracle, Box.of(2, -bound, bound), np.zeros(2))
    np.testing.assert_allclose(result.point, [1.0, 1.0], atol=1e-3)


def test_a_positive_coordinate_started_at_its_bound_zero_moves() -> None:
    # once wrong: it is frozen at 0, see test_domain.
    oracle = function_oracle(1, quadratic(np.array([3.0])))
    box = Box(np.zeros(1), np.array([np.inf]), positive=np.array([True]))
    result = minimize(oracle, box, np.array([-1.0]))
    np.testing.assert_allclose(result.point, [3.0], atol=1e-3)


def test_a_start_where_the_rows_have_no_slope_is_left() -> None:
    # once wrong: x y >= 1 over x, y >= 0 has no first-order descent at (0, 0), which is no local minimum
    # of the violation; the run calls it infeasible. min x + y is 2 by AM–GM.
    oracle = function_oracle(
        2,
        lambda x: (float(x.sum()), np.ones(2)),
        inequalities=lambda x: (np.array([1 - x[0] * x[1]]), -np.array([[x[1], x[0]]])),
        sizes=(1, 0),
    )
    result = minimize(oracle, Box.of(2, 0.0), np.zeros(2))
    assert found(result).objective == pytest.approx(2.0, rel=1e-5)


class Failing:
    """Clarabel, but for one program that it gives up on."""

    def __init__(self, failures: range) -> None:
        self.inner, self.failures, self.asked = ClarabelBackend(), failures, 0

    def solve(self, program: QuadraticProgram) -> QPSolution:
        self.asked += 1
        if self.asked in self.failures:
            size = program.dimension
            rows, equal = program.inequality_bound.size, program.equality_bound.size
            nothing = (np.zeros(size), np.zeros(rows), np.zeros(equal), np.zeros(size))
            return QPSolution(QPStatus.FAILED, *nothing)
        return self.inner.solve(program)


@pytest.mark.parametrize("failures", [range(1, 2), range(1, 30), range(20, 50), range(1, 10**6)])
def test_a_failing_backend_neither_crashes_nor_makes_a_model_infeasible(
    failures: range, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(BACKENDS, "failing", lambda: Failing(failures))
    model = tank((2.5, 2.5))
    result = solve(model, options={"backend": "failing"})
    assert result.multipliers.size == 1
    if len(failures) > 30:  # it never works again
        assert result.termination is Termination.BACKEND_FAILED
    else:
        assert result.termination is Termination.CONVERGED
        assert found(result).objective == pytest.approx(5.0, abs=1e-6)


@dataclass(frozen=True)
class Chain:
    """½‖x − 2‖² with rows x_i + x_{i+1} against 2, sparse.

    For an even dimension x = 1 throughout, with multipliers 1, 0, 1, …, 1 and value dimension/2.
    """

    dimension: int
    objective_size: int = 1
    kinked: bool = False

    @property
    def size(self) -> int:
        return self.dimension

    @cached_property
    def pairs(self) -> sp.csr_array:
        ones = np.ones(self.dimension - 1)
        shape = (self.dimension - 1, self.dimension)
        return sp.csr_array(sp.diags_array([ones, ones], offsets=[0, 1], shape=shape))

    def evaluate(self, x: FloatArray, part: str) -> ChainPass:
        value, gradient = quadratic(np.full(self.dimension, 2.0))(x)
        values, jacobian = (
            np.append(value, self.pairs @ x - 2.0),
            sp.vstack([[gradient], self.pairs]),
        )
        chosen = {"objective": slice(0, 1), "constraints": slice(1, None), "all": slice(None)}[part]
        return ChainPass(values[chosen], sp.csr_array(jacobian)[chosen])

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        return weights[0] * np.eye(self.dimension)


@dataclass(frozen=True)
class ChainPass:
    values: FloatArray
    matrix: sp.csr_array

    def jacobian(self) -> sp.csr_array:
        return self.matrix


@pytest.mark.parametrize("equal", [False, True])
def test_sparse_rows_are_solved_as_dense_ones_are(equal: bool) -> None:
    outer = Outer.of_rows(0, 79) if equal else Outer.of_rows(79, 0)
    result = minimize(Oracle(Chain(80), outer), Box.of(80, -5.0, 5.0), np.zeros(80))
    assert found(result).objective == pytest.approx(40.0, rel=1e-6)
    assert found(result).relative_violation <= 1e-6
