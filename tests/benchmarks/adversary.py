"""Try to break hcmodel: random models, proofs, duals, faults, hostile texts and data, re-solves.

    python -m tests.benchmarks adversary [--quick] [--seed N] [--scale S] [--minutes M] [--rounds R]
                                         [--jobs J] [CLASS …]

Classes: `models` (random models against samples of their sets), `proofs` (claims at midpoints), `duals`
(against differences of optimal values), `faults` (an exception, an interruption or NaN at every call of a
function, of the callback, of a backend and of a file operation), `texts` (mutated models and data) and
`memory` (many solves of one problem). Prints trials and defects by class and exits 1 if there is a
defect. `--scale` multiplies the number of trials, and `--minutes` ends each class after some time with
the trials that it has made. `--rounds` goes through the classes several times, with a part of the trials
and another seed each time, and prints the totals after each round; `--jobs` lets rounds run at the same
time, each in a process of its own. The full run in an hour of two cores: `--rounds 12 --jobs 2`.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import io
import json
import multiprocessing
import os
import random
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import hcmodel as hc
from hcmodel.cli import main as command
from hcmodel.expressions.variable_sets import make_domain
from hcmodel.facts.node_facts import Facts
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.qp import clarabel_
from hcmodel.solving.data_checks import undefined_at
from tests.benchmarks.agreement import value_at
from tests.benchmarks.fuzz_language import mutated, random_text
from tests.hcmodel.proof.random_expressions import Generator, check

ROOT = Path(__file__).parents[2]
# Optima are certified to 1e-6 of their value; a row within the tolerance is worth its multiplier.
ACCURACY = 1e-5
SAMPLES = 150
PAIRS = 40
# Seconds, and oracle calls, for a model of a dozen unknowns.
LIMIT, CALLS = 10.0, 2000
# Numbers of the small run of the tests and of the full one, which takes about two hours of one core.
TRIALS = {
    "models": (4, 10_000),
    "proofs": (30, 50_000),
    "duals": (2, 1_000),
    "faults": (12, 10_000),
    "texts": (60, 1_000_000),
    "memory": (12, 10_000),
}


@dataclass
class Tally:
    """Trials and defects of a class, and how the trials ended."""

    trials: int = 0
    seconds: float = 0.0  # of the processor
    deadline: float = np.inf
    defects: list[str] = field(default_factory=list)
    ends: Counter[str] = field(default_factory=Counter)

    def is_open(self, count: int) -> bool:
        """Whether trials are left, and time for them."""
        return self.trials < count and time.monotonic() < self.deadline

    def add(self, other: Tally) -> None:
        self.trials += other.trials
        self.seconds += other.seconds
        self.defects += other.defects
        self.ends += other.ends

    def line(self, name: str) -> str:
        ends = ", ".join(f"{end} {times}" for end, times in self.ends.most_common(8))
        counts = f"{self.trials:8} trials {len(self.defects):4} defects {self.seconds:7.0f} s"
        return f"{name:8} {counts}   {ends}"


# ---- (a) random models against samples of their sets


class Drawn(Generator):
    """Expressions of bounded and of unbounded variables."""

    def __init__(self, rng: np.random.Generator) -> None:
        super().__init__(rng)
        free = [hc.Variable(name="f"), hc.Variable(name="g", pos=True)]
        bounded = [self.scalars[int(i)] for i in rng.choice(len(self.scalars), 2, replace=False)]
        self.scalars = [*bounded, *(free if rng.uniform() < 0.5 else [])]


def random_model(rng: np.random.Generator) -> hc.Problem | None:
    """A model of any kind; None where the draw has no value at some point."""
    generator = Drawn(rng)
    objective = generator.scalar(int(rng.integers(1, 4)))
    aim = hc.Minimize(objective) if rng.uniform() < 0.8 else hc.Maximize(objective)
    rows = []
    for _ in range(int(rng.integers(0, 3))):
        left = generator.scalar(int(rng.integers(1, 3)))
        if not left.variables():
            continue
        level = value_at(left, rng)
        if not np.isfinite(level):
            return None
        target = level + rng.normal() * (abs(level) + 0.1)
        rows.append(left <= target if rng.uniform() < 0.7 else left >= target)
    if not objective.variables():
        return None
    for variable in {v for part in (objective, *(r.lhs for r in rows)) for v in part.variables()}:
        variable.value = None
    return hc.Problem(aim, rows)


# What is said of a model that has no value, or no slope, at any point: the square root of x - x.
UNDEFINED = ("not defined", "but a derivative does not")


def models(count: int, seed: int, tally: Tally) -> None:
    rng = np.random.default_rng(seed)
    while tally.is_open(count):
        try:
            problem = random_model(rng)
        except hc.HCError:
            continue
        if problem is None:
            continue
        tally.trials += 1
        wrong: str | None = None
        try:
            problem.solve(time_limit=LIMIT, max_calls=CALLS)
        except hc.SolverError as error:
            if not any(words in str(error) for words in UNDEFINED):
                wrong = f"SolverError: {error}"
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        wrong = wrong or false_unbounded(problem) or doubtful(problem, rng)
        if wrong is not None:
            rows = ", ".join(str(row) for row in problem.constraints)
            tally.defects.append(f"{wrong}: {problem.objective} s.t. {rows}")
        tally.ends[str(problem.status)] += 1


def doubtful(problem: hc.Problem, rng: np.random.Generator) -> str | None:
    """What contradicts the status or the bound; None where nothing does."""
    solution, sign = problem.solution, problem.objective.sign
    if solution is None:
        return None
    oracle, domain = problem.forms().written.oracle(), make_domain(problem.variables)
    status, bound = problem.status, solution.certificate.lower_bound
    found = here = None
    if status in ("optimal", "locally_optimal", "optimal_inaccurate"):
        here = problem.model.layout.pack([v.value for v in problem.variables])
        found = oracle.at(here)
        if not found.finite or found.relative_violation > ACCURACY:
            return f"{status} at a point with violation {found.relative_violation}"
    with np.errstate(all="ignore"):
        for number in range(SAMPLES):
            point = domain.sample(rng)
            if number % 3 and here is not None:
                scale = 10.0 ** rng.uniform(-4, 0)
                point = domain.project(here + scale * rng.normal(size=here.size))
            there = oracle.at(point)
            if not _is_feasible(problem, there):
                continue
            if status == "infeasible":
                return f"infeasible, but a sample is feasible ({point.tolist()})"
            size = ACCURACY * (1 + abs(there.objective))
            if bound is not None and there.objective < sign * bound - size:
                return f"a sample has {sign * there.objective}, beyond the bound {bound}"
            if status == "optimal" and there.objective < sign * problem.value - size:
                return f"a sample has {sign * there.objective}, not {problem.value}"
            if status == "locally_optimal" and found is not None and here is not None:
                near = np.max(np.abs(point - here)) <= 1e-3
                if near and there.objective < found.objective - 1e-3 * (1 + abs(found.objective)):
                    return f"locally optimal at {found.objective}, {there.objective} beside it"
    return None


def _is_feasible(problem: hc.Problem, there: Evaluation) -> bool:
    """Whether a point is one of the model: all of its functions are defined there."""
    if not there.finite or there.violations.any():
        return False
    return undefined_at(problem.forms().sign.before, there.point) is None


def false_unbounded(problem: hc.Problem) -> str | None:
    """What an objective that is called unbounded cannot pass, by intervals over the variables' sets."""
    if problem.status != "unbounded":
        return None
    low, high = Facts()[problem.objective.expression].exact_interval
    end = float(np.min(low)) if problem.objective.sign > 0 else float(np.max(high))
    return f"unbounded, but the objective cannot pass {end}" if np.isfinite(end) else None


