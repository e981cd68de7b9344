"""The numbers of each figure: ours, the paper's, and why they differ where they do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import figures
import models
import numpy as np
import printed
import runs
import shift

from hcmodel.solvers import Termination


@dataclass(frozen=True)
class Row:
    quantity: str
    ours: str
    paper: str
    note: str = ""


def _pair(point: Sequence[float] | np.ndarray) -> str:
    return "(" + ", ".join(f"{entry + 0.0:.4f}" for entry in np.ravel(point)) + ")"


def _reached(path: runs.Path) -> str:
    return f"{path.result.termination.name}, {path.result.calls.total} calls"


def table_1() -> list[Row]:
    rows = []
    for plane, path, best, value in (
        (models.LEAST_SQUARES, runs.least_squares(), "(0.85, 0.85)", "0.15"),
        (models.GEOMETRIC, runs.geometric()[0], "(2, 0.5)", "5"),
    ):
        free = runs.without_constraint(plane).result.point
        rows += [
            Row(f"{plane.name} x*", _pair(path.result.point), best, path.name),
            Row(f"{plane.name} F1*", f"{path.value:.6f}", value),
            Row(f"{plane.name} without F2", _pair(free), "drawn", "ippm-sm"),
        ]
    return rows


def table_2() -> list[Row]:
    local, best = (runs.inconsistent(*start) for start in figures.STARTS)
    wrong = "(0.5, 1.5) violates F2 by 0.1"
    return [
        Row("Fig. 2 global x", _pair(best.result.point), "(0.5, 1.5)", wrong),
        Row(
            "Fig. 2 global F1",
            f"{best.value:.5f}",
            "-",
            f"0.55·√2; {_reached(best)} of {best.name}",
        ),
        Row(
            "Fig. 2 local x",
            _pair(local.result.point),
            "(-0.3, 0.2)",
            f"{_reached(local)} of {local.name}, start on the left",
        ),
        Row("Fig. 2 local F1", f"{local.value:.5f}", "-", "a KKT point, not the minimum"),
    ]


def table_3() -> list[Row]:
    plain = shift.cosine_steps(1.0, 5)
    moved = shift.cosine_steps(shift.SHIFT, 1)
    cut = shift.constraint_cut()
    ours = runs.cosine()
    swing = ", ".join(f"{x:+.2f}" for x in plain[2:])
    found = f"no α is printed; α = {shift.SHIFT}, τ = 0"
    projected = "cut, then X: at ±0.95 the QP over X has no solution"
    unprinted = f"α = {shift.CONSTRAINT_SHIFT}, τ = {cut.tau:.3f}: none are printed"
    return [
        Row("StarBL from 0.891", f"{plain[1]:.4f}", "-0.95", "without a shift"),
        Row("StarBL afterwards", swing, "±0.95", projected),
        Row("S-StarBL from 0.891", f"{moved[1]:.4f}", "-0.24", found),
        Row("sbl-star ends at", f"{abs(ours.result.point[0]):.1e}", "0", _reached(ours)),
        Row("F2 cut at x*", f"{cut.linear(cut.target):.4f}", "> 0", "not shifted: x* is cut off"),
        Row(
            "F2 cut at x_α", f"{cut.linear(cut.on_the_way):.4f}", f"<= {cut.shifted:.4f}", unprinted
        ),
    ]


def table_4() -> list[Row]:
    path = runs.least_squares()
    near = path.calls[np.abs(path.objective - runs.OPTIMUM_LEAST_SQUARES) <= 5e-3]
    return [
        Row("Ex-CNLS F1", f"{path.value:.6f}", "0.15", _reached(path)),
        Row("Ex-CNLS x", _pair(path.result.point), "(0.85, 0.85)", "start (-0.3, 0.20005)"),
        Row(
            "calls to error 5e-3",
            f"{near[0]:.0f}",
            "1e6",
            "theirs: the authors' public code, as this project ran it",
        ),
        Row("largest violation", f"{path.violation.max():.1e}", "0", "outer iterates"),
    ]


def table_5() -> list[Row]:
    rows = []
    for path, theirs in zip(runs.geometric(), ("9e-3", "3e-4", "6.5e-3"), strict=True):
        error = abs(path.value - runs.OPTIMUM_GEOMETRIC)
        rows += [
            Row(f"Ex-CGP {path.name} F1", f"{path.value:.6f}", "5", _reached(path)),
            Row(f"Ex-CGP {path.name} error", f"{error:.1e}", theirs, "theirs: public code"),
        ]
    calls = [str(path.result.calls.total) for path in runs.geometric()]
    rows.append(
        Row(
            "calls",
            ", ".join(calls),
            "360000, 20000, 80000",
            "theirs: public code, as this project ran it",
        )
    )
    return rows


SETTINGS = (
    "10 epochs, ρ̂ = 0.02, 121 steps 0.05/(t+1); a step is one call there, 1 or 2 here",
    f"10 epochs, ρ̂ = 0.02, T_in = 60; Λ = {printed.SMOOTHNESS} is not printed",
    f"605 steps, α = 0.3, β = 1; τ = {printed.SLACK} is inferred; F1* is given",
    f"5 epochs of 121, α = 0.3, β = 1/2, λ = 0.25, η0 = F1*/2; τ = {printed.SLACK} is inferred",
)
ADAPTIVE = {
    "ippm-swsg": "ρ̂, T_in from 60 and the steps found by the run",
    "ippm-acgd": "ρ̂, T_in from 60 and Λ found by the run",
    "sbl-star": "α, λ found by the run, τ = 0; F1* is given",
    "sbl-adals": "α, λ, η0 found by the run, β = 1/2, τ = 0",
}


def table_6() -> list[Row]:
    star = runs.large()[2]
    rows = [Row("d = 100 F1*", f"{runs.large()[1].value:.5f}", "0.07114", "by ippm-acgd, feasible")]
    claims = ("not reached", "reached", "reached", "reached")
    for path, claim, setting in zip(printed.large(), claims, SETTINGS, strict=True):
        rows.append(_large(path, claim, setting, "printed"))
    for path, claim in zip(runs.large(), claims, strict=True):
        note = ADAPTIVE[path.name]
        rows.append(_large(path, claim, f"adaptive: {note}", "adaptive"))
    near = printed.large()[2]
    settled = near.calls[near.objective - runs.OPTIMUM_LARGE <= 4e-3]
    rows.append(Row("S-StarBL calls", f"{settled[0]:.0f}", "< 100", "printed settings, to 4e-3"))
    reached = star.calls[np.abs(star.objective - runs.OPTIMUM_LARGE) <= 4e-3]
    rows.append(Row("sbl-star calls", f"{reached[0]:.0f}", "< 100", "adaptive, to 4e-3"))
    last = printed.large()[3].violation[-1]
    rows.append(Row("AdaLS violation", f"{last:.1e}", "3e-3", "printed settings: τ/α"))
    return rows


def _large(path: runs.Path, claim: str, setting: str, kind: str) -> Row:
    error = path.objective[-1] - runs.OPTIMUM_LARGE
    text = f"error {error:.1e}, violation {path.violation[-1]:.1e}, {path.result.calls.total} calls"
    if path.result.termination is Termination.BACKEND_FAILED:
        setting += f"; the QP degenerates at the fixed point, step {path.result.iterations}"
    return Row(f"{path.name} {kind}", text, claim, setting)


TABLES: dict[int, Callable[[], list[Row]]] = {
    1: table_1,
    2: table_2,
    3: table_3,
    4: table_4,
    5: table_5,
    6: table_6,
}


def text(rows: Sequence[Row]) -> str:
    """A table that reads as text and as Markdown."""
    cells = [("quantity", "ours", "paper", "note")]
    cells += [(row.quantity, row.ours, row.paper, row.note) for row in rows]
    widths = [max(len(line[column]) for line in cells) for column in range(4)]
    lines = [
        " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    ]
    rule = " | ".join("-" * width for width in widths)
    return "\n".join([lines[0], rule, *lines[1:]])
