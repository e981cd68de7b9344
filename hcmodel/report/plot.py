"""Convergence pictures; matplotlib is imported only here and comes with the extra `plot`."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.errors import SolverError

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution


def require_matplotlib() -> None:
    """Raise where there is no matplotlib, before work is done for a picture."""
    if find_spec("matplotlib") is None:
        raise SolverError("plots need matplotlib: pip install 'hcmodel[plot]'")


def convergence_figure(solution: Solution, path: str | None = None) -> Any:
    """Objective (left) and violation (right) against oracle calls."""
    require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    calls = np.array([record.calls for record in solution.trace])
    objective = np.array([record.objective for record in solution.trace])
    violation = np.array([record.violation for record in solution.trace])
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2)
    left.plot(calls, objective, marker=".", color="tab:blue")
    left.set(xlabel="oracle calls", ylabel="objective", title="objective")
    floor = 1e-16
    right.semilogy(calls, np.maximum(violation, floor), marker=".", color="tab:red")
    right.set(xlabel="oracle calls", ylabel="largest violation", title="violation")
    for axes in (left, right):
        axes.grid(alpha=0.3)
    figure.suptitle(f"{solution.method}: {solution.status.value}")
    if path is not None:
        try:
            figure.savefig(path, dpi=150)
        except ValueError as error:  # matplotlib knows the format by the name's ending
            raise SolverError(f"{path}: {error}") from None
    return figure
