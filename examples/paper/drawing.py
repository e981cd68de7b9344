"""What the figures have in common: canvases without global state, level sets, paths, convergence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter
from models import Plane
from numpy.typing import NDArray
from runs import Path

FloatArray = NDArray[np.float64]
Window = tuple[float, float, float, float]

GRID = 201
COLOURS = {
    "ippm-swsg": "tab:orange",
    "ippm-sm": "tab:brown",
    "ippm-acgd": "tab:red",
    "sbl-star": "tab:blue",
    "sbl-adals": "tab:purple",
    "IPPM+SwSG": "tab:orange",
    "IPPM+ACGD": "tab:red",
    "S-StarBL": "tab:blue",
    "S-BL+AdaLS": "tab:purple",
}
MARKERS = {"ippm-swsg": "o", "ippm-acgd": "s", "sbl-star": "^", "sbl-adals": "v"}


def canvas(width: float, height: float) -> Figure:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def level_sets(axes: Any, plane: Plane, window: Window, *, hidden: bool = False) -> None:
    """F1 in colour and {F2 <= 0} in grey, over x or, with `hidden`, over u = c(x)."""
    left, right, bottom, top = window
    first, second = np.meshgrid(np.linspace(left, right, GRID), np.linspace(bottom, top, GRID))
    x1, x2 = plane.inverse(first, second) if hidden else (first, second)
    objective, constraint = plane.values(x1, x2)
    levels = np.quantile(objective, np.linspace(0.0, 1.0, 16))
    levels = np.unique(np.round(levels, 6))
    filled = axes.contourf(first, second, objective, levels=levels, cmap="viridis", alpha=0.85)
    axes.contour(first, second, objective, levels=levels, colors="white", linewidths=0.4)
    axes.figure.colorbar(filled, ax=axes, shrink=0.8, pad=0.02, format="%.2g")
    inside = [float(constraint.min()) - 1.0, 0.0]
    axes.contourf(first, second, constraint, levels=inside, colors="0.6", alpha=0.65)
    axes.contour(first, second, constraint, levels=[0.0], colors="black", linewidths=1.0)
    letter = "u" if hidden else "x"
    axes.set(xlabel=f"${letter}_1$", ylabel=f"${letter}_2$", xlim=(left, right), ylim=(bottom, top))
    axes.set_aspect("equal")


def mark(axes: Any, point: Any, label: str, marker: str, colour: str) -> None:
    axes.plot(
        *np.ravel(point),
        linestyle="none",
        marker=marker,
        markersize=9,
        color=colour,
        markeredgecolor="black",
        label=label,
        zorder=6,
    )


def trail(axes: Any, points: FloatArray, name: str, label: str | None = None) -> None:
    axes.plot(
        points[:, 0],
        points[:, 1],
        color=COLOURS[name],
        marker=MARKERS.get(name, "o"),
        markersize=4,
        markeredgecolor="white",
        markeredgewidth=0.4,
        linewidth=1.2,
        label=label or name,
        zorder=5,
    )


def legend_below(figure: Figure, axes: Any, columns: int, *, feasible: bool = True) -> None:
    """One legend for the figure, outside of its axes, so that it covers no data."""
    handles, labels = axes.get_legend_handles_labels()
    if feasible:
        handles.append(Patch(facecolor="0.6", edgecolor="black", alpha=0.65))
        labels.append("feasible set")
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def convergence(
    left: Any, right: Any, paths: Sequence[Path], optimum: float, *, logarithmic: bool = True
) -> None:
    """Objective (left) and violation (right) against oracle calls."""
    for path in paths:
        style = {"color": COLOURS[path.name], "marker": ".", "markersize": 4, "linewidth": 1.2}
        left.plot(path.calls, path.objective, label=path.name, **style)
        right.plot(path.calls, path.violation, label=path.name, **style)
    left.axhline(optimum, color="black", linestyle="--", linewidth=0.9, label="$F_1^*$")
    left.set(xlabel="oracle calls", ylabel="objective value $F_1$")
    violation_axis(right, paths)
    for axes in (left, right):
        if logarithmic:
            calls_axis(axes)
        axes.grid(alpha=0.3)


def calls_axis(axes: Any) -> None:
    """Oracle calls on a logarithmic axis, with labels at 1, 2 and 5 times powers of ten on short ones."""
    axes.set_xscale("log")
    low, high = axes.get_xlim()
    several = np.floor(np.log10(high)) - np.ceil(np.log10(low)) >= 1
    if not several:
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.xaxis.set_minor_formatter(NullFormatter())


def violation_axis(axes: Any, paths: Sequence[Path], smallest: float = 1e-9) -> None:
    """[F2]₊ on an axis that is linear next to zero, as feasible points have no logarithm."""
    top = max(float(path.violation.max(initial=0.0)) for path in paths)
    axes.set_yscale("symlog", linthresh=smallest)
    highest = max(10 * top, 1e-6)
    axes.set_yticks([0.0, *(tick for tick in (1e-8, 1e-6, 1e-4, 1e-2, 1.0) if tick <= highest)])
    axes.set_ylim(-0.3 * smallest, highest)
    if top == 0.0:
        axes.text(0.5, 0.5, "every iterate is feasible", transform=axes.transAxes, ha="center")
    axes.set(xlabel="oracle calls", ylabel="violation $[F_2]_+$")


def error_axis(axes: Any, paths: Sequence[Path], optimum: float) -> None:
    for path in paths:
        error = np.maximum(np.abs(path.objective - optimum), 1e-13)
        axes.semilogy(
            path.calls, error, color=COLOURS[path.name], marker=".", markersize=4, linewidth=1.2
        )
    axes.set(xlabel="oracle calls", ylabel="$|F_1 - F_1^*|$")
    axes.grid(alpha=0.3)


def line(colour: str, style: str = "-") -> Line2D:
    return Line2D([], [], color=colour, linestyle=style)
