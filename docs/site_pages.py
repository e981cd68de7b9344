"""Pages of the site that are made when it is built: the gallery of `examples/`, and its notebooks.

They are written to `docs/gallery/` and `docs/notebooks/`, which are not part of the repository. Every
model is solved, and its picture drawn: the landscape of two unknowns, or the largest variable.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import hcmodel as hc
from hcmodel.report.canvas import BLUE, new_figure, plain_frame, saved
from hcmodel.report.landscape_figure import landscape_figure

DOCS = Path(__file__).resolve().parent
EXAMPLES = DOCS.parent / "examples"
# Entries of a matrix that are written into its picture, and what counts as 0 beside the largest.
MOST_NUMBERS, ROUNDING = 40, 1e-9
# Inches of the picture on a card.
SMALL = (3.6, 2.4)
# The sections of the gallery; a model that is in none of them stands in the last one.
GROUPS = {
    "Geometric programs": (
        "tank", "water_tank", "box_volume", "cantilever", "gate_sizing", "transformer", "power_control",
        "posynomial", "mixed",
    ),
    "Regulators": (
        "lqr", "lqr_energy", "lqr_direct", "lqr_discrete", "hinf", "lqr_decentralised",
    ),
    "Decision processes": (
        "cmdp", "exploration", "apprenticeship", "near_expert", "policy_value", "bellman",
        "stages",
    ),
    "Prices, portfolios, ratios": (
        "pricing", "logit", "nested_logit", "linear_demand", "sharpe", "kelly", "linear_fractional",
    ),
    "Other models": (),
}  # fmt: skip
# Python examples have the pictures of the pages that explain them.
PYTHON_PICTURES = {
    "grid_world": "application-mdp-grid.png",
    "lqr": "application-lqr.png",
    "tank": "landscape.png",
}


@dataclass(frozen=True)
class Example:
    """A model of the gallery: its file, the data that its comment names, its first sentence."""

    path: Path
    data: str | None
    title: str

    @property
    def command(self) -> str:
        data = f" --data {self.data}" if self.data else ""
        return f"hcmodel solve {self.path.name}{data}"


def examples() -> list[Example]:
    """The models of `examples/`, by name."""
    found = []
    for path in sorted(EXAMPLES.glob("*.hc")):
        text = path.read_text(encoding="utf-8")
        comment = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
        data = re.search(r"--data (\S+)", comment)
        sentence = re.split(r"(?<=[a-z0-9)])[.:](?:\s|$)", comment)[0]
        found.append(Example(path, data[1] if data else None, sentence))
    return found


def write() -> None:
    """Write gallery and notebooks; pages that are up to date are left alone."""
    gallery, notebooks = DOCS / "gallery", DOCS / "notebooks"
    for folder in (gallery, notebooks):
        folder.mkdir(exist_ok=True)
    for notebook in sorted((EXAMPLES / "notebooks").glob("*.ipynb")):
        target = notebooks / notebook.name
        if not target.exists() or target.read_bytes() != notebook.read_bytes():
            shutil.copy(notebook, target)
    cards = {}
    for example in examples():
        page = gallery / f"{example.path.stem}.md"
        newest = max(example.path.stat().st_mtime, Path(__file__).stat().st_mtime)
        if not page.exists() or page.stat().st_mtime < newest:
            page.write_text(_page(example, gallery), encoding="utf-8")
        cards[example.path.stem] = _card(
            example.path.stem, example.title, f"{example.path.stem}-small.png"
        )
    scripts = []
    for script in sorted((EXAMPLES / "python").glob("*.py")):
        name = f"python-{script.stem}"
        (gallery / f"{name}.md").write_text(_script(script), encoding="utf-8")
        picture = PYTHON_PICTURES.get(script.stem)
        scripts.append(_card(name, script.name, f"../pictures/{picture}" if picture else None))
    names = [example.path.stem for example in examples()]
    names += [f"python-{script.stem}" for script in sorted((EXAMPLES / "python").glob("*.py"))]
    (gallery / "index.md").write_text(_index(cards, scripts, names), encoding="utf-8")


def _index(cards: dict[str, str], scripts: list[str], names: list[str]) -> str:
    listed = "\n".join(names)
    sections = {title: [cards.pop(name) for name in group] for title, group in GROUPS.items()}
    sections[list(sections)[-1]] += list(cards.values())
    sections["In Python"] = scripts
    grids = "\n".join(f"## {title}\n\n{_grid(group)}" for title, group in sections.items())
    return f"""# Gallery

The models of `examples/`, solved when this site was built.

{grids}

```{{toctree}}
:hidden:

{listed}
```
"""


def _grid(cards: list[str]) -> str:
    return f"""::::{{grid}} 1 2 2 3
