"""The HTML report: one file that needs nothing else, with model, analysis, pictures, result and tables.

All text of the model goes through `escape`, whatever its names are. Styles and script are those of
`page.css` and `page.js`, written into the page.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.records import dataclass
from hcmodel.report.analysis import logarithms
from hcmodel.report.canvas import matplotlib_installed
from hcmodel.report.convergence import convergence, shown_gap
from hcmodel.report.elasticities import Elasticity
from hcmodel.report.landscape_figure import landscape_figure
from hcmodel.report.mathml import constraint_mathml, model_mathml
from hcmodel.report.text import counted
from hcmodel.report.versions import versions
from hcmodel.report.words import certificate_words

if TYPE_CHECKING:
    from hcmodel.analysis.analyze import Analysis
    from hcmodel.analysis.landscape import Landscape
    from hcmodel.expressions.model import Model
    from hcmodel.solving.solution import Solution

# Numbers below this share of the largest in their column are shown as 0.
ROUNDING = 1e-12
# Rows of a table; the JSON output has all of them.
MOST_ROWS = 3000
GOOD, BAD = ("optimal",), ("infeasible", "unbounded", "solver_error")
SAID = ("optimal", "infeasible")
Cell = tuple[str, float | None]


class Markup(str):
    """Text of a cell that is HTML already; all other text is escaped."""

    __slots__ = ()


@dataclass(frozen=True)
class Page:
    """What a report shows."""

    title: str
    model: Model
    source: str | None
    constraint_names: Sequence[str]
    solution: Solution
    analysis: Analysis
    hidden_model: Model | None = None
    """The model in hidden coordinates, where these are new variables."""
    landscape: Landscape | None = None
    elasticities: tuple[Elasticity, ...] = ()
    parameters: tuple[tuple[str, float, float, float], ...] = ()
    """Of each entry of a parameter: name, value, dV/dp, per cent per per cent."""
    relaxation: str | None = None
    first_index: int = 0


def page_html(page: Page) -> str:
    """The report as the text of one HTML file."""
    sections = [
        ("result", "Result", _result(page)),
        ("conflict", "Why it is infeasible", _conflict(page)),
        ("model", "Model", _model(page)),
        ("analysis", "Analysis", _analysis(page)),
        ("pictures", "Pictures", _pictures(page)),
        ("variables", "Variables", _variables(page)),
        ("constraints", "Constraints", _constraints(page)),
        ("parameters", "Parameters", _parameters(page)),
        ("run", "Run", _run(page)),
        ("environment", "Environment", _environment()),
    ]
    shown = [(name, title, body) for name, title, body in sections if body]
    links = " ".join(f'<a href="#{name}">{title}</a>' for name, title, _ in shown)
    bodies = "\n".join(
        f'<section id="{name}"><h2>{title}</h2>\n{body}\n</section>' for name, title, body in shown
    )
    status = page.solution.status.value
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="data:,">
<title>{escape(page.title)}: {escape(status)}</title>
<style>
{_asset("page.css")}</style>
</head>
<body>
<header class="top"><div><h1>{escape(page.title)}</h1>{_badge(status)}</div>
<button id="theme" type="button" aria-label="switch between light and dark">light / dark</button></header>
<main>
<nav aria-label="sections">{links}</nav>
{bodies}
</main>
<footer>Written by hcmodel {escape(versions()["hcmodel"])}.</footer>
<script>
{_asset("page.js")}</script>
</body>
</html>
"""


def _asset(name: str) -> str:
    return files("hcmodel.report").joinpath(name).read_text(encoding="utf-8")


def _badge(status: str) -> str:
    kind = "good" if status in GOOD else "bad" if status in BAD else "warn"
    return f'<span class="badge {kind}">{escape(status.replace("_", " "))}</span>'


# ---- sections -----------------------------------------------------------------------------------


