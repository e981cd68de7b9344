"""Certificates: bounds that are tight at solutions and never pass the optimum; proofs of infeasibility.

Optima come from the problems' sources, from Riccati's equation, from linear programs or closed forms.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import linprog

import hcmodel as hc
from hcmodel.certify.infeasibility import infeasibility
from hcmodel.certify.lower_bound import LowerBound, gradient_domination, lower_bound
from hcmodel.reductions.form import Form
from hcmodel.solvers.loop import Task, run
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.second_order.hidden_newton import HiddenNewton
from hcmodel.solving.start import start_vector
from tests.extent import first, several
from tests.problems.applications import (
    REGULATORS,
    example,
    published_plant,
    random_plant,
    random_process,
)
from tests.problems.library import GEOMETRIC_PROGRAMS, geometric_program, tank

EXAMPLES = Path(__file__).parents[3] / "examples"
FloatArray = NDArray[np.float64]


def hidden_form(problem: hc.Problem) -> Form:
    forms = problem.forms()
    forms.refresh()
    form = forms.hidden() if problem.hidden is None else forms.as_declared()
    assert form is not None
    return form


def solved(problem: hc.Problem, tolerance: float = 1e-8) -> tuple[Form, Evaluation, Any]:
    """The form, the point that Newton's method ends at, and its result."""
    form = hidden_form(problem)
    start = form.chain.point(start_vector(problem.model, problem.canonical.domain, None, False))
    task = Task(form.oracle(), form.domain, tolerance, geometry=form.geometry, settle=form.settle)
    result = run(HiddenNewton(), task, start, max_iterations=400)
    return form, form.oracle().at(result.point), result


def plain(form: Form, evaluation: Evaluation) -> float:
    """The objective to be minimised, whatever the form sees of it."""
    return form.chain.value_back(evaluation.objective)


def certified(problem: hc.Problem, **options: Any) -> tuple[float, LowerBound]:
    """The value at the solution and the bound there."""
    form, evaluation, result = solved(problem)
    bound = lower_bound(form, evaluation, result.multipliers, **options)
    assert bound is not None
    return plain(form, evaluation), bound


def gap(value: float, bound: LowerBound) -> float:
    return (value - bound.value) / abs(value)


# ---- tight at solutions -------------------------------------------------------------------------


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_geometric_programs_are_certified(name: str) -> None:
    problem, optimum = geometric_program(name)
    value, bound = certified(problem)
    assert gap(value, bound) <= 1e-9
    assert bound.value <= optimum + 1e-9 * abs(optimum)
    assert bound.conditions == ("proven convex in log(x)",)


PLANTS = [name for name in REGULATORS if published_plant(name).fits()]


@pytest.mark.parametrize("name", PLANTS)
def test_regulators_are_certified_under_their_map(name: str) -> None:
    plant = published_plant(name)
    model = example("lqr", **plant.data).model
    P, K = (next(v for v in model.variables if v.name == name) for name in ("P", "K"))
    value, bound = certified(hc.Problem(model.objective, model.constraints, [P, K @ P]))
    assert gap(value, bound) <= 1e-9
    assert bound.value <= plant.optimum() * (1 + 1e-9)
    assert (
        "bounds of K left out, since they are not convex in hidden coordinates" in bound.conditions
    )


@pytest.mark.parametrize(("n", "m", "seed"), first(2, [(2, 1, 0), (3, 1, 1), (4, 2, 0), (6, 2, 0)]))
def test_random_regulators_are_certified(n: int, m: int, seed: int) -> None:
    plant = random_plant(n, m, seed)
    assert plant.fits()
    value, bound = certified(example("lqr", **plant.data), target=1e-8)
    assert gap(value, bound) <= 1e-8
    assert bound.value <= plant.optimum() * (1 + 1e-9)


@pytest.mark.parametrize("seed", first(1, [0, 1, 2]))
def test_decision_processes_are_certified_by_the_flow_polytope(seed: int) -> None:
    process = random_process(seed, states=6, actions=3, costs=1, share=0.6)
    value, bound = certified(example("cmdp", **process.data))
    assert gap(value, bound) <= 1e-9
    assert bound.value <= -process.optimum() + 1e-9 * process.optimum()
    assert bound.conditions == ("proven convex in visits * policy",)


