"""The front end of the `.hc` language: text and data to a `Model`.

Names, shapes, index ranges and domains are checked here, with places; comprehensions and families
become array operations, so that the graph's size follows the text and not the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hcmodel import grammar
from hcmodel.errors import DataError, ModelError, ModelSyntaxError
from hcmodel.expressions.input_files import check_file
from hcmodel.expressions.model import Model
from hcmodel.frontend.build import Builder
from hcmodel.frontend.constraints import Family
from hcmodel.frontend.data import Data, collect, read_data
from hcmodel.frontend.mistakes import Collector, syntax_error
from hcmodel.frontend.values import Dimension

__all__ = [
    "Dimension",
    "Family",
    "format_file",
    "load",
    "parse",
    "read_data",
]


def load(path: str | Path, data: Data = None, *, set: Mapping[str, Any] | None = None) -> Model:
    """The model of a file; `data` names arrays or files, `set` single values."""
    if not isinstance(path, (str, Path)):
        raise ModelError(f"a model file is named by a string or a path, not {path!r}")
    path = Path(path)
    text = _read(path)
    return _builder(text, data, set, str(path), path).finished()


def parse(text: str, data: Data = None, filename: str | None = None) -> Model:
    """The model given as text."""
    if not isinstance(text, str):
        raise ModelError(f"a model is parsed from a string, not {type(text).__name__}")
    return _builder(text, data, None, filename, None).finished()


def format_file(path: str | Path) -> tuple[str, str]:
    """The text of a model file, and the same in the standard layout."""
    text = _read(Path(path))
    try:
        return text, grammar.format_model(text)
    except grammar.GrammarError as error:
        raise syntax_error(grammar.GrammarError(error.diagnostics, text, str(path))) from None


def _read(path: Path) -> str:
    try:
        check_file(path)
        return path.read_bytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise ModelSyntaxError(f"{path}: the file is not UTF-8 text (byte {error.start})") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DataError(f"{path}: cannot be read: {reason}") from None


def _builder(
    text: str,
    data: Data,
    settings: Mapping[str, Any] | None,
    filename: str | None,
    beside: Path | None,
) -> Builder:
    try:
        model = grammar.parse(text, filename)
    except grammar.GrammarError as error:
        raise syntax_error(error) from None
    return Builder(model, collect(data, settings), Collector(text, filename), beside)
