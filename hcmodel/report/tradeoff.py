"""A sweep over one parameter as a trade-off: what it costs, and what one more unit is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.report.canvas import (
    BLUE,
    GREEN,
    GREY,
    VERMILLION,
    axes_in,
    check_target,
    new_figure,
    plain_frame,
    saved,
)

if TYPE_CHECKING:
    from hcmodel.studies.sweep_table import SweepTable

FloatArray = NDArray[np.float64]

# Points from which slopes can be drawn.
FEWEST = 3


def tradeoff(
    sweep: SweepTable,
    path: Any = None,
    *,
    parameter: str | None = None,
    column: str = "value",
    ax: Any = None,
) -> Any:
    """The optimal value of a sweep against one parameter, and below it what one more unit is worth.

    Points without a solution are marked on the axis. `parameter` names the axis where the sweep has
    several, `column` another number than the value: a variable, a dual. `path` is a file to write; with
    `ax` the upper panel alone is drawn into these axes. Returns the figure.
    """
    if not (hasattr(sweep, "rows") and hasattr(sweep, "column")):
        raise ModelError(f"this picture shows a sweep (problem.sweep(…)), not {sweep!r}")
    for each in (parameter, column):
        if not isinstance(each, (str, type(None))):
            raise ModelError(f"columns of a sweep are named by strings, not {each!r}")
    check_target(path, ax)
    name = parameter or _only_parameter(sweep)
    across = np.asarray(sweep.column(name), dtype=float).reshape(len(sweep.rows), -1)
    values = np.asarray(sweep.column(column), dtype=float).reshape(len(sweep.rows), -1)
    if across.shape[1] != 1 or values.shape[1] != 1:
        raise ModelError(f"a trade-off is between two numbers; '{name}' or '{column}' is an array")
    solved = np.array([row.is_solved for row in sweep.rows]) & np.isfinite(values[:, 0])
    order = np.argsort(across[:, 0], kind="stable")
    places = across[order, 0][solved[order]]
    heights = values[order, 0][solved[order]]
    if ax is not None:
        axes = axes_in(ax)[:1]
        figure = axes[0].figure
    else:
        figure = new_figure(7.2, 5.2)
        axes = list(figure.subplots(2, 1, sharex=True, height_ratios=[1.6, 1]))
    _upper(axes[0], places, heights, across[~solved, 0], column)
    if len(axes) > 1:
        _lower(axes[1], places, heights, name, column)
    axes[-1].set_xlabel(name)
    return saved(figure, path)


def _only_parameter(sweep: SweepTable) -> str:
    scalars = [name for name, shape in sweep.layout.parameters.items() if shape == ()]
    if len(scalars) != 1:
        listed = ", ".join(scalars) or "none"
        raise ModelError(f"name one parameter: tradeoff(sweep, parameter=…); there are: {listed}")
    return scalars[0]


def _upper(
    axes: Any, places: FloatArray, heights: FloatArray, failed: FloatArray, column: str
) -> None:
    label = "optimal value" if column == "value" else column
    axes.plot(places, heights, marker="o", markersize=4, color=BLUE, label=label)
    if failed.size:
        axes.plot(
            failed, np.zeros(failed.size), marker="x", linestyle="none", color=VERMILLION, clip_on=False,
            transform=axes.get_xaxis_transform(), label="no solution",
        )  # fmt: skip
    axes.set_ylabel(label)
    axes.legend(frameon=False, fontsize=9)
    plain_frame(axes)


def _lower(axes: Any, places: FloatArray, heights: FloatArray, name: str, column: str) -> None:
    """Slopes between neighbouring points, as steps."""
    if places.size >= FEWEST:
        with np.errstate(all="ignore"):
            slopes = np.diff(heights) / np.diff(places)
        axes.stairs(slopes, places, color=GREEN, linewidth=1.6)
        axes.axhline(0, color=GREY, linewidth=0.7)
    label = "value" if column == "value" else column
    axes.set_ylabel(f"{label} per unit of {name}")
    plain_frame(axes)
