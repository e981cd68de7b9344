"""How the checks name what failed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def named(name: str) -> Iterator[None]:
    """Put a name in front of what fails inside; errors of other kinds become assertions too."""
    try:
        yield
    except Exception as error:
        word = "" if isinstance(error, AssertionError) else f"{type(error).__name__}: "
        raise AssertionError(f"{name}: {word}{error}") from error
