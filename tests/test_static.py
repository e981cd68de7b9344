"""What the source text itself has to keep: names, numbers, sizes, and tests that can fail."""

from __future__ import annotations

import ast
import functools
import re
import tomllib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.benchmarks.constants import ROOT, Number, files, numbers

# ---- numbers -------------------------------------------------------------------------------------


# Packages in which every number says where it comes from.
EXPLAINED = (
    "solvers/",
    *(f"hcmodel/{p}/" for p in ("certify", "analysis", "solving", "reductions", "facts", "proof")),
    *(f"hcmodel/{p}/" for p in ("maps", "engines", "studies", "atoms")),
)
# Some of these, in which functions have no numbers but those of formulas.
FIELDS_ONLY = ("solvers/", "hcmodel/certify/", "hcmodel/analysis/")
# Functions that are a theorem's formula: their docstrings have the theorem.
THEOREMS = ("solvers/theory/", "solvers/first_order/switching_subgradient.py:step_length")


@functools.cache
def all_numbers() -> tuple[Number, ...]:
    """The numbers of these packages."""
    explained = (
        path for path in files() if path.relative_to(ROOT).as_posix().startswith(EXPLAINED)
    )
    return tuple(number for path in explained for number in numbers(path))


def places(wanted: Callable[[Number], bool]) -> list[str]:
    """The numbers that break a rule, one line each."""
    return [f"{n.path}:{n.line} {n.name} = {n.value}" for n in all_numbers() if wanted(n)]


def test_every_numeric_constant_says_where_it_comes_from() -> None:
    assert not places(lambda n: n.kind != "inline" and not n.explained)


def test_heuristics_are_fields_and_not_literals_in_functions() -> None:
    def loose(number: Number) -> bool:
        place = f"{number.path}:{number.name}"
        return (
            number.kind == "inline"
            and number.path.startswith(FIELDS_ONLY)
            and not place.startswith(THEOREMS)
        )

    assert not places(loose)


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("LIMIT = 3\n", [("module", False)]),
        ("# Why.\nLIMIT = 3\nOTHER = 1e-3\n", [("module", True), ("module", True)]),
        ("class A:\n    share: float = 0.1\n    'Why.'\n    count: int = 0\n", [("field", True)]),
        ("def f(x: float = 1e-6) -> float:\n    return 0.5 * x + 3.0\n", [("inline", False)] * 2),
        ("names = (1, 2)\ndef f() -> float:\n    return 2.0 - 1.0\n", []),
    ],
)
def test_numbers_are_found_where_they_stand(
    text: str, kinds: list[tuple[str, bool]], tmp_path: Path
) -> None:
    path = tmp_path / "module.py"
    path.write_text(text)
    assert [(n.kind, n.explained) for n in numbers(path, tmp_path)] == kinds


def test_there_is_something_to_look_at() -> None:
    assert len({number.path for number in all_numbers()}) > 30
    assert any((ROOT / number.path).name == "numerics.py" for number in all_numbers())


# ---- names, sizes and tests ----------------------------------------------------------------------

SOURCES = ("hcmodel", "grammar", "solvers")
# Basenames that several packages need: a package's entry point; the model of a user and the model of a
# step; facts about curvature and where a method's curvature comes from; a table of atoms and one of
# backends. The suites of `testing` are named after what they check.
SHARED = {"__init__.py", "model.py", "curvature.py", "table.py"}
SUITES = "hcmodel/testing"
# Words with which a test would look at the clock, and comparisons of the times that a solution has, which
# depend on the machine. `time_limit` is tested with the fixture `clock`.
CLOCKS = re.compile(
    r"\b(perf_counter|process_time|monotonic|thread_time)(_ns)?\b|\b(sleep|timeout|timeit)\b"
    r"|\btime\.time(_ns)?\b|\btime_ns\b|_seconds\b[^<>]*(?<!-)[<>]|(?<!-)[<>][^<>]*_seconds\b"
)


def sources() -> Iterator[Path]:
    for folder in SOURCES:
        for path in sorted((ROOT / folder).rglob("*.py")):
            inner = path.relative_to(ROOT)
            if inner.parts[:2] not in (("hcmodel", "grammar"), ("hcmodel", "solvers")):  # links
                yield path


def modules_of_tests() -> list[Path]:
    return [
        path
        for path in sorted((ROOT / "tests").rglob("*.py"))
        if "benchmarks" not in path.parts and path != Path(__file__)
    ]


def test_few_modules_stand_at_the_root() -> None:
    modules = [path.name for path in (ROOT / "hcmodel").glob("*.py")]
    assert len(modules) <= 5, modules


def test_dataclasses_are_those_that_start_quickly() -> None:
    """`from hcmodel.records import dataclass`: the standard one compiles code for each class."""
    standard = re.compile(
        r"^from dataclasses import .*\bdataclass\b|^import dataclasses", re.MULTILINE
    )
    users = [str(path) for path in sources() if standard.search(path.read_text("utf-8"))]
    assert [path for path in users if not path.endswith("records/__init__.py")] == []


