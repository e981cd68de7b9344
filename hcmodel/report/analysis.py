"""An analysis as text, JSON and HTML: the verdict first, then what it rests on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from html import escape
from typing import TYPE_CHECKING, Any

from hcmodel.expressions.leaves import Constant, Expression
from hcmodel.expressions.model import Model
from hcmodel.expressions.printing import infix
from hcmodel.expressions.sparse_data import any_nonzero
from hcmodel.grammar.diagnostics import Diagnostic, render
from hcmodel.report.json import plain
from hcmodel.report.mathml import model_mathml
from hcmodel.report.text import short_array

if TYPE_CHECKING:
    from hcmodel.analysis.analyze import Analysis
    from hcmodel.analysis.counterexample import Counterexample

MEANING = {
    "proven": "the model is convex in the coordinates below, so every KKT point is a global optimum",
    "refuted": "the counterexample below shows that the model is not hidden convex",
    "not refuted": "no proof was found, and no counterexample",
}
UNDER_THE_MAP = (
    "the counterexample below shows that the model is not convex in the declared coordinates"
)
SYMBOLS = {
    "mu_c": "μ_c, how much the map stretches at least",
    "diameter_u": "D_U, diameter in hidden coordinates",
    "diameter_x": "D_X, diameter of X",
    "rho": "ρ, weak convexity",
    "L": "L, smoothness",
    "G": "G, bound of the gradients",
}


def analysis_text(analysis: Analysis, filename: str | None = None) -> str:
    """The report; `filename` is where a place in the model's text is said to be."""
    lines = [f"verdict       {analysis.verdict}: {_meaning(analysis)}"]
    lines += _listed("coordinates", [_coordinate(*pair) for pair in analysis.coordinates.items()])
    if analysis.samples:
        lines.append(f"samples       {analysis.samples}")
    if analysis.smallest_eigenvalue is not None and analysis.counterexample is None:
        lines.append(f"curvature     {analysis.smallest_eigenvalue:.1e} (the least seen, relative)")
    lines += _listed("condition", list(analysis.conditions))
    if analysis.counterexample is not None:
        lines += ["", "counterexample", *_indented(_counterexample(analysis.counterexample))]
    if analysis.failure is not None:
        lines += ["", "what keeps it from a proof", *_indented(_failure(analysis, filename))]
    if analysis.near_misses:
        lines += ["", "coordinates that were tried", *_indented(list(analysis.near_misses))]
    if analysis.model is not None:
        lines += ["", "model in these coordinates", *_indented(analysis.model.splitlines())]
    if analysis.derivation is not None:
        lines += ["", "derivation", *_indented(analysis.derivation.splitlines())]
    constants = _known_constants(analysis)
    if constants:
        lines += ["", "constants"]
        for name, value in constants.items():
            label = analysis.labels.get(name, "")
            lines.append(
                f"    {name:<11} {value:<12.6g} {label:<9} {SYMBOLS.get(name, '')}".rstrip()
            )
    return "\n".join(lines)


def analysis_html(analysis: Analysis) -> str:
    """A small table for notebooks."""
    rows = [("verdict", f"{analysis.verdict}: {_meaning(analysis)}")]
    rows.append(("coordinates", ", ".join(analysis.coordinates.values()) or "unknown"))
    rows += [("condition", condition) for condition in analysis.conditions]
    if analysis.counterexample is not None:
        rows.append(("counterexample", "\n".join(_counterexample(analysis.counterexample))))
    if analysis.failure is not None:
        rows.append(("what keeps it from a proof", str(analysis.failure)))
    if analysis.near_misses:
        rows.append(("coordinates that were tried", "\n".join(analysis.near_misses)))
    formula = _formula(analysis)
    if analysis.model is not None:
        rows.append(("model in these coordinates", analysis.model))
    if analysis.derivation is not None:
        rows.append(("derivation", analysis.derivation))
    for name, value in _known_constants(analysis).items():
        rows.append((name, f"{value:.6g} ({analysis.labels.get(name, '')})"))
    cells = "".join(
        f'<tr><th style="text-align:left; vertical-align:top; padding-right:1em">{escape(key)}</th>'
        f'<td style="text-align:left">{_folded(key, text)}</td></tr>'
        for key, text in rows
    )
    return f"<table>{cells}</table>{formula}"


def _formula(analysis: Analysis) -> str:
    """The model in logarithms, typeset, where some coordinates are logarithms."""
    names = logarithms(analysis)
    if not names or analysis.written is None or analysis.model is not None:
        return ""
    return f"<p>In these coordinates:</p>{model_mathml(analysis.written, names)}"