def _result(page: Page) -> str:
    solution, certificate = page.solution, page.solution.certificate
    figures: list[tuple[str, str]] = []
    if solution.value is not None and np.isfinite(solution.value):
        figures.append((f"{solution.value:.10g}", "value"))
    if certificate.gap is not None:
        figures.append((_small(shown_gap(solution)), f"certified gap ({certificate.kind})"))
    if certificate.lower_bound is not None:
        side = "upper" if page.model.sign < 0 else "lower"
        figures.append((f"{certificate.lower_bound:.10g}", f"certified {side} bound"))
    if certificate.violation is not None:
        figures.append((_small(certificate.violation), "largest violation"))
    if certificate.stationarity is not None:
        figures.append((_small(certificate.stationarity), "KKT residual"))
    boxes = "".join(
        f"<div><b>{escape(big)}</b><span>{escape(small)}</span></div>" for big, small in figures
    )
    words = [certificate_words(solution)]
    if solution.status.value not in SAID:  # the certificate in words says the same
        words.append(f"{solution.message[:1].upper()}{solution.message[1:]}.")
    lines = "".join(f"<p>{escape(each)}</p>" for each in words if each)
    conditions = _list("Conditions", certificate.conditions or ())
    return f'<div class="figures">{boxes}</div>{lines}{conditions}'


def _conflict(page: Page) -> str:
    solution = page.solution
    if not solution.conflict and page.relaxation is None:
        return ""
    parts = _list("These rows and bounds cannot hold together", solution.conflict)
    if page.relaxation is not None:
        parts += f"<h3>What would make it feasible</h3><pre>{escape(page.relaxation)}</pre>"
    return parts


def _model(page: Page) -> str:
    parts = f'<div class="formula">{model_mathml(page.model)}</div>'
    if page.first_index == 0 and any(each.shape for each in page.model.variables):
        parts += (
            '<p class="note">Formulas count entries from 1, as mathematics does; tables count them '
            "from 0, as Python does.</p>"
        )
    if page.source:
        parts += f"<h3>Source</h3><pre>{_highlighted(page.source)}</pre>"
    return parts


def _analysis(page: Page) -> str:
    analysis = page.analysis
    parts = f"<p><b>{escape(analysis.verdict)}</b>: {escape(_verdict(analysis))}</p>"
    parts += _list("Coordinates", _coordinates(analysis.coordinates))
    parts += _list("Conditions", analysis.conditions)
    if analysis.failure is not None:
        why = escape(str(analysis.failure))
        parts += f'<h3>What keeps it from a proof</h3><pre class="wrap">{why}</pre>'
    parts += _list("Coordinates that were tried", analysis.near_misses)
    if analysis.model is not None:
        parts += "<h3>The model in hidden coordinates</h3>"
        if page.hidden_model is not None:
            parts += f'<div class="formula">{model_mathml(page.hidden_model)}</div>'
        parts += f"<pre>{_highlighted(analysis.model)}</pre>"
    elif analysis.coordinates and analysis.verdict == "proven":
        names = logarithms(analysis)
        if names:
            parts += "<h3>The model in hidden coordinates</h3>"
            parts += f'<div class="formula">{model_mathml(page.model, names)}</div>'
    if analysis.derivation is not None:
        parts += (
            '<h3>Derivation</h3><p class="tools"><button type="button" data-tree="open">open all</button>'
            '<button type="button" data-tree="close">close all</button></p>'
        )
        parts += _tree(analysis.derivation.splitlines())
    return parts


def _verdict(analysis: Analysis) -> str:
    return {
        "proven": "the model is convex in the coordinates below, so every local optimum is a global one.",
        "refuted": "a counterexample shows that the model is not hidden convex.",
    }.get(analysis.verdict, "no proof was found, and no counterexample.")


def _coordinates(coordinates: Mapping[str, str]) -> list[str]:
    return [text if name in text else f"{name} = {text}" for name, text in coordinates.items()]


def _pictures(page: Page) -> str:
    if not matplotlib_installed():
        return "<p>Pictures need matplotlib: <code>pip install 'hcmodel[plot]'</code></p>"
    figures = [_svg(convergence(page.solution), "run")]
    if page.landscape is not None:
        figures.insert(0, _svg(landscape_figure(page.landscape), "landscape"))
    return "".join(f'<div class="picture">{figure}</div>' for figure in figures)