def test_no_two_modules_share_a_name_without_need() -> None:
    places = defaultdict(list)
    for path in sources():
        inner = path.relative_to(ROOT).as_posix()
        if path.name not in SHARED and not inner.startswith(SUITES):
            places[path.name].append(inner)
    assert [each for each in places.values() if len(each) > 1] == []


def test_the_linter_limits_the_size_of_functions() -> None:
    lint = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["ruff"]["lint"]
    assert {"C901", "PLR0915"} <= set(lint["select"])
    assert lint["mccabe"]["max-complexity"] <= 12
    assert lint["pylint"]["max-statements"] <= 50


def test_nobody_replaces_how_warnings_are_shown_for_good() -> None:
    named = [path for path in sources() if "showwarning" in path.read_text()]
    assert named
    for path in named:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and _replaces_showwarning(node):
                opened = [
                    ast.unparse(each) for each in ast.walk(node) if isinstance(each, ast.With)
                ]
                assert any("catch_warnings" in each for each in opened), path


def _replaces_showwarning(function: ast.FunctionDef) -> bool:
    targets = (
        target
        for node in ast.walk(function)
        if isinstance(node, ast.Assign)
        for target in node.targets
    )
    return any(ast.unparse(target) == "warnings.showwarning" for target in targets)


@pytest.mark.parametrize(
    "path", modules_of_tests(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_test_looks_at_the_clock(path: Path) -> None:
    if path == ROOT / "tests" / "conftest.py":  # where the clock is replaced
        return
    lines = enumerate(path.read_text().splitlines(), 1)
    assert [(number, line) for number, line in lines if CLOCKS.search(line)] == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("start = time.perf_counter_ns()", True),
        ("from time import time_ns", True),
        ("assert problem.solution.solve_seconds < 2", True),
        ('assert found["compile_seconds"] <= 1', True),
        ("assert 0.1 > solution.solve_seconds", True),
        ("def check(solve_seconds: float) -> None:", False),
        ('return {key for key in row if key != "solve_seconds"}', False),
        ("problem.solve(time_limit=1)", False),
    ],
)
def test_a_look_at_the_clock_would_be_found(line: str, found: bool) -> None:
    assert (CLOCKS.search(line) is not None) == found


@pytest.mark.parametrize(
    "path", modules_of_tests(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_test_passes_because_a_solve_fails(path: Path) -> None:
    """An assertion on a status has no `or`, and none stands behind `if status == …` without an else."""
    text = path.read_text()
    if STATUS.search(text) is None:
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Assert) and isinstance(node.test, ast.BoolOp):
            weak = isinstance(node.test.op, ast.Or) and _asks_for_a_status(node.test)
            assert not weak, f"{path}:{node.lineno}"
        if isinstance(node, ast.If) and not node.orelse and _asks_for_a_status(node.test):
            asserts = [each for part in node.body for each in ast.walk(part)]
            asserts = [each for each in asserts if isinstance(each, ast.Assert)]
            allowed = f"{path.name}:{_function_around(path, node.lineno)}" in CONDITIONAL
            assert allowed or not asserts, f"{path}:{node.lineno}"


# Helpers that check what a claim means if it is made; those who call them assert the claim itself. And
# models of the pages, some of which have their optimum in a comment.
CONDITIONAL = {
    *("test_second_order.py:assert_honest", "test_bundle_level.py:check_honest"),
    "test_language_pages.py:test_a_model_of_the_pages_is_as_they_say",
}


def passes_without_a_result(text: str, name: str = "") -> list[int]:
    """The lines of assertions that hold where there is no result: `bound is None or bound <= value`.

    The same behind `if bound is not None:`, where the function neither says when this is so nor counts
    how often it is. What the function is given as an argument is an expected value and no result.
    """
    if " is None or" not in text and " is not None" not in text:
        return []  # most modules; a tree takes long to make
    found = []
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef) or f"{name}:{function.name}" in CONDITIONAL:
            continue
        given = {each.arg for each in ast.walk(function.args) if isinstance(each, ast.arg)}
        asserted = [n.test for n in ast.walk(function) if isinstance(n, ast.Assert)]
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and _is_optional(node.test, given):
                found.append(node.lineno)
            if isinstance(node, ast.If) and not node.orelse:
                result = _compared_with_none(node.test, ast.IsNot)
                if result is None or _root(result) in given:
                    continue
                shown = re.compile(rf"{re.escape(ast.unparse(result))} is (not )?None")
                inside = [each for part in node.body for each in ast.walk(part)]
                said = any(shown.search(ast.unparse(each)) for each in asserted)
                counted = any(isinstance(each, ast.AugAssign) for each in inside)
                if any(isinstance(each, ast.Assert) for each in inside) and not said | counted:
                    found.append(node.lineno)
    return found


