"""Mistakes of a model with their places: found one by one, shown together.

Evaluation stops at a `Mistake`; the statement that has it is left out and its name is poisoned, so
that later uses of the name stay silent and one mistake gives one message.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from hcmodel.errors import DataError, HCError, ModelError, ModelSyntaxError
from hcmodel.grammar import Diagnostic, GrammarError, Span, render

MAX_DIAGNOSTICS = 10


class Mistake(Exception):  # noqa: N818 (it never leaves the front end)
    """What is wrong, a hint, and where; `of_data` where the data are to blame, not the text."""

    def __init__(
        self, message: str, span: Span, hint: str | None = None, *, of_data: bool = False
    ) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, hint, span)
        self.of_data = of_data


class PoisonedError(Exception):
    """A name is used whose declaration was wrong; that was said already."""


class Collector:
    """Gathers the mistakes of one model."""

    def __init__(self, text: str, filename: str | None) -> None:
        self.text = text
        self.filename = filename
        self.found: list[Mistake] = []

    def add(self, mistake: Mistake) -> None:
        self.found.append(mistake)

    def raise_found(self) -> None:
        """Raise all mistakes as one error, in the order of the text, if there are any."""
        if not self.found:
            return
        of_data = all(mistake.of_data for mistake in self.found)
        ordered = sorted(
            {mistake.diagnostic for mistake in self.found},
            key=lambda each: (each.span.line, each.span.column, each.message),
        )
        diagnostics = tuple(ordered[:MAX_DIAGNOSTICS])
        rendered = "\n\n".join(render(each, self.text, self.filename) for each in diagnostics)
        error = (DataError if of_data else ModelError)(rendered)
        raise with_diagnostics(error, diagnostics, self.text, self.filename)


def with_diagnostics(
    error: HCError, diagnostics: tuple[Diagnostic, ...], text: str, filename: str | None
) -> HCError:
    """The error with what reports need to print it in their own form."""
    vars(error).update(diagnostics=diagnostics, text=text, filename=filename)
    return error


def syntax_error(error: GrammarError) -> HCError:
    """The grammar's error as one of ours."""
    rendered = ModelSyntaxError(str(error))
    return with_diagnostics(rendered, error.diagnostics, error.text, error.filename)


SHAPE = re.compile(r"\((\d+(?:, \d+)*),?\)")


def in_words(message: str) -> str:
    """A message of the Python layer as the language speaks: `name`, 2×3 for (2, 3)."""
    if " does not fit shape " in message:  # what follows the colon are numpy's words
        message = message.split(":", 1)[0]
    message = re.sub(r"'(\w+|@)'", r"`\1`", message)
    message = re.sub(r"shape \(\)", "a number", message)
    return SHAPE.sub(lambda found: found[1].replace(", ", "×"), message)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant."""
    names = list(known)
    by_case = {name.lower(): name for name in names}
    if word.lower() in by_case:
        return by_case[word.lower()]
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.6)
    if close:
        return close[0]
    if len(word) <= 3:  # too short for likeness: a letter doubled, left out or added
        for name in names:
            if len(name) <= 3 and (set(word) == set(name) or name == word[:-1]):
                return name
    return None


def did_you_mean(word: str, known: Iterable[str]) -> str | None:
    """The hint with the nearest name."""
    close = nearest(word, known)
    return None if close is None else f"did you mean `{close}`?"
