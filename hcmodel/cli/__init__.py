"""The command `hcmodel`. Ctrl-C ends it with one line at any moment, while it is imported too."""

from __future__ import annotations

import gc
import sys
from collections.abc import Sequence

__all__ = ["main"]

# What shells report for a command that was stopped by Ctrl-C: 128 + SIGINT.
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        from hcmodel.cli.command import main as run

        return run(arguments)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    finally:
        if (
            arguments is None
        ):  # the process ends, and would look for garbage among all objects first
            gc.freeze()