def _is_optional(test: ast.expr, given: set[str]) -> bool:
    """Whether an assertion is `result is None or …`."""
    if not (isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or)):
        return False
    results = [_compared_with_none(each, ast.Is) for each in test.values]
    return any(each is not None and _root(each) not in given for each in results)


def _compared_with_none(test: ast.expr, kind: type[ast.cmpop]) -> ast.expr | None:
    """What is compared with None by `is` or `is not`."""
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], kind):
        return None
    right = test.comparators[0]
    return test.left if isinstance(right, ast.Constant) and right.value is None else None


def _root(node: ast.expr) -> str:
    """The name that attributes and calls begin with."""
    while not isinstance(node, ast.Name):
        inner = getattr(node, "value", None) or getattr(node, "func", None)
        if inner is None:
            return ""
        node = inner
    return node.id


@pytest.mark.parametrize(
    "path", modules_of_tests(), ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_no_test_passes_because_there_is_no_result(path: Path) -> None:
    assert passes_without_a_result(path.read_text("utf-8"), path.name) == []


@pytest.mark.parametrize(
    ("body", "lines"),
    [
        ("    bound = f()\n    assert bound is None or bound < 1", [3]),
        ("    p = f()\n    assert p.solution.bound is None or p.solution.bound < 1", [3]),
        ("    bound = f()\n    if bound is not None:\n        assert bound < 1", [3]),
        (
            "    b = f()\n    if b is not None:\n        assert b < 1\n    else:\n        g()",
            [],
        ),
        (
            "    b = f()\n    assert (b is None) == good\n    if b is not None:\n        assert b < 1",
            [],
        ),
        ("    b = f()\n    if b is not None:\n        count += 1\n        assert b < 1", []),
        ("    assert expected is None or f() == expected", []),
        ("    assert f() == 1 or g()", []),
    ],
)
def test_an_assertion_that_needs_no_result_would_be_found(body: str, lines: list[int]) -> None:
    assert passes_without_a_result(f"def test(expected, good):\n{body}\n") == lines


STATUS = re.compile(r"\b(status|termination)\b")


def _asks_for_a_status(test: ast.expr) -> bool:
    return STATUS.search(ast.unparse(test)) is not None


def _function_around(path: Path, line: int) -> str:
    functions = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)]
    return next((f.name for f in functions if f.lineno <= line <= (f.end_lineno or 0)), "")


def test_the_shared_names_are_still_shared() -> None:
    """An exception that is not needed any more goes."""
    names = Counter(path.name for path in sources())
    assert all(names[name] > 1 for name in SHARED)


# ---- atoms


# What is known of an atom is a field of it. Printers write atoms by their names.
ASKS_FOR_NAMES = (
    *("atoms/", "expressions/printing.py", "report/typeset.py", "frontend/to_hc.py"),
    "formats/scalars.py",
)


def names_that_decide(source: str) -> list[int]:
    """The lines that compare `atom.name`, look something up by it, or keep it for later."""
    if re.search(r"\batom\s*\.\s*name\b", source) is None:
        return []  # most modules; a tree takes long to make
    lines = []
    for node in ast.walk(ast.parse(source)):
        inner: list[ast.expr | None] = []
        if isinstance(node, ast.Compare):
            inner = [node.left, *node.comparators]
        elif isinstance(node, ast.Subscript):
            inner = [node.slice]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            looks_up = node.func.attr in ("get", "pop", "setdefault")
            inner = node.args[:1] if looks_up else []
        elif isinstance(node, (ast.Assign, ast.AnnAssign, ast.NamedExpr, ast.Return)):
            inner = [node.value]
        elif isinstance(node, ast.Match):
            inner = [node.subject]
        for each in inner:
            parts = each.elts if isinstance(each, ast.Tuple) else [each]
            lines += [node.lineno for part in parts if is_name_of_atom(part)]
    return lines


def is_name_of_atom(node: ast.expr | None) -> bool:
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value
    return (isinstance(owner, ast.Name) and owner.id == "atom") or (
        isinstance(owner, ast.Attribute) and owner.attr == "atom"
    )


def test_nothing_is_decided_by_the_name_of_an_atom() -> None:
    package = Path(ROOT) / "hcmodel"
    found = [
        f"{path.relative_to(package)}:{line}"
        for path in sorted(package.rglob("*.py"))
        if not str(path.relative_to(package)).startswith(ASKS_FOR_NAMES)
        for line in names_that_decide(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        'wrong = node.atom.name == "add"',
        'wrong = atom.name not in ("add", "sub")',
        "TABLE[step.atom.name]",
        "TABLE.get(atom.name)",
        "name, args = node.atom.name, node.args",
        "key = (atom.name, arguments)",
    ],
)
def test_a_decision_by_name_would_be_found(line: str) -> None:
    assert names_that_decide(line) == [1]


def test_names_may_stand_in_messages() -> None:
    assert names_that_decide("raise ValueError(f'{node.atom.name} has no value')") == []
