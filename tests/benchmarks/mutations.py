"""Mutation testing of theorems, certificate, judge, KKT residual, reductions and level step.

    python -m tests.benchmarks mutations [COUNT] [--seed N] [--only NAME …] [--list]

Copies the tree, changes one operator, comparison, sign or number at a time in the modules below, and
runs the tests that belong to the module. Prints each mutant that no test notices, and the share that is
killed. A survivor either changes no meaning (a number that only decides about speed) or asks for a test
that says why the number is what it is.
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

# Module and the tests that state what it has to compute.
TARGETS = {
    "solvers/theory/theorems.py": ["tests/solvers/theory"],
    "solvers/theory/budget.py": ["tests/solvers/theory"],
    "solvers/kkt.py": ["tests/solvers/test_kkt.py"],
    "solvers/first_order/level_step.py": ["tests/solvers/first_order/test_bundle_level.py"],
    "hcmodel/solving/judge.py": ["tests/hcmodel/solving/test_judge.py"],
    "hcmodel/certify/lower_bound.py": ["tests/hcmodel/certify/test_certificate.py"],
    "hcmodel/reductions/sign.py": ["tests/hcmodel/reductions", "tests/hcmodel/test_problem.py"],
    "hcmodel/reductions/normal_rows.py": ["tests/hcmodel/reductions"],
}
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
# Seconds after which a mutant that makes the tests run for ever counts as killed.
TOO_LONG = 300


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


def survives(mutant: Mutant, tree: Path) -> bool:
    """Whether the tests of the module pass although it is changed."""
    place = tree / mutant.path
    original = place.read_text("utf-8")
    place.write_text(mutant.text, "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    try:
        ended = subprocess.run(
            [*command, *TARGETS[mutant.path]],
            cwd=tree,
            env={**os.environ, "PYTHONPATH": str(tree), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=TOO_LONG,
            check=False,
        )
        if ended.returncode not in (0, 1, 2):  # passed, failed, not even imported
            raise RuntimeError(ended.stdout.decode()[-2000:] + ended.stderr.decode()[-2000:])
        return ended.returncode == 0
    except subprocess.TimeoutExpired:
        return False
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
    alive = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        ignored = shutil.ignore_patterns(".git", ".venv", "__pycache__", ".mypy_cache", "build")
        shutil.copytree(ROOT, tree, symlinks=True, ignore=ignored)
        for each in chosen:
            if survives(each, tree):
                alive += 1
                print(f"{each.path}:{each.line}: {each.before} -> {each.after}", flush=True)
    killed = len(chosen) - alive
    print(f"{killed} of {len(chosen)} mutants killed ({100 * killed / max(len(chosen), 1):.0f} %)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
