"""Lifting: which kinks become rows, that nothing else changes, and that values stay the same."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.lift import Lift, lift
from hcmodel.testing import check_reduction

shared = hc.max(hc.Variable(3, name="w"))
x = hc.Variable(3, name="x", bounds=(-2, 2))
y = hc.Variable((2, 3), name="y", bounds=(-5, 5))
p = hc.Variable(2, name="p", bounds=(0.1, 10))


@pytest.mark.parametrize(
    ("objective", "added"),
    [
        (hc.max(x), 1),
        (hc.max(hc.abs(x)), 2),
        (hc.norm(x, 1), 1),
        (hc.norm(x, "inf") + hc.norm(y, 1, axis=1)[0], 2),
        (3 * hc.maximum(x[0], x[1], 1) + hc.exp(hc.max(y)), 2),
        (-hc.min(x), 1),
        (-hc.minimum(x[0], x[1]), 1),
        (hc.square(hc.abs(x[0])), 1),  # |x| >= 0, and squares rise there
        (hc.max(y, axis=0)[1] / p[0], 1),
        (-hc.abs(x[0]), 0),
        (hc.sin(hc.max(x)), 0),
        (shared - 2 * shared, 0),  # the same piece both ways
        (hc.norm(x, 2), 0),
        (hc.sum(x), 0),
    ],
    ids=str,
)
def test_pieces_are_lifted_where_more_of_them_is_worse(
    objective: hc.Expression, added: int
) -> None:
    lifted = lift(objective, 1.0, [])
    assert len(lifted.definitions) == added
    if not added:
        assert lifted.objective is objective
        assert lifted.constraints == ()


def test_maximising_turns_the_direction() -> None:
    assert len(lift(hc.min(x), -1.0, []).definitions) == 1
    assert not lift(hc.max(x), -1.0, []).definitions


def test_sides_of_constraints_have_their_directions() -> None:
    kinked = hc.abs(x[0])
    assert len(lift(hc.sum(x), 1.0, [kinked <= 1]).definitions) == 1
    assert len(lift(hc.sum(x), 1.0, [hc.Constant(1) >= kinked]).definitions) == 1
    assert not lift(hc.sum(x), 1.0, [kinked >= 1]).definitions
    assert not lift(hc.sum(x), 1.0, [kinked == 1]).definitions


def test_constraints_keep_their_order_and_names() -> None:
    named = (hc.norm(x, 1) <= 2).named("budget")
    lifted = lift(hc.sum(x), 1.0, [x[0] <= 1, named])
    assert lifted.constraints[1].name == "budget"
    assert lifted.constraints[0].lhs is not None
    assert len(lifted.constraints) == 4


@pytest.mark.parametrize(
    "make",
    [
        lambda: hc.max(hc.abs(x)) + hc.norm(y[0] - 1, 1) + hc.exp(hc.maximum(x[0], 0.5)),
        lambda: hc.sum(hc.max(y, axis=1)) + hc.norm(x[:2] * 3, "inf"),
        lambda: hc.max(p * x[0] ** 2 + 1) - hc.min(y),
    ],
)
def test_the_form_has_the_same_value_at_every_point(make: Callable[[], hc.Expression]) -> None:
    problem = hc.Problem(hc.Minimize(make()))
    form = problem.forms().lifted
    assert form.chain.adds_variables
    generator = np.random.default_rng(0)
    for _ in range(20):
        point = problem.canonical.domain.sample(generator)
        evaluation = form.oracle().at(form.chain.point(point))
        plain = problem.forms().written.oracle().at(point)
        assert evaluation.objective == pytest.approx(plain.objective, rel=1e-12)
        assert evaluation.relative_violation <= 1e-12
        np.testing.assert_allclose(form.chain.point_back(evaluation.point), point, rtol=1e-12)


def test_bounds_of_what_was_added_hold_it() -> None:
    lifted = lift(hc.max(hc.abs(x)) + hc.maximum(p[0], 3), 1.0, [])
    generator = np.random.default_rng(1)
    for definition in lifted.definitions:
        for _ in range(50):
            x.value = generator.uniform(-2, 2, 3)
            p.value = generator.uniform(0.1, 10, 2)
            value = definition.expression.value
            assert (value >= definition.variable.lower).all()
            assert (value <= definition.variable.upper).all()
    x.value = p.value = None


def test_the_largest_eigenvalue_gets_a_semidefinite_slack() -> None:
    S = hc.Variable((3, 3), name="S", PSD=(0.1, 10))
    problem = hc.Problem(hc.Minimize(hc.lambda_max(S) + hc.tr_inv(S)))
    lifted = Lift.of(problem.model)
    assert [each.variable.shape for each in lifted.definitions] == [(), (3, 3)]
    check_reduction(lifted)
    # S = √3·I, where all eigenvalues are one and the largest has no derivative
    for method in ("cone", "hidden-newton"):
        assert problem.solve(method) == pytest.approx(2 * np.sqrt(3), rel=1e-8)
        assert problem.status == "optimal"


def test_a_kink_whose_pieces_have_no_proof_stays_in_the_cone_program() -> None:
    # between logarithms the sum of the two largest is convex, but k·q + Σ s is not; z = 1 by symmetry
    z = hc.Variable(4, name="z", pos=True)
    problem = hc.Problem(hc.Minimize(hc.sum_largest(z, 2) * hc.sum(1 / z)))
    assert problem.solve("cone") == pytest.approx(8.0, rel=1e-7)
    assert problem.status in ("optimal", "optimal_inaccurate")
