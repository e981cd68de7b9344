"""Names of files that the command writes, and text that it prints.

Control characters of names are shown escaped: they may come from data, and a terminal would obey them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from hcmodel.errors import HCError

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text with control characters, line breaks and tabs excepted, as escapes."""
    return CONTROL.sub(lambda found: found.group().encode("unicode_escape").decode(), text)


def check_target(path: str, taken: Sequence[str | None]) -> None:
    """Raise where a file cannot be written, or is one that the command reads or writes as well.

    A path that cannot be written is an error before the solve, not after it.
    """
    target = Path(path)
    if not target.parent.is_dir():
        raise HCError(f"{path}: there is no folder {target.parent}")
    if target.exists() and not target.is_file():
        raise HCError(f"{path}: this is not a file; choose another name")
    for other in taken:
        if other is not None and _is_same(target, Path(other)):
            raise HCError(
                f"{path}: this file is used by the same command already; choose another name"
            )


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # one of them does not exist
        return one.absolute() == other.absolute()