def logarithms(analysis: Analysis) -> list[str]:
    """The variables whose logarithms are coordinates of a proof."""
    found = analysis.coordinates.items() if analysis.verdict == "proven" else ()
    return [name for name, text in found if text == f"log({name})"]


def _folded(key: str, text: str) -> str:
    """Text of a cell; a derivation of many lines is opened by a click."""
    block = f'<pre style="white-space:pre-wrap; margin:0">{escape(text)}</pre>'
    if key != "derivation":
        return block
    lines = len(text.splitlines())
    return f"<details><summary>{lines} lines</summary>{block}</details>"


def analysis_json(analysis: Analysis) -> dict[str, Any]:
    """The object that `hcmodel check --json` prints."""
    example = analysis.counterexample
    return {
        "verdict": analysis.verdict,
        "coordinates": dict(analysis.coordinates),
        "derivation": _derivation(analysis),
        "counterexample": None if example is None else _counterexample_json(example),
        "constants": {
            name: {"value": plain(value), "kind": analysis.labels.get(name)}
            for name, value in _known_constants(analysis).items()
        },
    }


def _derivation(analysis: Analysis) -> str | None:
    """The derivation, after the model in hidden coordinates where it speaks of that."""
    if analysis.model is None or analysis.derivation is None:
        return analysis.derivation
    return f"{analysis.model}\n\n{analysis.derivation}"


def model_text(model: Model) -> str:
    """A model in few lines, variables with their sets first."""
    lines = [
        f"var {each.name}{_shape(each.shape)}{each.set.declaration(_few)}"
        for each in model.variables
    ]
    first = 0 if model.source is None else 1
    lines.append(f"{model.objective.word} {infix(model.objective.expression, first)}")
    if model.constraints:
        lines.append("subject to")
    for constraint in model.constraints:
        name = f"{constraint.name}: " if constraint.name else ""
        right = "0" if _is_zero(constraint.rhs) else infix(constraint.rhs, first)
        lines.append(f"    {name}{infix(constraint.lhs, first)} {constraint.sense} {right}")
    return "\n".join(lines)


def _few(array: Any, name: str) -> str:
    """Bounds: the number that all of them are, or a short form of the array."""
    flat = array.reshape(-1)
    return f"{flat[0]:.6g}" if flat.size and (flat == flat[0]).all() else short_array(array)


def _shape(shape: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, shape))}]" if shape else ""


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Constant) and not any_nonzero(expression.value)


def _meaning(analysis: Analysis) -> str:
    example = analysis.counterexample
    if example is not None and example.kind != "stationary point":
        return UNDER_THE_MAP
    return MEANING[analysis.verdict]


def _known_constants(analysis: Analysis) -> dict[str, float]:
    found = {name: value for name, value in asdict(analysis.constants).items() if value is not None}
    return {name: found[name] for name in [*SYMBOLS, *found] if name in found}


def _coordinate(name: str, text: str) -> str:
    return text if name in text else f"{name} = {text}"


def _listed(title: str, entries: list[str]) -> list[str]:
    return [f"{title if i == 0 else '':<13} {entry}" for i, entry in enumerate(entries)]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}".rstrip() for line in lines]


def _failure(analysis: Analysis, filename: str | None) -> list[str]:
    failure = analysis.failure
    assert failure is not None
    if failure.span is None or analysis.source is None:
        return [str(failure)]
    place = Diagnostic(str(failure), None, failure.span)
    return render(place, analysis.source, filename).splitlines()


def _counterexample(example: Counterexample) -> list[str]:
    lines = [example.statement]
    for name, point in example.points.items():
        lines += [f"at {name}: {_arrays(point)}"]
    if example.direction is not None:
        lines.append(f"direction: {_arrays(example.direction)}")
    if example.multipliers:
        lines.append(f"multipliers: {_arrays(example.multipliers)}")
    if example.residual is not None:
        lines.append(f"KKT residual: {example.residual:.1e}")
    lines.append(f"{example.left_text} = {example.left:.10g}")
    lines.append(f"{example.right_text} = {example.right:.10g}")
    return lines


def _arrays(point: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} = {short_array(array)}" for name, array in point.items())


def _counterexample_json(example: Counterexample) -> dict[str, Any]:
    return {
        "kind": example.kind,
        "function": example.function,
        "statement": example.statement,
        "points": {
            name: {variable: plain(array) for variable, array in point.items()}
            for name, point in example.points.items()
        },
        "direction": None
        if example.direction is None
        else {name: plain(array) for name, array in example.direction.items()},
        "left": plain(example.left),
        "left_text": example.left_text,
        "right": plain(example.right),
        "right_text": example.right_text,
        "multipliers": {name: plain(array) for name, array in example.multipliers.items()},
        "residual": plain(example.residual),
    }
