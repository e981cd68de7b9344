"""`hcmodel lsp`: the language server over standard input and output, for editors."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from hcmodel.errors import HCError


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

    server.make_server(__version__).start_io()
    return 0
