"""Write the tables of docs/methods.md from the method table of hcmodel.solvers."""

from __future__ import annotations

import ast
import inspect
import sys
import textwrap
from dataclasses import fields, is_dataclass
from typing import Any

from regions import main, table

from hcmodel.report.show import AUTO
from hcmodel.solvers import METHODS
from hcmodel.solvers.qp import BACKENDS, CONE_BACKENDS
from hcmodel.solvers.second_order.cone_method import ConeMethodOptions

PAGE = "methods.md"


def regions() -> dict[str, str]:
    """The bodies of the page's regions: the methods, and their options."""
    name, *about = AUTO
    rows = [(_linked(name), *about, "ours")]
    rows += [
        (_linked(entry.name), entry.summary, entry.assumptions, entry.complexity, entry.reference)
        for entry in METHODS.values()
    ]
    header = ("method", "what it is", "assumes", "oracle calls to accuracy ε", "reference")
    return {"methods": table(header, rows), "options": _options()}


def _linked(name: str) -> str:
    """A method's name as a link to its page."""
    return f"[`{name}`](method-{name}.md)"


def _options() -> str:
    """Each option once for every default and meaning that it has, with the methods that share it."""
    users: dict[tuple[str, str, str], list[str]] = {}
    for entry in METHODS.values():
        explained = _explained(entry.options)
        for field in fields(entry.options):
            value = getattr(entry.options(), field.name)
            default = f"{type(value).__name__}()" if is_dataclass(value) else repr(value)
            key = (f"`{field.name}`", f"`{default}`", explained.get(field.name, ""))
            users.setdefault(key, []).append(f"`{entry.name}`")
    body = [(*about, ", ".join(names)) for about, names in users.items()]
    return table(("option", "default", "meaning", "methods"), body)


def _explained(options: type[Any]) -> dict[str, str]:
    """The string under each field of a dataclass and of those it extends."""
    found = {"backend": f"The QP solver; there are: {', '.join(sorted(BACKENDS))}."}
    if options is ConeMethodOptions:
        found = {"backend": f"The cone solver; there are: {', '.join(sorted(CONE_BACKENDS))}."}
    for kind in reversed(options.__mro__[:-1]):
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        assert isinstance(tree, ast.ClassDef)
        for field, below in zip(tree.body, tree.body[1:], strict=False):
            if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
                continue
            if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
                found[field.target.id] = inspect.cleandoc(str(below.value.value))
    return found


if __name__ == "__main__":
    sys.exit(main(PAGE, regions))