# ---- (b) proofs by midpoints


def proofs(count: int, seed: int, tally: Tally) -> None:
    rng = np.random.default_rng(seed)
    generator = Generator(rng)
    while tally.is_open(count):
        checked = check([generator.expression()], rng, PAIRS)
        tally.trials += 1
        tally.ends["proven" if checked.proven else "not proven"] += 1
        tally.defects += [str(claim) for claim in checked.broken]


# ---- (c) duals by differences


def duals(count: int, seed: int, tally: Tally) -> None:
    """The multiplier of `row <= p` lies between the slopes of −v(p) to both sides."""
    rng = np.random.default_rng(seed)
    while tally.is_open(count):
        cap = hc.Parameter(name="cap", value=1.0)
        drawn = priced(rng, cap)
        if drawn is None:
            continue
        problem, row, level = drawn
        step = 1e-3 * (abs(level) + 0.1)
        try:
            found = [solved(problem, cap, level + shift, step) for shift in (-step, 0.0, step)]
        except hc.HCError:
            continue
        if any(each is None for each in found):
            continue
        tally.trials += 1
        below, value, above = (each for each in found if each is not None)
        cap.value = level
        problem.solve(tol=1e-8, time_limit=LIMIT)
        if problem.status != "optimal" or row.dual_value is None:
            continue
        price, sign = float(row.dual_value), problem.objective.sign
        slopes = sorted((-sign * (value - below) / step, -sign * (above - value) / step))
        room = 1e-2 * (1e-3 + abs(price)) + 1e-6 * (1 + abs(value)) / step
        tally.ends["active" if price > 1e-4 else "not active"] += 1
        if not slopes[0] - room <= price <= slopes[1] + room:
            tally.defects.append(f"dual {price}, slopes {slopes}: {problem.objective} s.t. {row}")


