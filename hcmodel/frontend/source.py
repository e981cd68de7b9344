"""The text that a problem was loaded from, given back with its parameters' current values.

A loaded model keeps its own words: comprehensions, comments and names. Only the defaults of its
parameters are written anew, where data or a new value replaced them.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from hcmodel import grammar
from hcmodel.expressions.leaves import Expression, Parameter, Variable
from hcmodel.expressions.sparse_data import Numbers, equal
from hcmodel.grammar import Span, syntax
from hcmodel.grammar.diagnostics import normalize_newlines
from hcmodel.records import dataclass


@dataclass(frozen=True, eq=False)
class Source:
    """A model's text and tree, and what its parameters and starts were when it was loaded."""

    text: str
    model: syntax.Model
    parameters: dict[str, Parameter | Numbers]
    defaults: dict[str, np.ndarray]  # of parameters that no data were given for
    starts: dict[Variable, np.ndarray | None]
    places: dict[Expression, Span] = field(default_factory=dict)  # of applied atoms, in the text
    filename: str | None = None

    def __getstate__(self) -> dict[str, Any]:
        # expressions are pickled flat and come back as others, so that their places are lost
        return {**self.__dict__, "places": {}}

    def is_current(self) -> bool:
        """Whether the text still says everything but the parameters' values."""
        return all(variable.start is start for variable, start in self.starts.items())

    def value(self, name: str) -> Numbers | None:
        """The value of a parameter now."""
        parameter = self.parameters[name]
        return parameter.value if isinstance(parameter, Parameter) else parameter

    def is_default(self, name: str) -> bool:
        """Whether the default in the text is the parameter's value."""
        value = self.value(name)
        return name in self.defaults and value is not None and equal(self.defaults[name], value)

    def with_defaults(self, defaults: dict[str, str | None]) -> str:
        """The text with new defaults; None takes a default away."""
        lines = normalize_newlines(self.text).split("\n")
        declared = [
            each for each in self.model.statements if isinstance(each, syntax.ParameterDeclaration)
        ]
        for declaration in reversed(declared):
            name = declaration.name.identifier
            if name in defaults:
                _replace_default(lines, declaration, defaults[name])
        return grammar.format_model("\n".join(lines))


def _replace_default(
    lines: list[str], declaration: syntax.ParameterDeclaration, default: str | None
) -> None:
    """Cut the old default out, from its `=`, and put the new one in its place."""
    span = declaration.span
    row, column = span.end_line - 1, span.end_column - 1
    if declaration.default is not None:
        old = declaration.default.span
        head = lines[old.line - 1][: old.column - 1]
        first = old.line - 1
        while "=" not in head:  # the default began on a line of its own
            first -= 1
            head = lines[first]
        head = head[: head.rindex("=")].rstrip()
        tail = lines[old.end_line - 1][old.end_column - 1 :]
        lines[first : old.end_line] = [head + tail]
        row, column = first, len(head)
    if default is not None:
        line = lines[row]
        lines[row] = f"{line[:column]} = {default}{line[column:]}"
