"""Figures 1 to 6. Each function returns its matplotlib figure; runs are shared through `runs`."""

from __future__ import annotations

from typing import Any

import models
import numpy as np
import printed
import runs
import shift
from drawing import (
    COLOURS,
    calls_axis,
    canvas,
    convergence,
    error_axis,
    legend_below,
    level_sets,
    line,
    mark,
    trail,
    violation_axis,
)
from matplotlib.figure import Figure

LEAST_SQUARES_X = (-1.0, 2.5, -1.0, 2.5)
LEAST_SQUARES_U = (-2.0, 1.5, -2.0, 1.5)
GEOMETRIC_X = (0.4, 3.0, 0.4, 3.0)
GEOMETRIC_U = (float(np.log(0.4)), float(np.log(3)), float(np.log(0.4)), float(np.log(3)))
# The first start leads to the local minimum, at a corner, the second to the global one, on a face: there
# the kinks are far away, and a method for smooth rows is the more precise one.
STARTS = (((-0.25, 0.1), "ippm-swsg"), ((0.5, 0.5), "sbl-adals"))


def _optima(axes: Any, plane: models.Plane, best: Any, free: Any, hidden: bool) -> None:
    points = plane.image([best, free]) if hidden else np.array([best, free])
    mark(axes, points[0], "optimum", "*", "gold")
    mark(axes, points[1], "optimum without $F_2$", "D", "white")


def figure_1() -> Figure:
    """Level sets and feasible sets in X and in U."""
    figure = canvas(9.5, 8.6)
    panels = figure.subplots(2, 2)
    rows = (
        (models.LEAST_SQUARES, LEAST_SQUARES_X, LEAST_SQUARES_U, runs.least_squares()),
        (models.GEOMETRIC, GEOMETRIC_X, GEOMETRIC_U, runs.geometric()[0]),
    )
    for (plane, in_x, in_u, path), axes in zip(rows, panels, strict=True):
        free = runs.without_constraint(plane).result.point
        for hidden, window in enumerate((in_x, in_u)):
            level_sets(axes[hidden], plane, window, hidden=bool(hidden))
            _optima(axes[hidden], plane, path.result.point, free, bool(hidden))
        axes[0].set_title(f"{plane.name}: as written, x")
        axes[1].set_title(f"{plane.name}: convex, u = c(x)")
    legend_below(figure, panels[0][0], 3)
    return figure


def figure_2() -> Figure:
    """Objective and constraint that no common map makes convex: two KKT points."""
    figure = canvas(9.5, 4.9)
    panels = figure.subplots(1, 2)
    plane = models.INCONSISTENT
    local, best = (runs.inconsistent(*start).result.point for start in STARTS)
    free = runs.without_constraint(plane).result.point
    windows = (LEAST_SQUARES_X, (-2.0, 1.5, -3.2, 0.3))
    for hidden, (axes, window) in enumerate(zip(panels, windows, strict=True)):
        level_sets(axes, plane, window, hidden=bool(hidden))
        points = plane.image([local, best, free]) if hidden else np.array([local, best, free])
        mark(axes, points[1], "global minimum", "*", "gold")
        mark(axes, points[0], "local minimum", "X", "tab:red")
        mark(axes, points[2], "minimum without $F_2$", "D", "white")
    panels[0].set_title("x: only the objective is convex", fontsize=11)
    panels[1].set_title("u = c(x): only the constraint is convex", fontsize=11)
    legend_below(figure, panels[0], 4)
    return figure


def _cosine(axes: Any, alpha: float, title: str) -> None:
    grid = np.linspace(-0.95, 0.95, 400)
    axes.plot(grid, 1 - np.cos(np.pi * grid), color="black", label=r"$F_1 = 1 - \cos \pi x$")
    here, there = shift.cosine_steps(alpha, 1)
    at = shift.cosine_at(here)
    tangent = at.objective + at.gradient[0] * (grid - here)
    axes.plot(grid, tangent, color="tab:blue", label=r"$\ell_{F_1}$ at $x_t$")
    level = (1 - alpha) * at.objective
    name = r"$(1-\alpha)F_1(x_t)$, shifted" if alpha < 1 else "$F_1^* = 0$"
    axes.axhline(level, color="tab:green", linestyle="--", label=name)
    axes.plot([there, there], [level, shift.cosine_at(there).objective], color="0.6", linestyle=":")
    for x, colour, label in ((here, "tab:orange", "x_t"), (there, "tab:red", "x_{t+1}")):
        label = f"${label} = {x:.3g}$"
        mark(axes, (x, shift.cosine_at(x).objective), label, "o", colour)
    axes.set(xlabel="x", ylabel="$F_1$", ylim=(-0.15, 3.3), title=title)
    axes.legend(loc="upper center", ncols=2, fontsize=8)
    axes.grid(alpha=0.3)


