"""Files that are read: only regular ones, up to a limit, checked before the first byte is read.

A device or a pipe may have no end, and a compressed file may be a thousand times larger inside. The
limit is one gigabyte; the environment variable `HCMODEL_FILE_LIMIT`, in megabytes, sets another.
"""

from __future__ import annotations

import gzip
import io
import os
import stat
import zipfile
from pathlib import Path

import numpy as np

from hcmodel.errors import DataError

LIMIT_VARIABLE = "HCMODEL_FILE_LIMIT"
MEGABYTE = 1 << 20
DEFAULT_LIMIT = 1024


def file_limit() -> int:
    """The most bytes that a file may have."""
    given = os.environ.get(LIMIT_VARIABLE, str(DEFAULT_LIMIT))
    if not given.isdecimal() or int(given) == 0:
        raise DataError(f"{LIMIT_VARIABLE} is a positive whole number of megabytes, not {given!r}")
    return int(given) * MEGABYTE


def check_file(path: Path) -> None:
    """Raise unless the path names a regular file within the limit; OSError where there is none."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "a device or a pipe"
        raise DataError(f"{path}: this is {kind} and not a file; write the data to a file first")
    check_size(path, status.st_size)


def check_archive(path: Path) -> None:
    """Raise unless the arrays of an NPZ file are as large as they say, and within the limit."""
    check_file(path)
    with zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        check_size(path, sum(member.file_size for member in members))
        for member in members:
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0
                if version != (1, 0):
                    header = np.lib.format.read_array_header_2_0
                shape, _, dtype = header(file)
                stored = member.file_size - file.tell()
            entries = 1
            for length in shape:
                entries *= int(length)
            if not dtype.hasobject and entries * dtype.itemsize != stored:
                raise DataError(
                    f"{path}: '{member.filename}' has {stored} bytes, and not the "
                    f"{entries * dtype.itemsize} that its shape {shape} needs; save the file again"
                )


def read_packed(path: Path) -> bytes:
    """The bytes of a file, unpacked where its name ends in `.gz`, as far as the limit allows."""
    check_file(path)
    if not path.name.endswith(".gz"):
        return path.read_bytes()
    content = io.BytesIO()
    with gzip.open(path) as file:
        while part := file.read(MEGABYTE):
            content.write(part)
            check_size(path, content.tell())
    return content.getvalue()


def check_size(path: Path, size: int) -> None:
    """Raise where a file has more bytes, packed or unpacked, than the limit allows."""
    limit = file_limit()
    if size > limit:
        raise DataError(
            f"{path}: {size / MEGABYTE:,.0f} MB of data are more than the limit of "
            f"{limit // MEGABYTE:,} MB; raise it with {LIMIT_VARIABLE} (in MB)"
        )
