"""What all pictures share: matplotlib, which comes with the extra `plot`, colours, files.

Figures are made without pyplot, so that they work without a display and leave no global state. Colours
are those of Okabe and Ito (2008), which people with any colour vision tell apart.
"""

from __future__ import annotations

import io
from importlib.util import find_spec
from typing import Any

import numpy as np

from hcmodel.errors import ModelError, SolverError
from hcmodel.expressions.output_files import as_path, replaced

BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
PURPLE, SKY, BLACK, GREY = "#CC79A7", "#56B4E9", "#000000", "#777777"
CYCLE = (BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK)
# Dots per inch of files: twice what screens show at the size of the figure.
RESOLUTION = 200
# In notebooks.
SCREEN = 110
# Ranges with fewer than two powers of ten get labels in between.
SHORT_RANGE = 100.0


def matplotlib_installed() -> bool:
    return find_spec("matplotlib") is not None


def require_matplotlib() -> None:
    """Raise where there is no matplotlib, before work is done for a picture."""
    if not matplotlib_installed():
        raise SolverError("plots need matplotlib: pip install 'hcmodel[plot]'")


def new_figure(width: float, height: float) -> Any:
    """An empty figure of this size in inches."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    class NotebookFigure(Figure):
        """A figure that notebooks show, without pyplot."""

        def _repr_png_(self) -> bytes:
            file = io.BytesIO()
            self.savefig(file, format="png", dpi=SCREEN)
            return file.getvalue()

    figure = NotebookFigure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def saved(figure: Any, path: Any) -> Any:
    """The figure, written to a file where a path is given; its ending names the format."""
    if path is None:
        return figure
    try:
        if _is_open(path):
            figure.savefig(path, dpi=RESOLUTION)
        else:
            with replaced(path) as name:
                figure.savefig(name, dpi=RESOLUTION)
    except ValueError as error:  # matplotlib knows the format by the name's ending
        raise SolverError(f"{path}: {error}") from None
    return figure


def _is_open(path: Any) -> bool:
    return callable(getattr(path, "write", None))


def check_target(path: Any, ax: Any) -> None:
    """Raise where a picture cannot be written or drawn, before work is done for it."""
    if path is not None and not _is_open(path):
        as_path(path)
    if ax is not None:
        axes_in(ax)


def axes_in(ax: Any) -> list[Any]:
    """The axes that a picture is drawn into: one, or several in a list or an array."""
    axes = list(np.ravel(np.asarray(ax, dtype=object)))
    if not axes or not all(hasattr(each, "plot") and hasattr(each, "figure") for each in axes):
        raise ModelError(f"ax is axes of matplotlib, not {ax!r}")
    return axes


def check_solution(solution: Any) -> None:
    """Raise unless this is a solution, which has a trace and a certificate."""
    if not (hasattr(solution, "trace") and hasattr(solution, "certificate")):
        raise ModelError(f"this picture shows a solution (problem.solution), not {solution!r}")


def plain_frame(axes: Any) -> None:
    """A light grid, and no frame at the top and at the right."""
    axes.grid(alpha=0.25, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def log_scale(axes: Any) -> None:
    """A logarithmic y axis whose labels do not touch, and which has labels for short ranges too."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    axes.set_yscale("log")
    low, high = axes.get_ylim()
    short = high < SHORT_RANGE * low
    axes.yaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if short else (1.0,), numticks=6))
    if short:
        axes.yaxis.set_major_formatter(LogFormatterSciNotation(labelOnlyBase=False))
    axes.yaxis.set_minor_formatter(NullFormatter())
