"""The models that CVXPY's rules prove too, by two methods that share no code: the values agree."""

from __future__ import annotations

import pytest

import hcmodel as hc
from tests.hcmodel.proof.both_tools import Ours
from tests.hcmodel.proof.test_proof_against_cvxpy import DISCIPLINED_CONVEX, GEOMETRIC

MODELS = {**DISCIPLINED_CONVEX, **GEOMETRIC}
# A norm that vanishes under an exponential, without bounds: the gap closes to 4e-7.
TOLERANCE = {"convex_of_convex": 1e-6}


def solved(problem: hc.Problem, method: str, tolerance: float) -> float | None:
    """The certified value; None where the method does not take the model: it has kinks or matrices."""
    try:
        problem.solve(method, tol=tolerance)
    except hc.ModelError as refused:
        assert "there is no" in str(refused)  # noqa: PT017  (any other error is a failure)
        return None
    assert problem.status == "optimal"
    return problem.value


@pytest.mark.parametrize("name", MODELS)
def test_two_methods_find_the_same_value(name: str) -> None:
    problem = hc.Problem(*MODELS[name](Ours()))
    tolerance = TOLERANCE.get(name, 1e-8)
    values = {method: solved(problem, method, tolerance) for method in ("cone", "interior-point")}
    assert values["cone"] is not None
    found = [value for value in values.values() if value is not None]
    if len(found) == 1:
        problem.solve(tol=tolerance)
        assert problem.status == "optimal"
        found.append(problem.value)
    assert found[0] == pytest.approx(found[1], rel=1e-7, abs=1e-7)


@pytest.mark.parametrize("method", ["cone", "interior-point", "hidden-newton"])
@pytest.mark.parametrize("unit", [1e-60, 1e-8, 1.0, 1e60])
def test_a_row_far_from_its_limit_has_no_multiplier(method: str, unit: float) -> None:
    """The left side of `slack` is 1e-20: a multiplier of 1e-13 between logarithms is nothing."""
    x = hc.Variable(2, name="x", bounds=(0.01, 10))
    slack, active = x[0] ** 5 * x[1] ** 5 <= 1, x[0] >= 2 * x[1]
    problem = hc.Problem(hc.Minimize(unit * x[0] * x[1]), [slack, active])
    assert problem.solve(method) == pytest.approx(2e-4 * unit, rel=1e-7)
    assert slack.dual_value <= 1e-6 * problem.value
    assert active.dual_value == pytest.approx(0.01 * unit, rel=1e-5)
