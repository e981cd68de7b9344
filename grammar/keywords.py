"""The words that begin statements, and what people write in their place."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import lru_cache

from lark import Token

KEYWORDS = {
    "SET": "set",
    "PARAM": "param",
    "LET": "let",
    "VAR": "var",
    "MINIMIZE": "minimize",
    "MAXIMIZE": "maximize",
    "SUBJECT_TO": "subject to",
    "HIDDEN": "hidden",
    "START": "start",
}
# First words of statements whose likeness to keywords is kept: one editor reads the same text many times.
REMEMBERED = 4096
# Functions that people call without brackets or with the indices in the wrong place.
REDUCTIONS = ("sum", "prod", "mean", "max", "min", "norm", "logsumexp")
FUNCTIONS = (*REDUCTIONS, "log", "exp", "sqrt", "abs", "square", "sin", "cos", "trace", "det")
# What people coming from other tools write, beside plain misspellings, which are found by likeness.
SYNONYMS = {
    "min": "minimize",
    "max": "maximize",
    "objective": "minimize",
    "st": "subject to",
    "s.t": "subject to",
    "s.t.": "subject to",
    "subject": "subject to",
    "such that": "subject to",
    "constraint": "subject to",
    "constraints": "subject to",
    "variable": "var",
    "variables": "var",
    "parameter": "param",
    "parameters": "param",
    "const": "param",
    "define": "let",
    "def": "let",
    "initial": "start",
    "guess": "start",
}


def misspelt_keyword(tokens: Sequence[Token]) -> tuple[str, int] | None:
    """The keyword that the first tokens may stand for and how many they are, or None."""
    if tokens[0].type != "NAME":
        return None
    for length in (4, 3, 2, 1):
        spaced = " ".join(tokens[:length]).lower() if length == 2 else ""
        for written in {"".join(tokens[:length]).lower(), spaced}:
            keyword = written if written in KEYWORDS.values() else SYNONYMS.get(written)
            if keyword is not None and len(tokens) >= length and _opens(tokens, length):
                return keyword, length
    close = _nearest(tokens[0].lower())
    if close is not None and _opens(tokens, 1):
        return close, 2 if len(tokens) > 1 and tokens[1].lower() == "to" else 1
    return None


@lru_cache(maxsize=REMEMBERED)
def _nearest(word: str) -> str | None:
    for keyword in KEYWORDS.values():
        if sorted(word) == sorted(keyword):  # `vra`, `lte`: too short for likeness
            return keyword
    close = difflib.get_close_matches(word, KEYWORDS.values(), n=1, cutoff=0.75)
    return close[0] if close else None


def _opens(tokens: Sequence[Token], length: int) -> bool:
    """Whether what follows the first `length` tokens could follow a keyword, not a name."""
    if len(tokens) == length:
        return True
    if tokens[length].type in ("NAME", "NUMBER"):
        return True
    if tokens[length].type == "COLON":
        return False
    return not any(each.type in ("COMPARE", "COLON", "EQUAL") for each in tokens)
