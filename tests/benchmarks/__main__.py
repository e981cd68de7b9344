"""`python -m tests.benchmarks NAME …` runs a benchmark; without a name it lists them."""

from __future__ import annotations

import ast
import runpy
import sys
from pathlib import Path

HERE = Path(__file__).parent


def names() -> dict[str, str]:
    """Each benchmark and the first line of what it says of itself."""
    found = {}
    for path in sorted(HERE.glob("*.py")):
        text = path.read_text("utf-8")
        if not path.name.startswith("_") and '__name__ == "__main__"' in text:
            found[path.stem] = (ast.get_docstring(ast.parse(text)) or "").split("\n")[0]
    return found


def main(arguments: list[str]) -> int:
    known = names()
    if not arguments or arguments[0] not in known:
        if arguments:
            print(f"there is no benchmark {arguments[0]!r}; there are:", file=sys.stderr)
        for name, about in known.items():
            print(f"{name:16} {about}")
        return 2 if arguments else 0
    sys.argv = arguments
    runpy.run_module(f"tests.benchmarks.{arguments[0]}", run_name="__main__", alter_sys=False)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
