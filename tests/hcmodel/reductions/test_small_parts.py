"""Small parts of the reductions, each with the reason why it answers as it does."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import hcmodel as hc
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.forms import _Key
from hcmodel.reductions.matrix_bounds import MatrixRow
from hcmodel.reductions.reduction import BoundOrigin, Duals
from hcmodel.reductions.sums.sum_arrays import needs_logarithms
from hcmodel.reductions.triangle import Triangle, square_parameters
from hcmodel.solvers.qp.cone_program import ConeSolution, ConeStatus


def test_bounds_are_the_same_where_variable_side_and_entry_are() -> None:
    x, y = hc.Variable(2, name="x"), hc.Variable(2, name="y")
    own = BoundOrigin(x, "lower", (0,))
    assert own == BoundOrigin(x, "lower", (0,))
    assert hash(own) == hash(BoundOrigin(x, "lower", (0,)))
    for other in (
        BoundOrigin(y, "lower", (0,)),  # of the same name and place, but another variable
        BoundOrigin(x, "upper", (0,)),
        BoundOrigin(x, "lower", (1,)),
    ):
        assert own != other


@pytest.mark.parametrize("factor", [2.0, -2.0])
def test_a_matrix_row_holds_back_the_part_of_the_slope_that_points_into_the_cone(
    factor: float,
) -> None:
    # slack = factor·P + I >= 0: a multiplier Z >= 0 of the slack adds −factor·Z to the slope in P, so
    # that Z is the positive part of slope/factor
    p, slack = hc.Variable((2, 2), name="P", symmetric=True), hc.Variable((2, 2), PSD=True)
    row = MatrixRow(0, p, slack, factor, 1.0)
    slope = slack.set.store(np.diag([4.0, -6.0]))
    expected = np.diag([2.0, 0.0]) if factor > 0 else np.diag([0.0, 3.0])
    assert slack.set.expand(np, row.slack_slope(slope)) == pytest.approx(expected)
    assert row.lower == (factor > 0)
    assert row.limit == pytest.approx(-1 / factor)  # factor·p + 1 = 0
    assert slack.set.expand(np, row.slack_of(slope)) == pytest.approx(
        factor * np.diag([4.0, -6.0]) + np.eye(2)
    )
    shared = MatrixRow(0, p, slack, factor, 1.0, own=False)
    assert not shared.slack_slope(slope).any()  # another row may be the one that holds


def test_only_square_parameters_decide_on_symmetry() -> None:
    p = hc.Variable((2, 2), name="P", symmetric=True)
    square = hc.Parameter((2, 2), name="W", value=np.eye(2))
    number = hc.Parameter(name="c", value=2.0)
    assert square_parameters(number * p + p @ np.eye(2) == square) == (square,)


def test_posynomials_are_told_from_affine_functions() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    affine = hc.Problem(hc.Minimize(x[0] + x[1]), [x[0] - x[1] <= 1]).forms().hidden()
    monomials = hc.Problem(hc.Minimize(x[0] / x[1]), [x[0] * x[1] >= 2]).forms().hidden()
    assert affine is not None
    assert monomials is not None
    assert affine.arrays is not None  # sums of exponentials and affine functions both are
    assert not affine.has_posynomials
    assert monomials.has_posynomials


def test_only_sums_of_products_of_powers_can_need_logarithms() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    for objective, needed in (
        (hc.sin(x[0]) + x[1], False),  # another function: nothing is known of its terms
        (x[0] * x[1] + x[0], True),  # two positive exponents
        (1 / x[0] + x[1] ** 2, False),
        (x[0] ** 0.5 + x[1], True),  # one exponent below 1
        (x[0] ** 2 / x[1], False),  # one positive exponent, and the sum is 1
        (hc.exp(np.array([2.0, -1.0]) @ hc.log(x)), True),  # an exponential of what is not convex
        (hc.sum(hc.exp(hc.log(x))), True),
        (hc.sum(hc.exp(-2 * hc.log(x))), False),  # of what is
        (hc.exp(2 * hc.log(x[0])) + x[1], False),  # x itself may be a coordinate
    ):
        form = hc.Problem(hc.Minimize(objective)).forms().written
        assert needs_logarithms(form.compiled, form.canonical.outer) == needed


def test_multipliers_of_a_triangle_are_those_of_both_halves() -> None:
    # the rows (0, 1) and (1, 0) of a symmetric equality say the same: the one that is kept has the sum
    # of their multipliers, and each has half of it on the way back
    p = hc.Variable((2, 2), name="P", symmetric=True)
    model = hc.Problem(hc.Minimize(hc.trace(p)), [p == np.eye(2)]).model
    triangle = Triangle.of(model)
    written = np.array([[1.0, 2.0], [2.0, 3.0]])
    (kept,) = triangle.duals(np.zeros(3), Duals((written,))).rows
    assert kept == pytest.approx(np.array([[1.0, 4.0], [0.0, 3.0]]))
    (back,) = triangle.duals_back(np.zeros(3), Duals((kept,))).rows
    assert back == pytest.approx(written)


@pytest.mark.parametrize("exponent", [-0.7, -2.5, 0.3, 1.7])
def test_powers_are_rows_of_the_cone_program(exponent: float) -> None:
    # ±x^p + (x − 2)² is convex: its slope vanishes at the root of ±p·x^(p−1) + 2(x − 2)
    x = hc.Variable(name="x", bounds=(0.1, 5))
    sign = -1.0 if 0 < exponent < 1 else 1.0
    hc.Problem(hc.Minimize(sign * x**exponent + (x - 2) ** 2)).solve("cone")
    root = brentq(lambda t: sign * exponent * t ** (exponent - 1) + 2 * (t - 2), 0.1, 5)
    assert float(x.value) == pytest.approx(root, rel=1e-4)


def test_the_slope_of_a_norm_is_no_longer_than_one() -> None:
    # a multiplier (1, 1, 1, 1) outside of the dual cone, as rounding may leave one: y = −(1, 1, 1) is cut
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    form = hc.Problem(hc.Minimize(hc.norm(x - 1) + hc.sum(x))).forms().hidden()
    assert form is not None
    assert isinstance(form.cone, Cone)
    ones = np.ones(form.cone.after.offset.size)
    solution = ConeSolution(ConeStatus.SOLVED, np.zeros(9), ones, ones)
    (slope,) = form.cone.norm_slopes(solution)
    found = np.ravel(slope.y)
    assert found == pytest.approx(-np.full(3, 1 / np.sqrt(3)))
    assert np.linalg.norm(found) <= 1
    # (4, 1, 1, 1) is inside: y = −(1, 1, 1)/4
    (group,) = [each for each in form.cone.after.cones if each.size == 4]
    places = np.cumsum([0, *[each.size for each in form.cone.after.cones]])
    dual = ones.copy()
    dual[places[form.cone.after.cones.index(group)]] = 4.0
    (slope,) = form.cone.norm_slopes(ConeSolution(ConeStatus.SOLVED, np.zeros(9), ones, dual))
    assert np.ravel(slope.y) == pytest.approx(-np.full(3, 0.25))
    assert slope.value == pytest.approx(np.sqrt(3))  # of the slack's entries


def test_points_of_a_cone_program_are_logarithms_where_the_coordinates_are() -> None:
    x, z = hc.Variable(2, name="x", bounds=(0.5, 3)), hc.Variable(name="z", bounds=(-2, 2))
    cost = x[0] * x[1] + 1 / x[0] + hc.square(z)
    form = hc.Problem(hc.Minimize(cost), hidden=[hc.log(x), z]).forms().hidden()
    assert form is not None
    assert isinstance(form.cone, Cone)
    layout = form.cone.before.layout
    place = {each.name: layout.slice(each) for each in layout.variables}
    point = np.empty(3)
    point[place["x"]], point[place["z"]] = [0.5, 2.0], -1.5
    u = form.cone.point(point)
    assert u[place["x"]] == pytest.approx([-np.log(2), np.log(2)])
    assert u[place["z"]] == pytest.approx(-1.5)
    # bounds of terms follow u in the program and are left out on the way back
    assert form.cone.point_back(np.append(u, 7.0)) == pytest.approx(point)


def test_rows_of_the_cone_program_by_constraint() -> None:
    """A row of three entries, of which the relaxed program has three; an equality has a second side."""
    z = hc.Variable(3, name="z", bounds=(-2, 2))
    rows = [z[::-1] + z <= 1, hc.sum(z) == 0.5]
    form = hc.Problem(hc.Minimize(hc.sum_squares(z)), rows).forms().hidden()
    assert form is not None
    cone = form.cone
    assert isinstance(cone, Cone)
    u = np.array([0.25, -0.5, 1.0])
    slack = cone.after.offset - cone.after.matrix[:, :3] @ u
    below, equal = (np.asarray(each, dtype=int) for each in cone.rows.rows)
    assert slack[below] == pytest.approx(1 - (u[::-1] + u))
    assert np.ravel(slack[equal]) == pytest.approx(u.sum() - 0.5)
    assert [float(np.ravel(each)[0]) for each in cone.signs.rows] == [1.0, -1.0]
    relaxed = cone.relaxed()
    first, second = relaxed.others.rows
    assert (first == -1).all()  # an inequality has one side
    assert (second >= 0).all()


def test_unknowns_have_no_ends_but_those_that_a_map_implies() -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    form = hc.Problem(hc.Minimize(hc.sum_squares(x))).forms().hidden()
    assert form is not None
    lower, upper = form.implied_ends()
    assert lower.tolist() == [-np.inf, -np.inf]
    assert upper.tolist() == [np.inf, np.inf]


@pytest.mark.parametrize(
    ("facts", "structure", "fits"), [(1, "a", True), (2, "a", False), (1, "b", False)]
)
def test_a_compiled_form_is_kept_where_facts_and_structure_are(
    facts: int, structure: str, fits: bool
) -> None:
    one, other = _Key(None, (1,)), _Key(None, (facts,))  # type: ignore[arg-type]
    one.__dict__["structure"], other.__dict__["structure"] = "a", structure
    assert one.fits(other) == fits


def test_origins_of_all_rows_are_those_of_each() -> None:
    """A number, an array, rows of which one is implied, and an equality, which comes last."""
    x, z = hc.Variable((2, 3), name="x", bounds=(1, 3)), hc.Variable(name="z", bounds=(-1, 1))
    rows = [x[0, 0] * x[1, 1] <= 4, x[0] == 2 * x[1], x @ np.ones(3) <= 8 + 0 * z, z <= 5]
    form = hc.Problem(hc.Minimize(hc.sum(x) + z), rows).forms().written
    count = form.canonical.outer.size
    assert form.canonical.origins() == [form.canonical.origin(row) for row in range(count)]
    assert form.chain.origins() == [form.chain.origin(row) for row in range(count)]
    assert count == len(set(form.chain.origins())) > 6