# How far a row has to keep a model from its minimum, relative to its own values, to count as active.
CONFLICT = 1e-3


def priced(rng: np.random.Generator, cap: hc.Parameter) -> tuple[hc.Problem, Any, float] | None:
    """A proven model with a row `left <= cap`, and a level of it at which the row is active.

    The level lies between the least value of the left-hand side and its value at the minimum without it.
    """
    generator = Generator(rng)
    try:
        objective, left = generator.scalar(2), generator.scalar(2)
        if not left.variables() or not objective.variables():
            return None
        row = left <= cap
        problem = hc.Problem(hc.Minimize(objective), [row])
        level = value_at(left, rng)
        if not np.isfinite(level):
            return None
        cap.value = level
        for variable in problem.variables:
            variable.value = None
        if not problem.forms().prove().proven:
            return None
        least, free = hc.Problem(hc.Minimize(left)), hc.Problem(hc.Minimize(objective))
        for each in (least, free):
            each.solve(time_limit=LIMIT)
        if not least.status == free.status == "optimal":
            return None
        low, high = float(least.value or 0.0), float(left.value or 0.0)
        if not (np.isfinite(high) and high - low > CONFLICT * (1 + abs(low))):
            return None
        level = low + rng.uniform(0.1, 0.9) * (high - low)
        for variable in problem.variables:
            variable.value = None
        return problem, row, level
    except hc.HCError:
        return None


def solved(problem: hc.Problem, cap: hc.Parameter, level: float, step: float) -> float | None:
    cap.value = level
    problem.solve(tol=1e-8, time_limit=LIMIT)
    return problem.value if problem.status == "optimal" else None


# ---- (d) faults


class BrokenError(RuntimeError):
    """What the functions here raise."""


FAULTS: tuple[Any, ...] = (KeyboardInterrupt, MemoryError, BrokenError, OSError, ValueError, "nan")
METHODS = ("auto", "sbl-adals", "prox-linear", "ippm-swsg", "gradient-sampling")


class At:
    """Counts calls, and fails at one of them."""

    def __init__(self, call: int, fault: Any) -> None:
        self.call, self.fault, self.calls = call, fault, 0

    def __call__(self, value: Any) -> Any:
        self.calls += 1
        if self.calls != self.call:
            return value
        if self.fault == "nan":
            return value * np.nan
        raise self.fault("injected")

    @property
    def happened(self) -> bool:
        return self.calls >= self.call


