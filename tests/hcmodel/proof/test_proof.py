"""The structural proof: coordinates, normal forms, searches, and what it says where it fails."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import as_expression
from hcmodel.proof.prove import Attempt, Proof, prove
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program

EXAMPLES = Path(__file__).parents[3] / "examples"


def variable(name: str, low: Any = None, high: Any = None, shape: Any = ()) -> hc.Variable:
    return hc.Variable(shape, name=name, bounds=(low, high))


def proof_of(problem: hc.Problem, **options: Any) -> Proof:
    objective = problem.objective
    return prove(objective.expression, objective.sign, problem.constraints, **options)


def minimised(expression: Any, *constraints: Any, **options: Any) -> Proof:
    return prove(hc.Minimize(expression).expression, 1.0, constraints, **options)


def named(proof: Proof) -> dict[str, str]:
    return {variable.name: coordinate for variable, coordinate in proof.coordinates.items()}


# ---- models whose answer is known ---------------------------------------------------------------


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs_are_proven_without_a_declaration(name: str) -> None:
    problem, _ = geometric_program(name)
    proof = proof_of(problem)
    assert proof.proven, str(proof.failure)


def example(name: str) -> hc.Problem:
    data = EXAMPLES / f"{name}.json"
    return hc.load(EXAMPLES / f"{name}.hc", data=data if data.exists() else None)


@pytest.mark.parametrize(
    "name",
    [
        *("box_volume", "cantilever", "gate_sizing", "hyperbola", "kelly", "mixed", "posynomial"),
        *("power_control", "tank", "transformer", "water_tank"),
    ],
)
def test_models_in_the_language_are_proven(name: str) -> None:
    problem = example(name)
    proof = proof_of(problem)
    assert proof.proven, str(proof.failure)
    if name not in ("kelly", "power_control"):
        assert "log" in named(proof).values()


@pytest.mark.parametrize("name", ["lqr", "cmdp", "cnls", "rosenbrock"])
def test_models_with_other_maps_are_not_proven(name: str) -> None:
    problem = example(name)
    proof = proof_of(problem, source=problem.source)
    assert not proof.proven
    assert proof.failure is not None
    assert proof.failure.span is not None


def test_a_mixed_model_gets_both_kinds_of_coordinates() -> None:
    x, y = variable("x", 0.1, 10), variable("y", 0.1, 10)
    z = variable("z", -2, 2)
    proof = minimised(x * y + hc.exp(z) / x + (z - 1) ** 2, x * y**2 + z**2 <= 4)
    assert proof.proven
    assert named(proof) == {"x": "log", "y": "log", "z": "identity"}
    assert proof.objective_form == "plain"
    assert [row.form for row in proof.rows] == ["difference"]


# ---- normal forms -------------------------------------------------------------------------------


def positive(count: int) -> list[hc.Variable]:
    return [variable(name, 0.1, 10) for name in "xyzw"[:count]]


def test_logarithms_are_preferred_where_both_sides_have_them() -> None:
    x, y, z = positive(3)
    proof = minimised(x * y + 1 / z, x * y <= z, x * z == 2)
    assert proof.objective_form == "log"
    assert [row.form for row in proof.rows] == ["log", "log"]
    assert [row.equality for row in proof.rows] == [False, True]


def test_a_maximised_product_is_taken_through_its_logarithm() -> None:
    x, y = positive(2)
    proof = prove(x * y, -1.0, [x + y <= 3])
    assert proof.proven
    assert proof.objective_form == "log"


def test_a_maximised_convex_function_is_not_proven() -> None:
    x, y = positive(2)
    assert not prove(x + 1 / y, -1.0, [x * y <= 3]).proven


def moved_models() -> list[hc.Constraint]:
    x, y, z, w = positive(4)
    v, u = variable("v", 0.1, 10, 3), variable("u", 0.1, 10, (2, 3))
    p = hc.Parameter(name="p", value=-2.0)
    return [
        x * y - z <= 0,
        1 - z >= x / y,
        x * y + 3 - z <= -w - 1,
        -(z - x * y) <= 0,
        2 * (x * y - z) <= -1,
        -z <= -x * y,
        x * y - z == 0,
        (x * y - 3 * z) / 2 == 0,
        x + p * y <= 0,
        hc.sum(v) - x <= 0,
        hc.sum(v - x) <= 0,
        (v - x)[1:] <= 0,
        v * x - w <= 0,
        hc.sum(u * v, axis=1) - w * z <= 0,
        np.array([[1.0, 2.0, 0.0], [0.5, 0.0, 1.0]]) @ (v * x) - z <= 0,
        v @ np.array([1.0, 0.0, -2.0]) <= 0,
        hc.reshape(u - 1 / x, (6,)) >= 0,
        -x * y >= -z,
    ]


def proof_with(constraint: hc.Constraint) -> Proof:
    """With an objective that is convex in logarithms only."""
    variables = {*constraint.lhs.variables(), *constraint.rhs.variables()}
    product, reciprocals = as_expression(1.0), as_expression(0.0)
    for each in variables:
        product = product * hc.prod(each)
        reciprocals = reciprocals + hc.sum(1 / each)
    return minimised(product + reciprocals, constraint)


@pytest.mark.parametrize("constraint", moved_models(), ids=str)
def test_terms_are_moved_across_until_logarithms_fit(constraint: hc.Constraint) -> None:
    """Each is a posynomial against a monomial, whatever the sides it was written on."""
    proof = proof_with(constraint)
    assert proof.proven, str(proof.failure)
    (row,) = proof.rows
    assert row.form == "log"


@pytest.mark.parametrize("constraint", moved_models(), ids=str)
def test_a_normal_form_is_the_constraint_as_written(constraint: hc.Constraint) -> None:
    variables = {*constraint.lhs.variables(), *constraint.rhs.variables()}
    (row,) = proof_with(constraint).rows
    assert row.equality == (constraint.sense == "==")
    rng = np.random.default_rng(3)
    for _ in range(5):
        for each in variables:
            each.value = rng.uniform(0.5, 3, each.shape)
        written = constraint.lhs.value - constraint.rhs.value
        if constraint.sense == ">=":
            written = -written
        found = np.broadcast_to(row.left.value - row.right.value, constraint.shape)
        assert found == pytest.approx(np.broadcast_to(written, constraint.shape), rel=1e-12)
        assert (row.left.value > 0).all()
        assert (row.right.value > 0).all()


def test_affine_equalities_stay_differences() -> None:
    x, y = variable("x"), variable("y", 0.1, 10)
    proof = minimised((x - 1) ** 2 + y, x + 2 * y == 3)
    assert proof.proven
    assert proof.rows[0].form == "difference"


# ---- signs, bounds, parameters ------------------------------------------------------------------


def test_bounds_prove_that_a_difference_is_positive() -> None:
    x, y = variable("x", 0.1, 0.9), variable("y", 0.1, 1)
    assert minimised(1 / (x * (1 - x * y))).proven
    wider = variable("x", 0.1, 1.1)
    assert not minimised(1 / (wider * (1 - wider * y))).proven


def test_a_bound_at_zero_does_not_give_logarithms() -> None:
    x, y = variable("x", 0, 1), variable("y", 0, 1)
    assert not minimised(x * y).proven
    positive_x, positive_y = hc.Variable(name="x", pos=True), hc.Variable(name="y", pos=True)
    assert minimised(positive_x * positive_y + 1 / positive_x).proven


def test_a_proof_is_for_the_parameters_current_values() -> None:
    x, y = positive(2)
    k = hc.Parameter(name="k", value=1.0)
    assert minimised(k * x * y + 1 / x).proven
    k.value = -1.0
    assert not minimised(k * x * y + 1 / x).proven
    unset = hc.Parameter(name="k", nonneg=True)
    assert minimised(unset * x * y + 1 / x).proven


def test_undefined_constants_prove_nothing() -> None:
    x = variable("x", 0.1, 2)
    assert not minimised(x + hc.log(hc.Parameter(name="k", value=-1.0))).proven


def test_a_sum_of_no_entries_is_not_positive() -> None:
    x = variable("x", 0.1, 2, 3)
    nothing = hc.sum(x[0:0])
    assert not minimised(x[0] * x[1], nothing * x[0] >= 1e-3 * x[1]).proven
    assert minimised(x[0] * x[1] + nothing, hc.prod(x[0:0]) * x[0] >= 1e-3 * x[1]).proven


def test_simplices_and_matrices_keep_their_own_coordinates() -> None:
    policy = hc.Variable(3, name="policy", simplex=True)
    assert named(minimised(hc.sum(hc.kl_div(policy, 0.3)))) == {"policy": "identity"}
    X = hc.Variable((2, 2), name="X", PSD=0.1)
    y = variable("y", 0.1, 2)
    proof = minimised(hc.trace(hc.inv(X)) * y + 1 / y, hc.trace(X) <= 4)
    assert named(proof) == {"X": "identity", "y": "log"}
    assert proof.proven


def test_coordinates_can_be_pinned() -> None:
    x, y = positive(2)
    assert named(minimised(x + 1 / y, fixed={x: "log"})) == {"x": "log", "y": "identity"}
    assert not minimised(x * y + 1 / y, fixed={y: "identity"}).proven
    z = variable("z", -1, 1)
    with pytest.raises(ModelError, match="variable 'z' cannot be in logarithmic coordinates"):
        minimised(z**2, fixed={z: "log"})
    with pytest.raises(ModelError, match="'log' or 'identity', not 'exp'"):
        minimised(x, fixed={x: "exp"})


# ---- the search ---------------------------------------------------------------------------------


def test_the_search_finds_mixed_coordinates_among_fifty_blocks() -> None:
    """Which blocks are factors and which are squared off is drawn; terms of both kinds are mixed."""
    rng = np.random.default_rng(2)
    blocks = [variable(f"b{i}", 0.1, 10, (2,)) for i in range(50)]
    logs = [blocks[i] for i in rng.permutation(50)[:25]]
    plain = [block for block in blocks if not any(block is log for log in logs)]
    constraints = []
    for i in range(25):
        product = hc.sum(logs[i] * logs[i - 1])
        constraints.append(product + hc.sum(hc.square(plain[i] - plain[i - 1])) <= 9)
        constraints.append(hc.prod(logs[i]) * hc.exp(plain[i][0] - plain[i][1]) <= 9)
    objective = sum(hc.sum(1 / (log[0] * log[1])) for log in logs)
    proof = minimised(objective, *constraints)
    assert proof.proven, str(proof.failure)
    assert all(proof.coordinates[log] == "log" for log in logs)
    assert all(proof.coordinates[each] == "identity" for each in plain)


def test_convex_models_keep_their_variables() -> None:
    x, y = positive(2)
    assert named(minimised(x**2 + 1 / y, x + y >= 1)) == {"x": "identity", "y": "identity"}


# ---- large models -------------------------------------------------------------------------------


def test_sums_of_two_thousand_terms_are_no_problem() -> None:
    x = variable("x", 0.1, 2, 2000)
    total = sum(x[i] * x[i + 1] for i in range(1999))
    assert minimised(total, total >= 0.1 - x[0] * x[1]).objective_form == "log"


def test_functions_known_to_be_affine_are_not_looked_at_until_somebody_reads_the_proof() -> None:
    x, y = variable("x"), variable("y")
    attempt = Attempt()
    attempt.enter_straight_objective(x - y, 1.0, [x, y])
    attempt.enter_straight((2 * x + y >= 1).named("low"), [x, y])
    attempt.enter(hc.square(x) <= y)
    proof = attempt.proof()
    assert proof.proven
    looked_at = {str(node.expression) for node in proof.curvatures.facts.nodes}
    assert "square(x)" in looked_at
    assert not looked_at & {"x - y", "2 * x + y"}
    assert [(row.form, row.equality) for row in proof.rows] == [("difference", False)] * 2
    assert str(proof.rows[0].right) == "2 * x + y"  # turned to <=
    steps = str(proof.derivation)
    assert "x - y    [affine]" in steps
    assert "2 * x + y    [affine]" in steps


def test_a_proof_pickles_and_prints() -> None:
    x, y = positive(2)
    proof = pickle.loads(pickle.dumps(minimised(x * y + 1 / x, (x <= y).named("order"))))
    assert proof.proven
    assert str(proof.derivation) == DERIVATION


DERIVATION = """\
minimize, through its logarithm
  x * y + 1 / x    [positive, convex, log-convex]
    x * y    [positive, convex, log-affine]
      x    [positive, convex, log-affine, in the coordinate log]
      y    [positive, convex, log-affine, in the coordinate log]
    1 / x    [positive, convex, log-affine]
      x    [positive, convex, log-affine, in the coordinate log]
