"""The picture of a model of two unknowns: level sets, feasible set and path, in X and beside it in U."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.report.canvas import VERMILLION, axes_in, new_figure, saved

if TYPE_CHECKING:
    from hcmodel.analysis.landscape import Landscape

FloatArray = NDArray[np.float64]

# Level sets that are drawn, and the share of the grid whose values they cover: the rest is one colour.
LEVELS = 14
COVERED = 0.85
# Pieces in which a step is drawn.
STEPS = 20
INK = "#222222"


def landscape_figure(land: Landscape, path: Any = None, *, ax: Any = None) -> Any:
    """Draw a landscape; `ax` is one axes for X, or two for X and U."""
    both = land.images is not None
    if ax is None:
        figure = new_figure(9.4 if both else 5.4, 4.5)
        axes = list(np.ravel(figure.subplots(1, 2 if both else 1)))
    else:
        axes = axes_in(ax)
        figure = axes[0].figure
    first, second = np.meshgrid(land.first, land.second)
    levels = _levels(land)
    filled = _panel(axes[0], land, first, second, levels, land.path, land.optimum)
    axes[0].set_title("as written", fontsize=11)
    axes[0].set_xlabel(land.names[0])
    axes[0].set_ylabel(land.names[1])
    if both and len(axes) > 1:
        assert land.images is not None
        assert land.hidden_names is not None
        _panel(
            axes[1], land, land.images[:, :, 0], land.images[:, :, 1], levels,
            land.path_images, land.optimum_image,
        )  # fmt: skip
        how = "convex" if land.proven else "declared"
        axes[1].set_title(f"in hidden coordinates: {how}", fontsize=11)
        axes[1].set_xlabel(land.hidden_names[0])
        axes[1].set_ylabel(land.hidden_names[1])
    if ax is None:
        bar = figure.colorbar(filled, ax=axes, fraction=0.05, pad=0.02, format="%.3g")
        bar.set_label("objective", fontsize=9)
        bar.ax.tick_params(labelsize=8)
        handles, labels = axes[0].get_legend_handles_labels()
        if handles:
            figure.legend(
                handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=9
            )
    return saved(figure, path)


def _levels(land: Landscape) -> FloatArray:
    """Levels that get closer towards the optimum."""
    values = -land.objective if land.maximise else land.objective
    finite = values[np.isfinite(values)]
    if finite.size == 0 or finite.min() == finite.max():
        return np.array([0.0, 1.0])
    lowest = float(finite.min())
    if land.value is not None and np.isfinite(land.value):
        best = -land.value if land.maximise else land.value
        lowest = min(lowest, best)
    highest = float(np.quantile(finite, COVERED))
    if not highest > lowest:
        highest = float(finite.max())
    steps = lowest + (highest - lowest) * np.linspace(0.0, 1.0, LEVELS) ** 1.6
    return np.sort(-steps) if land.maximise else steps


def _panel(
    axes: Any,
    land: Landscape,
    first: FloatArray,
    second: FloatArray,
    levels: FloatArray,
    path: FloatArray | None,
    optimum: FloatArray | None,
) -> Any:
    """One panel; `first` and `second` are where the points of the grid lie."""
    values = np.ma.masked_invalid(land.objective)
    shade = "cividis_r" if land.maximise else "cividis"
    filled = axes.contourf(first, second, values, levels=levels, cmap=shade, extend="both")
    axes.contour(first, second, values, levels=levels, colors="white", linewidths=0.5, alpha=0.7)
    if land.margin is not None:
        _infeasible(axes, first, second, land.margin)
    for row in land.equalities:
        axes.contour(
            first, second, np.ma.masked_invalid(row), levels=[0.0], colors=INK, linewidths=1.6
        )
    if path is not None and len(path) > 1:
        way = _straight_in_u(path, land.logs) if path is land.path else path
        axes.plot(way[:, 0], way[:, 1], linewidth=1.6, color=VERMILLION)
        axes.plot(
            path[:, 0], path[:, 1], marker="o", markersize=5, linestyle="none", color=VERMILLION,
            markeredgecolor="white", markeredgewidth=0.7, label=f"iterates of {land.method}",
        )  # fmt: skip
        axes.plot(
            *path[0], marker="o", markersize=7, markerfacecolor="white", linestyle="none",
            markeredgecolor=VERMILLION, markeredgewidth=1.5, label="start",
        )  # fmt: skip
    if optimum is not None:
        axes.plot(
            *optimum, marker="*", markersize=15, color="white", markeredgecolor=INK, clip_on=False,
            zorder=5, linestyle="none", label=_found(land),
        )  # fmt: skip
    axes.set_xlim(np.nanmin(first), np.nanmax(first))
    axes.set_ylim(np.nanmin(second), np.nanmax(second))
    return filled


def _found(land: Landscape) -> str:
    """What the star is."""
    if not land.feasible:
        return "best point found (infeasible)"
    return "certified optimum" if land.certified else "solution"


def _straight_in_u(path: FloatArray, logs: NDArray[np.bool_]) -> FloatArray:
    """The path with points in between: steps are straight in logarithms where these are coordinates."""
    with np.errstate(all="ignore"):
        inner = np.where(logs, np.log(np.where(logs, path, 1.0)), path)
    shares = np.linspace(0.0, 1.0, STEPS, endpoint=False)[:, None]
    parts = [a + shares * (b - a) for a, b in itertools.pairwise(inner)]
    way = np.vstack([*parts, inner[-1:]])
    return np.where(logs, np.exp(np.where(logs, way, 0.0)), way)


def _infeasible(axes: Any, first: FloatArray, second: FloatArray, margin: FloatArray) -> None:
    """What the rows exclude is lighter and hatched, with a line around it."""
    masked = np.ma.masked_invalid(margin)
    if masked.count() == 0 or masked.max() <= 0:
        return
    axes.contourf(
        first, second, masked, levels=[0.0, float(masked.max())], colors=["white"], alpha=0.55
    )
    hatched = axes.contourf(
        first, second, masked, levels=[0.0, float(masked.max())], colors="none", hatches=["//"]
    )
    hatched.set_edgecolor("#bbbbbb")
    hatched.set_linewidth(0.0)
    if masked.min() < 0:
        axes.contour(first, second, masked, levels=[0.0], colors=INK, linewidths=1.6)
