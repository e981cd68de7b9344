"""Pages with generated regions: hand-written Markdown around what a script writes.

A region stands between `<!-- generated: NAME -->` and `<!-- end: NAME -->`. `python docs/generate_X.py`
rewrites the regions of its page; with `--check` it writes nothing and fails if the page would change.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

HERE = Path(__file__).parent


def filled(text: str, regions: Mapping[str, str]) -> str:
    """`text` with the body of each named region replaced."""
    for name, body in regions.items():
        begin, end = f"<!-- generated: {name} -->\n", f"<!-- end: {name} -->\n"
        if text.count(begin) != 1 or text.count(end) != 1:
            raise ValueError(f"the page needs the region '{name}' exactly once")
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}\n{body.strip()}\n\n{end}{after}"
    return text


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(escaped(cell) for cell in line) + " |" for line in lines)


def escaped(cell: str) -> str:
    """A cell in which bars end no column and stars outside code start no emphasis."""
    parts = cell.replace("|", "\\|").replace("\n", " ").split("`")
    return "`".join(part if i % 2 else part.replace("*", "\\*") for i, part in enumerate(parts))


def main(page: str, regions: Callable[[], Mapping[str, str]]) -> int:
    """The command line of a generator."""
    path = HERE / page
    old = path.read_text(encoding="utf-8")
    new = filled(old, regions())
    if "--check" in sys.argv[1:]:
        if new != old:
            print(f"{page} is out of date: run its generator and commit the page", file=sys.stderr)
        return int(new != old)
    path.write_text(new, encoding="utf-8")
    return 0
