"""Draw the pictures of the pages of `auto` and of the methods that are not the paper's.

`python docs/generate_method_pictures.py` writes `docs/pictures/method-*.png`; with names only theirs.
Needs matplotlib, from the extra `plot`. The pictures of the paper's methods come from
`examples/paper/reproduce.py --methods`. Run by hand.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from cycler import cycler
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter
from numpy.typing import NDArray

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent))

import hcmodel as hc  # noqa: E402
from hcmodel.report.canvas import CYCLE, RESOLUTION, new_figure, plain_frame  # noqa: E402
from hcmodel.solvers.loop import Recorder, Task, run  # noqa: E402
from hcmodel.solvers.methods import METHODS, make_options  # noqa: E402
from hcmodel.solvers.oracle import Budget, Oracle  # noqa: E402
from hcmodel.solving.start import start_vector  # noqa: E402
from tests.benchmarks.development_set import Case, development_set  # noqa: E402
from tests.problems.black_boxes import geometric_box  # noqa: E402

FloatArray = NDArray[np.float64]
SMALLEST = 1e-15
# Times are taken as the least of so many solves.
REPETITIONS = 5
matplotlib.rcParams["axes.prop_cycle"] = cycler(color=CYCLE)


@dataclass(frozen=True)
class Run:
    """Points evaluated so far, and the larger of relative error and violation at the iterate."""

    points: FloatArray
    distance: FloatArray


def path(case: Case, method: str, max_calls: int, **options: Any) -> Run:
    """A run on the form of the model that the method works on, judged on the model as written."""
    problem, entry = case.make(), METHODS[method]
    forms = problem.forms()
    form = forms.lifted if entry.second_order or entry.needs_smooth else forms.written
    if entry.needs_coordinates:
        found = forms.hidden()
        assert found is not None
        form = found
    oracle = Oracle(form.stack, form.canonical.outer, budget=Budget(max_calls))
    geometry = form.geometry if entry.second_order else None
    recorder = Recorder(entry.make(make_options(entry, options)))
    first = problem.canonical.domain.project(
        start_vector(problem.model, problem.canonical.domain, None, False)
    )
    task = Task(oracle, form.domain, 1e-6, None, geometry, settle=form.settle)
    result = run(recorder, task, form.chain.point(first))
    judge, sign = forms.written.oracle(), problem.objective.sign
    kept, distance = [], []
    for record, point in zip(result.trace, recorder.points, strict=False):
        there = judge.at(form.chain.point_back(point))
        worst = max(
            case.error(sign * there.objective), float(np.max(there.violations, initial=0.0))
        )
        kept.append(record.points)
        distance.append(max(worst, SMALLEST))
    return Run(np.array(kept, dtype=float), np.array(distance))


def draw(axes: Axes, title: str, paths: dict[str, Run], legend: str = "upper right") -> None:
    for label, each in paths.items():
        axes.plot(each.points, each.distance, marker=".", linewidth=1.2, label=label)
    axes.set(title=title, xlabel="points", xscale="log", yscale="log")
    axes.set_ylabel("relative error or violation")
    axes.title.set_fontsize(10)
    plain_frame(axes)
    axes.legend(loc=legend, fontsize=8)


def named(name: str) -> Case:
    return next(case for case in development_set() if case.name == name)


def hidden_newton() -> Figure:
    """The program with 100 variables and the helicopter, beside the methods of first order."""
    figure = new_figure(8.4, 3.4)
    left, right = figure.subplots(1, 2)
    program, helicopter = named("fatkhullin_cgp100"), named("lqr_compleib_he1")
    limits = {"hidden-newton": 200, "sbl-adals": 1500, "ippm-acgd": 1500}
    draw(left, "posynomials, 100 variables", {m: path(program, m, n) for m, n in limits.items()})
    paths = {m: path(helicopter, m, n) for m, n in limits.items()}
    draw(right, "regulator from K = 0, 18 unknowns", paths)
    return figure


def prox_linear() -> Figure:
    """Ex-CNLS beside the sub-gradient method, and the program with 100 variables by its curvatures."""
    figure = new_figure(8.4, 3.4)
    left, right = figure.subplots(1, 2)
    kinked, program = named("Ex-CNLS, no map"), named("fatkhullin_cgp100")
    paths = {"prox-linear": path(kinked, "prox-linear", 200)}
    paths["ippm-swsg"] = path(kinked, "ippm-swsg", 6000)
    draw(left, "Ex-CNLS, no map", paths)
    curvatures = {
        f'curvature="{name}"': path(program, "prox-linear", 800, curvature=name)
        for name in ("exact", "bfgs", "none")
    }
    draw(right, "posynomials, 100 variables, no map", curvatures, "lower left")
    return figure


def random_posynomials(size: int) -> hc.Problem:
    """Twenty random terms in the objective and in a constraint, every variable in most of them."""
    rng = np.random.default_rng(0)
    x = hc.Variable(size, name="x", bounds=(0.5, 2))
    rows = []
    for _ in range(2):
        exponents = rng.integers(-1, 2, size=(20, size)).astype(float)
        rows.append(hc.sum(rng.uniform(0.1, 1, 20) * hc.exp(exponents @ hc.log(x))))
    return hc.Problem(hc.Minimize(rows[0]), [rows[1] <= 40.0])


def chain(size: int) -> hc.Problem:
    x = hc.Variable(size, name="x", bounds=(0.1, 10))
    return hc.Problem(hc.Minimize(hc.sum(1 / x)), [x[:-1] * x[1:] + 0.1 * x[1:] <= 1])


def seconds(make: Callable[[int], hc.Problem], size: int, method: str) -> float:
    """The least time of several solves of new problems, in seconds of one core."""
    times = []
    for _ in range(REPETITIONS):
        problem = make(size)
        begin = time.process_time()
        problem.solve(method)
        times.append(time.process_time() - begin)
        assert problem.status == "optimal"
    return min(times)


def cone() -> Figure:
    """Times of `cone` and `hidden-newton` on two families."""
    families = {
        "posynomials, 20 terms in all variables": (random_posynomials, (3, 10, 30, 100, 300)),
        "a chain of products": (chain, (10, 30, 100, 300, 1000, 3000)),
    }
    return times_of(("cone", "hidden-newton"), families)


def interior_point() -> Figure:
    """Times of `interior-point` and `cone` on the same two families."""
    families = {
        "posynomials, 20 terms in all variables": (random_posynomials, (3, 10, 30, 100, 300)),
        "a chain of products": (chain, (10, 30, 100, 300, 1000, 3000)),
    }
    return times_of(("interior-point", "cone"), families)


def ipopt() -> Figure:
    """Times of `ipopt` and `interior-point` on the same two families."""
    families = {
        "posynomials, 20 terms in all variables": (random_posynomials, (3, 10, 30, 100)),
        "a chain of products": (chain, (10, 30, 100, 300, 1000)),
    }
    return times_of(("interior-point", "ipopt"), families)


def times_of(
    methods: tuple[str, str],
    families: dict[str, tuple[Callable[[int], hc.Problem], tuple[int, ...]]],
) -> Figure:
    """Times of two methods against the number of variables, one family in each plot."""
    figure = new_figure(8.4, 3.4)
    for axes, (title, (make, sizes)) in zip(figure.subplots(1, 2), families.items(), strict=True):
        for method, marker in zip(methods, "os", strict=True):
            times = [1e3 * seconds(make, size, method) for size in sizes]
            axes.plot(sizes, times, marker=marker, linewidth=1.2, label=method)
        axes.set(title=title, xlabel="variables", ylabel="milliseconds", xscale="log", yscale="log")
        axes.title.set_fontsize(10)
        plain_numbers(axes)
        plain_frame(axes)
        axes.legend(loc="upper left", fontsize=8)
    return figure


def plain_numbers(axes: Axes) -> None:
    """Labels such as 20, 50, 100 instead of powers of ten."""
    for axis, between in ((axes.xaxis, (1.0,)), (axes.yaxis, (1.0, 2.0, 5.0))):
        axis.set_major_locator(LogLocator(subs=between, numticks=12))
        axis.set_major_formatter("{x:g}")
        axis.set_minor_formatter(NullFormatter())


def auto() -> Figure:
    """Points that `auto` and the best method of first order need on the development set."""
    cases = [case for case in development_set() if case.kind in ("geometric", "regulator", "paper")]
    needed: dict[str, list[float]] = {"auto": [], "sbl-adals": []}
    for case in cases:
        for method, points in needed.items():
            problem = case.make()
            problem.solve(method, max_calls=5000, time_limit=20)
            assert problem.solution is not None
            near = case.error(problem.value) <= 1e-6
            points.append(problem.solution.oracle_calls.points if near else np.nan)
    figure = new_figure(7.6, 4.8)
    axes = figure.subplots()
    rows = np.arange(len(cases))[::-1]
    for (method, points), marker in zip(needed.items(), "os", strict=True):
        axes.plot(points, rows, marker, label=method, markersize=5)
    axes.set_yticks(rows, [case.name for case in cases], fontsize=7)
    axes.set(xscale="log", xlabel="points, where the run ended within 1e-6 of the optimum")
    plain_frame(axes)
    axes.legend(fontsize=8)
    return figure


def hidden_bundle() -> Figure:
    """Bound and value of `hidden-bundle`, closing in on each other, and the gap beside others' errors."""
    figure = new_figure(8.4, 3.4)
    left, right = figure.subplots(1, 2)
    box = geometric_box(0)
    problem = box.problem()
    problem.solve("hidden-bundle")
    assert problem.solution is not None
    trace, best = problem.solution.trace, np.inf
    points, values, bounds = [], [], []
    for record in trace:
        if record.violation <= 1e-6:
            best = min(best, record.objective)
        points.append(record.points)
        values.append(best)
        bounds.append(record.bound)
    left.plot(points, values, label="best value", linewidth=1.2)
    left.plot(points, bounds, label="lower bound of the cuts", linewidth=1.2)
    left.set(title="maximum of posynomials, 14 variables", xlabel="points", ylabel="objective")
    left.set_ylim(problem.value - 1.5, problem.value + 1.5)
    gaps = np.maximum(np.array(values) - np.array(bounds), SMALLEST)
    right.plot(points, gaps, label="hidden-bundle: certified gap", linewidth=1.2)
    for method, limit in {"ippm-swsg": 4000, "prox-linear": 4000}.items():
        other = box.problem()
        other.solve(method, max_calls=limit)
        assert other.solution is not None
        low, seen = np.inf, []
        for record in other.solution.trace:
            low = min(low, record.objective) if record.violation <= 1e-6 else low
            seen.append((record.points, max(low - problem.value, SMALLEST)))
        where, error = np.array(seen).T
        right.plot(where, error, label=f"{method}: error", linewidth=1.2)
    right.set(title="the same", xlabel="points", yscale="log", xscale="log", ylabel="gap or error")
    for axes, place in ((left, "upper right"), (right, "lower left")):
        axes.title.set_fontsize(10)
        plain_frame(axes)
        axes.legend(loc=place, fontsize=8)
    return figure


