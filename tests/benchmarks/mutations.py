"""Mutation testing of theorems, certificate, judge, KKT residual, reductions and level step.

    python -m tests.benchmarks mutations [COUNT] [--seed N] [--only AREA …] [--module NAME …]
        [--tests PATH …] [--list]

Changes one operator, comparison, condition, sign or number at a time in the modules of an area, COUNT
changes per area, and runs the tests that execute the changed line, the fastest first. A process that has
collected the tests is forked for each mutant, and the functions get their new code in the fork. Prints
each mutant that no test notices, and the shares that are killed. A survivor either changes no meaning,
and then `equivalent_mutants` says why, or asks for a test that says why the number is what it is.
"""

from __future__ import annotations

import argparse
import ast
import copy
import functools
import gc
import importlib
import importlib.machinery
import math
import os
import pickle
import random
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any, NamedTuple

import pytest

from tests.benchmarks.equivalent_mutants import reason

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Area:
    """Modules, and the tests that state what they have to compute."""

    modules: tuple[str, ...]
    tests: tuple[str, ...]

    def paths(self) -> list[str]:
        found = [path for name in self.modules for path in sorted(ROOT.glob(name))]
        return [str(path.relative_to(ROOT)) for path in found]


AREAS = {
    "theorems": Area(("solvers/theory/*.py",), ("tests/solvers/theory/test_theory.py",)),
    "certificate": Area(
        ("hcmodel/certify/**/*.py",),
        (
            "tests/hcmodel/certify",
            "tests/hcmodel/solving/test_conflicts.py",
            "tests/hcmodel/solving/test_claims.py",
            "tests/solvers/first_order/test_minorants.py",
        ),
    ),
    "judge": Area(
        tuple(
            f"hcmodel/solving/{n}.py"
            for n in (
                "judge",
                "evidence",
                "gathering",
                "stationary_points",
                "better_points",
                "bounding",
                "impossibility",
                "conclude",
                "certifier",
            )
        ),
        tuple(
            f"tests/hcmodel/solving/test_{n}.py"
            for n in ("judge", "evidence", "gathering", "conclude", "conflicts", "claims")
        ),
    ),
    "kkt": Area(
        ("solvers/kkt.py", "solvers/row_forms.py"),
        ("tests/solvers/test_kkt.py", "tests/solvers/test_row_forms.py"),
    ),
    "reductions": Area(
        ("hcmodel/reductions/*.py",),
        (
            "tests/hcmodel/reductions",
            "tests/hcmodel/maps/test_product.py",
            "tests/hcmodel/certify/test_norm_minorants.py",
            "tests/hcmodel/solving/test_matrix_inequalities.py",
            "tests/hcmodel/solving/test_interior_point_method.py",
        ),
    ),
    "level step": Area(
        ("solvers/first_order/level_step.py",),
        ("tests/solvers/first_order/test_level_step.py",),
    ),
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
    ast.IsNot: ast.Is,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
CONDITIONAL = (ast.If, ast.IfExp, ast.While)
# Conditions that no other change negates.
PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Subscript)
GUARDS = ("frozen", "eq", "repr", "strict")
NAMES = {"max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum"}
# Seconds of CPU that the tests of one mutant may take when nothing is changed.
TESTS_OF_ONE = 10
# A mutant that makes them take so many times as long, and so many seconds more, counts as killed.
TIMES, MORE = 5, 4
# The same for all tests of an area, which a change outside of functions asks for.
AREA = 1200
MEMORY = 8 << 30


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    lines: range
    """The lines of the statement, without the statements inside it."""
    place: str
    """The qualified name of the function, empty at the level of the module or a class."""
    change: str
    number: int
    """Of the node, among all of the module."""

    @property
    def key(self) -> tuple[str, str, str]:
        return self.path, self.place, self.change

    def code(self) -> CodeType:
        tree = ast.parse(text(self.path))
        _changed([node for node, *_ in _walk(tree, tree.body[0], "")][self.number])
        return compile(tree, str(ROOT / self.path), "exec")


@functools.cache
def text(path: str) -> str:
    """A module as it is when the run begins: somebody may edit it meanwhile."""
    return (ROOT / path).read_text("utf-8")


