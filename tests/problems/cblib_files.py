"""The geometric programs of CBLIB as CBF files, written as CBLIB has them: in exponential cones.

    minimise Σ a_j u_j + c   s.t.   Σ_k t_k <= 1,   (t_k, 1, log c_k + a_kᵀu) in EXP,   log c + aᵀu <= 0

This writer knows nothing of the one in hcmodel.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "cblib"
# Clarabel at 1e-10 on the cone form.
VALUES: dict[str, float | None] = {
    "demb782": 0.6931471803,
    "bss2": 4.108531659,
    "rijc781": -4.414286536,
    "rijc783": 11.74644047,
    "rijc785": 3.375177923,
    "rijc787": 5.184464897,
    "fiac81a": 7.513057978,
    "beck752": 6.815509029,
    "demb761": 22.31086286,
    "car": 3.279447759,
    "isil01": None,  # infeasible
    "gp_dave_2": 4.888326337,
    "mra01": 3.420649751,
    "cx02-100": 7.729274229,
    "varun": -23.52729545,
}


Term = tuple[float, dict[int, float]]


@dataclass(frozen=True)
class GeometricProgram:
    """Rows of terms (log c, exponents), Σ c·x^a <= 1; the objective is a monomial's logarithm."""

    size: int
    objective: dict[int, float]
    constant: float
    rows: list[list[Term]]


def stored(name: str) -> GeometricProgram:
    """A program of this repository."""
    data: dict[str, Any] = json.loads(gzip.decompress((FOLDER / f"{name}.json.gz").read_bytes()))
    rows: list[list[Term]] = [[] for _ in range(data["rows"])]
    for k, row in enumerate(data["row"]):
        places = range(data["start"][k], data["start"][k + 1])
        exponents = {data["variable"][i]: float(data["exponent"][i]) for i in places}
        rows[row].append((float(data["offset"][k]), exponents))
    objective = {int(j): float(a) for j, a in data["objective"].items()}
    return GeometricProgram(data["variables"], objective, float(data["constant"]), rows)


def cbf_of(program: GeometricProgram) -> str:
    """The file: rows of one term are linear, all others have one cone for each term."""
    n, constant = program.size, program.constant
    posynomials = [row for row in program.rows if len(row) > 1]
    monomials = [row[0] for row in program.rows if len(row) == 1]
    terms = [term for row in posynomials for term in row]
    cones, entries, offsets, row, term = [], [], [], 0, n
    for posynomial in posynomials:
        cones.append("L-")
        entries += [(row, term + k, 1.0) for k in range(len(posynomial))]
        offsets.append((row, -1.0))
        row, term = row + 1, term + len(posynomial)
    for offset, exponents in monomials:
        cones.append("L-")
        entries += [(row, j, a) for j, a in exponents.items()]
        offsets.append((row, offset))
        row += 1
    lines = [f"{cone} 1" for cone in cones]
    for k, (offset, exponents) in enumerate(terms):
        lines.append("EXP 3")
        entries.append((row, n + k, 1.0))
        offsets.append((row + 1, 1.0))
        entries += [(row + 2, j, a) for j, a in exponents.items()]
        offsets.append((row + 2, offset))
        row += 3
    objective = "".join(f"{j} {a!r}\n" for j, a in program.objective.items())
    offsets = [(i, b) for i, b in offsets if b]
    return (
        "VER\n2\n\nOBJSENSE\nMIN\n\n"
        f"VAR\n{n + len(terms)} 1\nF {n + len(terms)}\n\n"
        f"CON\n{row} {len(lines)}\n" + "\n".join(lines) + "\n\n"
        f"OBJACOORD\n{len(program.objective)}\n{objective}\n"
        f"OBJBCOORD\n{constant!r}\n\n"
        f"ACOORD\n{len(entries)}\n" + "".join(f"{i} {j} {a!r}\n" for i, j, a in entries) + "\n"
        f"BCOORD\n{len(offsets)}\n" + "".join(f"{i} {b!r}\n" for i, b in offsets)
    )