@pytest.mark.parametrize(
    ("name", "accuracy"),
    [
        *((name, 1e-9) for name in ("box_volume", "cantilever", "gate_sizing", "hyperbola")),
        *((name, 1e-9) for name in ("kelly", "mixed", "posynomial", "power_control", "tank")),
        *((name, 1e-9) for name in ("transformer", "water_tank", "cnls", "logit", "pricing")),
        *((name, 1e-9) for name in ("apprenticeship", "cmdp", "exploration", "near_expert")),
        *first(1, [("lqr", 1e-9), ("lqr_direct", 1e-9), ("lqr_discrete", 1e-5)]),
    ],
)
def test_examples_are_certified(name: str, accuracy: float) -> None:
    data = EXAMPLES / f"{name}.json"
    problem = hc.load(EXAMPLES / f"{name}.hc", data=data if data.exists() else None)
    value, bound = certified(problem)
    assert gap(value, bound) <= accuracy


# ---- sets without bounds, kinks, signs ----------------------------------------------------------


def matrix(rows: int, columns: int) -> tuple[FloatArray, FloatArray]:
    generator = np.random.default_rng(0)
    return generator.normal(size=(rows, columns)), generator.normal(size=rows)


def least_deviation() -> tuple[hc.Problem, float]:
    A, b = matrix(12, 4)
    y = hc.Variable(4, name="y")
    sides = np.vstack([np.hstack([A, -np.eye(12)]), np.hstack([-A, -np.eye(12)])])
    cost = np.concatenate([np.zeros(4), np.ones(12)])
    optimum = linprog(cost, sides, np.concatenate([b, -b]), bounds=(None, None)).fun
    return hc.Problem(hc.Minimize(hc.norm(A @ y - b, 1))), float(optimum)


def chebyshev() -> tuple[hc.Problem, float]:
    A, b = matrix(12, 4)
    y = hc.Variable(4, name="y")
    ones = np.ones((12, 1))
    sides = np.vstack([np.hstack([A, -ones]), np.hstack([-A, -ones])])
    cost = np.array([0, 0, 0, 0, 1])
    optimum = linprog(cost, sides, np.concatenate([b, -b]), bounds=(None, None)).fun
    return hc.Problem(hc.Minimize(hc.norm(A @ y - b, np.inf))), float(optimum)


def free_quadratic() -> tuple[hc.Problem, float]:
    y = hc.Variable(2, name="y")
    objective = (y[0] - 1) ** 2 + (y[0] - y[1]) ** 2
    return hc.Problem(hc.Minimize(objective), [y[0] + y[1] <= 1]), 0.2


def minimax() -> tuple[hc.Problem, float]:
    y = hc.Variable(2, name="y")
    first, second = (y[0] - 1) ** 2 + y[1] ** 2, (y[0] + 1) ** 2 + (y[1] - 1) ** 2
    return hc.Problem(hc.Minimize(hc.maximum(first, second))), 1.25  # half-way between the centers


def positive_box() -> tuple[hc.Problem, float]:
    x = hc.Variable(3, name="x", pos=True)  # 6 faces of a cube of volume 1
    faces = 2 * (x[0] * x[1] + x[1] * x[2] + x[0] * x[2])
    return hc.Problem(hc.Minimize(faces), [hc.prod(x) >= 1]), 6.0


def largest_product() -> tuple[hc.Problem, float]:
    z, w = (hc.Variable(name=name, pos=True) for name in "zw")
    return hc.Problem(hc.Maximize(z * w), [z + w**2 <= 3]), -2.0  # at z = 2, w = 1


def largest_of_the_smaller() -> tuple[hc.Problem, float]:
    z, w = (hc.Variable(name=name, pos=True) for name in "zw")
    smaller = hc.minimum(z * w, w / z)
    return hc.Problem(hc.Maximize(smaller), [z + w**2 <= 3]), -float(np.sqrt(2))


