"""The `.hc` language: text to syntax tree with positions, messages for mistakes, formatter.

The nodes of the tree are in `hcmodel.grammar.syntax`, the Pygments lexer in
`hcmodel.grammar.lexer`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcmodel.grammar.diagnostics import Diagnostic, GrammarError, render
    from hcmodel.grammar.formatter import format_model
    from hcmodel.grammar.parser import parse
    from hcmodel.grammar.syntax import Model, Span, walk

__all__ = [
    "Diagnostic",
    "GrammarError",
    "Model",
    "Span",
    "format_model",
    "parse",
    "render",
    "walk",
]

# Where each public name is defined; it is imported when it is first used.
_MODULES = {
    "Diagnostic": "diagnostics",
    "GrammarError": "diagnostics",
    "render": "diagnostics",
    "format_model": "formatter",
    "parse": "parser",
    "Model": "syntax",
    "Span": "syntax",
    "walk": "syntax",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hcmodel.grammar' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hcmodel.grammar.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