:gutter: 3

{"".join(cards)}
::::
"""


def _card(name: str, text: str, picture: str | None) -> str:
    image = f":img-top: {picture}\n" if picture else ""
    return f""":::{{grid-item-card}} {name.removeprefix("python-")}
:link: {name}
:link-type: doc
:class-card: example
{image}
{text}
:::
"""


def _page(example: Example, gallery: Path) -> str:
    """Solve and draw an example."""
    data = None if example.data is None else EXAMPLES / example.data
    problem = hc.load(example.path, data)
    problem.solve()
    assert problem.solution is not None
    _pictures(problem, gallery / example.path.stem)
    return f"""# {example.path.stem}

{example.title}.

```{{literalinclude}} ../../examples/{example.path.name}
:language: hc
```

```console
$ {example.command}
```

```text
{problem.solution}
```

![{example.title}]({example.path.stem}.png)
"""


def _script(script: Path) -> str:
    return f"""# {script.name}

```{{literalinclude}} ../../examples/python/{script.name}
:language: python
```
"""


def _pictures(problem: hc.Problem, stem: Path) -> None:
    """The picture of the page, and one for the card, with few and large letters.

    The landscape where there are two unknowns, else the variable with the most entries.
    """
    page, card = (stem.with_name(f"{stem.name}{ending}.png") for ending in ("", "-small"))
    if problem.model.layout.size != 2:
        _drawn(problem, page, small=False)
        _drawn(problem, card, small=True)
        return
    land = problem.landscape(points=80)
    landscape_figure(land, page)
    figure = new_figure(*SMALL)
    panels = np.atleast_1d(figure.subplots(1, 1 if land.images is None else 2))
    landscape_figure(land, ax=panels)
    for axes in panels:
        axes.set(title="", xticks=[], yticks=[])
    saved(figure, card)


def _drawn(problem: hc.Problem, path: Path, small: bool) -> None:
    solution = problem.solution
    assert solution is not None
    name, values = max(solution.point.items(), key=lambda pair: pair[1].size)
    figure = new_figure(*(SMALL if small else (6.2, 4.0)))
    axes = figure.subplots()
    if problem.model.layout.size == 1:
        name = "the objective"
        _curve(axes, problem)
    elif values.size == 1:
        name = "the variables"
        numbers = [float(each) for each in solution.point.values()]
        axes.bar(list(solution.point), numbers, color=BLUE, width=0.7)
        plain_frame(axes)
    elif values.ndim == 2:
        _matrix(figure, axes, values, small)
    else:
        flat = np.atleast_1d(values).reshape(-1)
        axes.bar(np.arange(1, flat.size + 1), flat, color=BLUE, width=0.8)
        axes.axhline(0, color="black", linewidth=0.6)
        axes.locator_params(axis="x", integer=True)
        axes.set_xlabel("entry")
        plain_frame(axes)
    status = solution.status.value.replace("_", " ")
    title = name if small else f"{name} at the solution ({status}, value {solution.value:.5g})"
    axes.set_title(title, fontsize=11)
    saved(figure, path)


def _curve(axes: Any, problem: hc.Problem) -> None:
    """The objective of one unknown over its bounds, and the solution."""
    (variable,) = problem.variables
    assert variable.value is not None
    best = float(variable.value)
    places = np.linspace(float(variable.lower), float(variable.upper), 200)
    values = []
    for place in places:
        variable.value = place
        values.append(float(problem.objective.expression.value))
    variable.value = best
    axes.plot(places, values, color=BLUE)
    axes.plot(best, problem.value, marker="*", markersize=15, color="#D55E00")
    axes.set_xlabel(variable.name)
    plain_frame(axes)


def _matrix(figure: Any, axes: Any, values: Any, small: bool) -> None:
    """A matrix in colours, with its numbers where there are few."""
    largest = float(np.abs(values).max()) or 1.0
    negative = bool((values < 0).any())
    lowest, colours = (-largest, "PuOr") if negative else (0.0, "Blues")
    shown = axes.imshow(values, cmap=colours, vmin=lowest, vmax=largest, aspect="auto")
    if not small:
        figure.colorbar(shown, ax=axes)
    axes.set_xticks(range(values.shape[1]), range(1, values.shape[1] + 1))
    axes.set_yticks(range(values.shape[0]), range(1, values.shape[0] + 1))
    if values.size <= MOST_NUMBERS and not (small and values.shape[1] > 3):
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if abs(value) > 0.6 * largest else "black"
            text = "0" if abs(value) <= ROUNDING * largest else f"{value:.3g}"
            axes.text(column, row, text, ha="center", va="center", color=colour)
