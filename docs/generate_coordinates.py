"""Write the catalogue of docs/coordinates.md from the table of maps.

Each map has a section: the words that open its file, its literature, and its example, solved here.
"""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import regions as pages

import hcmodel as hc
from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.map import Map

PAGE = "coordinates.md"
EXAMPLES = Path(__file__).parents[1] / "examples"

GROUPS = {
    "Control": ("product", "covariances", "riccati", "cost-equation", "implicit"),
    "Decision processes": ("occupancy", "stages", "adjoint", "determined", "gain-bias"),
    "Ratios": ("fractional", "homogeneous", "levels", "differences", "perspective", "bounded"),
    "Prices": ("monotone", "shares", "nests"),
    "Geometry, structures and statistics": (
        *("inverse", "normalised", "triangular", "factors", "compliance"),
    ),
    "Ways of writing": (
        *("identity", "entries", "positive", "distributions", "matrices", "defined"),
        *("inverse-pairs", "outer", "roots", "schur", "denominators", "log-rows"),
    ),
}


def regions() -> dict[str, str]:
    """The bodies of the page's regions: a table, and a section for each map, by group."""
    known = {each.name: each for each in MAPS}
    listed = [name for names in GROUPS.values() for name in names]
    if sorted(listed) != sorted(known):
        raise ValueError(f"each map belongs to one group: {set(listed) ^ set(known)}")
    header = ("map", "new variables and the way back", "literature")
    tables, sections = [], []
    for group, names in GROUPS.items():
        maps = [known[name] for name in names]
        rows = [(f"[{each.name}](#{each.name})", each.summary, each.literature) for each in maps]
        tables.append(f"**{group}**\n\n{pages.table(header, rows)}")
        sections.append("\n\n".join([f"## {group}", *map(_section, maps)]))
    return {"maps": "\n\n".join(tables), "sections": "\n\n".join(sections)}


def _section(each: Map) -> str:
    """The name, the words that open the map's file, its literature, and a model that it solves."""
    text = _public(inspect.cleandoc(inspect.getmodule(type(each)).__doc__ or ""))
    parts = [f"### {each.name}", text, f"**Literature:** {each.literature}.", _example(each)]
    return "\n\n".join(parts)


def _public(text: str) -> str:
    """The words of a file without its pointers to private modules, other maps as links."""
    names = {inspect.getmodule(type(each)).__name__.split(".")[-1]: each.name for each in MAPS}

    def linked(found: re.Match[str]) -> str:
        name = names.get(found["name"], found["name"].replace("_", "-"))
        return f"{found['open']}[{name}](#{name}){found['close']}"

    private = [path.stem for path in Path(inspect.getfile(Map)).parent.rglob("*.py")]
    maps = "|".join({*names, *(each.name for each in MAPS)})
    text = re.sub(rf"(?P<open>)`(?P<name>{maps})`(?P<close>)", linked, text)
    text = re.sub(r" \(`[\w.]+`\)", "", text)
    left = [name for name in private if f"`{name}`" in text]
    if left:
        raise ValueError(f"the page would name private modules: {left}")
    return text


def _example(each: Map) -> str:
    """A model that the map proves, and what comes out."""
    written = "\n" in each.example
    text = inspect.cleandoc(each.example) + "\n"
    data = (EXAMPLES / each.example).with_suffix(".json") if not written else None
    if data is None:
        problem = hc.parse(text)
        shown = f"**A model that it solves:**\n\n```hc\n{text}```"
    else:
        problem = hc.load(EXAMPLES / each.example, data=data if data.exists() else None)
        link = f"[`examples/{each.example}`](../examples/{each.example})"
        shown = f"**A model that it solves:** {link}"
    value = problem.solve()
    forms = problem.forms()
    form, substitution = forms.hidden(), forms.discovery.substitution
    used = [step.name for step in substitution.steps] if substitution is not None else []
    if problem.status != "optimal" or form is None or form.proof is None or each.name not in used:
        raise ValueError(f"{each.name} does not prove its example: {problem.status}, {used}")
    *first, last = [f"[{name}](#{name})" for name in dict.fromkeys(used)]
    chain = f"{', '.join(first)} and {last}" if first else last
    names = ", ".join(f"`{name}`" for name in form.coordinate_names())
    result = f"Result: `optimal`, value {value:.4g}, by {chain}, proven convex in {names}."
    return f"{shown}\n\n{result}"


if __name__ == "__main__":
    sys.exit(pages.main(PAGE, regions))
