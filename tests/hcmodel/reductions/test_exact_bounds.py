"""Rows that are bounds, chains and other small reductions, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.expressions.model import Model
from hcmodel.reductions.bounds import Bounds
from hcmodel.reductions.canonical import canonicalize
from hcmodel.reductions.chain import Chain
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.compressed_rows import Rows, stacked
from hcmodel.reductions.entry_paths import Liveness, entries_on, path_of
from hcmodel.reductions.matrix_bounds import matrix_rows
from hcmodel.reductions.normal_rows import NormalRows
from hcmodel.reductions.reduction import BoundOrigin, Claim, Duals, Origin, Refusal
from hcmodel.reductions.release import Release
from hcmodel.reductions.steepness import entries_at_0
from hcmodel.reductions.sums.collected import Sides, _logarithms
from hcmodel.reductions.sums.sum_arrays import arrays_of_sums, needs_logarithms

# ---- entries on their way to a row


@pytest.mark.parametrize(
    ("make", "places", "factors", "offsets"),
    [
        (lambda x: 2 * (3 * x + 1), [0, 1, 2], [6, 6, 6], [2, 2, 2]),
        (lambda x: (8 - x[::-1]) / 4, [2, 1, 0], [-0.25] * 3, [2, 2, 2]),
        (
            lambda x: np.array([1.0, -2.0, 4.0]) * (5 * x) - x.size,
            [0, 1, 2],
            [5, -10, 20],
            [-3] * 3,
        ),
    ],
)
def test_factors_and_offsets_of_entries(
    make: Any, places: list[int], factors: list[float], offsets: list[float]
) -> None:
    x = hc.Variable(3, name="x")
    path = path_of(make(x), Liveness())
    assert path is not None
    found = entries_on(*path)
    assert found is not None
    assert [np.ravel(each).tolist() for each in found] == [places, factors, offsets]


def test_entries_that_are_multiplied_by_zero_are_on_no_way() -> None:
    x = hc.Variable(2, name="x")
    for weights in (np.zeros(2), np.array([0.0, 1.0])):
        path = path_of(weights * x, Liveness())
        assert path is not None
        assert entries_on(*path) is None


# ---- bounds


def test_a_positive_variable_below_zero_is_a_contradiction_of_its_own_entry() -> None:
    x = hc.Variable(2, name="x", pos=True)
    rows = [x <= np.array([5.0, -1.0])]
    bounds = Bounds.of(hc.Problem(hc.Minimize(hc.sum(x)), rows).model)
    assert bounds.contradiction()[0] == Origin(0, (1,))


def test_rows_that_stop_being_bounds_are_another_model() -> None:
    """cap·x <= 5 bounds x where cap is not 0; x <= 3 stays a bound of the same variable."""
    x = hc.Variable(name="x", bounds=(-9, 9))
    cap = hc.Parameter(name="cap", value=2.0)
    bounds = Bounds.of(hc.Problem(hc.Minimize(x**2), [x <= 3, cap * x <= 5]).model)
    assert bounds.rows == (0, 1)
    cap.value = 4.0
    assert bounds.refresh()
    assert float(bounds.renewed(x).upper) == pytest.approx(1.25)
    cap.value = 0.0
    assert not bounds.refresh()


def matrix_bounds() -> tuple[Bounds, Any]:
    """P >= I/2 by the row 2 P >> I, beside an entry that is bounded; P is stored as a triangle."""
    p = hc.Variable((2, 2), name="P", symmetric=True)
    x = hc.Variable(name="x", bounds=(-1, 1))
    problem = hc.Problem(
        hc.Minimize(hc.trace(p) + x), [2 * p >> np.eye(2), x <= 0.5], hidden=[p, x]
    )
    return problem.forms().bounds, p


def test_multipliers_of_rows_that_bound_eigenvalues() -> None:
    """The slope C of the Lagrangian in P is held back by Z = C/2 in 2 P − I, which is −Z in the row."""
    bounds, p = matrix_bounds()
    after, before = bounds.after.layout, bounds.before.layout
    new = bounds.renewed(p)
    slope = np.array([[2.0, 0.5], [0.5, 4.0]])
    sets = np.zeros(after.size)
    sets[after.slice(new)] = new.set.store(slope)
    rows = bounds.duals_back(np.zeros(after.size), Duals((), sets=sets)).rows
    assert rows[0] == pytest.approx(-slope / 2)
    left = bounds.set_duals_back(np.zeros(after.size), sets)
    slack = bounds.before.constraints[0].rhs
    assert slack.set.expand(np, left[before.slice(slack)]) == pytest.approx(slope / 2)  # type: ignore[attr-defined]
    assert left[before.slice(p)] == pytest.approx(0.0)  # nothing is left for the set of P


def test_the_set_of_a_matrix_comes_from_the_row_that_made_it() -> None:
    bounds, p = matrix_bounds()
    new = bounds.renewed(p)
    assert bounds.bound_origin(BoundOrigin(new, "set")) == Origin(0)
    other = hc.Variable((2, 2), name="Q", PSD=True)
    assert bounds.bound_origin(BoundOrigin(other, "set")) == BoundOrigin(other, "set")


def test_slacks_that_are_gone_are_no_coordinates() -> None:
    bounds, _ = matrix_bounds()
    assert bounds.before.hidden is not None
    assert bounds.after.hidden is not None
    assert len(bounds.before.hidden) == 3  # P, x and the slack
    assert [each.name for each in bounds.after.hidden] == ["P", "x"]  # type: ignore[attr-defined]


def test_only_symmetric_variables_have_eigenvalues_that_rows_bound() -> None:
    m, p = hc.Variable((2, 2), name="M"), hc.Variable((2, 2), name="P", symmetric=True)
    for variable, count in ((m, 0), (p, 1)):
        slack = hc.Variable((2, 2), name="S", PSD=True)
        cost = hc.sum_squares(variable - 1)
        model = hc.Problem(hc.Minimize(cost), [variable == slack]).model
        assert len(matrix_rows(model, Liveness())) == count


def test_the_places_of_a_text_are_known_of_the_expressions_that_stand_for_others() -> None:
    problem = hc.parse("var x in [-9, 9]\nminimize sin(x)\nsubject to\n  cap: x <= 3")
    bounds = problem.forms().bounds
    before, after = bounds.before.source, bounds.after.source
    moved = [each for each in after.places if each not in before.places]
    assert moved
    objective = bounds.after.objective.expression
    assert after.places[objective] == before.places[bounds.before.objective.expression]


# ---- chains


class Step(SimpleNamespace):
    """As much of a reduction as a chain looks at."""

    keeps = frozenset(Claim)
    outside = ("x",)

    def refresh(self) -> bool:
        return bool(self.fits)


def test_contradictions_count_where_no_variable_is_in_them_that_points_differ_in() -> None:
    x, y = hc.Variable(name="x", bounds=(0, 1)), hc.Variable(name="y", bounds=(0, 1))
    model = hc.Problem(hc.Minimize(x + y), [x + y >= 3, 2 * y >= 5]).model
    end: Any = SimpleNamespace(keeps=frozenset(Claim), before=model)
    step: Any = Step(before=model)
    every = Chain((step,), end)
    assert every.excludes(None)  # all points have an image
    step.keeps = frozenset(Claim) - {Claim.INFEASIBLE}
    some = Chain((step,), end)
    assert not some.excludes(None)  # nothing is known of the rows
    assert not some.excludes([Origin(0)])
    assert some.excludes([Origin(1)])
    assert some.excludes([Origin(1), BoundOrigin(y, "upper")])
    assert not some.excludes([Origin(1), BoundOrigin(x, "upper")])


def test_a_chain_fits_where_all_its_steps_do() -> None:
    end: Any = SimpleNamespace(refresh=lambda: True)
    for answers in ((True, True), (True, False), (False, True)):
        steps: Any = tuple(Step(fits=each) for each in answers)
        assert Chain(steps, end).refresh() == all(answers)


def test_kinks_add_variables_and_bounds_do_not() -> None:
    x = hc.Variable(2, name="x", bounds=(-9, 9))
    for cost, adds in ((hc.sum_squares(x), False), (hc.max(x), True)):
        form = hc.Problem(hc.Minimize(cost), [x[0] <= 3]).forms().hidden()
        assert form is not None
        assert form.chain.adds_variables == adds


def test_multipliers_of_rows_that_are_bounds_alone() -> None:
    x = hc.Variable(2, name="x", bounds=(-9, 9))
    rows = [x[0] <= 3, hc.sum_squares(x) <= 20, x[1] >= -2]
    duals = [np.array(1.0), np.array(2.0), np.array(3.0)]
    form = hc.Problem(hc.Minimize(hc.sum(x)), rows).forms().hidden()
    assert form is not None
    found = form.chain.bound_rows_only(duals)
    assert [None if each is None else float(each) for each in found] == [1.0, None, 3.0]
    without = hc.Problem(hc.Minimize(hc.sum(x)), rows[1:2]).forms().hidden()
    assert without is not None
    assert without.chain.bound_rows_only(duals[:1]) == (None,)


# ---- rows and forms


@pytest.mark.parametrize(
    ("objective_form", "form", "factor"),
    [
        ("plain", "difference", 1.0),
        ("plain", "log", 1 / 8),  # log left has the slope 1/left, and left is 8
        ("log", "difference", 6.0),  # log f has the slope 1/f, and f is 6
        ("log", "log", 6 / 8),
    ],
)
def test_multipliers_of_forms(objective_form: str, form: str, factor: float) -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 5))
    model = hc.Problem(hc.Minimize(x[0] + 2 * x[1]), [x[0] * 2 * x[1] <= 8]).model
    (row,) = model.constraints
    after = replace(model, constraints=(row.like(form=form),), objective_form=objective_form)
    own, point = NormalRows(model, after), np.array([4.0, 1.0])
    (back,) = own.duals_back(point, Duals((np.array(3.0),))).rows
    assert back is not None
    assert float(back) == pytest.approx(3 * factor)
    (there,) = own.duals(point, Duals((back,))).rows
    assert there is not None
    assert float(there) == pytest.approx(3.0)


def test_products_of_rows_with_as_many_entries_as_rows() -> None:
    """Two entries in the first row and none in the second are not one entry each."""
    left = Rows(np.array([1.0, 4.0, 5.0]), np.array([0, 1, 1]), np.array([0, 2, 3]), 2)
    right = Rows(np.array([2.0, 3.0]), np.array([0, 1]), np.array([0, 2, 2]), 2)
    product = left @ right
    assert product.to_scipy().toarray().tolist() == [[2.0, 3.0], [0.0, 0.0]]


def test_stacked_rows_are_as_wide_as_the_widest() -> None:
    narrow, wide = Rows.units(np.array([0]), 1), Rows.units(np.array([3]), 4)
    for parts in ([narrow, wide], [wide, narrow]):
        assert stacked(parts).shape == (2, 4)


def test_the_size_of_an_affine_entry_is_its_largest_number() -> None:
    own = Affine((3,), np.array([1.0, -5.0, 0.5]), Rows.of(np.array([[3.0, 0], [0, 2], [0, 0]])))
    assert own.sizes().tolist() == [3.0, 5.0, 0.5]
    assert Affine.constant(np.array([-2.0, 4.0])).sizes().tolist() == [2.0, 4.0]


def test_canonical_problems_fit_models_with_the_same_rows() -> None:
    x = hc.Variable(2, name="x", bounds=(-9, 9))
    model = hc.Problem(hc.Minimize(hc.sum(x)), [x[0] + x[1] <= 3, x[0] - x[1] == 1]).model
    known = canonicalize(model)
    assert known.fits(model)
    for place, sense in ((0, "=="), (1, "<=")):
        rows = list(model.constraints)
        rows[place] = rows[place].like(sense=sense)
        assert not known.fits(replace(model, constraints=tuple(rows)))


def test_there_is_nothing_to_release_where_no_bound_bends() -> None:
    compiled = SimpleNamespace(has_black_boxes=False)
    for geometry in (None, object()):
        program: Any = SimpleNamespace(map_geometry=geometry, bending=(), compiled=compiled)
        assert isinstance(Release.of(program), Refusal)


# ---- sums of powers


def test_functions_that_are_not_compiled_with_their_structure_have_no_arrays() -> None:
    compiled = SimpleNamespace(kinked=False)
    program: Any = SimpleNamespace(compiled=compiled)
    assert arrays_of_sums(program) is None
    assert not needs_logarithms(compiled, None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("rows", "needed"),
    [
        (lambda x: [x[0] * x[1] <= 2], True),  # a product on the lesser side
        (lambda x: [x[0] * x[1] >= 2], False),
        (lambda x: [x[0] - x[1] <= 1, x[0] ** 2 <= 4, x[0] * x[1] <= 2], True),
        (lambda x: [x[0] * x[1] >= 2, x[0] <= 3 * x[1]], False),
    ],
)
def test_products_on_the_lesser_side_of_rows_need_logarithms(rows: Any, needed: bool) -> None:
    x = hc.Variable(2, name="x", bounds=(1, 3))
    form = hc.Problem(hc.Minimize(x[0] + x[1]), rows(x)).forms().written
    assert needs_logarithms(form.compiled, form.canonical.outer) == needed


@pytest.mark.parametrize("shapes", [[()], [(2,)], [(2, 2)], [(), (2, 2)], [(2, 1, 2)]])
def test_terms_of_variables_of_any_shape_in_one_array(shapes: list[tuple[int, ...]]) -> None:
    """3 Π x_i^(i + 1) over all entries, and the sum of 2 and the first entry."""
    variables = [hc.Variable(shape, name=f"v{i}", pos=True) for i, shape in enumerate(shapes)]
    model = hc.Problem(hc.Minimize(sum((hc.sum(v) for v in variables), start=hc.Constant(0)))).model
    size = model.layout.size
    powers = np.arange(1.0, size + 1)
    sides: Any = [[(3.0, range(size), powers)], [(2.0, [], []), (1.0, [0], [1.0])]]
    found = Sides.of(sides).expression(_logarithms(model))
    x = np.random.default_rng(0).uniform(0.5, 2.0, size)
    for variable, value in zip(model.variables, model.layout.unpack(np, x), strict=True):
        variable.value = value
    assert found.value == pytest.approx([3 * np.prod(x**powers), 2 + x[0]])


# ---- slopes without an end


def test_steep_powers_are_told_apart_by_the_values_of_their_exponents() -> None:
    x, y = hc.Variable(2, name="x", bounds=(0, 4)), hc.Variable(2, name="y", bounds=(0, 4))
    square, root = np.array([2.0, 2.0]), np.array([0.5, 0.5])
    for first, second in ((square, root), (root, square)):
        _, found = entries_at_0(Model.checked(hc.Minimize(hc.sum(x**first) + hc.sum(y**second))))
        assert found[x].all() == (first is root)
        assert found[y].all() == (second is root)
    # what was found for numbers is not taken for a variable with another exponent
    two, half = hc.Parameter(name="two", value=2.0), hc.Parameter(name="half", value=0.5)
    numbers = hc.Constant(np.array([1.0, 3.0]))
    assert entries_at_0(Model.checked(hc.Minimize(hc.sum(numbers**two) + hc.sum(x**half))))[1][
        x
    ].all()
    away = hc.Variable(2, name="away", bounds=(1, 4))
    positive = hc.Variable(2, name="positive", pos=True)
    logs = hc.sum(hc.log(away)) + hc.sum(hc.log(positive))
    assert entries_at_0(Model.checked(hc.Minimize(logs))) == ({}, {})
