"""Smooth convex programs in u = log x for the interior-point method, and their cone form for peers."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from hcmodel.solvers.qp import ConeBlock, ConeKind, ConeProgram, cone_program
from hcmodel.solvers.second_order.interior_point import LogSums, SmoothConvexProgram, Sums

FloatArray = NDArray[np.float64]

HERE = Path(__file__).parent

# The logarithm of the optimal value, on which Clarabel (on the cone form, at 1e-9) and the
# interior-point method agree to 1e-8.
CBLIB: dict[str, float] = {
    "beck752": 6.815509029,
    "bss2": 4.108531659,
    "car": 3.279447758,
    "cx02-100": 7.729274016,
    "demb761": 22.31086286,
    "demb782": 0.6931471806,
    "fiac81a": 7.513057978,
    "gp_dave_2": 4.888326337,
    "isil01": np.inf,  # infeasible
    "mra01": 3.420649742,
    "rijc781": -4.414286538,
    "rijc783": 11.74644047,
    "rijc785": 3.375177923,
    "rijc787": 5.184464897,
    "varun": -23.52729602,
}

GEOMETRIC_PROGRAMS: dict[str, dict[str, Any]] = {
    data["name"]: data for data in json.loads((HERE / "geometric_programs.json").read_text())
}


def cblib(name: str) -> SmoothConvexProgram:
    """Posynomials <= 1 in positive variables without bounds, objective a monomial's logarithm."""
    data = json.loads(gzip.decompress((HERE / "cblib" / f"{name}.json.gz").read_bytes()))
    size, rows = data["variables"], data["rows"]
    exponents = sp.csr_array(
        (data["exponent"], data["variable"], data["start"]), shape=(len(data["offset"]), size)
    )
    affine = sp.lil_array((rows + 1, size))
    for variable, exponent in data["objective"].items():
        affine[0, int(variable)] = exponent
    constants = np.zeros(rows + 1)
    constants[0] = data["constant"]
    free = np.full(size, np.inf)
    logs = LogSums(exponents, np.array(data["offset"]), np.array(data["row"]), 1 + np.arange(rows))
    return SmoothConvexProgram(sp.csr_array(affine), constants, -free, free, logs)


def geometric_program(name: str, *, logarithms: bool = True) -> SmoothConvexProgram:
    """Every posynomial by its logarithm, or as it is: Σ exp(…) − 1 <= 0."""
    data = GEOMETRIC_PROGRAMS[name]
    lower, upper = (np.log(np.array(data[bound], dtype=float)) for bound in ("lower", "upper"))
    size = lower.size
    parts = [data["objective"], *data["inequalities"]]
    counts = [len(part["coefficients"]) for part in parts]
    exponents = np.vstack([np.array(part["exponents"], float).reshape(-1, size) for part in parts])
    offsets = np.log(np.concatenate([np.array(part["coefficients"], float) for part in parts]))
    rows = np.repeat(np.arange(len(parts)), counts)
    zero = np.zeros((len(parts), size))
    equalities: dict[str, Any] = {}
    if data["equalities"]:
        equalities["equality"] = np.array(
            [np.array(row["exponents"], float).ravel() for row in data["equalities"]]
        )
        equalities["equality_bound"] = -np.log([row["coefficient"] for row in data["equalities"]])
    if logarithms:
        logs = LogSums(exponents, offsets, rows, np.arange(len(parts)))
        return SmoothConvexProgram(
            zero, np.zeros(len(parts)), lower, upper, log_sums=logs, **equalities
        )
    weights = np.zeros((len(parts), offsets.size))
    weights[rows, np.arange(offsets.size)] = 1.0
    constants = np.concatenate([[0.0], -np.ones(len(parts) - 1)])
    sums = Sums(exponents, offsets, weights)
    return SmoothConvexProgram(zero, constants, lower, upper, sums=sums, **equalities)


def tank() -> SmoothConvexProgram:
    """Ex-CGP: minimise log(x y + 4/x + 1/y), x y <= 1, 0.4 <= x, y <= 3: log 5 at (2, 1/2)."""
    exponents = np.array([[1.0, 1.0], [-1.0, 0.0], [0.0, -1.0], [1.0, 1.0]])
    logs = LogSums(
        exponents, np.log([1.0, 4.0, 1.0, 1.0]), np.array([0, 0, 0, 1]), np.array([0, 1])
    )
    lower, upper = np.log([0.4, 0.4]), np.log([3.0, 3.0])
    return SmoothConvexProgram(np.zeros((2, 2)), np.zeros(2), lower, upper, logs)


