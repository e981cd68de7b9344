"""Geometric programs are seen to be convex, with the coordinates and rows that a proof finds."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import hcmodel as hc
from hcmodel.proof.prove import Proof
from hcmodel.proof.visible import VisibleProof


def tank() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 1])


def box() -> hc.Problem:
    h, w, d = (hc.Variable(name=name, pos=True) for name in "hwd")
    rows = [2 * (h * w + h * d) <= 200, w * d <= 50, h == 0.5 * w, 2 * w >= d]
    return hc.Problem(hc.Maximize(h * w * d), rows)


def with_rows_that_are_bounds() -> hc.Problem:
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0]), [x[0] <= 3, x[1] >= 0.5])


def concave_terms() -> hc.Problem:
    """√x and x/y are convex in logarithms alone: their exponents add up to less than 1."""
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Minimize(x[0] ** 0.5 + x[1] / x[0]), [1 / x[1] <= 3])


def convex_power() -> hc.Problem:
    """x²/y, whose exponents add up to 1, is convex in the variables themselves."""
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Minimize(x[0] ** 2 / x[1] + x[1] + 1 / x[0]))


def linear() -> hc.Problem:
    """Convex in the variables themselves, which come first."""
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Maximize(x[0] + x[1]), [x[0] + 2 * x[1] <= 3, 3 * x[0] + x[1] <= 4])


def maximised_product() -> hc.Problem:
    """A product that is maximised is log-concave in the variables themselves."""
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Maximize(x[0] * x[1]), [x[0] + 2 * x[1] <= 3])


def with_a_term_to_move() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.1, 5))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0]), [1 / x[1] - x[0] <= 0])


def signomial() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.1, 5))
    return hc.Problem(hc.Minimize(x[0] * x[1] - x[0] ** 2 - x[1] ** 2), [x[0] * x[1] >= 0.5])


def mixed() -> hc.Problem:
    x, z = hc.Variable(2, name="x", bounds=(0.1, 5)), hc.Variable(name="z", bounds=(-1, 1))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 1 / x[0] + hc.exp(z)), [x[1] >= 0.5])


@pytest.mark.parametrize("model", [tank, box, with_rows_that_are_bounds, concave_terms])
def test_a_geometric_program_is_seen_and_a_proof_finds_the_same(
    model: Callable[[], hc.Problem],
) -> None:
    problem = model()
    forms = problem.forms()
    form = forms.hidden()
    assert form is not None
    assert isinstance(form.proof, VisibleProof)
    proof = forms.prove()
    assert proof.proven
    assert set(proof.coordinates.values()) == {"log"}
    assert [row.form for row in proof.rows] == [row.form for row in form.proof.rows]
    for one, two in zip(proof.rows, form.proof.rows, strict=True):
        assert one.left is two.left
        assert one.right is two.right
        assert one.equality == two.equality
    assert proof.objective_form == form.proof.objective_form
    assert isinstance(form.last, Proof)  # made when a cone program by nodes asks for it
    problem.solve()
    assert problem.status == "optimal"


@pytest.mark.parametrize(
    "model", [linear, convex_power, maximised_product, with_a_term_to_move, mixed]
)
def test_other_models_are_proven_as_before(model: Callable[[], hc.Problem]) -> None:
    form = model().forms().hidden()
    assert form is not None
    assert isinstance(form.proof, Proof)


def test_what_is_not_convex_is_not_seen_to_be() -> None:
    assert signomial().forms().hidden() is None
