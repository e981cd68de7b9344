"""A solution as a small table for notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from hcmodel.report.text import short_array

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution


def solution_html(solution: Solution) -> str:
    rows = [("status", solution.status.value), ("why", solution.message)]
    if solution.value is not None:
        rows.append(("value", f"{solution.value:.10g}"))
    if solution.certificate.violation is not None:
        rows.append(("violation", f"{solution.certificate.violation:.2e}"))
    if solution.certificate.stationarity is not None:
        rows.append(("KKT residual", f"{solution.certificate.stationarity:.2e}"))
    rows += [(name, short_array(array)) for name, array in solution.point.items()]
    rows += [(f"dual of {name}", short_array(array)) for name, array in solution.duals.items()]
    rows.append(("oracle calls", f"{solution.oracle_calls.total} by {solution.method}"))
    cells = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in rows)
    return f"<table>{cells}</table>"