def matrix_barrier() -> tuple[hc.Problem, float]:
    X = hc.Variable((3, 3), name="X", PSD=True)
    C = np.diag([1.0, 2.0, 3.0]) + 0.3
    objective = hc.trace(C @ X) - hc.logdet(X)
    return hc.Problem(hc.Minimize(objective)), 3 + float(np.log(np.linalg.det(C)))


def smallest_eigenvalue() -> tuple[hc.Problem, float]:
    X = hc.Variable((3, 3), name="X", PSD=True)
    C = np.diag([1.0, 2.0, 3.0]) + 0.3
    problem = hc.Problem(hc.Minimize(hc.trace(C @ X)), [hc.trace(X) == 1])
    return problem, float(np.linalg.eigvalsh(C)[0])


def largest_entropy() -> tuple[hc.Problem, float]:
    q = hc.Variable(4, name="q", simplex=True)
    entropy = 0.5 * np.log(2) + 0.5 * np.log(6)
    return hc.Problem(hc.Maximize(hc.sum(hc.entr(q))), [q[0] >= 0.5]), -float(entropy)


MODELS = [
    *(least_deviation, chebyshev, free_quadratic, minimax, positive_box, largest_product),
    *(largest_of_the_smaller, matrix_barrier, smallest_eigenvalue, largest_entropy),
]


@pytest.mark.parametrize("model", MODELS)
def test_models_without_bounds_or_with_kinks_are_certified(
    model: Callable[[], tuple[hc.Problem, float]],
) -> None:
    problem, optimum = model()
    value, bound = certified(problem)
    assert value == pytest.approx(optimum, rel=1e-7)
    assert gap(value, bound) <= 1e-9
    assert bound.value <= optimum + 1e-9 * abs(optimum)


def test_an_infimum_at_infinity_is_not_certified() -> None:
    x = hc.Variable(name="x")
    form = hidden_form(hc.Problem(hc.Minimize(hc.exp(-x))))
    evaluation = form.oracle().at(np.array([30.0]))
    assert lower_bound(form, evaluation, np.zeros(0)) is None


# ---- never above the optimum --------------------------------------------------------------------


def random_pair(form: Form, generator: np.random.Generator) -> tuple[Evaluation, FloatArray]:
    evaluation = form.oracle().at(form.domain.sample(generator))
    size, count = evaluation.rows.size, evaluation.inequalities
    multipliers = generator.exponential(size=size) * 10 ** generator.uniform(-3, 2)
    multipliers[count:] *= generator.choice([-1.0, 1.0], size - count)
    return evaluation, multipliers


def assert_never_above(problem: hc.Problem, optimum: float, pairs: int, searches: int) -> None:
    """Bounds of random pairs as they are, and after the whole search."""
    form, generator = hidden_form(problem), np.random.default_rng(3)
    found = 0
    for number in range(pairs):
        evaluation, multipliers = random_pair(form, generator)
        if not (evaluation.finite and evaluation.differentiable):
            continue
        target = None if number < searches else np.inf
        bound = lower_bound(form, evaluation, multipliers, target=target)
        if bound is not None:
            found += 1
            assert bound.value <= optimum + 1e-9 * abs(optimum)
    assert found > 0


@pytest.mark.parametrize("name", GEOMETRIC_PROGRAMS)
def test_bounds_of_random_pairs_stay_below_the_optimum(name: str) -> None:
    assert_never_above(*geometric_program(name), pairs=several(10, 30), searches=1)


@pytest.mark.parametrize("model", MODELS)
def test_bounds_without_bounded_sets_stay_below_the_optimum(
    model: Callable[[], tuple[hc.Problem, float]],
) -> None:
    assert_never_above(*model(), pairs=4, searches=4)


def test_bounds_under_declared_maps_stay_below_the_optimum() -> None:
    plant = random_plant(3, 1, 1)
    assert_never_above(
        example("lqr", **plant.data), plant.optimum(), pairs=several(3, 8), searches=1
    )
    process = random_process(0, states=5, actions=3, costs=1, share=0.6)
    assert_never_above(
        example("cmdp", **process.data), -process.optimum(), pairs=several(3, 8), searches=1
    )


