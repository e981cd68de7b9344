"""Every reduction on every example model: both sides agree, and walks end where they began."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.proof.prove import prove
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.discovery import discover
from hcmodel.reductions.lift import Lift
from hcmodel.reductions.normal_rows import NormalRows
from hcmodel.reductions.reduction import Claim, Duals, Origin, Reduction
from hcmodel.reductions.release import Release
from hcmodel.reductions.semidefinite import Semidefinite
from hcmodel.reductions.sign import Sign
from hcmodel.reductions.smooth import Compiler, Smooth
from hcmodel.reductions.triangle import Triangle
from hcmodel.testing import check_reduction
from tests.problems.examples import ALL, loaded


def example(name: str) -> Model:
    return loaded(name).model


def reductions(model: Model) -> list[Reduction[Any, Any]]:
    """All that applies to a model, one after the other as in a solve."""
    semidefinite = Semidefinite.of(model)
    model = semidefinite.after
    sign = Sign.of(model)
    found: list[Reduction[Any, Any]] = [semidefinite, sign, Triangle.of(sign.after)]
    found.append(Bounds.of(sign.after))
    lift = Lift.of(sign.after)
    found += [lift, Triangle.of(lift.after)]
    user = sign.before
    proof = prove(user.objective.expression, user.sign, user.constraints)
    if proof.proven:
        normal = NormalRows.of(sign.after, proof)
        found += [normal, NormalRows.of(sign.after, proof, forms=False)]
        found.append(Smooth.of(normal.after, Compiler(), coordinates=proof.coordinates))
    found.append(Smooth.of(Triangle.of(sign.after).after, Compiler()))
    mapped_model = None if proof.proven else discover(sign.after).substitution
    found += [] if mapped_model is None else [mapped_model]
    if model.hidden is not None:
        mapped = Smooth.of(Triangle.of(lift.after).after, Compiler(), hidden=model.hidden)
        found.append(mapped)
        release = Release.of(mapped.after)
        found += [release] if isinstance(release, Release) else []
    return found


@pytest.mark.parametrize("name", ALL)
def test_both_sides_of_every_reduction_agree(name: str) -> None:
    for reduction in reductions(example(name)):
        check_reduction(reduction, samples=2)


def matrix_inequalities() -> Model:
    Q = np.array([[2.0, 1.0], [1.0, 3.0]])
    P = hc.Variable((2, 2), name="P", symmetric=True, bounds=(-4, 4))
    t = hc.Variable(name="t", bounds=(-2, 6))
    rows = [P >> Q - t * np.eye(2), (P << 5 * np.eye(2)).named("cap"), t * np.eye(2) >> 0, t <= 5]
    return hc.Problem(hc.Minimize(hc.trace(P) + t**2), rows).model


def test_both_sides_of_matrix_inequalities_agree() -> None:
    reduction = Semidefinite.of(matrix_inequalities())
    assert len(reduction.slacks) == 3
    check_reduction(reduction, samples=8)
    assert reduction.origin(Origin(1, (0, 1))) == Origin(1)
    for following in reductions(reduction.after):
        check_reduction(following, samples=2)


class Shifted(Sign):
    """A reduction with a wrong way back."""

    def point_back(self, u: np.ndarray) -> np.ndarray:
        return u + 1e-3


class Turned(NormalRows):
    """Multipliers that walk the wrong way."""

    def duals(self, x: np.ndarray, duals: Duals) -> Duals:
        return self.duals_back(self.point(x), duals)


class Halved(Sign):
    """A value that is not the model's."""

    def value_back(self, value: float) -> float:
        return 0.5 * value


def test_a_wrong_way_back_is_found() -> None:
    model = example("tank")
    proof = prove(model.objective.expression, model.sign, model.constraints)
    normal = NormalRows.of(model, proof)
    for wrong, message in (
        (Shifted(model, model), "point_back"),
        (Halved(model, model), "objective|value"),
        (Turned(normal.before, normal.after), "dual"),
    ):
        with pytest.raises(AssertionError, match=message):
            check_reduction(wrong)


def test_what_is_claimed_without_some_bounds_is_a_bound_only() -> None:
    model = example("lqr")
    P, K = (next(v for v in model.variables if v.name == name) for name in ("P", "K"))
    mapped = Smooth.of(model, Compiler(), hidden=(P, K @ P))
    release = Release.of(mapped.after)
    assert isinstance(release, Release)
    assert release.keeps == {Claim.BOUND, Claim.INFEASIBLE}
    assert release.names == ("K",)
    outside = np.full(mapped.after.layout.size, 60.0)
    assert not release.before.domain.contains(outside)
