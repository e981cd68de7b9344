"""Maps of the catalogue as reductions, and the forms made with them, against numbers by hand."""

from __future__ import annotations

import copy
import functools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.map import Step
from hcmodel.proof.prove import Proof
from hcmodel.reductions import discovery as discovery_module
from hcmodel.reductions import smooth as smooth_module
from hcmodel.reductions import substitution as substitution_module
from hcmodel.reductions.discovery import (
    SearchLimits,
    _attempted,
    _multiplies_in_equality,
    _proposals,
    discover,
)
from hcmodel.reductions.form import Form
from hcmodel.reductions.lift import Lift
from hcmodel.reductions.reduction import Claim, Duals, Origin
from hcmodel.reductions.smooth import SmoothProgram, _explicit_inverse
from hcmodel.reductions.substitution import Substitution, _defined, _differ, functions_after
from hcmodel.solvers.numerics import DATA_ROUNDING
from tests.problems.examples import loaded


def hidden_form(problem: hc.Problem) -> Form:
    form = problem.forms().hidden()
    assert form is not None
    return form


def substitution(problem: hc.Problem) -> Substitution:
    (own,) = [each for each in hidden_form(problem).chain.steps if isinstance(each, Substitution)]
    return own


# ---- a product that is maximised beside a constant


@functools.cache
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


@functools.cache
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
    assert names[:3] == ["the objective", "c1", "c2"]
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
    own = copy.copy(matrix_ratio())
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
    own.point = lambda x: np.full(2, np.nan)  # points without an image
    assert not Substitution.explains(own, [hc.log(x)])


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
    # z moves by a millionth of what x moves, which is rounding to the eye
    small = z + 1e-6 * hc.log(x)
    problem = hc.Problem(hc.Minimize(cost), hidden=[hc.log(x * y), hc.log(x * y) + small, small])
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


# ---- which form is taken, and what is kept of it


def test_a_form_is_found_once_for_each_value_and_kind_of_question() -> None:
    """With a text the failure names a place in it, so that the question is another one."""
    problem = hc.parse("var z in [-2, 2]\nminimize sin(3*z)")
    forms, source = problem.forms(), problem.forms().model.source
    calls = []
    found = forms._found

    def counted(given: Any) -> Any:
        calls.append(given)
        return found(given)

    forms._found = counted  # type: ignore[method-assign]
    for given, count in ((None, 1), (None, 1), (source, 2), (source, 2), (None, 3)):
        assert forms.hidden(given) is None
        assert len(calls) == count
    assert forms.failure is not None
    # in the user's words where a text is given
    assert "sin(3*z)" in str(forms.prove(source=source).failure)
    assert "sin(3 * z)" in str(forms.prove().failure)


def test_the_form_at_hand_comes_first_and_declared_coordinates_are_not_passed_over() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    one, two, three = (object() for _ in range(3))
    for hidden, renewed, visible, expected in (
        (None, one, two, one),
        (None, None, two, two),
        (None, None, None, three),
        ([hc.log(x)], None, two, three),
        ([hc.log(x)], one, two, one),
    ):
        forms: Any = hc.Problem(hc.Minimize(x[0] * x[1]), hidden=hidden).forms()
        asked: list[str] = []
        forms._renewed_form = lambda renewed=renewed: renewed
        forms._visible_form = lambda visible=visible, asked=asked: asked.append("") or visible
        forms._found = lambda source: three
        assert forms.hidden() is expected
        assert len(asked) == (hidden is None and renewed is None)


def test_geometric_programs_are_seen_where_all_variables_have_logarithms() -> None:
    x, z = hc.Variable(2, name="x", bounds=(0.5, 3)), hc.Variable(name="z", bounds=(-2, 3))
    cost = x[0] * x[1] + 1 / x[0] + 1 / x[1]
    assert hc.Problem(hc.Minimize(cost)).forms()._visible_form() is not None
    assert hc.Problem(hc.Minimize(cost + z)).forms()._visible_form() is None
    assert hc.Problem(hc.Minimize(cost + hc.max(x))).forms()._visible_form() is None


