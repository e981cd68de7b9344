"""The table of file formats: how each is read and written, by the end of a file's name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hcmodel.errors import ModelError
from hcmodel.expressions.input_files import read_packed
from hcmodel.expressions.output_files import write_bytes
from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.expressions.model import Model
    from hcmodel.solving.problem_data import ProblemData


@dataclass(frozen=True)
class FileType:
    """`read` makes a model of a text; `write` makes a text of a model and, if it asks, its cone form."""

    ending: str
    about: str
    read: Callable[[Path, str], Model]
    write: Callable[[Model, Callable[[], ProblemData]], str]


def _read_cbf(path: Path, text: str) -> Model:
    from hcmodel.formats.cbf_read import read_cbf

    return read_cbf(path, text)


def _write_cbf(model: Model, cone_form: Callable[[], ProblemData]) -> str:
    from hcmodel.formats.cbf_write import cbf_text

    data = cone_form()
    return cbf_text(
        data.program, ["written by hcmodel: the cone form of a model", *data.described()]
    )


def _read_mof(path: Path, text: str) -> Model:
    from hcmodel.formats.mof_read import read_mof

    return read_mof(path, text)


def _write_mof(model: Model, cone_form: Callable[[], Any]) -> str:
    from hcmodel.formats.mof_write import mof_object

    return json.dumps(mof_object(model), indent=1, allow_nan=False) + "\n"


FILE_TYPES = (
    FileType(".cbf", "Conic Benchmark Format", _read_cbf, _write_cbf),
    FileType(".mof.json", "MathOptFormat", _read_mof, _write_mof),
)


def file_type(path: Path) -> FileType:
    """The format of a file, by its name; `.gz` may follow."""
    name = path.name.removesuffix(".gz").lower()
    for each in FILE_TYPES:
        if name.endswith(each.ending):
            return each
    known = ", ".join(each.ending for each in FILE_TYPES)
    hint = "; a model in the .hc language is loaded with hc.load" if name.endswith(".hc") else ""
    raise ModelError(f"{path}: the format is not known by this name; formats: {known}{hint}")


def read_text(path: Path) -> str:
    """The text of a file, unpacked where its name ends in `.gz`."""
    try:
        return read_packed(path).decode("utf-8")
    except UnicodeDecodeError:
        raise ModelError(f"{path}: the file is not UTF-8 text") from None
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelError(f"{path}: cannot be read: {reason}") from None


def write_packed(path: Path, text: str) -> None:
    """Write a text, packed where the name ends in `.gz`."""
    raw = text.encode("utf-8")
    write_bytes(path, gzip.compress(raw, mtime=0) if path.name.endswith(".gz") else raw)