def figure_3() -> Figure:
    """The shift: un-shifted and shifted cut of 1 − cos πx, and the shifted constraint of Ex-CGP."""
    figure = canvas(14.5, 4.8)
    panels = figure.subplots(1, 3)
    _cosine(panels[0], 1.0, "(a) without a shift: to the maximum")
    cut, axes = shift.constraint_cut(), panels[1]
    level_sets(axes, models.GEOMETRIC, (0.8, 2.4, 0.2, 1.8))
    x1 = np.linspace(0.8, 2.4, 50)
    for height, style, label in (
        (0.0, ":", r"$\ell_{F_2} = 0$, not shifted"),
        (cut.shifted, "--", r"$\ell_{F_2} = (1-\alpha)F_2 + \tau$"),
    ):
        x2 = (
            cut.point[1]
            + (height - cut.value - cut.gradient[0] * (x1 - cut.point[0])) / (cut.gradient[1])
        )
        axes.plot(x1, x2, color="tab:red", linestyle=style, linewidth=1.8, label=label)
    mark(axes, cut.point, "$x_t$", "o", "tab:orange")
    mark(axes, cut.on_the_way, r"$x_\alpha$", "s", "tab:cyan")
    mark(axes, cut.target, "$x^*$", "*", "gold")
    axes.set_title("(b) shifted constraint of Ex-CGP")
    axes.legend(loc="upper right", fontsize=8)
    _cosine(panels[2], shift.SHIFT, "(c) with a shift: a better point")
    return figure


def _trajectories(
    plane: models.Plane,
    windows: tuple[Any, Any],
    paths: tuple[runs.Path, ...],
    optimum: float,
) -> Figure:
    figure = canvas(10.5, 8.6)
    panels = figure.subplot_mosaic("AB;CD", height_ratios=(1.5, 1))
    for hidden, (key, window) in enumerate(zip("AB", windows, strict=True)):
        axes = panels[key]
        level_sets(axes, plane, window, hidden=bool(hidden))
        for path in paths:
            points = plane.image(path.points) if hidden else path.points
            trail(axes, points, path.name)
        best = paths[0].result.point
        mark(axes, plane.image(best) if hidden else best, "optimum", "*", "gold")
        axes.set_title("iterates, u = c(x)" if hidden else "iterates, x")
    convergence(panels["C"], panels["D"], paths, optimum)
    panels["C"].legend(loc="upper right", fontsize=8)
    legend_below(figure, panels["A"], 5)
    figure.suptitle(plane.name)
    return figure


def figure_4() -> Figure:
    """Ex-CNLS by ippm-swsg, across the kink."""
    windows = (LEAST_SQUARES_X, LEAST_SQUARES_U)
    paths = (runs.least_squares(),)
    return _trajectories(models.LEAST_SQUARES, windows, paths, runs.OPTIMUM_LEAST_SQUARES)


def figure_5() -> Figure:
    """Ex-CGP by the three methods for smooth problems."""
    windows = (GEOMETRIC_X, GEOMETRIC_U)
    return _trajectories(models.GEOMETRIC, windows, runs.geometric(), runs.OPTIMUM_GEOMETRIC)


def figure_6() -> Figure:
    """d = 100: the printed settings above, our adaptive defaults below."""
    figure = canvas(13.0, 7.2)
    panels = figure.subplots(2, 3)
    titles = ("printed settings", "adaptive rule, defaults")
    for axes, paths, title in zip(panels, (printed.large(), runs.large()), titles, strict=True):
        convergence(axes[0], axes[2], paths, runs.OPTIMUM_LARGE, logarithmic=False)
        error_axis(axes[1], paths, runs.OPTIMUM_LARGE)
        violation_axis(axes[2], paths)
        for panel in axes:
            panel.set_xlim(0, runs.CALLS_LARGE)
            panel.set_title(title)
        axes[1].set_ylim(1e-9, 2)
    handles = [line(COLOURS[path.name]) for path in runs.large()]
    names = [
        f"{ours.name} ({theirs.name})"
        for ours, theirs in zip(runs.large(), printed.large(), strict=True)
    ]
    handles.append(line("black", "--"))
    figure.legend(handles, [*names, "$F_1^*$"], loc="outside lower center", ncols=5, frameon=False)
    return figure


def method_picture(name: str) -> Figure:
    """Convergence of one method, for its page: error and violation against calls."""
    every = [("d = 100", path, runs.OPTIMUM_LARGE) for path in runs.large()]
    every += [("Ex-CGP", path, runs.OPTIMUM_GEOMETRIC) for path in runs.geometric()]
    every.append(("Ex-CNLS", runs.least_squares(), runs.OPTIMUM_LEAST_SQUARES))
    free = runs.without_constraint(models.LEAST_SQUARES)
    every.append(("Ex-CNLS without its constraint", free, 0.0))
    cases = [case for case in every if case[1].name == name]
    constrained = cases[0][1].result.multipliers.size > 0
    figure = canvas(8.0 if constrained else 4.6, 3.2)
    panels = np.ravel(figure.subplots(1, 2 if constrained else 1))
    for (label, path, optimum), colour in zip(cases, ("tab:orange", "tab:blue"), strict=False):
        error = np.maximum(np.abs(path.objective - optimum), 1e-13)
        style = {"color": colour, "marker": ".", "linewidth": 1.2, "label": label}
        for axes, values in zip(panels, (error, path.violation), strict=False):
            axes.plot(path.calls, values, **style)
    panels[0].set_yscale("log")
    panels[0].set(xlabel="oracle calls", ylabel="$|F_1 - F_1^*|$")
    panels[0].legend(loc="lower left", fontsize=8)
    if constrained:
        violation_axis(panels[1], [path for _, path, _ in cases])
    for axes in panels:
        calls_axis(axes)
        axes.grid(alpha=0.3)
    figure.suptitle(f"{name}, adaptive rule, defaults", fontsize=10)
    return figure