def test_what_keeps_a_model_from_a_proof_is_kept_where_no_form_was_found() -> None:
    x = hc.Variable(2, name="x", bounds=(0, 5))
    ratio = hc.Problem(hc.Minimize((2 * x[0] + 1) / (x[1] + 3)), [x[0] + x[1] >= 1]).forms()
    assert ratio.hidden() is not None
    assert ratio.failure is None
    assert ratio.discovery is ratio.discovery
    waves = hc.Problem(hc.Minimize(hc.sin(3 * x[0]) + x[1])).forms()
    assert waves.hidden() is None
    assert waves.failure is not None


def test_new_values_of_parameters_are_a_new_search() -> None:
    x = hc.Variable(2, name="x", bounds=(0, 5))
    weight = hc.Parameter(name="weight", value=3.0)
    cost = (2 * x[0] + 1) / (x[1] + weight)
    forms = hc.Problem(hc.Minimize(cost), [x[0] + x[1] >= 1]).forms()
    first = forms.discovery
    assert forms.discovery is first
    weight.value = 4.0
    assert forms.discovery is not first


@pytest.mark.parametrize(
    ("make", "visible"),
    [
        (lambda x, z: x[0] * x[1] + 1 / x[0], True),  # arrays of sums
        (lambda x, z: x[0] * x[1] + 1 / x[0] + z, True),  # an affine function beside them
        (lambda x, z: x[0] * x[1] + 1 / x[0] + hc.square(z), False),
    ],
)
def test_arrays_show_convexity_of_sums_of_powers_and_affine_functions(
    make: Any, visible: bool
) -> None:
    x, z = hc.Variable(2, name="x", bounds=(0.5, 3)), hc.Variable(name="z", bounds=(-2, 3))
    form = hidden_form(hc.Problem(hc.Minimize(make(x, z))))
    assert form.is_structured == visible
    if isinstance(form.found_last, Proof):
        assert form.last is form.found_last  # it is not proven again
        assert replace(form, renewed=True).last is not form.found_last
    assert replace(form, found_last=None).last is None


def test_a_form_whose_arrays_show_convexity_is_taken_with_new_values() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    cap = hc.Parameter(name="cap", value=2.0, pos=True)
    problem = hc.Problem(hc.Minimize(1 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap])
    forms = problem.forms()
    first = hidden_form(problem)
    assert not first.renewed
    cap.value = 3.0
    again = forms.hidden()
    assert again is not None
    assert again.renewed
    assert again.chain is first.chain
    # a form that is declared and not proven has nothing that could be renewed
    waves = hc.Problem(hc.Minimize(cap * hc.sin(x[0])), hidden=[hc.log(x)]).forms()
    assert waves.hidden() is not None
    cap.value = 4.0
    found = waves.hidden()
    assert found is not None
    assert not found.renewed


def test_compiled_forms_of_kinks_are_kept_and_their_proof_is_of_their_own_variables() -> None:
    """The variables that bound kinks are new for each value; the model before them is compared."""
    x = hc.Variable(2, name="x", bounds=(0.5, 3))
    cap = hc.Parameter(name="cap", value=2.0, pos=True)
    cost = x[0] * x[1] + hc.abs(hc.log(x[0]) - 1) + cap / x[1]
    forms = hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= cap]).forms()
    first = forms.hidden()
    assert first is not None
    forms.refresh()
    compilations = forms.compiler.compilations
    cap.value = 2.5
    forms.refresh()
    second = forms.hidden()
    assert second is not None
    assert forms.compiler.compilations == compilations
    for form in (first, second):
        assert form.last is not None
        assert set(form.last.coordinates) == set(form.chain.end.before.variables)


