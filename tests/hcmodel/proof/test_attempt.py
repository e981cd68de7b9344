"""A proof is given up at the objective where no rows and no coordinates can help."""

from __future__ import annotations

import pytest

import hcmodel as hc
from hcmodel.expressions.leaves import Expression
from hcmodel.proof.prove import attempt, prove


def free() -> tuple[hc.Variable, hc.Variable]:
    return hc.Variable(name="x"), hc.Variable(name="y")


def products() -> list[tuple[Expression, float]]:
    (x, y), z = free(), hc.Variable(name="z", pos=True)
    return [(x * y, 1.0), (x * y, -1.0), (x**2, -1.0), (x * z, 1.0), (x * y + hc.exp(z), 1.0)]


@pytest.mark.parametrize("case", range(5))
def test_a_given_up_attempt_is_a_failed_proof(case: int) -> None:
    objective, sign = products()[case]
    full = prove(objective, sign, [])
    found = attempt(objective, sign, [])
    assert not full.proven
    assert found is None


def test_functions_that_are_convex_in_different_coordinates_are_searched() -> None:
    """z·w is convex in logarithms and z == w + 1 without them: only a search shows that both fail."""
    z, w = hc.Variable(name="z", pos=True), hc.Variable(name="w", pos=True)
    found = attempt(z * w, 1.0, [z == w + 1])
    assert found is not None
    assert not found.proven


def test_what_can_be_proven_is_proven() -> None:
    (x, y), z = free(), hc.Variable(name="z", pos=True)
    for objective, sign in ((x**2 + y, 1.0), (hc.log(z) + x, -1.0), (1 / z + z, 1.0)):
        found = attempt(objective, sign, [x + y <= 1])
        assert found is not None
        assert found.proven


def test_the_message_names_what_breaks_a_proof_that_was_given_up() -> None:
    x, y = hc.Variable(name="x", bounds=(-1, 2)), hc.Variable(name="y", bounds=(-1, 2))
    problem = hc.Problem(hc.Minimize(x * y * (x - y) + hc.sin(x)))
    problem.solve()
    assert problem.status == "locally_optimal"
    assert problem.solution is not None
    assert "not proven to be a global minimum" in problem.solution.message
