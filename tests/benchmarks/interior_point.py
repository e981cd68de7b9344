"""The interior-point method against peers: `tests/benchmarks/interior_point.py [table|random|ablation]`.

`table` solves problems of the tests with this method, with Clarabel on the cone form and, if CasADi is
there, with Ipopt on the smooth form in u. Seconds are those of the processor, the best of several runs.
`random` compares 250 random programs with Clarabel, and makes each that is solved infeasible by a row
"objective <= minimum − δ". `ablation` repeats this with one option changed at a time.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

sys.path.insert(0, str(Path(__file__).parents[2]))

from hcmodel.solvers.qp import ConeOptions, solve_cone
from hcmodel.solvers.second_order.interior_point import (
    InteriorPointOptions,
    LogSums,
    SmoothConvexProgram,
    Sums,
    solve,
)
from hcmodel.solvers.second_order.interior_point.convex_program import Groups
from tests.problems import smooth_programs as problems

CHANGES: list[dict[str, Any]] = [
    {},
    {"boundary": 0.999},
    {"centring_power": 2},
    {"correction_limit": 0.0},
    {"correction_limit": 3.0},
    {"correction_limit": 30.0},
    {"synchronised": 0.0},
    {"synchronised": 1.0},
    {"synchronised": 10.0},
    {"synchronised": 1e9},
    {"step_ratio": 1.0},
    {"step_ratio": 1e9},
    {"patience": 30},
]


def timed(run: Callable[[], Any], seconds: float = 1.0) -> tuple[float, Any]:
    best, spent, answer = np.inf, 0.0, None
    while spent < seconds:
        start = time.process_time()
        answer = run()
        took = time.process_time() - start
        best, spent = min(best, took), spent + took
    return best, answer


def ipopt(program: SmoothConvexProgram) -> tuple[float, float, int] | None:
    """Seconds of the solve alone, value and iterations, from the same start as this method."""
    try:
        import casadi as ca
    except ImportError:
        return None
    u = ca.MX.sym("u", program.dimension)

    def matrix(part: Any) -> Any:
        return ca.DM(sp.csc_matrix(part))

    rows = ca.mtimes(matrix(program.affine), u) + ca.DM(program.constants)
    if program.log_sums is not None:
        logs = program.log_sums
        exponents = ca.mtimes(matrix(logs.exponents), u) + ca.DM(logs.offsets)
        members = sp.csr_array(
            (np.ones(len(logs.groups)), (logs.groups, np.arange(len(logs.groups)))),
            shape=(len(logs.rows), len(logs.groups)),
        )
        place = sp.csr_array(
            (np.ones(len(logs.rows)), (logs.rows, np.arange(len(logs.rows)))),
            shape=(program.row_count + 1, len(logs.rows)),
        )
        rows += ca.mtimes(matrix(place), ca.log(ca.mtimes(matrix(members), ca.exp(exponents))))
    if program.sums is not None:
        plain = program.sums
        terms = ca.exp(ca.mtimes(matrix(plain.exponents), u) + ca.DM(plain.offsets))
        rows += ca.mtimes(matrix(plain.weights), terms)
    quiet = {"print_time": 0, "ipopt.print_level": 0, "ipopt.sb": "yes", "ipopt.tol": 1e-9}
    solver = ca.nlpsol("s", "ipopt", {"x": u, "f": rows[0], "g": rows[1:]}, quiet)
    finite = np.isfinite(program.lower) & np.isfinite(program.upper)
    start = np.where(finite, 0.5 * np.where(finite, program.lower + program.upper, 0), 0)
    begin = time.process_time()
    found = solver(x0=start, lbx=program.lower, ubx=program.upper, lbg=-np.inf, ubg=0)
    took = time.process_time() - begin
    statistics = solver.stats()
    value = float(found["f"]) if statistics["success"] else np.nan
    return took, value, int(statistics["iter_count"])


def test_set() -> dict[str, SmoothConvexProgram]:
    programs = {name: problems.cblib(name) for name in problems.CBLIB}
    for name in problems.GEOMETRIC_PROGRAMS:
        programs[name] = problems.geometric_program(name)
        programs[name + " plain"] = problems.geometric_program(name, logarithms=False)
    programs["chain 300"] = problems.chain(300)
    programs["chain 300 plain"] = problems.chain(300, logarithms=False)
    programs["gates 300"] = problems.gate_sizing(300)
    programs["dense 100 × 20"] = problems.dense_program(100, 20)
    return programs


def table() -> None:
    programs = {name: problems.cblib(name) for name in problems.CBLIB}
    programs["Ex-CGP"] = problems.tank()
    for size in (1_000, 10_000, 100_000):
        programs[f"chain {size}"] = problems.chain(size)
    programs["dense 100 × 20"] = problems.dense_program(100, 20)
    programs["dense 1000 × 50"] = problems.dense_program(1000, 50)
    for size in (1_000, 10_000):
        programs[f"gates {size}"] = problems.gate_sizing(size)
    print("| problem | status | iterations | ms | largest residual | Clarabel | Ipopt |")
    print("|---|---|---|---|---|---|---|")
    for name, program in programs.items():
        seconds, found = timed(lambda program=program: solve(program))  # type: ignore[misc]
        line = f"| {name} | {found.status.name} | {found.iterations} | {1e3 * seconds:.1f} "
        line += f"| {found.residuals.largest:.0e} "
        big = program.dimension > 15_000
        if big:
            line += "| – | – |"
        else:
            form = problems.cone_form(program)
            took, peer = timed(lambda form=form: solve_cone(form, options=ConeOptions(1e-8)))  # type: ignore[misc]
            gap = abs(peer.primal[program.dimension] - found.value) / (1 + abs(found.value))
            line += f"| {peer.status.name} {peer.iterations}, {1e3 * took:.1f} ms, {gap:.0e} "
            other = ipopt(program)
            if other is None:
                line += "| – |"
            else:
                gap = abs(other[1] - found.value) / (1 + abs(found.value))
                line += f"| {other[2]}, {1e3 * other[0]:.1f} ms, {gap:.0e} |"
        print(line, flush=True)


def random_program(seed: int) -> SmoothConvexProgram:
    """Sizes, sparsity, scales, bounds, equalities and form at random; mostly feasible."""
    random = np.random.default_rng(seed)
    size = int(random.integers(1, 25))
    rows, kind = int(random.integers(0, 2 * size + 2)), random.integers(0, 3)
    groups = np.repeat(np.arange(rows + 1), random.integers(1, 6, size=rows + 1))
    terms = groups.size
    exponents = random.normal(size=(terms, size))
    exponents *= random.uniform(size=(terms, size)) < random.choice([0.2, 0.5, 1.0])
    exponents *= random.choice([0.3, 1.0, 5.0])
    if random.uniform() < 0.3:
        exponents = np.round(exponents)
    offsets = random.normal(size=terms) * random.choice([0.3, 2.0, 20.0])
    center = random.normal(size=size) * random.choice([0.0, 1.0, 10.0])
    logs, _ = Groups(groups, rows + 1).log_sums(exponents @ center + offsets)
    slack = random.exponential(size=rows + 1) * (random.uniform(size=rows + 1) < 0.8)
    slack = slack * random.choice([0.01, 1.0, 5.0]) + 1e-3
    offsets = offsets - (logs + slack)[groups] * (groups > 0)
    lower, upper = np.full(size, -np.inf), np.full(size, np.inf)
    if random.choice([0, 1, 2]):
        width = random.choice([2.0, 10.0, 50.0])
        lower = center - width * random.uniform(size=size)
        upper = center + width * random.uniform(size=size)
    affine, constants = np.zeros((rows + 1, size)), np.zeros(rows + 1)
    if random.uniform() < 0.4:
        affine[0] = random.normal(size=size)
    more: dict[str, Any] = {}
    if random.uniform() < 0.3 and size > 2:
        matrix = random.normal(size=(int(random.integers(1, size // 2 + 1)), size))
        more = {"equality": matrix, "equality_bound": matrix @ center}
    whole = (affine, constants, lower, upper)
    if kind == 0:
        return SmoothConvexProgram(
            *whole, LogSums(exponents, offsets, groups, np.arange(rows + 1)), **more
        )
    own = groups == 0 if kind == 2 else np.ones(terms, dtype=bool)
    weights = np.zeros((rows + 1, int(own.sum())))
    weights[groups[own], np.arange(weights.shape[1])] = 1.0
    sums = Sums(exponents[own], np.clip(offsets[own], -40, 40), weights)
    if kind == 1:
        constants[1:] = -1.0
        return SmoothConvexProgram(*whole, sums=sums, **more)
    rest = None
    if rows:
        rest = LogSums(exponents[~own], offsets[~own], groups[~own] - 1, 1 + np.arange(rows))
    return SmoothConvexProgram(*whole, rest, sums, **more)


def bounded_objective(program: SmoothConvexProgram, value: float, seed: int) -> SmoothConvexProgram:
    """With the row "objective <= value" and another objective, affine and random."""
    random = np.random.default_rng(seed)
    last = program.row_count + 1
    affine = np.vstack(
        [random.normal(size=(1, program.dimension)), program.affine[1:], program.affine[:1]]
    )
    constants = np.concatenate([[0], program.constants[1:], [program.constants[0] - value]])
    logs, sums = program.log_sums, program.sums
    if logs is not None:
        logs = replace(logs, rows=np.where(np.asarray(logs.rows) == 0, last, logs.rows))
    if sums is not None:
        empty = np.zeros((1, sums.weights.shape[1]))
        sums = replace(sums, weights=np.vstack([empty, sums.weights[1:], sums.weights[:1]]))
    return replace(program, affine=affine, constants=constants, log_sums=logs, sums=sums)


def families() -> tuple[list[tuple[SmoothConvexProgram, str]], list[SmoothConvexProgram]]:
    """Random programs with Clarabel's verdict, and infeasible ones made of those that were solved."""
    programs, infeasible = [], []
    for seed in range(250):
        program = random_program(seed)
        try:
            verdict = solve_cone(problems.cone_form(program), options=ConeOptions(1e-9)).status.name
        except ValueError:
            verdict = "ERROR"
        programs.append((program, verdict))
        found = solve(program)
        if found.status.name == "SOLVED" and abs(found.value) < 1e6 and program.dimension <= 20:
            delta = max(0.1, 0.1 * abs(found.value))
            infeasible.append(bounded_objective(program, found.value - delta, seed))
    return programs, infeasible