def test_slopes_are_walked_back_where_rows_are_bounds_and_there_are_slopes() -> None:
    """The gradient of the Lagrangian: gradient + Jᵀ λ."""
    given: list[Any] = []

    def back(point: Any, multipliers: Any, slope: Any, factors: Any) -> str:
        given.append(slope)
        return "walked"

    jacobian = np.array([[1.0, 2.0], [3.0, 4.0]])
    for bound_rows in (False, True):
        for differentiable in (False, True):
            chain = SimpleNamespace(has_bound_rows=bound_rows, duals_back=back)
            evaluation: Any = SimpleNamespace(
                point=None,
                differentiable=differentiable,
                row_factors=None,
                gradient=np.array([10.0, 20.0]),
                jacobian=jacobian,
            )
            own: Any = SimpleNamespace(chain=chain)
            assert Form.duals(own, evaluation, np.array([1.0, -1.0])) == "walked"
    assert given[:3] == [None, None, None]
    assert given[3].tolist() == [10.0 + 1 - 3, 20.0 + 2 - 4]


def test_bounds_bend_where_there_are_some_on_entries_that_are_no_coordinates() -> None:
    x, y, z = hc.Variable(2, name="x", bounds=(0, 1)), hc.Variable(name="y"), hc.Variable(name="z")
    z = hc.Variable(name="z", bounds=(0, 1))
    layout = hc.Problem(hc.Minimize(hc.sum(x) + y + z)).model.layout
    marked = np.zeros(4, dtype=bool)
    marked[layout.slice(x)] = [False, True]
    marked[layout.slice(y)] = True
    own: Any = SimpleNamespace(map_geometry=SimpleNamespace(bending=marked), layout=layout)
    assert SmoothProgram.bending.func(own) == (x,)  # type: ignore[attr-defined]
    own.map_geometry = None
    assert SmoothProgram.bending.func(own) == ()  # type: ignore[attr-defined]


# ---- parts of substitutions


def test_a_point_fits_where_it_fits_all_maps() -> None:
    class Fitting(SimpleNamespace):
        settle = Step.settle

        def forward(self, point: Any) -> None:
            """Nothing is new."""

        def fits(self, point: Any) -> bool:
            return bool(self.answer)

    for answers in ((True, True), (False, True), (True, False)):
        own: Any = SimpleNamespace(steps=tuple(Fitting(answer=each) for each in answers))
        assert Substitution._settled(own, {}) == all(answers)


def test_variables_that_the_model_after_it_does_not_need_are_in_the_middle_or_stand_still() -> None:
    x, q, t, s = (hc.Variable(name=name, bounds=(-2, 4)) for name in "xqts")
    step = SimpleNamespace(gone=(x,), new=(t, s))
    before = hc.Problem(hc.Minimize(x + q)).model
    after = hc.Problem(hc.Minimize(t)).model  # neither s nor q
    own: Any = SimpleNamespace(
        steps=(step,), before=before, after=after, _arrays=Substitution._arrays
    )
    point = Substitution._whole(own, np.array([7.0]))
    assert {each.name: float(value) for each, value in point.items()} == {"t": 7, "s": 1, "q": 1}
    moves = Substitution._whole(own, np.array([7.0]), fill=0.0)
    assert {each.name: float(value) for each, value in moves.items()} == {"t": 7, "s": 0, "q": 0}


def test_values_that_are_not_there_or_not_numbers_are_in_the_middle() -> None:
    x = hc.Variable(2, name="x", bounds=(-2, 4))
    assert _defined(x, {}).tolist() == [1.0, 1.0]
    assert _defined(x, {x: np.array([3.0, np.nan])}).tolist() == [1.0, 1.0]
    assert _defined(x, {x: np.array([3.0, 9.0])}).tolist() == [3.0, 9.0]