def test_multipliers_of_the_wrong_sign_are_clipped() -> None:
    # x² − (x² − 4) is 4, but −1 is no multiplier of x² <= 4: the optimum is 0
    x = hc.Variable(1, name="x", bounds=(-1, 1))
    form = hidden_form(hc.Problem(hc.Minimize(hc.sum(x**2)), [x**2 <= 4]))
    evaluation = form.oracle().at(np.array([0.5]))
    bound = lower_bound(form, evaluation, np.array([-1.0]), target=np.inf)
    assert bound is not None
    assert bound.value <= 0


def test_a_bound_that_bends_may_be_active_and_the_bound_still_holds() -> None:
    # With K in [−2, 2], (1 + K²) P with P = −1/(2(1 + K)) is least at K = −2, 2.5; without, 1 + √2.
    P = hc.Variable((1, 1), name="P", PSD=(1e-3, 1e3))
    K = hc.Variable((1, 1), name="K", bounds=(-2, 2))
    closed = 1 + K
    problem = hc.Problem(
        hc.Minimize(hc.trace((1 + K.T @ K) @ P)),
        [closed @ P + P @ closed.T + 1 == 0],
        hidden=[P, K @ P],
    )
    form = hidden_form(problem)
    values = {"P": [[0.5]], "K": [[-2.0]]}
    layout = form.canonical.layout
    point = layout.pack([values[variable.name] for variable in layout.variables])
    bound = lower_bound(form, form.oracle().at(point), np.array([2.4]))
    assert bound is not None
    assert 0 < bound.value <= 1 + np.sqrt(2)  # that of the larger set without the bounds
    assert any("K" in condition and "active" in condition for condition in bound.conditions)


def test_a_map_that_is_visibly_wrong_gives_no_bound() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 2))
    problem = hc.Problem(hc.Minimize(x[0] * x[1]), [x[0] + x[1] >= 2], hidden=[x])
    form = hidden_form(problem)
    evaluation = form.oracle().at(np.array([1.0, 1.0]))
    assert lower_bound(form, evaluation, np.array([1.0])) is None


def test_forms_without_hidden_coordinates_have_no_bound() -> None:
    problem, _, _ = tank()
    form = problem.forms().written
    evaluation = form.oracle().at(np.array([2.0, 0.5]))
    assert lower_bound(form, evaluation, np.ones(1)) is None
    assert infeasibility(form, evaluation, None) is None


# ---- rough solutions ----------------------------------------------------------------------------


def test_a_first_order_solution_carries_a_tight_gap() -> None:
    problem, x, area = tank(start=[0.6, 1.6])
    problem.solve("sbl-adals", tol=1e-6)
    form = hidden_form(problem)
    evaluation = form.oracle().at(np.log(x.value))
    for multiplier in (float(np.ravel(area.dual_value)[0]), 0.0):  # its own, and none at all
        bound = lower_bound(form, evaluation, np.array([multiplier]), target=5e-6)
        assert bound is not None
        assert 5 - 5e-6 <= bound.value <= 5 + 1e-9


def test_a_bound_at_a_better_reference_is_of_second_order() -> None:
    # The point is off by 1e-3. Its own slope times the width of the box is a first-order gap.
    problem, _, _ = tank()
    form = hidden_form(problem)
    evaluation = form.oracle().at(np.log([2.0, 0.5]) - 1e-3)
    own = lower_bound(form, evaluation, np.array([1.001]), target=np.inf)
    better = lower_bound(form, evaluation, np.array([1.001]), target=1e-4)
    assert own is not None
    assert better is not None
    assert own.value < 5 - 1e-3
    assert better.value > 5 - 1e-4
    finest = lower_bound(form, evaluation, np.array([1.001]))
    assert finest is not None
    assert 5 - 1e-9 < finest.value <= 5 + 1e-9
    assert finest.points > own.points == 0  # evaluations are counted, and apart from the solver's


# ---- infeasibility ------------------------------------------------------------------------------


def impossible_area() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x[0]), [x[0] * x[1] <= 0.15])


def conflicting_posynomials() -> hc.Problem:
    x = hc.Variable(2, name="x", pos=True)
    return hc.Problem(hc.Minimize(x[0]), [x[0] * x[1] <= 0.5, 1 / x[0] + 1 / x[1] <= 1])