def random_comparison(changes: list[dict[str, Any]], *, details: bool) -> None:
    programs, infeasible = families()
    fixed = test_set()
    for change in changes:
        options = InteriorPointOptions(**change)
        verdicts: Counter[tuple[str, str]] = Counter()
        iterations = 0
        for program, verdict in programs:
            found = solve(program, options)
            verdicts[(verdict, found.status.name)] += 1
            iterations += found.iterations * (verdict == "SOLVED")
        ends = Counter(solve(program, options).status.name for program in infeasible)
        answers = [solve(program, options) for program in fixed.values()]
        open_ = sum(not a.usable and a.status.name != "INFEASIBLE" for a in answers)
        alike = sum(number for (peer, _), number in verdicts.items() if peer == "SOLVED")
        print(
            f"{change or 'as it is'}: solved {verdicts[('SOLVED', 'SOLVED')]} of {alike} "
            f"in {iterations} iterations; infeasible found {ends['INFEASIBLE']} of "
            f"{len(infeasible)}; test set {sum(a.iterations for a in answers)} iterations, "
            f"{open_} not solved",
            flush=True,
        )
        if details:
            for pair, number in sorted(verdicts.items()):
                print(f"    Clarabel {pair[0]}, here {pair[1]}: {number}")
            print(f"    infeasible programs: {dict(ends)}")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    what = sys.argv[1] if len(sys.argv) > 1 else "table"
    if what == "table":
        table()
    elif what == "random":
        random_comparison([{}], details=True)
    else:
        random_comparison(CHANGES, details=False)