def mutants(path: str) -> Iterator[Mutant]:
    """Every mutant of a module, one change each."""
    tree = ast.parse(text(path))
    for number, (node, statement, place) in enumerate(_walk(tree, tree.body[0], "")):
        if _changed(copy.deepcopy(node)) is None:
            continue
        body = getattr(statement, "body", None)
        last = body[0].lineno - 1 if body else statement.end_lineno or statement.lineno
        yield Mutant(
            path,
            getattr(node, "lineno", 0),
            range(statement.lineno, max(last, statement.lineno) + 1),
            place,
            _difference(node, statement),
            number,
        )


def _difference(node: ast.AST, statement: ast.stmt) -> str:
    """The change as text; of a number, with the expression around it, of a statement its condition."""
    outer = next(
        (
            each
            for each in ast.walk(statement)
            if isinstance(node, ast.Constant) and node in ast.iter_child_nodes(each)
        ),
        node,
    )
    twin = copy.deepcopy(outer)
    same = zip(ast.walk(outer), ast.walk(twin), strict=True)
    _changed(next(there for here, there in same if here is node))
    if isinstance(outer, CONDITIONAL) and isinstance(twin, CONDITIONAL) and outer is node:
        outer, twin = outer.test, twin.test
    return f"{ast.unparse(outer)} -> {ast.unparse(twin)}"


def _walk(
    node: ast.AST, statement: ast.stmt, place: str
) -> Iterator[tuple[ast.AST, ast.stmt, str]]:
    """Every node with the statement and the function that it stands in.

    Annotations are left out, and flags of records that no claim rests on.
    """
    if isinstance(node, ast.keyword) and node.arg in GUARDS:
        return
    if isinstance(node, ast.stmt):
        statement = node
    yield node, statement, place
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns"):
            continue
        inside = place
        if name == "body" and isinstance(node, ast.FunctionDef | ast.ClassDef):
            inside = f"{place}.{node.name}" if place else node.name
            if isinstance(node, ast.ClassDef):
                inside = f"{inside}:"  # no function yet
            inside = inside.replace(":.", ".")
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from _walk(child, statement, inside)


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
    if isinstance(node, ast.BoolOp):
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return node
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        if isinstance(node.operand, ast.Constant) and isinstance(node.operand.value, int):
            return None  # an axis or an index
        node.op = ast.UAdd()
        return node
    if _negated(node):
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


def _negated(node: ast.AST) -> bool:
    """Whether the node is a truth value by itself, which is the opposite afterwards."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        node.operand = ast.UnaryOp(ast.Not(), node.operand)
    elif isinstance(node, CONDITIONAL) and isinstance(node.test, PLAIN):
        node.test = ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        node.value = not node.value
    else:
        return False
    return True


def sample(area: Area, count: int, seed: int, modules: list[str]) -> list[Mutant]:
    """So many mutants of an area, each as likely as any other."""
    pool = [
        mutant
        for path in area.paths()
        if not modules or any(name in path for name in modules)
        for mutant in mutants(path)
    ]
    return random.Random(seed).sample(pool, min(count, len(pool)))


# ---- running


def in_fork(work: Callable[[], Any], limit: int | None = None) -> Any:
    """What the work returns in a fork of this process; None where the fork did not live to return it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        try:
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(pickle.dumps(work()))
        finally:
            os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(answer) if answer else None


def silently(work: Callable[[], Any], log: str = os.devnull) -> Callable[[], Any]:
    """The work, with whatever it prints written to a file."""

    def silent() -> Any:
        elsewhere = os.open(log, os.O_WRONLY | os.O_CREAT)
        os.dup2(elsewhere, 1)
        os.dup2(elsewhere, 2)
        return work()

    return silent


class Covered(NamedTuple):
    """One test: how long it takes, and which lines it executes."""

    seconds: float
    lines: dict[str, set[int]]