def _variables(page: Page) -> str:
    solution = page.solution
    rows: list[list[Cell]] = []
    variables = {variable.name: variable for variable in page.model.variables}
    for values, variable in ((each, variables[name]) for name, each in solution.point.items()):
        duals = solution.bound_duals.get(variable.name)
        lower, upper = (
            np.broadcast_to(end, variable.shape) for end in (variable.lower, variable.upper)
        )
        for index in np.ndindex(variable.shape):
            name = _entry(variable.name, index, page.first_index)
            both = [0.0, 0.0] if duals is None else [duals.lower[index], duals.upper[index]]
            dual = max(both, key=abs)
            value = _beside(values[index], values)
            numbers = [value, lower[index], upper[index], _tiny(dual, solution)]
            rows.append([(name, None), *(_number(each) for each in numbers)])
    return _table(["variable", "value", "lower", "upper", "dual of bound"], rows)


def _constraints(page: Page) -> str:
    solution = page.solution
    words = {each.row: each for each in page.elasticities}
    rows: list[list[Cell]] = []
    for name, constraint in zip(page.constraint_names, page.model.constraints, strict=True):
        dual = solution.duals.get(name)
        formula = Markup(f'<div class="row">{constraint_mathml(constraint)}</div>')
        if dual is None:
            rows.append([(name, None), (formula, None), ("", None), ("", None)])
            continue
        for index in np.ndindex(dual.shape):
            row = _entry(name, index, page.first_index)
            effect = words.get((name, index))
            rows.append(
                [
                    (row, None),
                    (formula, None),
                    _number(_tiny(dual[index], solution)),
                    ("", None) if effect is None else (effect.short, effect.share),
                ]
            )
    table = _table(["constraint", "as written", "dual", "relaxing by 1 %"], rows)
    said = [each.words for each in page.elasticities[:5]]
    return _list("What matters most", said) + table


def _parameters(page: Page) -> str:
    slopes = [each[2] for each in page.parameters]
    shares = [each[3] for each in page.parameters]
    rows = [
        [(name, None), *map(_number, (at, _beside(slope, slopes), _beside(share, shares)))]
        for name, at, slope, share in page.parameters
    ]
    titles = ["parameter", "value", "d value / d parameter", "% per %"]
    return _table(titles, rows)


def _run(page: Page) -> str:
    solution = page.solution
    calls = solution.oracle_calls
    entries = {
        "method": solution.method,
        "engine": solution.engine,
        "termination": solution.termination.value,
        "iterations": str(solution.iterations),
        "oracle calls": f"{calls.total} ({calls.objective} objective, {calls.constraints} constraints) "
        f"at {counted(calls.points, 'point')}, {counted(calls.hessians, 'Hessian')}",
        "time": f"{solution.solve_seconds:.3g} s, compiled in {solution.compile_seconds:.2g} s",
    }
    return _pairs(entries)


def _environment() -> str:
    return _pairs({key: text for key, text in versions().items() if key != "executable"})


# ---- parts --------------------------------------------------------------------------------------


def _pairs(entries: Mapping[str, str]) -> str:
    rows = "".join(f"<tr><th>{escape(k)}</th><td>{escape(v)}</td></tr>" for k, v in entries.items())
    return f'<table class="pairs">{rows}</table>'


def _list(title: str, entries: Iterable[str]) -> str:
    items = "".join(f"<li>{escape(entry)}</li>" for entry in entries)
    return f"<h3>{escape(title)}</h3><ul>{items}</ul>" if items else ""


def _entry(name: str, index: tuple[int, ...], first: int) -> str:
    return name + (f"[{', '.join(str(first + place) for place in index)}]" if index else "")


def _small(number: float) -> str:
    return "0" if number == 0 else f"{number:.1e}"


def _number(value: Any) -> Cell:
    number = float(value)
    if np.isnan(number):
        return ("", None)
    text = {np.inf: "∞", -np.inf: "−∞"}.get(number, f"{number:.7g}")
    return (text, number)


