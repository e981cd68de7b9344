"""The `.hc` language: text to syntax tree with positions, messages for mistakes, formatter.

The nodes of the tree are in `hcmodel.grammar.syntax`, the Pygments lexer in
`hcmodel.grammar.lexer`.
"""

from hcmodel.grammar.diagnostics import Diagnostic, GrammarError, render
from hcmodel.grammar.formatter import format_model
from hcmodel.grammar.parser import parse
from hcmodel.grammar.syntax import Model, Span, walk

__all__ = ["Diagnostic", "GrammarError", "Model", "Span", "format_model", "parse", "render", "walk"]