def black_box(at: At, inside: str) -> hc.Problem:
    def pick(place: str, value: Any) -> Any:
        return at(value) if place == inside else value

    x = hc.Variable(2, name="x", bounds=(-3, 3), start=[2.5, -2.0])
    box = hc.function(
        lambda z: pick("function", float((z[0] - 1) ** 2 + np.cosh(z[1]))),
        x,
        grad=lambda z: pick("gradient", np.array([2 * (z[0] - 1), np.sinh(z[1])])),
    )
    return hc.Problem(hc.Minimize(box), [x[0] + x[1] <= 0.5])


def white_box() -> hc.Problem:
    x = hc.Variable(2, name="x", bounds=(0.4, 3), start=[0.6, 1.6])
    return hc.Problem(hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= 1])


def faults(count: int, seed: int, tally: Tally) -> None:
    chance = random.Random(seed)
    injections = (in_function, in_callback, in_backend, in_file)
    while tally.is_open(count):
        inject = injections[tally.trials % len(injections)]
        fault, call = chance.choice(FAULTS), int(2 ** chance.uniform(0, 7))
        tally.trials += 1
        try:
            wrong = inject(At(call, fault), chance)
        except Exception as error:
            wrong = f"{type(error).__name__}: {error}"
        except KeyboardInterrupt:
            wrong = "KeyboardInterrupt"
        tally.ends[inject.__name__] += 1
        if wrong is not None:
            tally.defects.append(f"{inject.__name__}, {fault} at call {call}: {wrong}")


def in_function(at: At, chance: random.Random) -> str | None:
    problem = black_box(at, chance.choice(["function", "gradient"]))
    return ended_well(problem, at, lambda: problem.solve(chance.choice(METHODS), max_calls=300))


def in_callback(at: At, chance: random.Random) -> str | None:
    problem = white_box()
    method = chance.choice(["auto", "sbl-adals", "prox-linear", "cone", "interior-point"])
    return ended_well(
        problem,
        at,
        lambda: problem.solve(method, callback=lambda record: bool(at(0)), max_calls=300),
    )


def in_backend(at: At, chance: random.Random) -> str | None:
    """Clarabel raises, or returns NaN."""
    problem, method = white_box(), chance.choice(["auto", "cone", "sbl-adals", "prox-linear"])
    real = clarabel_.clarabel.DefaultSolver

    class Failing:
        def __init__(self, *arguments: Any) -> None:
            self.solver = real(*arguments)

        def update(self, **data: Any) -> None:
            self.solver.update(**data)

        def solve(self) -> Any:
            answer = self.solver.solve()
            number = at(1.0)
            return answer if np.isfinite(number) else _Spoilt(answer)

    at.fault = KeyboardInterrupt if at.fault in (OSError, ValueError, BrokenError) else at.fault
    clarabel_.clarabel.DefaultSolver = Failing
    try:
        wrong = ended_well(problem, at, lambda: problem.solve(method, max_calls=300))
    finally:
        clarabel_.clarabel.DefaultSolver = real
    return wrong or same_again(problem)


class _Spoilt:
    """An answer whose numbers are lost."""

    def __init__(self, answer: Any) -> None:
        self.status, self.iterations = answer.status, answer.iterations
        self.x, self.s, self.z = (np.full(len(a), np.nan) for a in (answer.x, answer.s, answer.z))


def ended_well(problem: hc.Problem, at: At, solve: Callable[[], Any]) -> str | None:
    """A status and a point, or an `HCError`, whatever was injected; and no claim on a NaN."""
    try:
        solve()
    except hc.HCError:
        if not at.happened:
            return "an error without a fault"
    solution = problem.solution
    if solution is None:
        return "no solution" if at.call > 2 else None
    if at.call > 3 and not solution.point:
        return "the point is lost"
    if solution.status in ("optimal", "locally_optimal") and not np.isfinite(solution.value or 0.0):
        return f"{solution.status} with {solution.value}"
    return "infeasible" if solution.status in ("infeasible", "unbounded") else None