def test_points_without_an_image_differ_in_all_variables_that_added_rows_tie() -> None:
    tied, free = matrix_ratio(), substitution(renamed_model())
    for own, names in ((tied, ("M",)), (free, ("a",))):
        step = copy.copy(own.steps[0])
        step.outside = ("a",)
        found = Substitution(own.before, own.after, [step])
        assert found.outside == names
        assert Claim.INFEASIBLE not in found.keeps
        assert {Claim.OPTIMAL, Claim.BOUND} <= found.keeps
        assert Claim.INFEASIBLE in own.keeps


def test_ranges_are_implied_of_variables_that_are_left() -> None:
    own = matrix_ratio()
    step = copy.copy(own.steps[0])
    ends = (np.zeros(()), np.ones(()))
    step.implied = {own.after.variables[0]: ends, own.before.variables[0]: ends}
    found = Substitution(own.before, own.after, [step])
    assert list(found.implied) == [own.after.variables[0].name]


def test_sizes_of_terms_that_cancel_are_added(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numbers are compared relative to the terms that they are sums of, where they differ otherwise."""
    own = matrix_ratio()
    point = np.array([1.0, 2.0, 0.5, 1.5])
    plain = own._functions(point)
    monkeypatch.setattr(substitution_module, "_differ", lambda *_: True)
    wide = own._functions(point)
    assert plain is not None
    assert wide is not None
    for (name, *_, size), (_, *_, larger) in zip(plain[:3], wide[:3], strict=True):
        assert (np.asarray(larger) > np.asarray(size)).all(), name


def test_maximised_products_beside_a_constant_are_multiplied_out() -> None:
    """A logarithm is taken of the product alone; other models stay as they are written."""
    own = substitution(product_beside_a_constant())
    assert all(step.renamed for step in own.steps)  # the first map that fits is enough
    x = hc.Variable(2, name="x", bounds=(0, 5))
    cost = x[0] * x[1] + 4 / x[0] + 1 / x[1] + 2
    own = substitution(hc.Problem(hc.Minimize(cost), [x[0] * x[1] <= 1]))
    assert str(own.after.objective) == "minimize x[0] * x[1] + 4 / x[0] + 1 / x[1] + 2"


def test_rows_after_a_map_have_the_names_of_the_rows_before() -> None:
    x = hc.Variable(2, name="x", bounds=(0, 5))
    rows = [x[0] + x[1] >= 1, (x[0] - 2 * x[1] <= 3).named("difference")]
    cost = (2 * x[0] + x[1] + 1) / (x[0] + 3 * x[1] + 2)
    own = substitution(hc.Problem(hc.Minimize(cost), rows))
    names = [each.name for each in own.after.constraints]
    assert names[:2] == ["c1", "difference"]
    assert all(each.entries is None for each in own.after.constraints)


def test_rows_of_one_triangle_stay_rows_of_one_triangle() -> None:
    own = substitution(loaded("lqr"))
    (row,) = own._rows
    (constraint,) = own.after.constraints
    assert row.entries is not None
    assert constraint.entries is not None
    assert constraint.entries.tolist() == row.entries.tolist()


# ---- limits of the search


def ratio_model() -> Model:
    x = hc.Variable(2, name="x", bounds=(0, 5))
    cost = (2 * x[0] + x[1] + 1) / (x[0] + 3 * x[1] + 2)
    return hc.Problem(hc.Minimize(cost), [x[0] + x[1] >= 1]).forms().bounds.after


def test_models_with_many_unknowns_are_not_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    model = ratio_model()
    assert discover(model).substitution is not None
    monkeypatch.setattr(discovery_module, "LIMITS", SearchLimits(unknowns=1))
    assert discover(model).substitution is None


def test_large_models_are_left_to_maps_of_whole_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    x = hc.Variable(3, name="x", bounds=(1, 5))
    cubic = Expanded.of(hc.Problem(hc.Minimize(x[0] * x[1] * x[2] - x[0] * x[1])).model)
    large = {each.name for each in MAPS if each.large}

    def proposing(**limits: int) -> set[str]:
        asked = set()
        for each in MAPS:
            monkeypatch.setattr(
                type(each), "propose", lambda self, model: iter([asked.add(self.name)])
            )
        monkeypatch.setattr(discovery_module, "LIMITS", SearchLimits(**limits))
        for _ in _proposals(cubic):
            pass
        return asked

    every = {each.name for each in MAPS}
    assert large < every
    assert proposing() == every
    assert proposing(many=2) == large  # three unknowns
    assert proposing(many=3) == every
    assert proposing(products=0) == large  # one product of three factors
    assert proposing(products=1) == every
    assert proposing(most_products=0) == set()
    assert proposing(most_products=1) == every


def test_a_range_that_a_map_has_lost_ends_its_trial() -> None:
    own = matrix_ratio()
    step = copy.copy(own.steps[0])
    assert _attempted(own.before, (step,)) is not None
    step.released = ("M",)  # of the model itself: the point that comes back is looked at
    assert _attempted(own.before, (step,)) is not None
    step.released = ("between",)
    assert _attempted(own.before, (step,)) is None


# ---- rows that are multiplied by a matrix from both sides


@pytest.mark.parametrize("whole", [True, False])
def test_multipliers_of_congruent_rows(whole: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """⟨Z, S R S⟩ = ⟨S Z S, R⟩: R has the multiplier S Z S, with S = diag(2, 4) and the slope ½."""
    evaluation = SimpleNamespace(of=lambda given: given)
    monkeypatch.setattr(substitution_module, "Evaluation", lambda symbols, point: evaluation)
    last = SimpleNamespace(after=SimpleNamespace(symbols=None))
    entries = np.array([0, 1, 3])
    row = SimpleNamespace(position=0, entries=entries, leading=None, congruence=np.diag([2.0, 4.0]))
    constraint = SimpleNamespace(entries=None if whole else entries)
    own: Any = SimpleNamespace(
        steps=(last,),
        before=SimpleNamespace(constraints=[constraint]),
        _rows=(row,),
        _merged={},
        _with_factors=lambda u: {},
        _slope=lambda u: 0.5,
        _factor=lambda row, point: np.ones(()),
    )
    upper = np.array([[2.0, 8.0], [0.0, 6.0]])  # of both entries off the diagonal together
    (found,) = Substitution.duals_back(own, np.zeros(1), Duals((upper,))).rows
    expected = np.array([[4.0, 16.0], [16.0, 48.0]])
    assert found == pytest.approx(expected if whole else np.array([[4.0, 32.0], [0.0, 48.0]]))
    # the way there, before the slope is taken off: half of Z
    turned = Substitution._turned(own, expected, row, {})  # type: ignore[arg-type]
    assert turned == pytest.approx(np.array([[1.0, 2.0], [2.0, 3.0]]))
    assert Substitution._turned(own, None, row, {}) is None  # type: ignore[arg-type]
    plain = SimpleNamespace(congruence=None)
    assert Substitution._turned(own, upper, plain, {}) is upper  # type: ignore[arg-type]


def test_rows_that_decide_between_proposals_come_first() -> None:
    own = matrix_ratio()
    step = copy.copy(own.steps[0])
    added = [1 + place for place, row in enumerate(own._rows) if row.position is None]
    others = [0, *(1 + place for place, row in enumerate(own._rows) if row.position is not None)]
    step.choice = None
    assert [place for place, _ in functions_after(own.before, (step,))] == sorted(others + added)
    step.choice = "one of several"
    assert [place for place, _ in functions_after(own.before, (step,))] == added + others


def test_a_chain_that_shrinks_determines_its_variables() -> None:
    x = hc.Variable(60, name="x", bounds=(-1, 1))
    chain = hc.hstack([x[0], x[1:] - 2 * x[:-1]])
    problem = hc.Problem(hc.Minimize(hc.sum(hc.sin(x))), hidden=[chain])
    problem.forms().as_declared()  # raises where coordinates leave a variable open
