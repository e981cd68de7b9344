"""What is known of a set is said in its class: no ladder over kinds of sets stands anywhere else."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hcmodel.expressions import variable_sets
from hcmodel.expressions.variable_sets import VariableSet
from hcmodel.solvers.sets.domain import Domain

ROOT = Path(__file__).parents[3]
# The text of the attribute that variables once had, written so that this file does not contain it.
FORMER_ATTRIBUTE = "_".join(("domain", "kind"))


def domain_classes() -> set[str]:
    folder = ROOT / "solvers" / "sets"
    found = set()
    for path in folder.glob("*.py"):
        module = importlib.import_module(f"hcmodel.solvers.sets.{path.stem}")
        classes = inspect.getmembers(module, inspect.isclass)
        found |= {name for name, kind in classes if issubclass(kind, Domain)}
    return found


def set_classes() -> set[str]:
    classes = inspect.getmembers(variable_sets, inspect.isclass)
    return {name for name, kind in classes if issubclass(kind, VariableSet)}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        # hcmodel/grammar and hcmodel/solvers are links to the folders of the top level
        for path in (ROOT / folder).rglob("*.py"):
            if not {("hcmodel", "grammar"), ("hcmodel", "solvers")} & {
                path.relative_to(ROOT).parts[:2]
            }:
                yield path


def checked_classes(text: str) -> Iterator[str]:
    """The names in the second argument of `isinstance`, and those that `type(...)` is compared with."""
    for node in ast.walk(ast.parse(text)):
        compared: list[ast.expr] = []
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "isinstance":
            compared = [node.args[1]]
        elif isinstance(node, ast.Compare) and "type(" in ast.unparse(node.left):
            compared = node.comparators
        elif isinstance(node, ast.MatchClass):
            compared = [node.cls]
        for part in compared:
            for name in ast.walk(part):
                if isinstance(name, (ast.Name, ast.Attribute)):
                    yield name.id if isinstance(name, ast.Name) else name.attr


def test_the_classes_are_found() -> None:
    assert {"Box", "LogBox", "Product", "Simplices", "BoundedMatrices"} <= domain_classes()
    assert {"BoxSet", "SimplexSet", "SymmetricSet", "SemidefiniteSet"} <= set_classes()


def test_no_code_outside_the_sets_asks_which_class_a_set_has() -> None:
    classes = (domain_classes() | set_classes()) - {"Domain", "VariableSet"}
    own = (ROOT / "solvers" / "sets", ROOT / "hcmodel" / "expressions" / "variable_sets.py")
    named = re.compile(rf"\b({'|'.join(sorted(classes))})\b")
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("hcmodel", "solvers", "examples", "docs")
        if not any(path.is_relative_to(place) for place in own)
        and named.search(path.read_text())  # else a tree would be made for nothing
        for name in checked_classes(path.read_text())
        if name in classes
    ]
    assert not found


@pytest.mark.parametrize("folder", ["hcmodel", "solvers", "grammar", "tests", "docs", "examples"])
def test_variables_have_sets_and_no_kinds(folder: str) -> None:
    files = [*sources(folder), *(ROOT / folder).rglob("*.md")]
    assert [str(path) for path in files if FORMER_ATTRIBUTE in path.read_text()] == []