def _beside(number: Any, others: Any) -> float:
    """A number; 0 where it is rounding beside the largest of the others."""
    sizes = np.abs(np.asarray(others, dtype=float))
    largest = float(np.max(sizes[np.isfinite(sizes)], initial=0.0))
    return 0.0 if abs(number) <= ROUNDING * largest else float(number)


def _tiny(dual: Any, solution: Solution) -> float:
    """A dual; 0 where it is rounding beside the value."""
    size = 1e-9 * max(abs(solution.value or 0.0), 1.0)
    return 0.0 if abs(dual) < size else float(dual)


def _table(titles: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    """A table that sorts and filters; numbers sort by value and stand at the right."""
    if not rows:
        return ""
    numeric = [any(row[i][1] is not None for row in rows) for i in range(len(titles))]
    marks = [' class="number"' if each else "" for each in numeric]
    head = "".join(f"<th{m}>{escape(t)}</th>" for m, t in zip(marks, titles, strict=True))
    body = "\n".join(
        "<tr>"
        + "".join(_cell(*cell, mark) for cell, mark in zip(row, marks, strict=True))
        + "</tr>"
        for row in rows[:MOST_ROWS]
    )
    left = len(rows) - MOST_ROWS
    more = f" The first {MOST_ROWS} of {len(rows)} rows." if left > 0 else ""
    return (
        '<div class="tools"><input type="search" placeholder="filter" aria-label="filter the table">'
        f'<span class="count">{counted(min(len(rows), MOST_ROWS), "row")}</span>{more}</div>'
        f'<div class="long"><table class="sortable"><thead><tr>{head}</tr></thead>'
        f"<tbody>\n{body}\n</tbody></table></div>"
    )


def _cell(text: str, number: float | None, mark: str) -> str:
    value = "" if number is None else f' data-value="{_plain(number)}"'
    return f"<td{mark}{value}>{text if isinstance(text, Markup) else escape(text)}</td>"


def _plain(number: float) -> str:
    """A number as JavaScript reads it."""
    return {np.inf: "Infinity", -np.inf: "-Infinity"}.get(number, repr(number))


def _tree(lines: list[str]) -> str:
    """Indented lines as nested `details`; the first level is open."""
    lines = [line for line in lines if line.strip()]
    depths = [len(line) - len(line.lstrip()) for line in lines]
    parts: list[str] = []
    open_at: list[int] = []
    for number, (line, depth) in enumerate(zip(lines, depths, strict=True)):
        while open_at and open_at[-1] >= depth:
            open_at.pop()
            parts.append("</details>")
        text, bracket, fact = line.strip().partition("    [")
        label = escape(text) + (f' <span class="fact">[{escape(fact)}</span>' if bracket else "")
        if number + 1 < len(lines) and depths[number + 1] > depth:
            state = " open" if not open_at else ""
            parts.append(f'<details class="tree"{state}><summary>{label}</summary>')
            open_at.append(depth)
        else:
            parts.append(f'<div class="leaf">{label}</div>')
    return "".join(parts) + "</details>" * len(open_at)


WORDS = re.compile(
    r"(?P<c>\#[^\n]*)|(?P<k>\b(?:var|param|set|let|minimize|maximize|subject to|hidden|start|in|for|if|"
    r"symmetric|psd|simplex)\b)|(?P<f>\b[a-z_]\w*(?=\())|(?P<n>\b\d+(?:\.\d+)?(?:e[+-]?\d+)?\b)"
)


def _highlighted(source: str) -> str:
    """A model in the language, with keywords, functions, numbers and comments marked."""
    parts, end = [], 0
    for found in WORDS.finditer(source):
        parts.append(escape(source[end : found.start()]))
        parts.append(f'<span class="{found.lastgroup}">{escape(found[0])}</span>')
        end = found.end()
    return "".join(parts) + escape(source[end:])


def _svg(figure: Any, prefix: str) -> str:
    """A figure as SVG inside of a page: names of its parts are made its own."""
    import matplotlib

    file = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": prefix, "svg.fonttype": "path"}):
        figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = text[text.index("<svg") :]
    return re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{prefix}-", text)
