"""The heuristic numbers of the solvers, one at a time: switched off, halved and doubled.

    python -m tests.benchmarks ablation [--group interior-point,…] [--only NAME] [--quick] [--json FILE]

Each group runs a sample that its numbers could matter to: problems of the development set, the random
family with known optima, programs of other suites and infeasible models. A number is *missed* where a
change loses a problem (a status is worse or a value is wrong) or takes a tenth more work in total: points
of methods that ask for them, iterations of the interior-point method. It has *effect* where only the work
changes by less, and *no effect* where every run is the same: then no problem of the sample reads it, or
it may be deleted. "Off" is 0 for shares, tolerances and counts, and 1 for factors above 1.

With `--quick` the sample is smaller, and a number that is missed or has no effect when it is off is not
halved and doubled. `--again FILE` takes those without effect in a former run to the whole sample.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import pkgutil
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import hcmodel as hc
import hcmodel.solvers
from tests.benchmarks.constants import ROOT, Number, numbers
from tests.benchmarks.development_set import development_set
from tests.problems import smooth_programs
from tests.problems.random_hidden_convex import (
    infeasible_problem,
    random_geometric_program,
    random_problem,
)

# Work above this multiple of the usual one counts as a loss, and a value off by more, relatively.
MORE_WORK = 1.1
WRONG = 1e-4
# Limits of a run that a change has broken.
MOST_CALLS = 600
MOST_SECONDS = 20.0
SKIPPED = ("theory", "first_order/reference")
VARIANTS: dict[str, Callable[[float], float]] = {
    "off": lambda value: 1.0 if value > 1 and not isinstance(value, int) else type(value)(0),
    "halved": lambda value: value // 2 if isinstance(value, int) else value / 2,
    "doubled": lambda value: 2 * value,
}

Outcome = tuple[str, float]  # how a run ended, and its work
Run = Callable[[], Outcome]


# ---- the samples


def interior_point_runs() -> dict[str, Run]:
    """Programs without the modelling layer, which takes longer than they do."""
    from hcmodel.solvers.second_order.interior_point import solve

    programs = {
        "tank": smooth_programs.tank(),
        "chain 300": smooth_programs.chain(300),
        "dense 100": smooth_programs.dense_program(100, 20),
        "40 gates": smooth_programs.gate_sizing(40),
        "400 gates": smooth_programs.gate_sizing(400),
        **{
            name: smooth_programs.geometric_program(name)
            for name in ("hs072", "hs101", "cvx_cantilever")
        },
        **{name: smooth_programs.cblib(name) for name in CBLIB},
    }

    def run(program: Any) -> Outcome:
        end = time.monotonic() + MOST_SECONDS
        found = solve(program, deadline=lambda: end - time.monotonic())
        return found.status.name, float(found.iterations)

    return {name: partial(run, program) for name, program in programs.items()}


CBLIB = ("beck752", "demb761", "fiac81a", "isil01", "rijc785", "varun")


def solved_by(
    method: str, names: tuple[str, ...], seeds: int, *, infeasible: bool = False
) -> dict[str, Run]:
    """Runs of one method on problems of the development set and on the random family."""

    def run(problem: hc.Problem, optimum: float | None) -> Outcome:
        problem.solve(method, max_calls=MOST_CALLS, time_limit=MOST_SECONDS)
        solution = problem.solution
        assert solution is not None
        status, value = solution.status.value, solution.value
        if optimum is not None and status in ("optimal", "locally_optimal"):
            off = np.inf if value is None else abs(value - optimum)
            if off > WRONG * max(1.0, abs(optimum)):
                status = "wrong"
        return status, float(solution.oracle_calls.points + solution.iterations)

    found: dict[str, Run] = {}
    for case in development_set():
        if case.name in names:
            found[case.name] = partial(run, case.make(), case.optimum)
    for seed in range(seeds):
        for kind in ("mixed", "triangular"):
            known = random_problem(kind, seed)
            found[known.name] = partial(run, known.problem, known.optimum)
        program = random_geometric_program(seed)
        found[program.name] = partial(run, program.problem, program.optimum)
    if infeasible:
        found["infeasible"] = partial(run, infeasible_problem("convex", 1), None)
    return found


SMOOTH = ("Ex-CGP", "hs072", "hs101", "mixed.hc", "lqr_carex1", "cmdp.hc")
KINKED = ("Ex-CGP", "hs072", "Ex-CNLS", "Ex-CNLS, no map")
QUICK = (
    *("hs101", "hs072", "Ex-CGP", "mixed 0", "triangular 0", "Ex-CGP, prox", "Ex-CNLS, prox"),
    *("Ex-CGP, ippm-acgd", "Ex-CGP, hidden-bundle", "Ex-CGP, gradient-sampling"),
)
# Stacks that are evaluated often are compiled, which changes the last digits.
WARM_UP = 8
# What is run for the numbers of which files.
GROUPS: dict[str, tuple[tuple[str, ...], Callable[[], dict[str, Run]]]] = {
    "interior-point": (("second_order/interior_point",), interior_point_runs),
    "second order": (
        ("second_order", "algebra", "coordinates", "qp", "kkt.py", "loop.py", "outer.py"),
        lambda: {
            **solved_by("hidden-newton", SMOOTH, 1, infeasible=True),
            **{f"{k}, prox": r for k, r in solved_by("prox-linear", KINKED, 1).items()},
        },
    ),
    "first order": (
        ("first_order",),
        lambda: {
            **solved_by("sbl-adals", ("Ex-CGP", "hs072", "Ex-CNLS, no map"), 1, infeasible=True),
            **{
                f"{k}, {method}": r
                for method in ("ippm-acgd", "hidden-bundle", "gradient-sampling")
                for k, r in solved_by(method, ("Ex-CGP", "Ex-CNLS"), 0).items()
            },
        },
    ),
}


# ---- changing a number


def all_modules() -> list[Any]:
    found = []
    for each in pkgutil.walk_packages(hcmodel.solvers.__path__, "hcmodel.solvers."):
        with contextlib.suppress(ImportError):
            found.append(importlib.import_module(each.name))
    return found


@contextlib.contextmanager
def changed(number: Number, other: float, modules: list[Any]) -> Iterator[None]:
    """The number replaced wherever it is bound: in modules, in classes and in their instances."""
    undo: list[Callable[[], None]] = []
    home = importlib.import_module(
        "hcmodel." + number.path.removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    )
    try:
        if number.kind == "module":
            value = getattr(home, number.name)
            for module in modules:
                if getattr(module, number.name, None) == value:
                    undo.append(partial(setattr, module, number.name, value))
                    setattr(module, number.name, other)
        else:
            for owner in _owners(home, number):
                _change_field(owner, number.name, other, modules, undo)
        yield
    finally:
        for action in reversed(undo):
            action()


def _owners(home: Any, number: Number) -> list[type]:
    classes = [each for each in vars(home).values() if isinstance(each, type)]
    own = [each for each in classes if each.__module__ == home.__name__]
    return [each for each in own if number.name in vars(each).get("__annotations__", {})]


def _change_field(
    owner: type, name: str, other: float, modules: list[Any], undo: list[Callable[[], None]]
) -> None:
    original = owner.__init__

    def init(self: Any, *arguments: Any, **keywords: Any) -> None:
        original(self, *arguments, **keywords)
        if name not in keywords:
            object.__setattr__(self, name, other)

    undo.append(partial(setattr, owner, "__init__", original))
    owner.__init__ = init  # type: ignore[method-assign]
    for instance in _instances(owner, modules):
        before = getattr(instance, name)
        undo.append(partial(object.__setattr__, instance, name, before))
        object.__setattr__(instance, name, other)


def _instances(owner: type, modules: list[Any]) -> list[Any]:
    """Instances that modules hold, also inside others and as defaults of fields."""
    found: dict[int, Any] = {}
    ahead = [each for module in modules for each in vars(module).values()]
    for each in list(ahead):
        if isinstance(each, type) and each.__module__.startswith("hcmodel.solvers"):
            ahead += vars(each).values()
    while ahead:
        each = ahead.pop()
        inside = type(each).__module__.startswith("hcmodel.solvers") and not isinstance(each, type)
        if not inside or id(each) in found:
            continue
        found[id(each)] = each
        with contextlib.suppress(TypeError):
            ahead += vars(each).values()
    return [each for each in found.values() if isinstance(each, owner)]


# ---- comparing


@dataclass(frozen=True)
class Verdict:
    number: Number
    verdict: str
    changes: dict[str, str]

    def line(self) -> str:
        n = self.number
        place = f"{n.path}:{n.line}"
        said = "; ".join(f"{name}: {what}" for name, what in self.changes.items())
        return f"{self.verdict:<10} {place:<58} {n.name} = {n.value}  {said}"


def outcomes(runs: dict[str, Run]) -> dict[str, Outcome]:
    found = {}
    for name, run in runs.items():
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                found[name] = run()
            except Exception as error:  # a change may break anything
                found[name] = (type(error).__name__, 0.0)
    return found


def compared(before: dict[str, Outcome], after: dict[str, Outcome]) -> tuple[str, str]:
    """The verdict of one change, and what is to be said of it."""
    lost = [name for name in before if after[name][0] != before[name][0]]
    if lost:
        return "missed", f"{lost[0]} {after[lost[0]][0]}" + (
            f" and {len(lost) - 1} more" if lost[1:] else ""
        )
    ratio = sum(w for _, w in after.values()) / sum(w for _, w in before.values())
    if ratio > MORE_WORK:
        return "missed", f"{100 * ratio:.0f} % of the work"
    moved = sum(after[name] != before[name] for name in before)
    return ("effect", f"{100 * ratio:.0f} %, {moved} differ") if moved else ("none", "")


def examined(
    number: Number,
    runs: dict[str, Run],
    before: dict[str, Outcome],
    modules: list[Any],
    quick: bool = False,
) -> Verdict:
    value = eval(number.value, {"__builtins__": {}})  # arithmetic of literals, from our own source
    changes, verdicts = {}, set()
    for name, rule in VARIANTS.items():
        other = tuple(map(rule, value)) if isinstance(value, tuple) else rule(value)
        if other == value or (quick and verdicts & {"missed", "none"}):
            continue
        with changed(number, other, modules):  # type: ignore[arg-type]
            verdict, said = compared(before, outcomes(runs))
        verdicts.add(verdict)
        if said:
            changes[name] = said
    worst = next((each for each in ("missed", "effect") if each in verdicts), "none")
    return Verdict(number, worst, changes)


def of_group(paths: tuple[str, ...]) -> list[Number]:
    """The numbers of a group's files; files of another group's folder belong to that one."""
    deeper = {own for group, _ in GROUPS.values() for own in group if own not in paths}
    found = []
    for path in sorted((ROOT / "solvers").rglob("*.py")):
        inside = str(path.relative_to(ROOT / "solvers"))
        if not inside.startswith(paths) or inside.startswith(SKIPPED):
            continue
        if any(inside.startswith(each) and len(each) > 15 for each in deeper):
            continue
        found += [each for each in numbers(path) if each.kind != "inline"]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--group", default=",".join(GROUPS), help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--only", default="", help="part of the names")
    parser.add_argument("--quick", action="store_true", help="a small sample, fewer changes")
    parser.add_argument("--again", type=Path, help="what had no effect in this file, off only")
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    few = chosen.quick or chosen.again is not None
    modules, found = all_modules(), list[Verdict]()
    for group in chosen.group.split(","):
        paths, make = GROUPS[group]
        runs = make()
        if chosen.quick and group != "interior-point":
            runs = {name: run for name, run in runs.items() if name in QUICK}
        for _ in range(WARM_UP):
            outcomes(runs)
        before = outcomes(runs)
        own = [each for each in of_group(paths) if chosen.only in each.name]
        if chosen.again is not None:
            without = {
                (row["path"], row["name"])
                for row in json.loads(chosen.again.read_text())
                if row["verdict"] == "none"
            }
            own = [each for each in own if (each.path, each.name) in without]
        print(f"{group}: {len(own)} numbers, {len(runs)} runs: {before}", flush=True)
        for number in own:
            found.append(examined(number, runs, before, modules, few))
            print(found[-1].line(), flush=True)
    for verdict in ("missed", "effect", "none"):
        print(f"{verdict}: {sum(each.verdict == verdict for each in found)}")
    if chosen.json is not None:
        rows = [{**vars(each.number), "verdict": each.verdict, **each.changes} for each in found]
        chosen.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    sys.exit(main())
