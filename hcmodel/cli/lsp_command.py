"""`hcmodel lsp`: the language server over standard input and output, for editors."""

from __future__ import annotations

import argparse
import gc
import importlib
from typing import Any

from hcmodel.errors import HCError

# New objects between two collections of garbage: the tree of 300 lines has fewer, and every keystroke
# makes a new one. With 700, a fifth of the time went into collections (benchmark `language_server`).
OBJECTS_BEFORE_COLLECTION = 200_000


def add_lsp(commands: Any) -> None:
    """Add the command to the parser."""
    lsp = commands.add_parser(
        "lsp",
        help="run the language server, for editors",
        description="Run the language server over standard input and output. Editors start it.",
        epilog="docs/editors.md has the settings of several editors",
    )
    lsp.add_argument("--stdio", action="store_true", help="the default; editors may pass it")
    lsp.set_defaults(run=_lsp)


def _lsp(given: argparse.Namespace) -> int:
    try:
        server = importlib.import_module("hcmodel.lsp.server")  # beside this package, not below it
    except ImportError:
        raise HCError("the language server needs pygls: pip install 'hcmodel[lsp]'") from None
    from hcmodel import __version__

    gc.freeze()  # what was imported stays
    gc.set_threshold(OBJECTS_BEFORE_COLLECTION)
    server.make_server(__version__).start_io()
    return 0
