"""The cone program from the arrays of a form says the same as the one from the proof's nodes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.reductions.cone.cone import Cone
from hcmodel.reductions.form import Form, LeastRelaxation
from hcmodel.reductions.smooth_convex import SmoothConvex, smooth_convex
from hcmodel.reductions.sums.cone_sums import cone_of_sums
from hcmodel.reductions.sums.convex_sums import convex_of_sums
from hcmodel.reductions.sums.sum_arrays import SumArrays, arrays_of_sums
from hcmodel.solvers.qp import ConeOptions, make_cone_backend, solve_cone


def tank() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 1])


def box_volume() -> hc.Problem:
    """A maximisation with a monomial objective, sums on the left and an equality of monomials."""
    h, w, d = (hc.Variable(name=name, pos=True) for name in "hwd")
    rows = [2 * (h * w + h * d) <= 200, w * d <= 50, h == 0.5 * w, d <= 2 * w]
    return hc.Problem(hc.Maximize(h * w * d), rows)


def with_fixed_and_free_terms() -> hc.Problem:
    """A bound that fixes an entry, a coefficient of 0, a number among the terms, a monomial right."""
    x = hc.Variable(3, name="x", bounds=([1, 0.1, 2], [5, 9, 2]))
    weight = hc.Parameter(name="weight", value=0.0)
    cost = 3 + x[0] / x[1] + weight * x[0] + x[1] * x[2]
    return hc.Problem(hc.Minimize(cost), [1 + x[0] ** 2 <= 7 * x[1] * x[2]])


def linear_beside_logarithms() -> hc.Problem:
    """Plain coordinates beside logarithms: an affine objective and affine rows."""
    z, x = hc.Variable(2, name="z", bounds=(-4, 4)), hc.Variable(2, name="x", bounds=(0.5, 6))
    rows = [z[0] + 2 * z[1] >= 1, z[0] - z[1] == 0.5, x[0] * x[1] <= 4, x[0] + x[1] <= 5]
    return hc.Problem(hc.Minimize(3 * z[0] + z[1] - hc.log(x[0]) - 2 * hc.log(x[1])), rows)


def form_of(problem: hc.Problem) -> Form:
    form = problem.forms().hidden()
    assert form is not None
    assert form.proof is not None
    return form


def arrays_of(form: Form) -> SumArrays:
    arrays = arrays_of_sums(form.program)
    assert arrays is not None
    return arrays


def without_rows() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]))


def sums_after_monomials() -> hc.Problem:
    """Sums in the second and the third row, so that their places are not the first ones."""
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    rows = [x[0] * x[1] <= 4, x[0] + 1 / x[1] <= 5, x[1] + 2 * x[0] * x[1] <= 7 * x[0]]
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), rows)


def several_equalities() -> hc.Problem:
    """Equalities of monomials among inequalities, beside an entry that is fixed."""
    x = hc.Variable(4, name="x", bounds=([1, 0.1, 2, 0.1], [5, 9, 2, 9]))
    rows = [x[0] * x[1] == 3, x[0] + x[3] <= 6, x[3] * x[2] == 4 * x[1], 1 / x[3] <= 8]
    return hc.Problem(hc.Minimize(x[0] / x[1] + x[3] * x[2] + x[1]), rows)


MODELS = [
    tank,
    several_equalities,
    box_volume,
    with_fixed_and_free_terms,
    linear_beside_logarithms,
    without_rows,
    sums_after_monomials,
]


@pytest.mark.parametrize("model", MODELS)
def test_both_smooth_programs_have_the_same_functions(model: Callable[[], hc.Problem]) -> None:
    form = form_of(model())
    one, two = convex_of_sums(arrays_of(form)), smooth_convex(form.program)
    assert isinstance(two, SmoothConvex)
    generator = np.random.default_rng(1)
    for _ in range(3):
        u = generator.uniform(-1.0, 1.0, one.dimension)
        weights = generator.uniform(size=one.row_count + 1)
        np.testing.assert_allclose(one.values(u), two.program.values(u), atol=1e-12)
        np.testing.assert_allclose(
            one.gradient(u, weights), two.program.gradient(u, weights), atol=1e-12
        )
        assert (one.equality is None) == (two.program.equality is None)
        if one.equality is not None:
            assert one.equality_bound is not None
            assert two.program.equality_bound is not None
            np.testing.assert_allclose(
                one.equality @ u - one.equality_bound,
                two.program.equality @ u - two.program.equality_bound,
                atol=1e-12,
            )
    np.testing.assert_array_equal(one.lower, two.program.lower)
    assert one.logarithms is not None
    assert two.program.logarithms is not None
    np.testing.assert_array_equal(one.logarithms, two.program.logarithms)


@pytest.mark.parametrize("model", MODELS)
def test_both_programs_have_the_same_solution(model: Callable[[], hc.Problem]) -> None:
    form = form_of(model())
    sums, cone = cone_of_sums(arrays_of(form)), form.cone
    assert isinstance(cone, Cone)
    options = ConeOptions(1e-9, 200)
    one = make_cone_backend("clarabel").solve(sums.program, options)
    two = make_cone_backend("clarabel").solve(cone.after, options)
    assert one.usable
    assert two.usable
    # a row of the program for each bound and each inequality of the form, and one for the objective
    counts = {cone.kind.name: cone.size for cone in sums.program.cones}
    summed = form.canonical.outer.objective_form == "log" and counts.get("EXPONENTIAL")
    count = sums.bounds[0].size + form.canonical.outer.inequalities
    assert counts["NONNEGATIVE"] in ((count, count + 1) if summed else (count,))
    size = form.canonical.layout.size
    np.testing.assert_allclose(one.primal[:size], two.primal[:size], atol=1e-4)
    expected = form.canonical.multipliers(cone.by_constraint(two.dual))
    np.testing.assert_allclose(one.dual[sums.rows], expected, atol=1e-4)
    for solution, bounds in ((one, sums.bounds), (two, cone.bounds())):
        rows, entries, values = bounds
        np.testing.assert_allclose(
            solution.slack[rows], np.abs(solution.primal[entries] - values), atol=1e-6
        )  # the rows of the bounds are distances to them


@pytest.mark.parametrize(
    "objective",
    [
        lambda x, z: x + hc.exp(z),  # exp of a plain coordinate is no sum of terms
        lambda x, z: hc.square(z) + x,
        lambda x, z: z + x * x + 1 / x,  # an affine function and a posynomial
    ],
)
def test_other_functions_are_left_to_the_proofs_nodes(
    objective: Callable[[hc.Variable, hc.Variable], hc.Expression],
) -> None:
    x, z = hc.Variable(name="x", bounds=(0.5, 6)), hc.Variable(name="z", bounds=(-1, 1))
    problem = hc.Problem(hc.Minimize(objective(x, z)), [1 / x <= 1])
    form = form_of(problem)
    assert arrays_of_sums(form.program) is None
    problem.solve(method="cone")
    assert problem.status == "optimal"


def test_rows_that_contradict_each_other_are_found_by_the_relaxed_program() -> None:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    rows = [(x[0] * x[1] + x[0] <= 1).named("a"), (x[0] >= 2 * x[1]).named("b")]
    problem = hc.Problem(hc.Minimize(x[0]), [*rows, (x[1] >= 0.9).named("c")])
    problem.solve(method="cone")
    assert problem.status == "infeasible"
    assert set(problem.solution.conflict) == {"a", "b", "c"}


@pytest.mark.parametrize("model", MODELS)
def test_both_relaxed_programs_give_by_the_same_amount(model: Callable[[], hc.Problem]) -> None:
    """With a goal out of reach: rows by a factor, and the others relative to their numbers."""
    problem = model()
    aim = problem.objective
    value = problem.solve()
    goal = (
        aim.expression <= value / 4 if isinstance(aim, hc.Minimize) else aim.expression >= 4 * value
    )
    if value < 0:
        goal = aim.expression <= 4 * value
    form = form_of(hc.Problem(aim, [*problem.constraints, goal]))
    assert form.arrays is not None
    relaxation = LeastRelaxation.of_sums(form.arrays)
    assert isinstance(form.cone, Cone)
    other = form.cone.relaxed()
    one, two = (solve_cone(each) for each in (relaxation.least.program, other.program))
    assert one.primal[relaxation.least.amount] == pytest.approx(two.primal[other.amount], abs=1e-7)
    assert one.primal[relaxation.least.amount] > 1e-3
    # the same rows take part
    numbers = form.canonical.multipliers
    pairs = zip(
        (relaxation.least.rows, relaxation.least.others),
        (numbers(other.rows).astype(int), numbers(other.others).astype(int)),
        strict=True,
    )
    for mine, its in pairs:
        assert ((mine >= 0) == (its >= 0)).all()
        assert one.dual[mine[mine >= 0]] == pytest.approx(two.dual[its[its >= 0]], abs=1e-4)
    assert [(each.side, each.entries.tolist()) for each in relaxation.bounds] == [
        (each.side, each.entries.tolist()) for each in other.bounds
    ]
    slack = relaxation.least.program.offset - relaxation.least.program.sparse @ one.primal
    for each in relaxation.bounds:
        ends = form.arrays.upper if each.side == "upper" else form.arrays.lower
        rows = each.start + np.arange(each.entries.size)
        room = np.abs(ends - one.primal[: ends.size])[each.entries]
        assert slack[rows] == pytest.approx(room, abs=1e-6)
