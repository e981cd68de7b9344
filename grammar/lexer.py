"""Highlighting of `.hc` models for Pygments, and so for Sphinx, Jupyter and many terminals.

Pygments is optional: nothing else in the package imports this module.
"""

from __future__ import annotations

from typing import ClassVar

from pygments.lexer import RegexLexer, bygroups, words
from pygments.token import (
    Comment,
    Error,
    Keyword,
    Name,
    Number,
    Operator,
    Punctuation,
    String,
    Whitespace,
)

DECLARATIONS = ("set", "param", "let", "var")
STATEMENTS = ("minimize", "maximize", "hidden", "start")
OPERATOR_WORDS = ("for", "in", "if", "and", "or", "not")
DOMAINS = ("simplex", "psd", "symmetric")
CONSTANTS = ("pi", "e")


class HCLexer(RegexLexer):  # type: ignore[misc]
    """Pygments lexer of the hcmodel language."""

    name = "hcmodel"
    aliases: ClassVar = ["hcmodel", "hc"]
    filenames: ClassVar = ["*.hc"]
    mimetypes: ClassVar = ["text/x-hcmodel"]

    tokens: ClassVar = {
        "root": [
            (r"\s+", Whitespace),
            (r"#[^\n]*", Comment.Single),
            (r"subject[ \t]+to\b", Keyword),
            (words(DECLARATIONS, suffix=r"\b"), Keyword.Declaration),
            (words(STATEMENTS, suffix=r"\b"), Keyword),
            (words(OPERATOR_WORDS, suffix=r"\b"), Operator.Word),
            (words(DOMAINS, suffix=r"\b"), Keyword.Type),
            (r"([^\W\d]\w*)([ \t]*)(\()", bygroups(Name.Function, Whitespace, Punctuation)),
            (
                r"^([ \t]*)([^\W\d]\w*)([ \t]*)(:)",
                bygroups(Whitespace, Name.Label, Whitespace, Punctuation),
            ),
            (r"([^\W\d]\w*)([ \t]*)(:)(?=[ \t])", bygroups(Name.Label, Whitespace, Punctuation)),
            (words(CONSTANTS, suffix=r"\b"), Name.Constant),
            (r"[^\W\d]\w*", Name),
            (r"[0-9]+(\.[0-9]+)?[eE][+-]?[0-9]+", Number.Float),
            (r"[0-9]+\.[0-9]+", Number.Float),
            (r"[0-9]+", Number.Integer),
            (r'"[^"\n]*"', String.Double),
            (r"\.T\b|\.\.|<<|>>|<=|>=|==|!=|\*\*|[-+*/@^<>=]", Operator),
            (r"[(){}\[\],:;]", Punctuation),
            (r".", Error),
        ],
    }