def chain(size: int, *, logarithms: bool = True) -> SmoothConvexProgram:
    """Minimise Σ w_i/x_i s.t. x_i x_{i+1} + 0.1 x_{i+1} <= 1, 0.1 <= x <= 10."""
    w = np.exp(0.3 * np.random.default_rng(size).normal(size=size))
    rows = size - 1
    i = np.arange(rows)
    pairs = sp.csr_array(
        (
            np.ones(3 * rows),
            (np.concatenate([2 * i, 2 * i, 2 * i + 1]), np.concatenate([i, i + 1, i + 1])),
        ),
        shape=(2 * rows, size),
    )
    offsets = np.tile([0.0, np.log(0.1)], rows)
    inverse = -sp.eye_array(size, format="csr")
    zero = sp.csr_array((rows + 1, size))
    lower = np.full(size, np.log(0.1))
    objective = (np.zeros(size, dtype=int), np.arange(size))
    if logarithms:
        weights = sp.csr_array((np.ones(size), objective), shape=(rows + 1, size))
        return SmoothConvexProgram(
            zero,
            np.zeros(rows + 1),
            lower,
            -lower,
            LogSums(pairs, offsets, np.repeat(i, 2), 1 + i),
            Sums(inverse, np.log(w), weights),
        )
    places = (
        np.concatenate([objective[0], 1 + np.repeat(i, 2)]),
        np.arange(size + 2 * rows),
    )
    weights = sp.csr_array((np.ones(size + 2 * rows), places), shape=(rows + 1, size + 2 * rows))
    exponents = sp.csr_array(sp.vstack([inverse, pairs]))
    sums = Sums(exponents, np.concatenate([np.log(w), offsets]), weights)
    constants = np.concatenate([[0.0], -np.ones(rows)])
    return SmoothConvexProgram(zero, constants, lower, -lower, sums=sums)


def dense_program(size: int, terms: int, seed: int = 3) -> SmoothConvexProgram:
    """Two posynomials with all exponents nonzero: minimise one, the other <= 1, 0.1 <= x <= 10."""

    def posynomial(number: int) -> tuple[FloatArray, FloatArray]:
        random = np.random.default_rng(number)
        exponents = random.normal(size=(terms, size)) / np.sqrt(size)
        random.uniform(size=(terms, size))
        return np.exp(0.4 * random.normal(size=terms)), exponents

    (b, A), (c, B) = posynomial(seed), posynomial(seed + 1)
    c = 0.9 * c / c.sum()
    logs = LogSums(
        np.vstack([A, B]), np.log(np.concatenate([b, c])), np.repeat([0, 1], terms), np.arange(2)
    )
    upper = np.full(size, np.log(10.0))
    return SmoothConvexProgram(np.zeros((2, size)), np.zeros(2), -upper, upper, logs)


def gate_sizing(gates: int, seed: int = 1, *, long: bool = False) -> SmoothConvexProgram:
    """Gates on a strip, each fed by two near ones, or (long) by any before; u is (log sizes, arrivals).

    Minimise Σ x_i s.t. t_i + d_j <= t_j for each wire, d <= t <= T, d = R (C x + L + F x)/x (Joshi and
    Boyd 2008): rows that share terms, in a mixture of plain variables and logarithms.
    """
    random = np.random.default_rng(seed)
    width = max(4, int(np.sqrt(gates) / 2))
    near = [1, 2, width, width + 1]
    wires = sorted(
        {
            (j, j - k)
            for j in range(1, gates)
            for k in random.choice(np.arange(j) + 1 if long else near, size=2, replace=long)
            if j - k >= 0
        }
    )
    end, begin = (np.array(part) for part in zip(*wires, strict=True))
    R, C, L = np.exp(0.2 * random.normal(size=(3, gates)))
    fan = sp.csr_array((np.ones(len(wires)), (begin, end)), shape=(gates, gates))
    delay = R * (C + L + fan @ np.ones(gates))
    arrival = delay.copy()
    for j, i in wires:
        arrival[j] = max(arrival[j], arrival[i] + delay[j])
    limit = 0.9 * arrival.max()
    load = fan.tocoo()
    number, loads, count = np.arange(gates), np.arange(load.nnz), len(wires)
    exponents = sp.csr_array(
        (
            np.concatenate([-np.ones(gates + load.nnz), np.ones(load.nnz), np.ones(gates)]),
            (
                np.concatenate([number, gates + loads, gates + loads, gates + load.nnz + number]),
                np.concatenate([number, load.row, load.col, number]),
            ),
        ),
        shape=(2 * gates + load.nnz, 2 * gates),
    )
    offsets = np.concatenate([np.log(R * L), np.log(R[load.row]), np.zeros(gates)])
    of_gate = sp.csr_array(
        (
            np.ones(gates + load.nnz),
            (np.concatenate([number, load.row]), np.arange(gates + load.nnz)),
        ),
        shape=(gates, gates + load.nnz),
    )
    rows = count + gates
    weights = sp.vstack(
        [
            sp.csr_array(np.concatenate([np.zeros(gates + load.nnz), np.ones(gates)])[None, :]),
            sp.hstack([sp.vstack([of_gate[end], of_gate]), sp.csr_array((rows, gates))]),
        ],
        format="csr",
    )
    wire = 1 + np.arange(count)
    affine = sp.csr_array(
        (
            np.concatenate([np.ones(count), -np.ones(count + gates)]),
            (
                np.concatenate([wire, wire, 1 + count + number]),
                np.concatenate([gates + begin, gates + end, gates + number]),
            ),
        ),
        shape=(rows + 1, 2 * gates),
    )
    constants = np.concatenate([[0.0], (R * C)[end], R * C])
    upper = np.concatenate([np.full(gates, np.log(64.0)), np.full(gates, limit)])
    sums = Sums(exponents, offsets, weights)
    return SmoothConvexProgram(affine, constants, np.zeros(2 * gates), upper, sums=sums)