def same_again(problem: hc.Problem) -> str | None:
    """A solve after a fault finds what it finds without one: the optimal value is 3·∛4 + … by cone."""
    problem.solve()
    fresh = white_box()
    fresh.solve()
    if problem.status != fresh.status or abs((problem.value or 0) - (fresh.value or 0)) > 1e-5:
        return f"afterwards {problem.status} {problem.value}"
    return None


def in_file(at: At, chance: random.Random) -> str | None:
    """A file operation of the command fails: one line, an exit code, and no half-written file."""
    with tempfile.TemporaryDirectory() as folder:
        model, output = Path(folder, "m.hc"), Path(folder, "out.json")
        model.write_text("var x in [0.4, 3]\nminimize x + 1/x\n")
        output.write_text("{}")
        at.call, errors = 1 + at.call % 3, io.StringIO()
        fault = KeyboardInterrupt if at.fault is KeyboardInterrupt else OSError
        at.fault = fault
        silent = contextlib.redirect_stdout(io.StringIO())
        with failing_files(at), contextlib.redirect_stderr(errors), silent:
            code = command(["solve", str(model), "--output", str(output)])
        text, lines = output.read_text(), errors.getvalue().strip().splitlines()
        left = [p.name for p in Path(folder).iterdir() if p not in (model, output)]
        if code not in (0, 1, 130):
            return f"exit code {code}"
        if code and (len(lines) != 1 or "Traceback" in errors.getvalue()):
            return f"{len(lines)} lines"
        if text != "{}" and "status" not in json.loads(text):
            return "a half-written file"
        return f"left {left}" if left else None


@contextlib.contextmanager
def failing_files(at: At) -> Iterator[None]:
    """Make opening a temporary file, its mode and its renaming fail at the given call."""
    real = {name: getattr(os, name) for name in ("open", "chmod", "replace")}

    def watched(name: str) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            at(0)
            return real[name](*arguments, **keywords)

        return run

    for name in real:
        setattr(os, name, watched(name))
    try:
        yield
    finally:
        for name, function in real.items():
            setattr(os, name, function)


# ---- (e) mutations of texts and data


# Models of two or three lines, so that an input takes less than a millisecond and the mutation strikes
# what matters. Together they have every statement, set, operator and kind of index.
SHORT = tuple(
    text.strip().replace(" | ", "\n") + "\n"
    for text in """
    var x in [0.4, 3] | minimize x + 1/x
    set T = {"a", "b"} | var q[T] in [0, 1] | minimize q["a"] + sum(q)
    var x[2] in [0.4, 3] | minimize x[1]*x[2] + 4/x[1] | subject to | area: x[1]*x[2] <= 1
    param r > 0 = 2 | var x > 0 | minimize r*x + 1/x | hidden log(x)
    var x[3] >= 0 | minimize sum(x[i]^2 for i in 1..3 if i != 2)
    param n = 3 | var x[n] in simplex | maximize sum(entr(x))
    var P[2,2] symmetric in psd(1e-3, 1e3) | minimize trace(P) - logdet(P)
    set S = [1, 3] | var x[3] | minimize sum(x[i] for i in S) + norm(x) | subject to | 0 <= x <= 1
    var v[0..2] in [0, 1] | let w = v[0] + v[1..2] | minimize max(w) - min(v)
    var x[2,2] in [-1, 1] | minimize sum(abs(x - x.T)) | subject to | p[i in 1..2]: x[i,:] @ x[:,i] <= 2
    param A[2,2] = eye(2) | var x[2] in [-1, 1] | minimize x @ A @ x | subject to | A >> 0
    var x, y in [1, 2]; minimize max(x, y) ^ 2; start x = 1.5
    let c = [1, 2, 3] | var z[3] in [0, pi] | maximize dot(c, sin(z)) # a comment
    var x in [1, 1e3] | minimize -x^-2**1.5 + e*log(x)/sqrt(x) | subject to | x <= 3
    var x[2] in [1, 2] | minimize prod(x[i] for i in 1..2, j in i..2) | subject to | c: x[1] == x[2]
    """.strip().splitlines()
)
# A whole example takes ten times as long as a short model, and the slowest text is a random one.
WHOLE_EVERY, DATA_EVERY, RANDOM_EVERY = 200, 20, 40
# Of the texts that load, some are written and read again, and solved, within seconds and calls.
USED_EVERY, USED_SECONDS, USED_CALLS = 40, 3.0, 200


