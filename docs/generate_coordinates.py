"""Write the catalogue of docs/coordinates.md from the table of maps."""

from __future__ import annotations

import inspect
import sys

from regions import main, table

from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.map import Map

PAGE = "coordinates.md"


def regions() -> dict[str, str]:
    """The bodies of the page's regions: the table, and a section for each map."""
    rows = [(f"[{each.name}](#{each.name})", each.summary, each.literature) for each in MAPS]
    header = ("map", "new variables and the way back", "literature")
    return {"maps": table(header, rows), "sections": "\n\n".join(_section(each) for each in MAPS)}


def _section(each: Map) -> str:
    """The name, the words that open the map's file, and the model that it proves."""
    text = inspect.cleandoc(inspect.getmodule(type(each)).__doc__ or "")
    lines = [f"## {each.name}", "", text]
    if each.example:
        link = f"[`examples/{each.example}`](../examples/{each.example})"
        lines += ["", f"Model that it proves: {link}. Literature: {each.literature}."]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main(PAGE, regions))
