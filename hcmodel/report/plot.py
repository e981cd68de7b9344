"""Pictures, as `hc.plot`: `convergence`, `compare`, `landscape`, `tradeoff`. They need the extra `plot`.

matplotlib is imported when a picture is drawn, not before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hcmodel.errors import ModelError
from hcmodel.report.canvas import check_target, require_matplotlib
from hcmodel.report.convergence import compare, convergence
from hcmodel.report.landscape_figure import landscape_figure
from hcmodel.report.tradeoff import tradeoff

if TYPE_CHECKING:
    from hcmodel.problem import Problem

__all__ = ["compare", "convergence", "landscape", "tradeoff"]


def __dir__() -> list[str]:
    return sorted(__all__)


def landscape(
    problem: Problem,
    path: Any = None,
    *,
    ax: Any = None,
    points: int = 120,
    method: str | None = None,
) -> Any:
    """A model of two unknowns: level sets, feasible set and iterates, in X and beside it in U.

    The model is solved first if it was not. The iterates are those of `method`, by default
    `hidden-newton`, or `prox-linear` where no hidden coordinates are known. `points` is the number of
    grid points along an axis, `path` a file to write, `ax` one axes for X or two for X and U. Returns
    the figure.
    """
    require_matplotlib()
    if not hasattr(problem, "landscape"):
        raise ModelError(f"this picture shows a problem, not {problem!r}")
    check_target(path, ax)
    return landscape_figure(problem.landscape(points=points, method=method), path, ax=ax)