class Session:
    """A pytest plugin: instead of its loop over the tests, runs what a mutant asks for, in forks."""

    def __init__(
        self,
        paths: list[str],
        chosen: list[Mutant],
        told: Callable[..., None],
        said: Callable[[str], None],
    ) -> None:
        self.paths, self.chosen, self.told, self.said = paths, chosen, told, said
        self.failed = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.failed = self.failed or report.failed

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        tests = session.items
        self.functions = functions_of(self.paths)
        measured = in_fork(lambda: self.measure(tests))
        if not measured or session.testsfailed:
            raise RuntimeError("there are no tests, or they cannot be imported")
        covered = [Covered(*each) for each in measured]
        for test, each in zip(tests, covered, strict=True):
            if not each.seconds < math.inf:
                self.said(f"left out, since it fails while it is traced: {test.nodeid}")
        codes = [compile(text(path), str(ROOT / path), "exec") for path in self.paths]
        some = sorted(range(len(tests)), key=lambda i: covered[i].seconds)[:20]
        if in_fork(lambda: self.notices(codes, [tests[i] for i in some])) is not False:
            raise RuntimeError("a test fails in a fork whose functions are compiled again")
        for mutant in self.chosen:
            fitting = [
                i
                for i, each in enumerate(covered)
                if not each.lines.get(mutant.path, set()).isdisjoint(mutant.lines)
            ]
            fitting.sort(key=lambda i: covered[i].seconds)
            total, few = 0.0, []
            for i in fitting:
                total += covered[i].seconds
                if total > TESTS_OF_ONE and few:
                    break
                few.append(tests[i])
            limit = TIMES * math.ceil(min(total, TESTS_OF_ONE)) + MORE
            self.told(mutant, self.outcome(mutant, few, limit), len(few))
        return True

    def outcome(self, mutant: Mutant, tests: list[pytest.Item], limit: int) -> bool:
        """Whether a test notices; one that never ends, or ends the process, has noticed."""
        if not tests:
            return False
        return in_fork(lambda: self.notices([mutant.code()], tests), limit) is not False

    def measure(self, tests: list[pytest.Item]) -> list[tuple[float, dict[str, set[int]]]]:
        """Seconds and lines of each test; none of one that fails, as some do while they are traced."""
        real = {str(ROOT / path): path for path in self.paths}
        names: dict[str, str | None] = {}
        lines: dict[str, set[int]] = {}

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            name = frame.f_code.co_filename
            if name not in names:
                names[name] = real.get(os.path.realpath(name))
            path = names[name]
            if path is None:
                return None
            here = lines.setdefault(path, set())

            def local(frame: FrameType, event: str, argument: object) -> Any:
                here.add(frame.f_lineno)
                return local

            return local

        found = []
        for i, test in enumerate(tests):
            lines = {}
            before = time.process_time()
            sys.settrace(trace)
            self.run(test, tests[i + 1] if i + 1 < len(tests) else None)
            sys.settrace(None)
            seconds = time.process_time() - before
            found.append((math.inf, {}) if self.failed else (seconds, lines))
            self.failed = False
        return found

    def notices(self, codes: list[CodeType], tests: list[pytest.Item]) -> bool:
        """Whether one of the tests fails after the functions have been given this code."""
        for code in codes:
            replace_code(code, self.functions)
        for i, test in enumerate(tests):
            self.run(test, tests[i + 1] if i + 1 < len(tests) else None)
            if self.failed:
                return True
        return False

    def run(self, test: pytest.Item, after: pytest.Item | None) -> None:
        test.config.hook.pytest_runtest_protocol(item=test, nextitem=after)


def functions_of(paths: list[str]) -> list[FunctionType]:
    """Every function of these modules, wherever it is kept."""
    for path in paths:
        parts = Path(path).with_suffix("").parts
        importlib.import_module(".".join(parts if parts[0] == "hcmodel" else ("hcmodel", *parts)))
    gc.unfreeze()
    places = {str(ROOT / path) for path in paths}
    found = [
        each
        for each in gc.get_objects()
        if isinstance(each, FunctionType) and os.path.realpath(each.__code__.co_filename) in places
    ]
    gc.freeze()
    return found


def replace_code(module: CodeType, functions: list[FunctionType]) -> None:
    """Gives every function of a module its code from a new compilation."""
    new: dict[tuple[str, int], CodeType] = {}

    def collect(code: CodeType) -> None:
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                new[constant.co_qualname, constant.co_firstlineno] = constant
                collect(constant)

    collect(module)
    for each in functions:
        old = each.__code__
        code = new.get((old.co_qualname, old.co_firstlineno))
        if code is not None and os.path.realpath(old.co_filename) == module.co_filename:
            each.__code__ = code