order: left <= right, between logarithms
  x    [positive, convex, log-affine, in the coordinate log]
  y    [positive, convex, log-affine, in the coordinate log]"""


def test_a_product_with_a_minus_sign_is_maximised() -> None:
    """min −Π u is max Π u, which is convex through logarithms in the u themselves."""
    u = hc.Variable(12, name="u", pos=True)
    assert hc.Problem(hc.Maximize(hc.prod(u)), [hc.sum(u) <= 3]).is_hidden_convex()
    assert hc.Problem(
        hc.Minimize(-hc.prod(u)), [hc.sum(u) <= 3, u[0] + 1 >= u[1]]
    ).is_hidden_convex()


def test_lower_bounds_of_a_distribution_are_signs() -> None:
    w = hc.Variable(3, name="w", simplex=True, bounds=(0.1, 0.7))
    low, high = w.set.interval
    assert (low == 0.1).all()
    assert (high == 0.7).all()
    assert hc.Problem(hc.Maximize(hc.log(hc.prod(w)) + w[0])).is_hidden_convex()


def test_nothing_times_a_pole_is_not_affine() -> None:
    """It is 0 on both sides of the pole, and not defined at it: found by the adversary."""
    v = hc.Variable(2, name="v", bounds=(0.5, 2))
    z = hc.Variable(name="z", bounds=(-1, 1))
    nothing = hc.min(hc.sqrt(np.array([1.0, 0.0]) * v))
    pole = 1 / (hc.sqrt(hc.square(z)) * (hc.sqrt(hc.square(z) + 1) + 1))
    proof = hc.Problem(hc.Minimize(hc.sum(v) + nothing * nothing * pole)).forms().prove()
    assert not proof.proven


def test_an_affine_row_between_positive_sides_stays_as_it_is() -> None:
    """Its logarithm would be convex too, but needs a cone where a linear program would do."""
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] + 2 * x[1] >= 1, x[0] <= 3 * x[1]])
    assert problem.get_problem_data().program.is_linear
    assert problem.solve() == pytest.approx(0.5)
    assert "between logarithms" not in str(problem.analyze(samples=None))


def test_a_row_that_is_affine_in_no_variable_as_it_is_goes_through_logarithms() -> None:
    x = hc.Variable(2, name="x", pos=True)
    problem = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] + 2 * x[1] >= 1, x[0] * x[1] >= 1])
    assert problem.solve() == pytest.approx(2.0)
    assert str(problem.analyze(samples=None)).count("between logarithms") == 1