def cone_form(program: SmoothConvexProgram) -> ConeProgram:
    """The same program with exponential cones, built by array operations; x starts with u.

    Variables: u, the objective's value, one τ per logarithm, and one z per term. Cones: equalities, rows,
    bounds, then (E_k u + b_k − τ, 1, z_k) for a logarithm's term and (E_k u + b_k, 1, z_k) otherwise.
    """
    size, head = program.dimension, program.row_count + 1
    logs, sums = program.log_sums, program.sums
    groups = 0 if logs is None else len(logs.rows)
    first, second = (0 if part is None else len(part.offsets) for part in (logs, sums))
    width = size + 1 + groups + first + second
    value = sp.csr_array(([-1.0], ([0], [0])), shape=(head, 1))
    to_rows = sp.csr_array((head, 0)) if logs is None else _ones(logs.rows, groups, head)
    plain = sp.csr_array((head, 0)) if sums is None else sp.csr_array(sums.weights)
    rows = sp.hstack(
        [sp.csr_array(program.affine), value, to_rows, sp.csr_array((head, first)), plain]
    )
    matrices, offsets = [rows], [-program.constants]
    if logs is not None:  # Σ z <= 1 in each group
        members = _ones(logs.groups, first, groups)
        matrices.append(_placed(members, size + 1 + groups, width))
        offsets.append(np.ones(groups))
    for sign, bound in ((1.0, program.upper), (-1.0, program.lower)):
        finite = np.flatnonzero(np.isfinite(bound))
        identity = sp.csr_array(
            (np.full(finite.size, sign), (np.arange(finite.size), finite)),
            shape=(finite.size, size),
        )
        matrices.append(_placed(identity, 0, width))
        offsets.append(sign * bound[finite])
    inequalities = sum(len(part) for part in offsets)
    equalities = 0
    if program.equality is not None and program.equality_bound is not None:
        equalities = len(program.equality_bound)
        matrices.insert(0, _placed(sp.csr_array(program.equality), 0, width))
        offsets.insert(0, program.equality_bound)
    terms = first + second
    tops = sp.csr_array((terms, groups))
    if logs is not None:
        tops = sp.csr_array(
            (np.ones(first), (np.arange(first), logs.groups)), shape=(terms, groups)
        )
    given = [part for part in (logs, sums) if part is not None]
    exponents = sp.vstack([sp.csr_array(part.exponents) for part in given])
    constants = np.concatenate([part.offsets for part in given])
    cone = sp.hstack([-exponents, sp.csr_array((terms, 1)), tops, sp.csr_array((terms, terms))])
    values = _placed(-sp.eye_array(terms, format="csr"), size + 1 + groups, width)
    stacked = sp.vstack([cone, sp.csr_array((terms, width)), values]).tocsr()
    order = np.arange(3 * terms).reshape(3, terms).T.ravel()
    offset = np.column_stack([constants, np.ones(terms), np.zeros(terms)]).ravel()
    cones = [
        ConeBlock(ConeKind.ZERO, equalities),
        ConeBlock(ConeKind.NONNEGATIVE, inequalities),
        ConeBlock(ConeKind.EXPONENTIAL, 3 * terms),
    ]
    objective = np.zeros(width)
    objective[size] = 1.0
    return cone_program(
        objective,
        sp.vstack([*matrices, stacked[order]]),
        np.concatenate([*offsets, offset]),
        [block for block in cones if block.size],
    )


def _ones(rows: NDArray[Any], columns: int, count: int) -> sp.csr_array:
    return sp.csr_array((np.ones(columns), (rows, np.arange(columns))), shape=(count, columns))


def _placed(matrix: sp.csr_array, first: int, width: int) -> sp.csr_array:
    """The matrix as columns `first` … of one with `width` columns."""
    shape = (matrix.shape[0], width)
    return sp.csr_array((matrix.data, matrix.indices + first, matrix.indptr), shape=shape)
