"""Write the layers of docs/architecture.md from the contracts of import-linter in pyproject.toml."""

from __future__ import annotations

import sys
import textwrap
import tomllib

from regions import HERE, main

PAGE = "architecture.md"
WIDTH = 112


def regions() -> dict[str, str]:
    """The body of the page's region: one chain of layers, from high to low, for each contract."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    chains = [
        f"{container.rpartition('.')[2] + ':':<9} {' > '.join(contract['layers'])}"
        for contract in contracts
        if contract["type"] == "layers"
        for container in contract["containers"]
    ]
    lines = [_filled(each) for each in chains]
    return {"layers": "\n".join(["```text", *lines, "```"])}


def _filled(chain: str) -> str:
    """A chain on several lines; the packages of one layer stay together, and lines begin with `>`."""
    together = chain.replace(" | ", "\0|\0").replace("> ", ">\0")
    filled = textwrap.fill(together, WIDTH, subsequent_indent=" " * 8)
    return filled.replace("\0", " ")


if __name__ == "__main__":
    sys.exit(main(PAGE, regions))
