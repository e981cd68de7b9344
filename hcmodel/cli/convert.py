"""`hcmodel convert MODEL -o F`: a model in another format."""

from __future__ import annotations

import argparse
from typing import Any

from hcmodel.cli.target_files import check_target
from hcmodel.errors import HCError


def add_convert(commands: Any, add_model: Any) -> None:
    """Add the command to the parser."""
    convert = commands.add_parser(
        "convert",
        help="write a model in another format",
        description="Write a model as .mof.json (as it is), .cbf (its cone form) or .hc.",
        epilog="example: hcmodel convert tank.hc -o tank.mof.json",
    )
    add_model(convert)
    convert.add_argument("-o", "--output", required=True, metavar="F", help="the file to write")
    convert.set_defaults(run=_convert)


def _convert(given: argparse.Namespace) -> int:
    from hcmodel.cli.command import load_model

    check_target(given.output, [given.model])
    load_model(given).write(given.output)
    print(f"{given.output} written")
    return 0


def read_other(given: argparse.Namespace) -> Any:
    """The problem of a file in another format than `.hc`; None where its name is not one of these."""
    from hcmodel.formats.file_types import FILE_TYPES
    from hcmodel.problem import read

    name = given.model.lower().removesuffix(".gz")
    if not name.endswith(tuple(each.ending for each in FILE_TYPES)):
        return None
    if given.data or given.set:
        raise HCError(
            "--data and --set belong to models in the .hc language; this file has its numbers"
        )
    return read(given.model)