def texts(count: int, seed: int, tally: Tally) -> None:
    chance = random.Random(seed)
    examples = [path.read_text() for path in sorted((ROOT / "examples").glob("*.hc"))]
    with tempfile.TemporaryDirectory() as folder:
        files = data_files(Path(folder))
        while tally.is_open(count):
            number, tally.trials = tally.trials, tally.trials + 1
            try:
                if number % DATA_EVERY == 0:
                    read_mutated(chance, Path(folder), files)
                elif number % RANDOM_EVERY == 1:
                    hc.parse(random_text(chance), {})
                else:
                    whole = number % WHOLE_EVERY == 2
                    text = chance.choice(examples if whole else SHORT)
                    problem = hc.parse(mutated(text, chance, 6 if whole else 2), {})
                    if tally.ends["loaded"] % USED_EVERY == 0 and not whole:
                        used(problem)
                        tally.ends["solved"] += 1
                tally.ends["loaded"] += 1
            except hc.HCError as error:
                tally.ends[type(error).__name__] += 1
            except Exception as error:
                tally.defects.append(f"{type(error).__name__}: {error} (input {number})")


def used(problem: hc.Problem) -> None:
    """What is done with a model that has loaded: it is written, read, shown and solved."""
    hc.parse(problem.to_hc())
    str(problem)
    problem.solve(time_limit=USED_SECONDS, max_calls=USED_CALLS)
    str(problem.solution)
    assert problem.solution is not None
    problem.solution.to_json()


def data_files(folder: Path) -> dict[str, bytes]:
    """One valid file of each format, by its suffix."""
    np.savez(folder / "data.npz", A=np.eye(2), b=np.ones(3))
    return {
        "json": b'{"A": [[1, 2.5], [3e-1, null]], "b": {"x": 1, "y": [2, 3]}}',
        "npz": (folder / "data.npz").read_bytes(),
        "csv": b"name,first,second\na,1,2.5\nb,-3e4,nan\n",
    }


def read_mutated(chance: random.Random, folder: Path, files: dict[str, bytes]) -> None:
    """A data file with some of its bytes changed, as JSON, NPZ or CSV."""
    suffix, content = chance.choice(list(files.items()))
    path, changed = folder / f"data.{suffix}", bytearray(content)
    for _ in range(chance.randint(0, 8)):
        changed[chance.randrange(len(changed))] = chance.randrange(256)
    path.write_bytes(bytes(changed[: chance.randrange(1, 2 * len(changed))]))
    given = {"A": str(path)} if suffix == "csv" else str(path)
    hc.parse("param A[2,2], b[3]\nvar x in [0, 1]\nminimize x + A[1,1] + b[1]\n", given)


# ---- (f) many solves of one problem