def gradient_sampling() -> Figure:
    """The error of methods that know nothing but gradients, on a valley with a kink along its floor."""
    figure = new_figure(5.2, 3.4)
    axes = figure.subplots()
    for method in ("gradient-sampling", "prox-linear", "ippm-swsg"):
        x = hc.Variable(2, name="x", start=[-1.2, 1.0])
        kinked = hc.function(_valley, x, grad=_slope)
        problem = hc.Problem(hc.Minimize(kinked))
        problem.solve(method, max_calls=2000)
        assert problem.solution is not None
        low, seen = np.inf, []
        for record in problem.solution.trace:
            low = min(low, record.objective)
            seen.append((record.points, max(low, SMALLEST)))
        where, error = np.array(seen).T
        axes.plot(where, error, label=method, linewidth=1.2)
    axes.set(xlabel="points", ylabel="error", yscale="log", xscale="log")
    axes.set_title("8 |x₁² − x₂| + (1 − x₁)² as a black box", fontsize=10)
    plain_frame(axes)
    axes.legend(loc="lower left", fontsize=8)
    return figure


def _valley(x: FloatArray) -> float:
    return float(8 * abs(x[0] ** 2 - x[1]) + (1 - x[0]) ** 2)


def _slope(x: FloatArray) -> FloatArray:
    side = 1.0 if x[0] ** 2 >= x[1] else -1.0
    return np.array([16 * side * x[0] - 2 * (1 - x[0]), -8 * side])


PICTURES: dict[str, Callable[[], Figure]] = {
    "auto": auto,
    "cone": cone,
    "interior-point": interior_point,
    "ipopt": ipopt,
    "hidden-newton": hidden_newton,
    "hidden-bundle": hidden_bundle,
    "gradient-sampling": gradient_sampling,
    "prox-linear": prox_linear,
}


if __name__ == "__main__":
    for name in sys.argv[1:] or PICTURES:
        PICTURES[name]().savefig(DOCS / "pictures" / f"method-{name}.png", dpi=RESOLUTION)
