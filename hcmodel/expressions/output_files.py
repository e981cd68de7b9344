"""Files that are written: as a whole or not at all.

A file is written to a temporary file in the same folder, which is then renamed, so that a full disk, an
error or Ctrl-C leaves the old one as it was. What the system objects to is a `DataError` with the name
of the file.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hcmodel.errors import DataError, ModelError


def as_path(path: Any) -> Path:
    """The path, or an error where it cannot name a file."""
    if not isinstance(path, (str, os.PathLike)) or isinstance(os.fspath(path), bytes):
        raise ModelError(f"a file is named by a string or a path, not {path!r}")
    if not os.fspath(path) or "\0" in str(path):
        raise ModelError(f"{str(path)!r} is not the name of a file")
    return Path(path)


@contextmanager
def replaced(path: Any) -> Iterator[str]:
    """A temporary file that takes the place of `path` when the block ends, and only then."""
    target = as_path(path)
    if target.is_dir():
        raise DataError(f"{path}: this is a folder; name a file in it")
    try:
        handle, name = tempfile.mkstemp(suffix=target.suffix, prefix=".", dir=target.parent or ".")
    except OSError as error:  # a full disk, or a folder that may not be written
        raise DataError(f"{path}: {error.strerror or error}") from None
    os.close(handle)
    try:
        os.chmod(name, target.stat().st_mode if target.exists() else 0o666 & ~_umask())
        yield name
        os.replace(name, target)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    finally:
        Path(name).unlink(missing_ok=True)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def write_text(path: Any, text: str) -> None:
    """Write a text as UTF-8."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: Any, content: bytes) -> None:
    with replaced(path) as name:
        Path(name).write_bytes(content)