def memory(count: int, seed: int, tally: Tally) -> None:
    """Solve one problem again and again with new parameters: what is allocated does not grow.

    Blocks of Python's own memory are counted; tracing every one of them makes a solve take twice as long.
    """
    cap = hc.Parameter(name="cap", value=1.0)
    x = hc.Variable(2, name="x", bounds=(0.4, 3))
    problem = hc.Problem(
        hc.Minimize(x[0] * x[1] + 4 / x[0] + 1 / x[1]), [x[0] * x[1] <= cap, x[0] + x[1] <= 4]
    )
    rng = np.random.default_rng(seed)

    def solve(times: int) -> int:
        for _ in range(times):
            if time.monotonic() >= tally.deadline:
                break
            cap.value = float(rng.uniform(0.8, 2.0))
            problem.solve()
            tally.trials += 1
            tally.ends[str(problem.status)] += 1
        gc.collect()  # what waits for it does not grow
        return sys.getallocatedblocks()

    solve(max(4, count // 10))
    before = solve(1)
    grown = solve(count) - before
    if grown > 2_000 + count:  # a record per solve would be several blocks
        tally.defects.append(f"{grown} blocks more after {count} solves")


CLASSES = {
    "models": models,
    "proofs": proofs,
    "duals": duals,
    "faults": faults,
    "texts": texts,
    "memory": memory,
}


# What is allocated is compared over one run: these trials are not divided into rounds.
UNDIVIDED = ("memory",)


def run(name: str, count: int, seed: int, minutes: float = np.inf) -> Tally:
    """Trials of a class; warnings of odd models are not of interest."""
    tally, begun = Tally(deadline=time.monotonic() + 60 * minutes), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        CLASSES[name](count, seed, tally)
    tally.seconds = time.process_time() - begun
    return tally


@dataclass(frozen=True)
class Plan:
    """How many trials of each class, in how many rounds, with which seeds."""

    counts: dict[str, int]
    seed: int
    minutes: float
    rounds: int

    def round(self, number: int) -> dict[str, Tally]:
        """A part of the trials of each class."""
        tallies = {}
        for name, count in self.counts.items():
            if name in UNDIVIDED and number:
                continue
            parts = 1 if name in UNDIVIDED else self.rounds
            tallies[name] = run(name, -(-count // parts), self.seed + number, self.minutes / parts)
        return tallies

    def run(self, jobs: int) -> dict[str, Tally]:
        """All rounds, `jobs` of them at a time; the totals, printed after each round."""
        totals = {name: Tally() for name in self.counts}
        with contextlib.ExitStack() as stack:
            rounds: Iterator[dict[str, Tally]]
            if jobs > 1:  # a round leaves nothing behind in this process: memory is counted
                fresh = multiprocessing.get_context("spawn")
                pool = stack.enter_context(ProcessPoolExecutor(jobs, fresh))
                rounds = pool.map(self.round, range(self.rounds))
            else:
                rounds = map(self.round, range(self.rounds))
            for number, tallies in enumerate(rounds):
                for name, tally in tallies.items():
                    totals[name].add(tally)
                    for defect in tally.defects:
                        print(f"    {name}, seed {self.seed + number}: {defect}", flush=True)
                if self.rounds > 1:
                    print(f"round {number + 1} of {self.rounds}", flush=True)
                    print("\n".join(total.line(name) for name, total in totals.items()), flush=True)
        return totals


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks adversary")
    parser.add_argument("classes", nargs="*", metavar="CLASS", help=", ".join(CLASSES))
    parser.add_argument("--quick", action="store_true", help="as few trials as the tests make")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--minutes", type=float, default=np.inf, help="for each class")
    parser.add_argument("--rounds", type=int, default=1, help="passes through the classes")
    parser.add_argument("--jobs", type=int, default=1, help="rounds at a time")
    given = parser.parse_args()
    unknown = set(given.classes) - set(CLASSES)
    if unknown:
        parser.error(f"there is no class {sorted(unknown)}; there are: {', '.join(CLASSES)}")
    if given.rounds < 1 or given.jobs < 1:
        parser.error("--rounds and --jobs are numbers of passes, 1 or more")
    counts = {
        name: TRIALS[name][0] if given.quick else max(int(TRIALS[name][1] * given.scale), 1)
        for name in given.classes or CLASSES
    }
    totals = Plan(counts, given.seed, given.minutes, given.rounds).run(given.jobs)
    if given.rounds == 1:
        print("\n".join(total.line(name) for name, total in totals.items()), flush=True)
    return 1 if any(total.defects for total in totals.values()) else 0


if __name__ == "__main__":
    # what is sent to other processes has to be found by the name of its module
    from tests.benchmarks import adversary

    sys.exit(adversary.main())