def distant_disks() -> hc.Problem:
    y = hc.Variable(2, name="y")
    rows = [hc.sum(y**2) <= 1, (y[0] - 3) ** 2 + y[1] ** 2 <= 1]
    return hc.Problem(hc.Minimize(y[0]), rows)


def conflicting_equations() -> hc.Problem:
    y = hc.Variable(3, name="y")
    return hc.Problem(hc.Minimize(y[0]), [y[0] + y[1] == 1, y[1] - y[2] == 1, y[0] + y[2] == 0.5])


def outside_the_cross() -> hc.Problem:
    y = hc.Variable(2, name="y")
    return hc.Problem(hc.Minimize(y[0]), [hc.norm(y, 1) <= 1, y[0] >= 1.1])


def indefinite() -> hc.Problem:
    X = hc.Variable((2, 2), name="X", PSD=True)
    return hc.Problem(hc.Minimize(hc.trace(X)), [X[0, 0] <= 1, X[1, 1] <= 1, X[0, 1] >= 1.2])


def unstabilisable() -> hc.Problem:
    return example("lqr", A=np.eye(2), B=np.array([[1.0], [0.0]]))


def unreachable_budget() -> hc.Problem:
    return example("cmdp", **random_process(0, states=6, actions=3, share=-0.3).data)


@pytest.mark.parametrize(
    "model",
    [
        *(impossible_area, conflicting_posynomials, distant_disks, conflicting_equations),
        *(outside_the_cross, indefinite, unstabilisable, unreachable_budget),
    ],
)
def test_infeasible_models_are_proven_so(model: Callable[[], hc.Problem]) -> None:
    form, evaluation, result = solved(model(), 1e-6)
    for weights in (result.conflict, None):
        proof = infeasibility(form, evaluation, weights)
        assert proof is not None
        assert proof.value > 1e-3


def touching_disks() -> hc.Problem:
    y = hc.Variable(2, name="y")
    rows = [hc.sum(y**2) <= 1, (y[0] - 2) ** 2 + y[1] ** 2 <= 1]
    return hc.Problem(hc.Minimize(y[1]), rows)


@pytest.mark.parametrize(
    "model",
    [
        touching_disks,
        lambda: geometric_program("hs071_le")[0],
        lambda: geometric_program("gpkit_simple_box")[0],
        lambda: example("lqr", **random_plant(2, 1, 0).data),
        lambda: example("cmdp", **random_process(0, 5, 3, 1, 0.6).data),
    ],
)
def test_feasible_models_are_never_proven_infeasible(model: Callable[[], hc.Problem]) -> None:
    form, generator = hidden_form(model()), np.random.default_rng(1)
    for _ in range(3):
        evaluation, weights = random_pair(form, generator)
        assert infeasibility(form, evaluation, weights) is None


# ---- constants instead of a map -----------------------------------------------------------------


def test_constants_bound_the_gap_without_a_map() -> None:
    # Ex-CGP in the coordinates log(x): D_U = √2 log 7.5, and |log x − log y| >= |x − y|/3
    problem, _, _ = tank()
    form = problem.forms().written
    constants = hc.Constants(mu_c=1 / 3, diameter_u=np.sqrt(2) * np.log(7.5))
    generator = np.random.default_rng(0)
    for _ in range(50):
        evaluation = form.oracle().at(form.domain.sample(generator))
        bound = gradient_domination(
            evaluation, form.domain, generator.exponential(size=1), constants
        )
        assert bound is not None
        assert bound >= evaluation.objective - 5
    at_optimum = form.oracle().at(np.array([2.0, 0.5]))
    assert gradient_domination(at_optimum, form.domain, np.ones(1), constants) == pytest.approx(
        0, abs=1e-7
    )


def test_constants_that_are_missing_bound_nothing() -> None:
    problem, _, _ = tank()
    form = problem.forms().written
    evaluation = form.oracle().at(np.array([2.0, 0.5]))
    assert gradient_domination(evaluation, form.domain, np.ones(1), hc.Constants(mu_c=1.0)) is None
