"""Parts of the reductions against numbers that follow from a formula, worked out by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import hcmodel as hc
from hcmodel.atoms.rules import Monotonicity
from hcmodel.expressions.leaves import Expression
from hcmodel.facts.node_facts import Facts
from hcmodel.reductions import lift as lift_module
from hcmodel.reductions import smooth_convex as smooth_convex_module
from hcmodel.reductions import substitution
from hcmodel.reductions.bounds import Bounds, _kind
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.cone.linear_maps import coefficients
from hcmodel.reductions.form import Form
from hcmodel.reductions.lift import _Builder
from hcmodel.reductions.matrix_bounds import MatrixRow, eigenvalue_limits
from hcmodel.reductions.normal_rows import NormalRows
from hcmodel.reductions.reduction import Duals, Origin, Refusal, same_objects
from hcmodel.reductions.semidefinite import Semidefinite, difference
from hcmodel.reductions.smooth import Compiler, Smooth, curved_variables
from hcmodel.reductions.smooth_convex import SmoothConvex, smooth_convex
from hcmodel.solvers.algebra.hessians import SparseHessian

FloatArray = NDArray[np.float64]


# ---- the smooth convex program


def sums_beside_squares() -> hc.Problem:
    """Exponentials, squares, affine rows, an equality and a simplex, all in plain coordinates."""
    z, p = hc.Variable(3, name="z", bounds=(-4, 4)), hc.Variable(3, name="p", simplex=True)
    cost = 2 * hc.exp(z[0]) + hc.sum_squares(z[1:]) + 3 * p[0] - hc.sum(hc.entr(p)) + 7
    rows = [
        hc.exp(z[0]) + 2 * z[1] <= 3 + p[1],
        hc.sum_squares(z) <= 9,
        z[2] - z[0] <= 2,
        z[0] - 2 * z[1] + p[2] == 0.3,
    ]
    return hc.Problem(hc.Minimize(cost), rows)


def affine_cost() -> hc.Problem:
    z = hc.Variable(2, name="z", bounds=(-4, 4))
    rows = [3 * hc.exp(z[0] - z[1]) + hc.exp(z[1]) <= 5, z[0] + z[1] == 1]
    return hc.Problem(hc.Maximize(4 - z[0] - 2 * z[1]), rows)


def logarithms() -> hc.Problem:
    """A sum of powers with a number of its own, rows that are differences, an equality of powers."""
    x = hc.Variable(3, name="x", bounds=(0.2, 5))
    rows = [x[0] * x[1] + 2 * x[2] <= 3, 1 / x[0] <= 2 * x[1], x[0] * x[2] == 0.7]
    return hc.Problem(hc.Minimize(x[0] + 5 / (x[1] * x[2]) + 2), rows)


def monomial_cost() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.2, 5))
    return hc.Problem(hc.Maximize(3 * x[0] * x[1] ** 2), [x[0] + 2 * x[1] <= 4])


def logs_beside_plain() -> hc.Problem:
    x, z = hc.Variable(2, name="x", bounds=(0.2, 5)), hc.Variable(name="z", bounds=(-2, 2))
    rows = [x[0] * x[1] <= 2, x[0] ** 2 + 1 / x[1] + hc.square(z) <= 8 + z]
    return hc.Problem(hc.Minimize(z + 1 / x[0] + x[0] * x[1] + hc.exp(z)), rows)


def weighted_terms() -> hc.Problem:
    """Powers with weights of their own in rows and an objective that are compared as they are."""
    x, z = hc.Variable(2, name="x", bounds=(0.2, 5)), hc.Variable(2, name="z", bounds=(-2, 2))
    rows = [
        5 * x[0] + 0.25 * x[0] * x[1] + z[0] <= 7 - 2 * z[1],
        z[0] + z[1] <= 1.5,
        2 * x[0] + 3 * x[1] <= 9 * x[0] * x[1],
        z[0] - hc.log(x[0]) + 3 * hc.log(x[1]) == 0.2,
    ]
    cost = 3 / x[0] + 0.5 * x[0] * x[1] + 2 * z[0] - z[1] + 4
    return hc.Problem(hc.Minimize(cost), rows, hidden=[hc.log(x), z])


def declared_rows() -> hc.Problem:
    """Declared and not proven, so that rows stay as written: the second and the third are converted."""
    x, z = hc.Variable(2, name="x", bounds=(0.2, 5)), hc.Variable(2, name="z", bounds=(-2, 2))
    rows = [
        z[0] <= 4 * z[1],
        x[0] + x[1] <= 3 * x[0] * x[1],
        5 / x[0] + 0.5 * x[1] <= 7 * x[1],
        hc.sin(z[0]) <= 0.9,
    ]
    return hc.Problem(hc.Minimize(x[0] + x[1]), rows, hidden=[hc.log(x), z])


CONVEX = [
    declared_rows,
    sums_beside_squares,
    affine_cost,
    logarithms,
    monomial_cost,
    logs_beside_plain,
    weighted_terms,
]


def made(model: Callable[[], hc.Problem]) -> tuple[Form, SmoothConvex]:
    form = model().forms().hidden()
    assert form is not None
    found = smooth_convex(form.program)
    assert isinstance(found, SmoothConvex)
    return form, found


@pytest.mark.parametrize("model", CONVEX)
def test_the_smooth_program_has_the_values_and_slopes_of_the_form(
    model: Callable[[], hc.Problem],
) -> None:
    form, found = made(model)
    program, oracle = found.program, form.oracle()
    generator = np.random.default_rng(0)
    for _ in range(2):
        u = form.domain.sample(generator)
        here = oracle.at(u)
        count = here.inequalities
        expected, slopes = here.rows.copy(), np.asarray(here.jacobian @ np.eye(u.size))
        # rows that are converted are log left − log right in the program, left − right in the form
        for place, row in enumerate(found.converted):
            right = np.exp(found.exponents[[place]] @ u + found.offsets[place])[0]
            left = expected[row] + right
            power = np.ravel(found.exponents[[place]] @ np.eye(u.size))
            slopes[row] = (slopes[row] + right * power) / left - power
            expected[row] = np.log(left / right)
        values = program.values(u)
        assert values == pytest.approx([here.objective, *expected[:count]])
        weights = generator.uniform(0.5, 2.0, values.size)
        gradient = weights[0] * here.gradient + weights[1:] @ slopes[:count]
        assert program.gradient(u, weights) == pytest.approx(gradient)
        if here.rows.size > count:
            assert program.equality is not None
            assert program.equality_bound is not None
            left = program.equality @ u - program.equality_bound
            assert left[: here.rows.size - count] == pytest.approx(here.rows[count:])
            assert left[here.rows.size - count :] == pytest.approx(0, abs=1e-12)  # p adds up to 1
        step = 1e-5 * generator.normal(size=u.size)
        change = program.gradient(u + step, weights) - program.gradient(u - step, weights)
        own = sum(
            (each.hessian(u, weights[each.rows]) @ step for each in program.smooth),
            np.zeros(u.size),
        )
        slopes = sum(
            (
                weights[each.rows] @ (each.jacobian(u + step) - each.jacobian(u - step))
                for each in program.smooth
            ),
            np.zeros(u.size),
        )
        assert 2 * own == pytest.approx(np.ravel(slopes), rel=1e-4, abs=1e-9)
        assert np.isfinite(change).all()


def test_multipliers_of_converted_rows_are_divided_by_the_left_side() -> None:
    """log l − log r has the slope of l − r over l: over r = exp(u₀ + 2 u₁ + ½) with room, else over l."""
    u, right = np.array([0.25, -1.0]), 0.25 - 2.0 + 0.5
    for excess, expected in ((-3.0, np.exp(-right)), (0.75, np.exp(-right - 0.75))):
        values = np.array([9.0, 9.0, excess, 9.0])  # of the objective, then of three rows
        program: Any = SimpleNamespace(values=lambda _, v=values: v)
        found = SmoothConvex(
            program, 3, np.array([1]), np.array([[1.0, 2.0]]), np.array([0.5])
        ).factors(u)
        assert found == pytest.approx([1.0, expected, 1.0])


@pytest.mark.parametrize(
    ("model", "converted", "smooth"),
    [
        (declared_rows, [1, 2], 1),
        (logarithms, [], 0),
        (weighted_terms, [], 0),
        (monomial_cost, [], 1),  # log of an affine function of x, which is its own coordinate
        (affine_cost, [], 1),
        (logs_beside_plain, [], 2),  # squares and exponentials of z, in the objective and in a row
    ],
)
def test_sums_of_powers_need_no_functions_of_their_own(
    model: Callable[[], hc.Problem], converted: list[int], smooth: int
) -> None:
    _, found = made(model)
    assert found.converted.tolist() == converted
    assert len(found.program.smooth) == smooth


def test_squares_of_rows_are_parts_of_the_hessian(monkeypatch: pytest.MonkeyPatch) -> None:
    """S + p pᵀ or S − m mᵀ: low-rank parts on either side are added to the sparse part."""
    _, found = made(affine_cost)
    (rows,) = found.program.smooth
    sparse = scipy.sparse.csr_array(np.diag([2.0, 3.0]))
    column = np.array([[1.0], [2.0]])
    u, weights = np.zeros(2), np.ones(rows.rows.size)
    for given, expected in (
        ({}, np.diag([2.0, 3.0])),
        ({"plus": column}, np.array([[3.0, 2.0], [2.0, 7.0]])),
        ({"minus": column}, np.array([[1.0, -2.0], [-2.0, -1.0]])),
    ):
        whole = SparseHessian(sparse, **given)
        monkeypatch.setattr(smooth_convex_module, "with_squares", lambda *_, w=whole: w)
        hessian = rows.hessian(u, weights)
        assert hessian @ np.eye(2) == pytest.approx(expected)


def test_equalities_that_bend_and_cones_are_refused() -> None:
    # the equality of a sum of powers is no affine row, and a definite matrix is no box
    form, _ = made(logarithms)
    outer = form.canonical.outer
    assert outer.size > outer.inequalities
    p = hc.Variable((2, 2), PSD=True, name="P")
    matrices = hc.Problem(hc.Minimize(hc.trace(p) + hc.sum_squares(p - 1))).forms().hidden()
    assert matrices is not None
    assert isinstance(smooth_convex(matrices.program), Refusal)
    x = hc.Variable(2, name="x", bounds=(0.2, 5))
    bent = hc.Problem(hc.Minimize(x[0]), [hc.exp(x[0]) + x[1] == 3]).forms().written
    found = smooth_convex(bent.program)
    assert isinstance(found, Refusal)
    assert found.reason.startswith("1 equality")
    # nor is a sum of exponentials of the coordinates, as the declared logarithms have it
    sums = hc.Problem(hc.Minimize(x[0]), [x[0] + x[1] == 3, x[0] * x[1] == 2], hidden=[hc.log(x)])
    found = smooth_convex(sums.forms().as_declared().program)
    assert isinstance(found, Refusal)
    assert found.reason.startswith("2 equality")  # compared as they are written


# ---- rows that are bounds


def test_rows_that_are_bounds_hold_back_the_slope_that_points_at_them() -> None:
    """x₁ <= 3 and −2 x₀ <= 4, beside y: the slope 6 of x₀ is held at its lower end, −5 of x₁ above."""
    y, x = hc.Variable(2, name="y", bounds=(0, 1)), hc.Variable(2, name="x", bounds=(-9, 9))
    rows = [x[1] <= 3, hc.sum(y) + x[0] <= 8, -2 * x[0] <= 4]
    forms = hc.Problem(hc.Minimize(hc.sum_squares(x) + hc.sum(y)), rows).forms()
    bounds = forms.bounds
    assert isinstance(bounds, Bounds)
    after = bounds.after
    assert len(after.constraints) == 1
    own = after.layout.slice(bounds.renewed(x))
    other = after.layout.slice(bounds.renewed(y))

    def back(first: float, second: float) -> tuple[list[Any], FloatArray]:
        sets = np.zeros(after.layout.size)
        sets[own], sets[other] = [first, second], [0.5, -0.25]
        duals = Duals((np.array(7.0),), sets=sets)
        found = bounds.duals_back(np.zeros(after.layout.size), duals).rows
        return [float(each) for each in found], bounds.set_duals_back(np.zeros(4), sets)

    before = bounds.before.layout
    rest, slopes = back(6.0, -5.0)
    assert rest == [5.0, 7.0, 3.0]  # 6 over the factor 2
    assert slopes[before.slice(x)].tolist() == [0.0, 0.0]  # nothing is left for the box
    assert slopes[before.slice(y)].tolist() == [0.5, -0.25]
    rest, slopes = back(-6.0, 5.0)
    assert rest == [0.0, 7.0, 0.0]  # these slopes point away from the rows
    assert slopes[before.slice(x)].tolist() == [-6.0, 5.0]


def test_what_a_form_rests_on_besides_numbers() -> None:
    def kind(**given: Any) -> tuple[bool, ...]:
        return _kind(hc.Variable(**given).set)[1:]

    assert kind(bounds=(0, 2)) == (True, False, False, False)
    assert kind(bounds=(-2, 0)) == (False, True, False, False)
    assert kind(bounds=(-2, -2)) == (False, True, True, False)
    assert kind(shape=(2, 2), PSD=True, symmetric=True)[-1] is False
    assert kind(shape=(2, 2), PSD=0.5, symmetric=True)[-1] is True


# ---- matrix inequalities


def test_matrix_inequalities_are_differences_that_are_semidefinite() -> None:
    p = hc.Variable((2, 2), symmetric=True, name="P")
    zero, one = np.zeros((2, 2)), np.eye(2)

    def value(constraint: Any) -> FloatArray:
        p.value = np.array([[2.0, 1.0], [1.0, 5.0]])
        return np.asarray(difference(constraint).value)

    own = np.array([[2.0, 1.0], [1.0, 5.0]])
    assert value(p >> one) == pytest.approx(own - one)
    assert value(p << one) == pytest.approx(one - own)
    assert value(p >> zero) == pytest.approx(own)
    assert value(p << zero) == pytest.approx(-own)


def test_multipliers_of_matrix_inequalities_change_their_sign() -> None:
    p = hc.Variable((2, 2), symmetric=True, name="P", bounds=(-5, 5))
    model = hc.Problem(hc.Minimize(hc.trace(p)), [p[0, 1] <= 1, 2 * p >> np.eye(2)]).model
    own = Semidefinite.of(model)
    dual = np.array([[1.0, 2.0], [2.0, 3.0]])
    for walk in (own.duals, own.duals_back):
        first, second = walk(np.zeros(1), Duals((np.array(4.0), dual))).rows
        assert float(first) == 4.0
        assert second == pytest.approx(-dual)
        assert walk(np.zeros(1), Duals((np.array(4.0), None))).rows[1] is None
    assert [each.name for each in own.slacks] == ["slack·c2"]
    named = hc.Problem(hc.Minimize(hc.trace(p)), [(2 * p >> np.eye(2)).named("large")]).model
    assert [each.name for each in Semidefinite.of(named).slacks] == ["slack·large"]


def test_the_tightest_matrix_rows_are_limits_of_eigenvalues() -> None:
    """P >= 2 I, P >= 3 I and P <= 5 I: the second and the third say it all."""

    def limits(kind: Any) -> tuple[list[bool], list[tuple[float, float]]]:
        p = hc.Variable((2, 2), symmetric=True, PSD=kind, name="P")
        slack = hc.Variable((2, 2), symmetric=True, PSD=True)
        given = [(1.0, -2.0), (1.0, -3.0), (-1.0, 5.0), (1.0, -3.0)]
        rows = [MatrixRow(i, p, slack, factor, shift) for i, (factor, shift) in enumerate(given)]
        taken, found = eigenvalue_limits(rows)
        return [row.own for row in taken], list(found.values())

    assert limits(True) == ([False, True, True, False], [(3.0, 5.0)])
    assert limits((3.0, 9.0)) == ([False, False, True, False], [(3.0, 5.0)])
    assert limits((4.0, 4.5)) == ([False] * 4, [])  # its own set is tighter
    assert limits((6.0, 9.0)) == ([], [])  # nothing is between 6 and 5


def test_only_affine_functions_of_a_matrix_with_one_factor_are_limits() -> None:
    p = hc.Variable((2, 2), symmetric=True, name="P", bounds=(-9, 9))
    one = np.eye(2)

    def rows(constraint: Any) -> int:
        model = hc.Problem(hc.Minimize(hc.trace(p)), [constraint]).forms()
        return len(model.bounds.before.constraints) - len(model.bounds.after.constraints)

    assert rows(p >> one) == 1
    assert rows(3 * p - 2 * one >> 0 * one) == 1
    assert rows(p << 4 * one) == 0  # leaves room for negative eigenvalues
    assert rows(p >> np.array([[1.0, 0.5], [0.5, 1.0]])) == 0
    assert rows(np.array([[1.0, 2.0], [2.0, 1.0]]) * p >> one) == 0


# ---- forms of rows and of objectives


def test_multipliers_follow_the_slopes_of_logarithms() -> None:
    """log f and log l − log r: a multiplier of the form times (1/max(l, r))/(1/f) is one of l − r."""
    x = hc.Variable(2, name="x", bounds=(0.2, 5))
    problem = hc.Problem(hc.Minimize(x[0] + 3 / x[1]), [x[0] * x[1] <= 2, 1 / x[0] <= 4])
    form = problem.forms().hidden()
    assert form is not None
    (own,) = [each for each in form.chain.steps if isinstance(each, NormalRows)]
    assert own.after.objective_form == "log"
    point = np.array([2.0, 0.5])
    duals = Duals((np.array(5.0), np.array(7.0)))
    value, larger = 2 + 3 / 0.5, (2.0, 4.0)
    there = own.duals_back(point, duals).rows
    assert [float(each) for each in there] == pytest.approx(
        [5 * value / larger[0], 7 * value / larger[1]]
    )
    again = own.duals(point, Duals(there)).rows
    assert [float(each) for each in again] == pytest.approx([5.0, 7.0])
    # multipliers of bounds belong to the objective itself: over the slope 1/f of its logarithm
    sets = np.array([1.0, -2.0])
    assert own.set_duals_back(point, sets) == pytest.approx(sets * value)


def test_slopes_of_logarithmic_coordinates() -> None:
    x, z = hc.Variable(name="x", bounds=(0.2, 5)), hc.Variable(name="z", bounds=(-2, 2))
    model = hc.Problem(hc.Minimize(1 / x + x + z)).model
    end = Smooth.of(model, Compiler(), coordinates={x: "log", z: "affine"})
    u = np.zeros(2)
    place = end.after.canonical.layout.slice
    u[place(x)], u[place(z)] = np.log(4.0), 1.5
    ones = np.ones(2)
    assert end.tangent_back(u, ones)[place(x)] == pytest.approx(4.0)
    assert end.tangent_back(u, ones)[place(z)] == pytest.approx(1.0)
    assert end.cotangent(u, ones)[place(x)] == pytest.approx(4.0)
    # ∂L/∂x = (∂L/∂u)/(∂x/∂u)
    assert end.set_duals_back(u, ones)[place(x)] == pytest.approx(0.25)
    assert end.set_duals_back(u, ones)[place(z)] == pytest.approx(1.0)


def test_only_matrices_that_are_no_coordinates_themselves_are_curved() -> None:
    p, q = (hc.Variable((2, 2), PSD=True, symmetric=True, name=name) for name in "PQ")
    x = hc.Variable(2, name="x", bounds=(0, 1))
    k: Expression = hc.sum(x)
    assert curved_variables([p, k], [p, q, x]) == (q,)
    assert curved_variables([k], [p, x]) == (p,)


# ---- maps


def test_numbers_differ_by_more_than_their_rounding() -> None:
    agreement = substitution.AGREEMENT

    def differ(difference: float, one: float, size: float) -> bool:
        return substitution._differ(np.array(one), np.array(one + difference), np.array(size))

    # relative to the value and to the size of the terms that were added
    assert not differ(0.9 * agreement * 8, 3.0, 5.0)
    assert differ(1.1 * agreement * 8, 3.0, 5.0)
    assert not differ(0.9 * agreement * 8, -3.0, 5.0)


def test_declared_coordinates_are_explained_by_affine_functions_of_the_new_ones() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    problem = hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 2])
    model = problem.model
    own: Any = SimpleNamespace(
        before=model,
        after=model,
        point=np.log,  # as if the new variables were logarithms
    )
    explains = substitution.Substitution.explains
    assert explains(own, [hc.log(x)])
    assert explains(own, [hc.log(x[0]) - 3 * hc.log(x[1]) + 5, 1e-6 * hc.log(x[1])])
    assert not explains(own, [hc.log(x), x[0]])
    assert not explains(own, [1e-6 * x[0]])  # relative to the size of the coordinate
    assert not explains(own, [1e6 * x[0]])
    assert not explains(own, [hc.log(x[0] - 1)])  # not defined everywhere


def test_multipliers_are_divided_by_factors_and_folded_to_a_triangle() -> None:
    row: Any = SimpleNamespace(entries=None, leading=None)
    dual = np.array([4.0, 6.0])
    found = substitution._divided(dual, np.array(2.0), row)
    assert found is not None
    assert found.tolist() == [2.0, 3.0]
    assert substitution._divided(None, np.array(2.0), row) is None
    square = np.array([[1.0, 2.0], [3.0, 4.0]])
    kept = substitution._divided(square, np.array(1.0), row)
    assert kept is not None
    assert kept.tolist() == square.tolist()
    upper: Any = SimpleNamespace(entries=np.array([0, 1, 3]), leading=None)
    kept = substitution._divided(square, np.array(0.5), upper)
    assert kept is not None
    assert kept.tolist() == [[2.0, 10.0], [0.0, 8.0]]  # of both entries off the diagonal
    flat = substitution._divided(dual, np.array(2.0), upper)
    assert flat is not None
    assert flat.tolist() == [2.0, 3.0]
    leading: Any = SimpleNamespace(entries=None, leading=2, sums=np.zeros((3, 3)))
    kept = substitution._divided(square, np.array(1.0), leading)
    assert kept is not None
    assert kept.tolist() == [[1.0, 2.0, 0.0], [3.0, 4.0, 0.0], [0.0, 0.0, 0.0]]


def substituted(problem: hc.Problem) -> substitution.Substitution:
    form = problem.forms().hidden()
    assert form is not None
    (own,) = [each for each in form.chain.steps if isinstance(each, substitution.Substitution)]
    return own


def ratio() -> substitution.Substitution:
    """A ratio of affine functions: t is 2 over the denominator, and rows are multiplied by it."""
    x = hc.Variable(2, name="x", bounds=(0, 5))
    cost = (2 * x[0] + x[1] + 1) / (x[0] + 3 * x[1] + 2)
    return substituted(hc.Problem(hc.Minimize(cost), [x[0] + x[1] >= 1, x[0] - 2 * x[1] <= 3]))


def test_a_rewriting_that_changes_a_number_is_noticed() -> None:
    own = ratio()
    assert own.disagreement() is None
    rows = own.after.constraints
    for position in (0, 1):
        changed = list(rows)
        changed[position] = rows[position].like(1.001 * rows[position].lhs, rows[position].rhs)
        after = replace(own.after, constraints=tuple(changed))
        other = substitution.Substitution(own.before, after, own.steps)
        assert other.disagreement() == f"the rewriting changed c{position + 1}"
    cost = own.after.objective.expression
    after = replace(own.after, objective=hc.Minimize(1.001 * cost))
    other = substitution.Substitution(own.before, after, own.steps)
    assert other.disagreement() == "the rewriting changed the objective"


def test_multipliers_of_rows_that_are_multiplied_by_a_variable() -> None:
    """At (1, 1) the denominator is 6, so that t is ⅓."""
    own = ratio()
    u = own.point(np.ones(2))
    names = [each.name for each in own.after.variables]
    point = dict(zip(names, own.after.layout.unpack(np, u), strict=True))
    assert float(point["t"]) == pytest.approx(1 / 3)
    assert own.point_back(u) == pytest.approx([1.0, 1.0])
    back = own.duals_back(u, Duals((np.array(6.0), np.array(9.0), None, None)))
    assert [float(each) for each in back.rows] == pytest.approx([2.0, 3.0])
    there = own.duals(np.ones(2), Duals((np.array(2.0), np.array(3.0)))).rows
    assert [None if each is None else float(each) for each in there] == [
        pytest.approx(6.0),
        pytest.approx(9.0),
        None,
        None,
    ]
    assert own.duals_back(u, Duals((None, np.array(9.0), None, None))).rows[0] is None
    # what moves x when u moves, by differences
    step = 1e-6 * np.array([1.0, -2.0, 0.5])[: u.size]
    change = (own.point_back(u + step) - own.point_back(u - step)) / 2
    assert own.tangent_back(u, step) == pytest.approx(change, rel=1e-4)
    weights = np.array([2.0, -1.0])
    assert own.cotangent(u, weights) @ step == pytest.approx(weights @ change, rel=1e-4)


@pytest.mark.parametrize("root", [False, True])
def test_values_and_slopes_of_functions_around_the_objective(root: bool) -> None:
    """A squared ratio, or a root of one, is the outer function of what is minimised."""
    x = hc.Variable(2, name="x", bounds=(0.1, 5))
    matrix = np.array([[2.0, 0.5], [0.5, 1.0]])
    form = x @ matrix @ x
    cost = hc.sqrt(form / hc.sum(x)) if root else form / hc.sum(x) ** 2
    own = substituted(hc.Problem(hc.Minimize(cost), [x[0] <= 2 * x[1]]))
    point = np.array([1.0, 0.75])
    u = own.point(point)
    inner = float(np.sum(own.after.values_at(u)[0]))
    value = float(own.before.values_at(point)[0])
    assert own.value_back(inner) == pytest.approx(value)
    assert own.value(value) == pytest.approx(inner)
    slope = (own.value_back(inner + 1e-6) - own.value_back(inner - 1e-6)) / 2e-6
    assert own._slope(u) == pytest.approx(slope, rel=1e-6)
    assert own.disagreement() is None


# ---- small parts


def test_objects_are_the_same_one_by_one() -> None:
    one, two = object(), object()
    assert same_objects([one, two], [one, two])
    assert not same_objects([one, two], [one, one])
    assert not same_objects([one], [one, two])


def test_products_of_rows_with_single_entries_and_with_others() -> None:
    single = Rows(np.array([2.0, 3.0]), np.array([1, 0]), np.array([0, 1, 2]), 2)
    both = Rows(np.array([1.0, 4.0, 5.0]), np.array([0, 1, 1]), np.array([0, 2, 3]), 2)

    def dense(rows: Rows) -> FloatArray:
        found = np.zeros(rows.shape)
        row, column, value = rows.entries()
        np.add.at(found, (row, column), value)
        return found

    for left in (single, both):
        for right in (single, both):
            assert dense(left @ right) == pytest.approx(dense(left) @ dense(right))
        assert left @ np.array([1.0, 10.0]) == pytest.approx(dense(left) @ [1.0, 10.0])


def test_a_chain_knows_whether_rows_were_made_bounds() -> None:
    x = hc.Variable(2, name="x", bounds=(-9, 9))
    rows = [x[0] <= 3, hc.sum_squares(x) <= 20]
    with_rows = hc.Problem(hc.Minimize(hc.sum(x)), rows).forms().hidden()
    without = hc.Problem(hc.Minimize(hc.sum(x)), rows[1:]).forms().hidden()
    assert with_rows is not None
    assert without is not None
    assert isinstance(with_rows.chain, Chain)
    assert with_rows.chain.has_bound_rows
    assert not without.chain.has_bound_rows


@pytest.mark.parametrize("axis", [0, 1, None])
def test_sums_over_an_axis_of_a_square_array(axis: int | None) -> None:
    x = hc.Variable((3, 3), name="x")
    node: Any = hc.sum(x, axis=axis)
    found = coefficients(node, 0, [None], [Facts()[x].argument])
    assert found is not None
    dense = np.zeros(found.shape)
    rows, columns, values = found.entries()
    np.add.at(dense, (rows, columns), values)
    numbers = np.arange(9.0)
    assert dense @ numbers == pytest.approx(np.ravel(numbers.reshape(3, 3).sum(axis=axis)))


@pytest.mark.parametrize(
    ("interval", "sign", "bounds", "positive"),
    [
        ((-1.0, 2.0), "unknown", (-1.0, 2.0), False),
        ((0.5, 2.0), "unknown", (0.5, 2.0), True),
        ((0.0, 2.0), "positive", (0.0, 2.0), True),
        ((0.0, 2.0), "nonnegative", (0.0, 2.0), False),
        ((np.inf, np.inf), "unknown", (-np.inf, np.inf), False),  # defined nowhere
        ((-np.inf, -np.inf), "unknown", (-np.inf, np.inf), False),
        ((3.0, 2.0), "unknown", (-np.inf, np.inf), False),
    ],
)
def test_the_range_of_a_variable_that_bounds_something(
    interval: tuple[float, float], sign: str, bounds: tuple[float, float], positive: bool
) -> None:
    x = hc.Variable(name="x")
    known = SimpleNamespace(
        interval=tuple(np.asarray(end) for end in interval), sign=SimpleNamespace(value=sign)
    )
    builder = _Builder(type("Known", (), {"__getitem__": lambda _, e: known})(), {}, {})
    t = builder.bound(hc.exp(x))
    assert (float(t.lower), float(t.upper), t.set.positive) == (*bounds, positive)
    assert t.name == "bound·1"
    assert builder.bound(hc.exp(x)).name == "bound·2"
    for constant in (-2.0, -1.0, 0.0, 0.5):  # higher bounds rest on those of x
        assert builder._is_bound(hc.Constant(constant), t) == (bounds[0] == constant)
    assert not builder._is_bound(hc.Constant(7.0), t)
    assert not builder._is_bound(x, t)


def test_directions_go_through_functions_as_they_rise_or_fall() -> None:
    up, down, both = lift_module.UP, lift_module.DOWN, lift_module.BOTH
    through = lift_module._through
    for bits in (up, down, both):
        assert through(Monotonicity.INCREASING, bits) == bits
        assert through(Monotonicity.CONSTANT, bits) == 0
        assert through(Monotonicity.UNKNOWN, bits) == both
    assert through(Monotonicity.DECREASING, up) == down
    assert through(Monotonicity.DECREASING, down) == up
    assert through(Monotonicity.DECREASING, both) == both
    assert through(Monotonicity.UNKNOWN, 0) == 0


def test_rows_that_were_added_for_kinks_come_from_no_constraint() -> None:
    x = hc.Variable(3, name="x", bounds=(-2, 2))
    model = hc.Problem(hc.Minimize(hc.max(x)), [hc.sum(x) <= 1, x[0] - x[1] <= 2]).model
    own = lift_module.Lift.of(model)
    assert len(own.after.constraints) > 2
    assert [own.origin(Origin(i)) for i in (0, 1, 2)] == [Origin(0), Origin(1), None]
    same = own.after.constraints[:2]
    assert same == model.constraints  # rows without kinks stay as they are
    kinked = hc.Problem(hc.Minimize(hc.sum(x)), [hc.abs(x[0]) <= 1, x[1] <= x[2]]).model
    lifted = lift_module.Lift.of(kinked).after.constraints
    assert lifted[0] is not kinked.constraints[0]
    assert lifted[1] is kinked.constraints[1]


def test_multipliers_of_kinks_are_kept_beside_those_of_the_rows() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    own = lift_module.Lift.of(hc.Problem(hc.Minimize(hc.max(x)), [x[0] + x[1] <= 1]).model)
    assert len(own.after.constraints) == 2
    given = Duals((np.array(5.0), np.array([1.0, 2.0])))
    back = own.duals_back(np.zeros(3), given)
    assert [float(each) for each in back.rows] == [5.0]
    (kept,) = back.added.values()
    assert kept.tolist() == [1.0, 2.0]
    there = own.duals(np.zeros(2), back).rows
    assert [np.ravel(each).tolist() for each in there] == [[5.0], [1.0, 2.0]]
    unknown = own.duals_back(np.zeros(3), Duals((np.array(5.0), None)))
    assert not unknown.added


def test_what_bounds_kinks_is_numbered_with_the_slacks_among_them() -> None:
    p = hc.Variable((2, 2), name="P", symmetric=True, bounds=(-1, 1))
    own = lift_module.Lift.of(hc.Problem(hc.Minimize(hc.lambda_max(p) + hc.max(p))).model)
    names = [each.variable.name for each in own.definitions]
    assert names == ["bound·1", "bound·2", "bound·3"]


def test_kinks_inside_of_kinks_that_stay_are_lifted_where_these_rise() -> None:
    """−|min(x)| with x > 0: |·| cannot be bounded from below, but it rises with min(x), which can."""
    x = hc.Variable(2, name="x", bounds=(1, 2))
    own = lift_module.Lift.of(hc.Problem(hc.Minimize(-hc.abs(hc.min(x)))).model)
    assert [str(each.expression) for each in own.definitions] == ["min(x)"]


def test_matrix_rows_that_are_bounds_have_multipliers_as_written() -> None:
    """min <C, P> with P >= ½ I has the multiplier C; max <C, P> with P <= 4 I as well."""
    c = np.array([[1.2, 0.3], [0.3, 0.8]])
    p = hc.Variable((2, 2), symmetric=True, name="P", PSD=True)
    above, below = p >> 0.5 * np.eye(2), p << 4 * np.eye(2)
    hc.Problem(hc.Minimize(hc.trace(c @ p)), [above, below]).solve()
    assert above.dual_value == pytest.approx(c, abs=1e-5)
    assert below.dual_value == pytest.approx(np.zeros((2, 2)), abs=1e-5)
    hc.Problem(hc.Maximize(hc.trace(c @ p)), [above, below]).solve()
    assert np.abs(below.dual_value) == pytest.approx(c, abs=1e-5)
    assert above.dual_value == pytest.approx(np.zeros((2, 2)), abs=1e-5)
