"""Maps of the catalogue as reductions, and the forms made with them, against numbers by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.maps.expanded import Expanded
from hcmodel.reductions import smooth as smooth_module
from hcmodel.reductions.discovery import _multiplies_in_equality, discover
from hcmodel.reductions.forms import Form
from hcmodel.reductions.lift import Lift
from hcmodel.reductions.reduction import Duals, Origin
from hcmodel.reductions.smooth import SmoothProgram, _explicit_inverse
from hcmodel.reductions.substitution import Substitution, _differ
from hcmodel.solvers.numerics import DATA_ROUNDING


def hidden_form(problem: hc.Problem) -> Form:
    form = problem.forms().hidden()
    assert form is not None
    return form


def substitution(problem: hc.Problem) -> Substitution:
    (own,) = [each for each in hidden_form(problem).chain.steps if isinstance(each, Substitution)]
    return own


# ---- a product that is maximised beside a constant


def product_beside_a_constant() -> hc.Problem:
    x = hc.Variable(3, name="x", bounds=(0, 5))
    return hc.Problem(hc.Maximize(hc.prod(x) + 5), [hc.sum(x) <= 6])


def test_a_constant_beside_a_product_is_taken_off_before_the_logarithm() -> None:
    """−x₀x₁x₂ − 5 is minimised, and −x₀x₁x₂ is the objective of the model after it."""
    own = substitution(product_beside_a_constant())
    point = np.array([1.0, 2.0, 3.0])
    assert float(own.before.values_at(point)[0]) == pytest.approx(-11.0)
    after = float(np.sum(own.after.values_at(own.point(point))[0]))
    assert after == pytest.approx(-6.0)
    assert own.value(-11.0) == pytest.approx(-6.0)
    assert own.value_back(-6.0) == pytest.approx(-11.0)
    assert own.disagreement() is None
    # at equal sides of 2 the product is 8
    problem = product_beside_a_constant()
    assert problem.solve() == pytest.approx(13.0, rel=1e-6)
    assert problem.status == "optimal"


def test_the_slope_of_an_outer_function_is_taken_at_the_objective_with_its_constant() -> None:
    """value_back(v) = (v + shift)²: the slope at the objective 4 with the shift −1 is 2·3."""
    own = substitution(product_beside_a_constant())
    square = SimpleNamespace(value_back=lambda v: v * v, slope=lambda v: 2 * v)
    outer: Any = SimpleNamespace(
        _has_outer=True,
        _shift=-1.0,
        steps=(square,),
        after=own.after,
    )
    point = own.point(np.array([1.0, 2.0, 3.0]))  # the objective is −6
    assert Substitution._slope(outer, point) == pytest.approx(2 * (-6.0 - 1.0))


# ---- variables that are only exchanged


def renamed_model() -> hc.Problem:
    """The bounds at 0 leave the signs open: the objective shows that all are positive."""
    x, a = hc.Variable(2, name="x", bounds=(0, 5)), hc.Variable(name="a", bounds=(0, 9))
    rows = [hc.Constant(1.0) >= x[0] * x[1], (x[0] * a <= 3).named("n"), a * x[1] == 2]
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), rows)


def test_models_in_other_variables_keep_rows_and_names_and_turn_them_to_at_most() -> None:
    own = substitution(renamed_model())
    assert all(step.renamed for step in own.steps)
    assert [each.name for each in own.after.constraints] == ["c1", "n", "c3"]
    assert [each.sense for each in own.after.constraints] == ["<=", "<=", "=="]
    x, a = np.array([0.5, 2.0]), 1.5
    before, after = np.empty(3), np.empty(3)
    for model, vector in ((own.before, before), (own.after, after)):
        for variable in model.variables:
            vector[model.layout.slice(variable)] = x if variable.name == "x" else a
    objective, *sides = own.after.values_at(after)
    assert float(objective) == pytest.approx(1.0 + 8.0 + 0.5)
    assert [float(each) for each in sides] == pytest.approx([1.0, 1.0, 0.75, 3.0, 3.0, 2.0])
    assert own.point(before) == pytest.approx(after)
    assert own.point_back(after) == pytest.approx(before)


# ---- rows, factors and multipliers


def matrix_ratio() -> Substitution:
    """A ratio of affine functions of a matrix, with a row for each entry that is multiplied by t."""
    m = hc.Variable((2, 2), name="M", bounds=(0, 5))
    cost = (2 * m[0, 0] + m[1, 1] + 1) / (hc.sum(m) + 2)
    return substitution(hc.Problem(hc.Minimize(cost), [m + m[0, 0] <= 6, hc.sum(m) >= 1]))


def test_multipliers_of_matrices_are_not_made_symmetric() -> None:
    """Only rows of one triangle stand for both; at M = 1 the denominator is 6 = 2 · 3, so t is 1/3."""
    own = matrix_ratio()
    u = own.point(np.ones(4))
    dual = np.array([[3.0, 6.0], [9.0, 12.0]])
    added = [None] * (len(own.after.constraints) - 2)
    back = own.duals_back(u, Duals((dual, np.array(3.0), *added))).rows
    assert back[0] == pytest.approx(dual / 3)
    assert float(np.ravel(back[1])[0]) == pytest.approx(1.0)


def test_rows_that_a_map_adds_come_from_no_constraint() -> None:
    own = matrix_ratio()
    origins = [own.origin(Origin(i, (1,))) for i in range(len(own.after.constraints))]
    assert origins == [Origin(0, (1,)), Origin(1, (1,))] + [None] * (len(origins) - 2)


def test_a_rewriting_may_lose_what_cancels_and_no_more() -> None:
    """Sizes of rows are those of both sides, times the factor that a row is multiplied by."""
    own = matrix_ratio()
    point = np.array([1.0, 2.0, 0.5, 1.5])
    found = own._functions(point)
    assert found is not None
    names = [name for name, *_ in found]
    assert names[:3] == ["the objective", "constraint 1", "constraint 2"]
    t = 2 / (point.sum() + 2)  # of the map: 1 over half of the denominator
    _, one, two, size = found[1]
    assert one == pytest.approx(t * (point.reshape(2, 2) + 1.0 - 6.0))
    assert two == pytest.approx(one)
    assert size == pytest.approx(t * (point.reshape(2, 2) + 1.0 + 6.0))
    _, one, two, size = found[2]  # the row >= has the sign of <=
    assert float(one) == pytest.approx(t * (1.0 - point.sum()))
    assert float(two) == pytest.approx(t * (1.0 - point.sum()))
    assert float(size) == pytest.approx(t * (1.0 + point.sum()))
    for name, one, two, size in found[3:]:
        assert name == "the sets of the variables"
        assert not _differ(one, two, size)


def test_a_row_that_a_map_adds_has_to_hold_at_the_points_of_the_model() -> None:
    own = matrix_ratio()
    place = next(i for i, row in enumerate(own._rows) if row.position is None)
    row = own._rows[place]
    rows = list(own._rows)
    rows[place] = replace(row, sums=-row.sums)  # the other way round
    own._rows = tuple(rows)
    assert own.disagreement() == "the rewriting changed the sets of the variables"


# ---- which declared coordinates a map explains


def test_coordinates_are_explained_by_fits_to_every_entry() -> None:
    """One entry of a coordinate that is no affine function of the new variables is enough."""
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    model = hc.Problem(hc.Minimize(x[0] * x[1])).model
    own: Any = SimpleNamespace(before=model, after=model, point=lambda x: 1e3 * np.log(x))
    assert Substitution.explains(own, [hc.log(x)])
    assert not Substitution.explains(own, [hc.hstack([hc.log(x[0]), x[1]])])
    assert not Substitution.explains(own, [hc.hstack([x[1], hc.log(x[0])])])


# ---- the search


@pytest.mark.parametrize(
    ("row", "multiplies"),
    [
        (lambda x, z: z[0] * z[1] == 1, True),
        (lambda x, z: x[0] * z[1] == 1, True),
        (lambda x, z: z[0] * z[1] <= 1, False),  # only equalities have to be affine
        (lambda x, z: x[0] * x[1] == 1, False),  # affine in logarithms
        (lambda x, z: z[0] + 2 * z[1] == 1, False),
        (lambda x, z: z[0] == 1 / x[0], False),  # no product of variables alone
    ],
)
def test_equalities_with_products_of_variables_that_may_be_negative(
    row: Any, multiplies: bool
) -> None:
    x, z = hc.Variable(2, name="x", bounds=(0.5, 3)), hc.Variable(2, name="z", bounds=(-2, 3))
    model = hc.Problem(hc.Minimize(hc.sum(x) + hc.sum(z)), [row(x, z)]).model
    assert _multiplies_in_equality(Expanded.of(model)) == multiplies


def test_functions_of_the_user_are_not_asked_by_the_search() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    calls = []

    def own(values: Any) -> Any:
        calls.append(1)
        return values[0] * values[1]

    model = hc.Problem(hc.Minimize(hc.function(own, x))).model
    found = discover(model)
    assert found.substitution is None
    assert not found.obstacles
    assert not calls


# ---- forms


def test_ranges_that_a_map_implies_are_widened_by_rounding() -> None:
    x = hc.Variable(3, name="x", bounds=(1, 3))
    form = hidden_form(hc.Problem(hc.Minimize(hc.sum_squares(x))))
    ends = (np.array([-4.0, 0.0, 2.0]), np.array([-2.0, 1.0, 8.0]))
    lower, upper = replace(form, implied={"x": ends}).implied_ends()
    assert (lower - ends[0]).tolist() == pytest.approx(
        [-4 * DATA_ROUNDING, 0.0, -2 * DATA_ROUNDING], rel=1e-3
    )
    assert (upper - ends[1]).tolist() == pytest.approx(
        [2 * DATA_ROUNDING, DATA_ROUNDING, 8 * DATA_ROUNDING], rel=1e-3
    )


def test_the_variables_that_declared_coordinates_leave_open_are_named() -> None:
    """In log(x·y) and z, x and y move against each other, and z stands still."""
    x, y, z = (hc.Variable(name=name, bounds=(1, 100)) for name in "xyz")
    cost = x * y + 1 / (x * y) + hc.sin(z)
    problem = hc.Problem(hc.Minimize(cost), hidden=[hc.log(x * y), hc.log(x * y) + z, z])
    with pytest.raises(hc.ModelError, match="do not determine x, y:"):
        problem.forms().as_declared()


@pytest.mark.parametrize(
    ("size", "mapped", "sparse", "black_boxes", "affords"),
    [
        (smooth_module.DENSE_LIMIT, False, False, False, True),
        (smooth_module.DENSE_LIMIT, True, False, False, True),
        (smooth_module.DENSE_LIMIT, False, False, True, False),
        (smooth_module.DENSE_LIMIT + 1, False, True, False, True),
        (smooth_module.DENSE_LIMIT + 1, False, False, False, False),
        (smooth_module.DENSE_LIMIT + 1, True, True, False, False),  # a map makes it dense
        (smooth_module.SPARSE_LIMIT, False, True, False, True),
        (smooth_module.SPARSE_LIMIT + 1, False, True, False, False),
    ],
)
def test_when_second_derivatives_are_worth_their_price(
    size: int, mapped: bool, sparse: bool, black_boxes: bool, affords: bool
) -> None:
    program = SimpleNamespace(
        compiled=SimpleNamespace(has_black_boxes=black_boxes, sparse_hessian=sparse),
        layout=SimpleNamespace(size=size),
        map_geometry=object() if mapped else None,
    )
    assert SmoothProgram.affords_hessian.fget(program) == affords  # type: ignore[attr-defined]


def test_inverses_of_code_are_used_where_all_coordinates_have_one() -> None:
    def inverse(u: Any) -> Any:
        return u / 2

    x, z = hc.Variable(2, name="x", bounds=(0.5, 3)), hc.Variable(name="z", bounds=(-2, 3))
    p = hc.Variable((2, 2), name="P", PSD=True)
    twice = hc.Map(lambda x: 2 * x, inverse=inverse)(x)
    blind = hc.Map(lambda x: 2 * x)(x)

    def layout(*variables: Any) -> Any:
        cost = sum((hc.sum(each) for each in variables), start=hc.Constant(0.0))
        return hc.Problem(hc.Minimize(cost)).model.layout

    both = layout(x, z)
    found = _explicit_inverse([twice, z], both)
    assert found is not None
    point = found(np.array([2.0, 4.0, 7.0]))
    assert point[both.slice(x)] == pytest.approx([1.0, 2.0])
    assert point[both.slice(z)] == pytest.approx(7.0)
    assert _explicit_inverse([blind, z], both) is None  # no inverse
    assert _explicit_inverse([twice, hc.exp(z)], both) is None  # an expression
    assert _explicit_inverse([x, z], both) is None  # no code at all
    assert _explicit_inverse([twice, p], layout(x, p)) is None  # a cone is no box


def test_the_compiler_keeps_the_last_forms_only() -> None:
    compiler = smooth_module.Compiler("autograd")
    x = hc.Variable(name="x", bounds=(1, 2))
    models = [hc.Problem(hc.Minimize(number * x)).model for number in range(2, 13)]
    first = [compiler.canonical(model) for model in models]
    assert len(compiler._canonical) == smooth_module.KEPT
    assert compiler.canonical(models[-1]).roots == first[-1].roots
    for model in models:
        compiler.stack([model.objective.expression], model.layout)
    assert len(compiler._known) == smooth_module.KEPT
    assert compiler.compilations == len(models)
    compiler.stack([models[-1].objective.expression], models[-1].layout)
    assert compiler.compilations == len(models)  # the last one is known
    compiler.stack([models[0].objective.expression], models[0].layout)
    assert compiler.compilations == len(models) + 1  # the first is not


def test_kinks_are_lifted_again_where_ranges_have_changed() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    cap = hc.Parameter(name="cap", value=1.0)
    own = Lift.of(hc.Problem(hc.Minimize(hc.max(x * cap) + hc.abs(x[0]))).model)
    assert own.refresh()
    cap.value = 3.0  # max(x · cap) is now between −6 and 6
    assert not own.refresh()
    smooth = Lift.of(hc.Problem(hc.Minimize(hc.sum(x * cap))).model)
    assert smooth.refresh()


def test_the_share_of_entries_of_linear_programs_only() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 2))
    linear = hidden_form(hc.Problem(hc.Minimize(x[0]), [x[0] + x[1] <= 1, x[0] - x[1] <= 1]))
    assert linear.linear_density == pytest.approx(5 / 6)  # the objective is the first of three rows
    bent = hidden_form(hc.Problem(hc.Minimize(hc.exp(x[0])), [x[0] + x[1] <= 1]))
    assert bent.linear_density is None
    norm = hidden_form(hc.Problem(hc.Minimize(hc.norm(x)), [x[0] + x[1] <= 1]))
    assert norm.linear_density is None  # no smooth program at all
