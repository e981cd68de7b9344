"""The numbers in the code: how many there are, and which of them a run depends on.

    python tests/benchmarks/constants.py                  counts, by package
    python tests/benchmarks/constants.py --root OTHER     the same of another checkout
    python tests/benchmarks/constants.py --list           each of them, with its place
    python tests/benchmarks/constants.py --perturb sbl-adals --problems Ex-CGP …
                                                          points and statuses with each field changed

A *module constant* is a name in capitals at module level that is bound to numbers. A *field* is a number
in the body of a class, such as the default of an options dataclass. An *inline float* is any other float
literal inside a function, but for 0, 1, 2, ½ and −1, which are part of formulas; fields of 0 and 1, which
states begin with, do not count either. What is *explained* has a comment or a docstring; it is counted in
brackets. tests/test_static.py asks the same functions.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import sys
import warnings
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
# Part of formulas; −1 is the negative of 1.
FORMULAS = (0.0, 1.0, 2.0, 0.5)
PACKAGES = ("solvers", "hcmodel")


@dataclass(frozen=True)
class Number:
    """A numeric constant of the code. `kind` is "module", "field" or "inline"."""

    path: str
    line: int
    kind: str
    name: str
    value: str
    explained: bool = False


def numbers(path: Path, root: Path = ROOT) -> list[Number]:
    """All of a file."""
    text = path.read_text(encoding="utf-8")
    return list(_Finder(text, str(path.relative_to(root))).found())


class _Finder:
    def __init__(self, text: str, path: str) -> None:
        self.tree, self.lines, self.path = ast.parse(text), text.splitlines(), path

    def found(self) -> Iterator[Number]:
        yield from self._bound(self.tree, "module")
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef) and not _is_enum(node):
                yield from self._bound(node, "field")
        for node in self._functions():
            yield from self._inline(node)

    def _functions(self) -> Iterator[ast.AST]:
        """Functions that are not inside another one, methods included, and lambdas of the module."""
        ahead: deque[ast.AST] = deque([self.tree])
        while ahead:
            node = ahead.popleft()
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
                yield node
            else:
                ahead.extend(ast.iter_child_nodes(node))

    def _inline(self, function: ast.AST) -> Iterator[Number]:
        name = getattr(function, "name", "lambda")
        for node in ast.walk(function):
            if not isinstance(node, ast.Constant) or not isinstance(node.value, float):
                continue
            if abs(node.value) not in FORMULAS:
                yield Number(self.path, node.lineno, "inline", name, ast.unparse(node))

    def _bound(self, scope: ast.Module | ast.ClassDef, kind: str) -> Iterator[Number]:
        for place, node in enumerate(scope.body):
            if isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, value = [node.target], node.value
            elif isinstance(node, ast.Assign):
                targets, value = node.targets, node.value
            else:
                continue
            names = [leaf.id for t in targets for leaf in ast.walk(t) if isinstance(leaf, ast.Name)]
            if kind == "module":
                names = [name for name in names if name.isupper()]
            if names and _numeric(value) and (kind == "module" or not _start(value)):
                explained = self._explained(scope, place)
                for name in names:
                    yield Number(self.path, node.lineno, kind, name, ast.unparse(value), explained)

    def _explained(self, scope: ast.Module | ast.ClassDef, place: int) -> bool:
        """A comment above or beside it, or a docstring below, also of a group that stands together."""
        node = scope.body[place]
        if any("#" in line for line in self.lines[node.lineno - 1 : node.end_lineno]):
            return True
        above = self.lines[node.lineno - 2].strip() if node.lineno > 1 else ""
        if above.startswith("#"):
            return True
        for below in scope.body[place + 1 :]:
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                return isinstance(below.value.value, str)
            if not isinstance(below, ast.AnnAssign):
                break
        before = scope.body[place - 1] if place else None
        beside = isinstance(before, ast.Assign) and before.end_lineno == node.lineno - 1
        return beside and self._explained(scope, place - 1)


def _is_enum(node: ast.ClassDef) -> bool:
    """The members of an enumeration are names, not quantities."""
    return any("Enum" in ast.unparse(base) or "Flag" in ast.unparse(base) for base in node.bases)


def _start(node: ast.expr) -> bool:
    """0 or 1, with which states begin."""
    return isinstance(node, ast.Constant) and node.value in (0, 1)


def _numeric(node: ast.expr) -> bool:
    """A number, or a formula or a tuple of numbers."""
    if isinstance(node, ast.Constant):
        return isinstance(node.value, int | float) and not isinstance(node.value, bool)
    if isinstance(node, ast.UnaryOp):
        return _numeric(node.operand)
    if isinstance(node, ast.BinOp):
        return _numeric(node.left) and _numeric(node.right)
    if isinstance(node, ast.Tuple):
        return bool(node.elts) and all(_numeric(each) for each in node.elts)
    return False


def files(root: Path = ROOT) -> Iterator[Path]:
    """The sources. `hcmodel/` has links to `solvers/` and `grammar/`, which are not followed."""
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            parts = path.relative_to(root).parts
            if parts[:2] not in (("hcmodel", "solvers"), ("hcmodel", "grammar")):
                yield path


def counts(root: Path) -> str:
    """A table: packages down, kinds across, explained ones in brackets."""
    totals: dict[str, dict[str, list[Number]]] = {}
    for path in files(root):
        parts = path.relative_to(root).parts
        package = "/".join(parts[:2]) if len(parts) > 2 else f"{parts[0]}/*.py"
        for number in numbers(path, root):
            totals.setdefault(package, {}).setdefault(number.kind, []).append(number)
    lines = [f"{'':<28}{'module constants':>18}{'fields':>16}{'inline floats':>16}"]
    whole: dict[str, list[Number]] = {}
    for package, kinds in totals.items():
        lines.append(_line(package, kinds))
        for kind, own in kinds.items():
            whole.setdefault(kind, []).extend(own)
    return "\n".join([*lines, _line("total", whole)])


def _line(package: str, kinds: dict[str, list[Number]]) -> str:
    cells = []
    for kind in ("module", "field"):
        own = kinds.get(kind, [])
        cells.append(f"{len(own)} ({sum(each.explained for each in own)})" if own else "")
    inline = len(kinds.get("inline", []))
    return f"{package:<28}{cells[0]:>18}{cells[1]:>16}{inline or '':>16}"


# Fields are multiplied and divided by this, small ones by its square.
CHANGE = 4.0
SHARE = 0.05
# Calls after which a run that a change has slowed down is ended.
MOST_CALLS = 1000
# Modules below the methods, whose rules are an instance in the module.
MODULES = ("loop", "kkt", "qp.clarabel_", "algebra.updates", "algebra.hessians")


def perturb(method: str, words: list[str], fields: str) -> Iterator[str]:
    """One line for each number that a method reads: what a change of it does to its runs."""
    sys.path[:0] = [str(ROOT), str(ROOT / "docs")]
    from hcmodel.solvers.methods import METHODS
    from tests.benchmarks.calls import chosen

    problems = [(case, case.make()) for case in chosen(words)]
    baseline = _outcomes(method, problems, METHODS[method].options())
    yield f"{method}: {sum(points for _, points in baseline.values())} points on {len(baseline)} problems"
    for name, changed in _variants(METHODS[method].options()):
        if fields not in name:
            continue
        yield f"{name:<44} {_compared(baseline, _outcomes(method, problems, changed))}"
    for module in MODULES:
        place = importlib.import_module(f"hcmodel.solvers.{module}")
        kept = place.RULES
        for name, changed in _variants(kept):
            if fields not in f"{module}.{name}":
                continue
            place.RULES = changed
            found = _outcomes(method, problems, METHODS[method].options())
            yield f"{module}.{name:<44} {_compared(baseline, found)}"
        place.RULES = kept


def _variants(options: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The options with one number changed, for every number and both directions."""
    for each in dataclasses.fields(options):
        value, name = getattr(options, each.name), f"{path}{each.name}"
        if dataclasses.is_dataclass(value):
            for deeper, changed in _variants(value, f"{name}."):
                yield deeper, dataclasses.replace(options, **{each.name: changed})
        elif isinstance(value, int | float) and not isinstance(value, bool):
            for other in _others(value):
                try:
                    changed = dataclasses.replace(options, **{each.name: other})
                except ValueError:  # refused, since no step would end with it
                    continue
                yield f"{name} = {other:.3g} ({value:.3g})", changed


