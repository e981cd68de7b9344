"""The command `hcmodel`."""

from hcmodel.cli.command import main

__all__ = ["main"]
