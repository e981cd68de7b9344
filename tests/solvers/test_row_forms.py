"""Every entry of the tables of row forms and objective forms: signs, derivatives, multipliers.

A form that is not in the table, the ratio l/r − 1, is checked too: it shows that a class with the four
methods and an entry are all that a new form needs.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.algebra.hessians import as_dense, with_squares
from hcmodel.solvers.numerics import TINY
from hcmodel.solvers.outer import Outer, Side, form_numbers
from hcmodel.solvers.row_forms import (
    OBJECTIVE_FORMS,
    ROW_FORMS,
    Difference,
    LogDifference,
    Square,
)

FloatArray = NDArray[np.float64]


class Ratio:
    """l/r − 1 for positive sides: d²(l/r) = (l/r)·((dl/l − dr/r)² − (dl/l)² + (dr/r)²)."""

    def values(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return left / right - 1.0

    def magnitudes(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.ones_like(left)

    def slopes(self, left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray]:
        return 1.0 / right, -left / right**2

    def factors(self, left: FloatArray, right: FloatArray) -> FloatArray:
        return np.minimum(1.0, left / right) / right

    def squares(self, left: FloatArray, right: FloatArray) -> tuple[Square, ...]:
        ratio = left / right
        return (
            Square(ratio, 1.0 / left, -1.0 / right),
            Square(-ratio, 1.0 / left, None),
            Square(ratio, None, 1.0 / right),
        )


@pytest.fixture(autouse=True)
def _with_the_ratio(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ROW_FORMS, "ratio", Ratio())


NAMES = [*ROW_FORMS, "ratio"]
LEFT, RIGHT = np.array([0.3, 2.0, 7.0, 1.5]), np.array([0.4, 1.0, 7.0, 80.0])


@pytest.mark.parametrize("name", NAMES)
def test_a_form_has_the_sign_of_the_difference(name: str) -> None:
    form = ROW_FORMS[name]
    np.testing.assert_array_equal(np.sign(form.values(LEFT, RIGHT)), np.sign(LEFT - RIGHT))
    assert (form.magnitudes(LEFT, RIGHT) > 0).all()
    by_left, by_right = form.slopes(LEFT, RIGHT)
    assert (by_left > 0).all()
    assert (by_right < 0).all()


@pytest.mark.parametrize("name", NAMES)
def test_slopes_on_equality_are_opposite(name: str) -> None:
    # then the gradient of the form is f_l times that of left − right, on which multipliers rest
    by_left, by_right = ROW_FORMS[name].slopes(LEFT, LEFT)
    np.testing.assert_allclose(by_left, -by_right, rtol=1e-15)


@pytest.mark.parametrize("name", NAMES)
def test_a_form_answers_for_rows_one_by_one_as_for_all(name: str) -> None:
    form = ROW_FORMS[name]
    alone = [form.values(LEFT[[i]], RIGHT[[i]])[0] for i in range(LEFT.size)]
    np.testing.assert_array_equal(form.values(LEFT, RIGHT), alone)
    assert form.values(np.zeros(0), np.zeros(0)).shape == (0,)


def exponentials(name: str, size: int = 5) -> tuple[Outer, FloatArray, FloatArray]:
    """Rows of one form and of differences in turn, over φ = exp(B x), and a point x."""
    generator = np.random.default_rng(3)
    inner = generator.standard_normal((2 * size, 3))
    eye = np.eye(2 * size)
    names = [name if i % 2 == 0 else "difference" for i in range(size)]
    outer = Outer(
        np.ones(1),
        Side.of(sp.csr_array(eye[:size])),
        Side.of(sp.csr_array(eye[size:])),
        2,
        "plain",
        form_numbers(names),
    )
    return outer, inner, generator.standard_normal(3)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", NAMES)
def test_derivatives_in_the_outer_part_are_those_of_its_values(name: str, sparse: bool) -> None:
    outer, inner, x = exponentials(name)
    multipliers = np.array([0.7, -0.4, 1.3, 0.0, -2.0])

    def phi(x: FloatArray) -> FloatArray:
        return np.asarray(np.exp(inner @ x))

    def slopes(x: FloatArray) -> sp.csr_array | FloatArray:
        dense = phi(x)[:, None] * inner
        return sp.csr_array(dense) if sparse else dense

    def gradient(x: FloatArray) -> FloatArray:
        return np.asarray(outer.row_jacobian(phi(x), slopes(x)).T @ multipliers)

    weights = outer.lagrangian_weights(np.ones(1), phi(x), multipliers)[1:]
    np.testing.assert_allclose(weights @ slopes(x), gradient(x), rtol=1e-12)
    hessian = inner.T @ ((phi(x) * weights)[:, None] * inner)
    parts = (np.zeros((1, 3)), slopes(x))
    squares = outer.lagrangian_squares(np.ones(1), phi(x), parts, multipliers)
    hessian = hessian + as_dense(with_squares(np.zeros((3, 3)), squares))
    step = 1e-6
    for direction in np.eye(3):
        ahead, behind = x + step * direction, x - step * direction
        rise = multipliers @ (outer.row_values(phi(ahead))[0] - outer.row_values(phi(behind))[0])
        assert gradient(x) @ direction == pytest.approx(rise / (2 * step), rel=1e-6)
        turn = (gradient(ahead) - gradient(behind)) / (2 * step)
        np.testing.assert_allclose(hessian @ direction, turn, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("objective", ["plain", "log"])
@pytest.mark.parametrize("name", NAMES)
def test_multipliers_lead_to_those_of_the_row_as_written(name: str, objective: str) -> None:
    # at left = right: ∇F + λ(∇l − ∇r) = 0 exactly where slope·∇F + μ∇f = 0
    sides, slopes = np.array([3.0, 3.0]), np.array([[1.0, -2.0], [0.5, 1.0]])
    one = Side(2, np.array([0])), Side(2, np.array([1]))
    outer = Outer(np.ones(1), *one, 1, objective, form_numbers([name]))
    top, gradient = np.array([4.0]), np.array([[0.3, -0.7]])
    seen = outer.objective_gradient(top, gradient)
    row = outer.row_jacobian(sides, slopes)
    multiplier = 1.7
    residual = seen + multiplier * row[0]
    written = np.array([multiplier]) / outer.row_factors(top, sides)
    plain = gradient[0] + written[0] * (slopes[0] - slopes[1])
    np.testing.assert_allclose(residual, plain * outer.objective_slope(top), rtol=1e-12)


@pytest.mark.parametrize("name", NAMES)
def test_a_slack_row_keeps_a_small_multiplier_small(name: str) -> None:
    form, left, right = ROW_FORMS[name], np.array([1e-13, 0.5, 2.0]), np.ones(3)
    factors = form.factors(left, right)
    for slope in form.slopes(left, right):
        assert np.all(factors <= np.abs(slope) * (1 + 1e-15))
    np.testing.assert_allclose(form.factors(right, right), form.slopes(right, right)[0], rtol=1e-15)


def test_log_rows_are_not_a_number_outside_their_domain() -> None:
    with np.errstate(all="ignore"):
        assert np.isnan(LogDifference().values(np.array([-1.0]), np.array([1.0]))).all()


@pytest.mark.parametrize(("name", "plain"), [("plain", -3.0), ("log", 4.0), ("negative log", -4.0)])
def test_an_objective_form_increases_and_has_its_derivatives(name: str, plain: float) -> None:
    form, step = OBJECTIVE_FORMS[name], 1e-4
    assert form.plain(form.value(plain)) == pytest.approx(plain, rel=1e-14)
    ahead, here, behind = (form.value(plain + k * step) for k in (1, 0, -1))
    assert ahead > here > behind
    assert form.slope(plain) == pytest.approx((ahead - behind) / (2 * step), rel=1e-6)
    weight, factor = form.square(plain) or (0.0, 0.0)
    second = (ahead - 2 * here + behind) / step**2
    assert weight * factor**2 == pytest.approx(second, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(("name", "sign"), [("log", 1.0), ("negative log", -1.0)])
def test_objectives_in_logarithms_say_nothing_at_the_ends_of_the_numbers(
    name: str, sign: float
) -> None:
    """sign·log(sign·F) at 0 and outside of the domain, and back from where F is infinite or 0."""
    form = OBJECTIVE_FORMS[name]
    with np.errstate(all="raise"):
        assert form.value(0.0) == -sign * np.inf
        assert np.isnan(form.value(-sign))
        assert form.value(sign * np.e) == pytest.approx(sign)
        assert form.plain(sign * 1000.0) == sign * np.inf
        assert form.plain(sign * -1000.0) == 0.0
        assert form.plain(sign) == pytest.approx(sign * np.e)
        assert form.slope(0.0) == np.inf
        assert form.slope(sign * 0.5 * TINY) == pytest.approx(2.0 / TINY)
        assert form.slope(sign * 4.0) == 0.25


def test_every_objective_form_is_tested_above() -> None:
    assert set(OBJECTIVE_FORMS) == {"plain", "log", "negative log"}


def test_an_unknown_form_and_a_wrong_number_of_forms_are_errors() -> None:
    with pytest.raises(KeyError, match="quotient"):
        form_numbers(["quotient"])
    eye = Side(2, np.arange(2))
    with pytest.raises(ValueError, match="1 forms for 2 rows"):
        Outer(np.ones(1), eye, eye, 2, "plain", form_numbers(["log"]))


def test_a_difference_is_measured_against_its_larger_side_and_at_least_one() -> None:
    left, right = np.array([0.3, -5.0, 2.0]), np.array([0.2, 3.0, -7.0])
    assert Difference().magnitudes(left, right) == pytest.approx([1, 5, 7])
    assert LogDifference().magnitudes(left, right) == pytest.approx(1.0)