def warm(area: Area, chosen: list[Mutant], told: Callable[..., None]) -> None:
    """Mutants inside functions: the process that is forked has imported and collected everything."""
    log = Path(tempfile.mkdtemp(), "log")
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)

        def tell(mutant: Mutant, killed: bool, tests: int) -> None:
            os.write(writing, f"{chosen.index(mutant)} {int(killed)} {tests}\n".encode())

        error = os.dup(2)
        plugin = Session(area.paths(), chosen, tell, lambda text: say(error, text))
        silently(lambda: pytest.main([*area.tests, *QUIET], plugins=[plugin]), str(log))()
        os._exit(0)
    os.close(writing)
    count = 0
    with os.fdopen(reading) as pipe:
        for line in pipe:
            number, killed, tests = map(int, line.split())
            told(chosen[number], bool(killed), tests)
            count += 1
    os.waitpid(child, 0)
    if count < len(chosen):
        raise RuntimeError(log.read_text("utf-8", "replace")[-3000:])
    shutil.rmtree(log.parent)


def say(descriptor: int, words: str) -> None:
    os.write(descriptor, f"{words}\n".encode())


QUIET = ["-q", "-s", "-x", "-p", "no:cacheprovider"]


def cold(area: Area, mutant: Mutant) -> bool:
    """A mutant outside functions: a fork that has not imported the package imports it with the change."""
    original = importlib.machinery.SourceFileLoader.get_code

    def get_code(self: Any, name: str) -> CodeType | None:
        if os.path.realpath(self.get_filename(name)) == str(ROOT / mutant.path):
            return mutant.code()
        return original(self, name)

    def run() -> bool:
        importlib.machinery.SourceFileLoader.get_code = get_code  # type: ignore[method-assign, assignment]
        return pytest.main([*area.tests, *QUIET]) != pytest.ExitCode.OK

    return in_fork(silently(run), AREA) is not False


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks mutations")
    parser.add_argument("count", nargs="?", type=int, default=30, help="mutants per area")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--only", action="append", default=[], metavar="AREA", choices=AREAS)
    parser.add_argument("--module", action="append", default=[], metavar="NAME")
    parser.add_argument("--tests", action="append", metavar="PATH", help="instead of the area's")
    parser.add_argument("--list", action="store_true", help="show the mutants, run nothing")
    given = parser.parse_args()
    rows = []
    for name in given.only or AREAS:
        area = AREAS[name] if not given.tests else replace(AREAS[name], tests=tuple(given.tests))
        chosen = sample(area, given.count, given.seed, given.module)
        if given.list:
            for each in chosen:
                print(f"{each.path}:{each.line}: {each.change}")
            continue
        rows.append((name, *tried(area, chosen)))
    if given.list:
        return 0
    print(
        f"\n{'area':12} {'mutants':>8} {'killed':>8} {'alive':>8} {'no meaning':>11} {'share':>7}"
    )
    rows.append(("together", *(sum(row[i] for row in rows) for i in (1, 2, 3))))
    for name, killed, alive, equivalent in rows:
        share = 100 * killed / max(killed + alive, 1)
        total = killed + alive + equivalent
        print(f"{name:12} {total:8} {killed:8} {alive:8} {equivalent:11} {share:5.0f} %")
    return 0


def tried(area: Area, chosen: list[Mutant]) -> tuple[int, int, int]:
    """How many mutants are killed, alive, and without a meaning."""
    killed, alive = 0, 0

    def told(mutant: Mutant, noticed: bool, tests: int) -> None:
        nonlocal killed, alive
        killed += noticed
        alive += not noticed
        if not noticed:
            where = f"{mutant.path}:{mutant.line} {mutant.place}"
            print(f"{where}: {mutant.change}   ({tests} tests)", flush=True)

    meaningful = [each for each in chosen if reason(*each.key) is None]
    inside = [each for each in meaningful if each.place and not each.place.endswith(":")]
    if inside:
        warm(area, inside, told)
    for each in meaningful:
        if each not in inside:
            told(each, cold(area, each), -1)
    return killed, alive, len(chosen) - len(meaningful)


if __name__ == "__main__":
    sys.exit(main())
