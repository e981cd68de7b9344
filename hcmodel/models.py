"""`hc.load` and `hc.parse`; the language is imported on first use."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcmodel.problem import Problem


def load(path: str | Path, data: Any = None, *, set: Mapping[str, Any] | None = None) -> Problem:
    """The problem of a model file in the `.hc` language.

    `data` maps parameter names to arrays, or names a JSON or NPZ file, or is a list of such; `set` maps
    names to single values.
    """
    from hcmodel.frontend import load as load_file

    return load_file(path, data, set=set)


def parse(text: str, data: Any = None, filename: str | None = None) -> Problem:
    """The problem of a model given as text; `filename` is what error messages call it."""
    from hcmodel.frontend import parse as parse_text

    return parse_text(text, data, filename)