def _others(value: float) -> tuple[float, ...]:
    """A number changed both ways: factors stay above 1, shares below it, whole numbers whole."""
    if isinstance(value, int):
        return (int(CHANGE * value), max(1, round(value / CHANGE)))
    if value > 1:
        return (1 + CHANGE * (value - 1), 1 + (value - 1) / CHANGE)
    if value >= SHARE:
        return (1 - (1 - value) / CHANGE, value / CHANGE)
    return (value * CHANGE**2, value / CHANGE**2)


def _outcomes(
    method: str, problems: list[tuple[Any, Any]], options: Any
) -> dict[str, tuple[str, int]]:
    """Status and points of each problem, always from the same start."""
    import hcmodel as hc

    found = {}
    for case, problem in problems:
        known = case.optimum if method == "sbl-star" else None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", hc.HCWarning)
            problem.solve(method, optimal_value=known, max_calls=MOST_CALLS, options=options)
        assert problem.solution is not None
        found[case.name] = (problem.solution.status.value, problem.solution.oracle_calls.points)
    return found


def _compared(before: dict[str, tuple[str, int]], after: dict[str, tuple[str, int]]) -> str:
    """The points in per cent of those before, and the statuses that are others."""
    ratio = sum(p for _, p in after.values()) / sum(p for _, p in before.values())
    others = [f"{name}: {after[name][0]}" for name in before if after[name][0] != before[name][0]]
    moved = sum(after[name] != before[name] for name in before)
    return f"{100 * ratio:4.0f} %  {moved:2d} of {len(before)} differ  {'; '.join(others)}"


def main() -> None:
    parser = argparse.ArgumentParser(description="The numbers in the code.")
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--list", action="store_true", help="each number with its place")
    parser.add_argument("--perturb", metavar="METHOD", help="change each field and run the method")
    parser.add_argument("--problems", nargs="+", default=["Ex-CGP"], help="of the development set")
    parser.add_argument("--fields", default="", help="part of the names of the fields to change")
    arguments = parser.parse_args()
    if arguments.perturb:
        for line in perturb(arguments.perturb, arguments.problems, arguments.fields):
            print(line, flush=True)
        return
    root = arguments.root.resolve()
    if arguments.list:
        for path in files(root):
            for number in numbers(path, root):
                mark = "" if number.explained or number.kind == "inline" else "  (no source)"
                place = f"{number.path}:{number.line}"
                print(f"{place:<48} {number.kind:<7} {number.name} = {number.value}{mark}")
    print(counts(root))


if __name__ == "__main__":
    sys.exit(main())
