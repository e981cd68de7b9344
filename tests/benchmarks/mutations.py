"""Mutation testing of theorems, certificate, judge, KKT residual, reductions and level step.

    python -m tests.benchmarks mutations [COUNT] [--seed N] [--only NAME …] [--list]

Copies the tree, changes one operator, comparison, sign or number at a time in the modules below, and
runs the tests that belong to the module, each in a fork of a process that has imported other packages.
Prints each mutant that no test notices, and the share that is killed. A survivor either changes no
meaning, and then `EQUIVALENT` says why, or asks for a test that says why the number is what it is.
"""

from __future__ import annotations

import argparse
import ast
import copy
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Module and the tests that state what it has to compute, the fastest first.
CONE = ["tests/hcmodel/reductions/test_cone.py", "tests/hcmodel/reductions/test_cone_forms.py"]
TARGETS = {
    "solvers/theory/theorems.py": ["tests/solvers/theory/test_theory.py"],
    "solvers/theory/budget.py": ["tests/solvers/theory/test_theory.py"],
    "solvers/kkt.py": ["tests/solvers/test_kkt.py"],
    "solvers/row_forms.py": ["tests/solvers/test_row_forms.py", "tests/solvers/test_outer.py"],
    "solvers/first_order/level_step.py": ["tests/solvers/first_order/test_level_step.py"],
    "hcmodel/solving/judge.py": ["tests/hcmodel/solving/test_judge.py"],
    "hcmodel/certify/lower_bound.py": ["tests/hcmodel/certify/test_certificate.py"],
    "hcmodel/certify/search.py": ["tests/hcmodel/certify/test_certificate.py"],
    "hcmodel/reductions/sign.py": ["tests/hcmodel/reductions/test_every_reduction.py"],
    "hcmodel/reductions/normal_rows.py": ["tests/hcmodel/reductions/test_every_reduction.py"],
    "hcmodel/reductions/lift.py": ["tests/hcmodel/reductions/test_lifting.py"],
    "hcmodel/reductions/cone.py": CONE,
    "hcmodel/reductions/cone_rows.py": CONE,
    "hcmodel/reductions/cone_terms.py": CONE,
}
# Mutants that change no meaning, by module and change, each with the reason. They do not count.
EQUIVALENT: dict[tuple[str, str], str] = {}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
}
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.Gt,
    ast.LtE: ast.Gt,
    ast.Gt: ast.Lt,
    ast.GtE: ast.Lt,
    ast.Is: ast.IsNot,
}
NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum"}
# Seconds of CPU after which a mutant that makes the tests run for ever counts as killed.
TOO_LONG = 120


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    before: str
    after: str
    text: str


def mutants(path: str) -> Iterator[Mutant]:
    """Every mutant of a module, one change each."""
    tree = ast.parse((ROOT / path).read_text("utf-8"))
    places = [n for n in ast.walk(tree) if _changed(copy.deepcopy(n)) is not None]
    numbers = {id(node): number for number, node in enumerate(ast.walk(tree))}
    for place in places:
        twin = copy.deepcopy(tree)
        node = next(n for i, n in enumerate(ast.walk(twin)) if i == numbers[id(place)])
        before = ast.unparse(node)
        assert _changed(node) is not None
        yield Mutant(
            path, getattr(place, "lineno", 0), before, ast.unparse(node), ast.unparse(twin)
        )


def _changed(node: ast.AST) -> ast.AST | None:
    """The node after a change in place; None where it has none that could change a meaning."""
    if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
        if isinstance(node.left, ast.Constant) and isinstance(node.left.value, str):
            return None
        node.op = OPERATORS[type(node.op)]()
        return node
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        node.ops[0] = COMPARISONS[type(node.ops[0])]()
        return node
    if isinstance(node, ast.Constant) and isinstance(node.value, float) and node.value:
        node.value = 2 * node.value
        return node
    called = node.func if isinstance(node, ast.Call) else None
    if isinstance(called, ast.Name) and called.id in NAMES:
        called.id = NAMES[called.id]
        return node
    if isinstance(called, ast.Attribute) and called.attr in NAMES:
        called.attr = NAMES[called.attr]
        return node
    return None


# Runs tests in forks: one line of arguments in, one exit code out. Other packages are imported once.
SERVER = """
import os, resource, sys
import autograd.numpy, clarabel, numpy, pytest, scipy.linalg, scipy.optimize, scipy.sparse.linalg
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (TOO_LONG, TOO_LONG))
        silent = os.open(os.devnull, os.O_WRONLY)
        os.dup2(silent, 1), os.dup2(silent, 2)
        os._exit(int(pytest.main([*line.split(), "-q", "-x", "-p", "no:cacheprovider"])))
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
PASSED, FAILED, INTERRUPTED = 0, 1, 2


class Tests:
    """A copy of the tree, and the process that runs its tests."""

    def __init__(self, tree: Path) -> None:
        self.tree = tree
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", "build")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=ignored)
        self.server = subprocess.Popen(
            [sys.executable, "-c", SERVER.replace("TOO_LONG", str(TOO_LONG))],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def pass_(self, targets: list[str]) -> bool:
        assert self.server.stdin is not None
        assert self.server.stdout is not None
        self.server.stdin.write(" ".join(targets) + "\n")
        self.server.stdin.flush()
        code = int(self.server.stdout.readline())
        if code > INTERRUPTED:
            raise RuntimeError(f"pytest ended with {code} for {targets}")
        return code == PASSED  # failed, not even imported, or killed at the limit

    def survives(self, mutant: Mutant) -> bool:
        """Whether the tests of the module pass although it is changed."""
        place = self.tree / mutant.path
        original = place.read_text("utf-8")
        place.write_text(mutant.text, "utf-8")
        try:
            return self.pass_(TARGETS[mutant.path])
        finally:
            place.write_text(original, "utf-8")


def sample(count: int, seed: int, only: list[str]) -> list[Mutant]:
    """So many mutants, spread over the modules."""
    chance = random.Random(seed)
    pools = []
    for path in TARGETS:
        if not only or any(name in path for name in only):
            pool = list(mutants(path))
            chance.shuffle(pool)
            pools.append(pool)
    chosen: list[Mutant] = []
    while len(chosen) < count and any(pools):
        for pool in pools:
            if pool and len(chosen) < count:
                chosen.append(pool.pop())
    return chosen


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks mutations")
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--only", action="append", default=[], metavar="NAME")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    given = parser.parse_args()
    chosen = sample(given.count, given.seed, given.only)
    if given.list:
        for each in chosen:
            print(f"{each.path}:{each.line}: {each.before} -> {each.after}")
        return 0
    killed, equivalent, alive = 0, 0, 0
    with tempfile.TemporaryDirectory() as folder:
        tests = Tests(Path(folder, "tree"))
        for path in dict.fromkeys(each.path for each in chosen):
            if not tests.pass_(TARGETS[path]):
                raise RuntimeError(f"the tests of {path} fail without a change")
        for each in chosen:
            change = f"{each.before} -> {each.after}"
            reason = EQUIVALENT.get((each.path, change))
            if reason is None and not tests.survives(each):
                killed += 1
                continue
            equivalent += reason is not None
            alive += reason is None
            said = f"   (no meaning: {reason})" if reason else ""
            print(f"{each.path}:{each.line}: {change}{said}", flush=True)
    counted = killed + alive
    share = 100 * killed / max(counted, 1)
    print(
        f"{killed} of {counted} mutants killed ({share:.0f} %); {equivalent} more change no meaning"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
