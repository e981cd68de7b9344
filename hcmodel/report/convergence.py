"""Pictures of runs: how the objective, the distance to the certified value and the violation develop."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.records import dataclass
from hcmodel.report.canvas import (
    BLUE,
    CYCLE,
    GREEN,
    GREY,
    ORANGE,
    VERMILLION,
    axes_in,
    check_solution,
    check_target,
    log_scale,
    new_figure,
    plain_frame,
    saved,
)

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution

FloatArray = NDArray[np.float64]

# Numbers below this are 0 to double precision, and are drawn here.
SMALLEST = 1e-16
# Runs with more calls have a logarithmic axis of calls.
MANY_CALLS = 300
# The share of the axis from which a phase has room for its name, per letter of the name.
ROOM_PER_LETTER = 0.017
PANELS = 3
# Letters of a title that fit on a line.
TITLE_WIDTH = 85
INK = "#333333"


@dataclass(frozen=True)
class Curves:
    """The trace as arrays. `reference` is what distances are measured to, and `certified` its kind."""

    calls: FloatArray
    objective: FloatArray
    violation: FloatArray
    bound: FloatArray
    residual: FloatArray
    phases: tuple[str, ...]
    reference: float | None
    certified: bool

    @staticmethod
    def of(solution: Solution) -> Curves:
        certificate, trace = solution.certificate, solution.trace
        certified = certificate.lower_bound is not None and np.isfinite(certificate.lower_bound)
        reference = certificate.lower_bound if certified else solution.value
        return Curves(
            calls=np.array([record.calls for record in trace], dtype=float),
            objective=np.array([record.objective for record in trace], dtype=float),
            violation=np.array([record.violation for record in trace], dtype=float),
            bound=np.array([record.bound for record in trace], dtype=float),
            residual=np.array([record.residual for record in trace], dtype=float),
            phases=tuple(record.phase for record in trace),
            reference=reference,
            certified=certified,
        )

    def distance(self, reference: float | None = None) -> FloatArray:
        """How far the objective is from the reference, never less than rounding."""
        target = self.reference if reference is None else reference
        if target is None:
            return np.full(self.objective.shape, np.nan)
        size = max(abs(target), 1.0)
        return np.maximum(np.abs(self.objective - target), SMALLEST * size)


def convergence(solution: Solution, path: Any = None, *, ax: Any = None) -> Any:
    """The run of a solution: objective, distance to the certified value, violation.

    `path` is a file to write, `ax` the matplotlib axes to draw into: one for the distance alone, or
    three. Returns the figure. A model that was solved as one convex program has no run; the
    picture then shows how accurate the result is.
    """
    check_solution(solution)
    check_target(path, ax)
    if ax is not None:
        axes = axes_in(ax)
        if len(axes) not in (1, PANELS):
            raise ModelError(f"ax is one axes or {PANELS} of them, not {len(axes)}")
        _draw(axes, solution)
        return saved(axes[0].figure, path)
    if len(solution.trace) <= 1:
        return saved(_accuracy(solution), path)
    figure = new_figure(7.6, 6.4)
    axes = list(figure.subplots(PANELS, 1, sharex=True, height_ratios=[1, 1.2, 1]))
    _draw(axes, solution)
    figure.suptitle(_wrapped(f"{solution.method}: {words(solution)}"), fontsize=11)
    return saved(figure, path)


def _wrapped(title: str) -> str:
    """A title on lines that fit into the figure."""
    return textwrap.fill(title, TITLE_WIDTH)


def words(solution: Solution) -> str:
    """Status and gap in words for titles and legends."""
    text = solution.status.value.replace("_", " ")
    gap = solution.certificate.gap
    return text if gap is None else f"{text}, gap {shown_gap(solution):.1e}"


def shown_gap(solution: Solution) -> float:
    """The certified gap; 0 where it is negative, which it is by rounding only."""
    return max(solution.certificate.gap or 0.0, 0.0)


def _draw(axes: list[Any], solution: Solution) -> None:
    curves = Curves.of(solution)
    if len(axes) == PANELS:
        _objective(axes[0], curves, solution)
        _distance(axes[1], curves)
        _violation(axes[2], curves)
    else:
        _distance(axes[0], curves)
    for each in axes:
        plain_frame(each)
    axes[-1].set_xlabel("oracle calls")
    if curves.calls.size and curves.calls[-1] > MANY_CALLS:
        axes[-1].set_xscale("log")
    _phases(axes, curves)


def _objective(axes: Any, curves: Curves, solution: Solution) -> None:
    axes.plot(curves.calls, curves.objective, marker=".", color=BLUE, label="objective")
    if solution.value is not None and np.isfinite(solution.value):
        label = "optimal value" if solution.status.value == "optimal" else "value found"
        axes.axhline(solution.value, color=INK, linewidth=0.9, linestyle="--", label=label)
        _focus(axes, curves.objective, solution.value)
    axes.set_ylabel("objective")
    _legend(axes)


def _focus(axes: Any, values: FloatArray, value: float) -> None:
    """Leave out the first values where these hide all others: the axis ends at the ninth tenth."""
    finite = values[np.isfinite(values)]
    if finite.size < 2:
        return
    reach = np.quantile(np.abs(finite - value), 0.9)
    if reach > 0 and np.abs(finite - value).max() > 20.0 * reach:
        axes.set_ylim(value - 3.0 * reach, value + 3.0 * reach)


def _distance(axes: Any, curves: Curves) -> None:
    label = "to the certified bound" if curves.certified else "to the value found"
    axes.plot(curves.calls, curves.distance(), marker=".", color=BLUE, label=label)
    gap = curves.objective - curves.bound
    known = np.isfinite(gap)
    if known.sum() > 1:
        axes.plot(
            curves.calls[known],
            np.maximum(np.abs(gap[known]), SMALLEST),
            color=ORANGE,
            linestyle="--",
            label="gap during the run",
        )
    log_scale(axes)
    axes.set_ylabel("distance")
    _legend(axes)


def _violation(axes: Any, curves: Curves) -> None:
    known = np.isfinite(curves.violation)
    axes.plot(
        curves.calls[known],
        np.maximum(curves.violation[known], SMALLEST),
        marker=".",
        color=VERMILLION,
        label="largest violation (0 at the bottom)",
    )
    known = np.isfinite(curves.residual) & (curves.residual > 0)
    if known.any():
        axes.plot(
            curves.calls[known],
            curves.residual[known],
            color=GREEN,
            linewidth=1.0,
            label="KKT residual",
        )
    log_scale(axes)
    axes.set_ylabel("violation")
    _legend(axes)


def _legend(axes: Any) -> None:
    axes.legend(fontsize=8, frameon=False, loc="best")


def _phases(axes: list[Any], curves: Curves) -> None:
    """Light bands for phases, with their names above the first panel where there is room."""
    spans: list[tuple[str, int, int]] = []
    for place, phase in enumerate(curves.phases):
        if spans and spans[-1][0] == phase:
            spans[-1] = (phase, spans[-1][1], place)
        else:
            spans.append((phase, place, place))
    if len(spans) < 2:
        return
    low, high = axes[-1].get_xlim()
    scale = np.log if axes[-1].get_xscale() == "log" else np.asarray
    for number, (phase, begin, end) in enumerate(spans):
        left = curves.calls[begin]
        right = curves.calls[min(end + 1, curves.calls.size - 1)]
        for each in axes:
            if number % 2:
                each.axvspan(left, right, color=GREY, alpha=0.10, linewidth=0)
        share = float((scale(right) - scale(left)) / (scale(high) - scale(low)))
        if share > ROOM_PER_LETTER * len(phase):
            axes[0].annotate(
                phase,
                (left, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(2, 2),
                textcoords="offset points",
                fontsize=8,
                color=GREY,
            )


def _accuracy(solution: Solution) -> Any:
    """How accurate a result is that was found at once: gap, violation and residual as bars."""
    certificate = solution.certificate
    measured = {
        "certified gap": None if certificate.gap is None else shown_gap(solution),
        "violation": certificate.violation,
        "KKT residual": certificate.stationarity,
    }
    known = {name: value for name, value in measured.items() if value is not None}
    figure = new_figure(7.6, 2.6)
    axes = figure.subplots()
    finite = solution.value is not None and np.isfinite(solution.value)
    value = f", value {solution.value:.8g}" if finite else ""
    figure.suptitle(_wrapped(f"{solution.method}: {words(solution)}{value}"), fontsize=11)
    axes.set_xlim(SMALLEST / 10, 1.0)
    axes.set_xscale("log")
    for place, number in enumerate(known.values()):
        axes.barh(place, max(number, SMALLEST), color=CYCLE[place], height=0.55)
        text = "0" if number == 0 else f"{number:.1e}"
        axes.annotate(
            text, (max(number, SMALLEST), place), xytext=(5, 0), textcoords="offset points",
            va="center", fontsize=9,
        )  # fmt: skip
    axes.set_yticks(range(len(known)), list(known))
    axes.invert_yaxis()
    what = "there is no point" if not known else "solved as one convex program: no iterates in x"
    axes.set_xlabel(what)
    plain_frame(axes)
    return figure


def compare(
    solutions: Sequence[Solution],
    path: Any = None,
    *,
    labels: Sequence[str] | None = None,
    ax: Any = None,
) -> Any:
    """Several solutions of one model: the larger of error and violation against oracle calls.

    Errors are relative to the best certified value among all. `labels` are the names of the methods by
    default. Returns the figure.
    """
    if not isinstance(solutions, Iterable) or isinstance(solutions, (str, Mapping)):
        raise ModelError(f"compare takes a list of solutions, not {solutions!r}")
    solutions = list(solutions)
    if not solutions:
        raise ModelError("compare needs at least one solution")
    for each in solutions:
        check_solution(each)
    check_target(path, ax)
    if labels is not None and not isinstance(labels, (list, tuple)):
        raise ModelError(f"labels are a list of strings, not {labels!r}")
    names = list(labels) if labels is not None else _labels(solutions)
    if len(names) != len(solutions):
        raise ModelError(f"there are {len(solutions)} solutions and {len(names)} labels")
    if ax is None:
        figure = new_figure(7.6, 4.2)
        axes = figure.subplots()
    else:
        axes = axes_in(ax)[0]
        figure = axes.figure
    reference, certified = _best_known(solutions)
    most = 0.0
    for number, (name, solution) in enumerate(zip(names, solutions, strict=True)):
        curves = Curves.of(solution)
        error = curves.distance(reference) / max(abs(reference), 1.0)
        worst = np.fmax(error, np.where(np.isfinite(curves.violation), curves.violation, 0.0))
        colour = CYCLE[number % len(CYCLE)]
        style = {"color": colour, "label": f"{name} ({words(solution)})"}
        marker = "*" if curves.calls.size == 1 else "."
        size = 12 if curves.calls.size == 1 else 5
        axes.plot(curves.calls, worst, marker=marker, markersize=size, linewidth=1.3, **style)
        most = max(most, float(curves.calls[-1]) if curves.calls.size else 0.0)
    log_scale(axes)
    if most > MANY_CALLS:
        axes.set_xscale("log")
    what = "certified value" if certified else "best value found"
    axes.set(xlabel="oracle calls", ylabel=f"error or violation ({what})")
    plain_frame(axes)
    axes.legend(fontsize=8, frameon=False)
    return saved(figure, path)


def _labels(solutions: list[Solution]) -> list[str]:
    names = [solution.method.partition(" (")[0] for solution in solutions]
    return [
        name if names.count(name) == 1 else f"{name} #{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


def _best_known(solutions: list[Solution]) -> tuple[float, bool]:
    """The value with the smallest certified gap, else the value of the first optimal solution."""
    valued = [each for each in solutions if each.value is not None]
    if not valued:
        raise ModelError("none of the solutions has a value")
    shown = [each for each in valued if each.certificate.gap is not None]
    if shown:
        best = min(shown, key=lambda each: abs(each.certificate.gap or 0.0))
        assert best.value is not None
        return best.value, True
    feasible = min(valued, key=lambda each: each.certificate.violation or 0.0)
    assert feasible.value is not None
    return feasible.value, False
