"""`hcmodel solve --relax`: which rows of a model have to give, and how much."""

from __future__ import annotations

import argparse
import json
from typing import Any

from hcmodel.cli.target_files import check_target
from hcmodel.expressions.output_files import write_text

FOUND, NOT_FOUND = 0, 3


def relax(given: argparse.Namespace, problem: Any) -> int:
    """Print the least relaxation of a problem; 0 where one was found."""
    if given.output is not None:
        check_target(given.output, [given.model])
    found = problem.relax(time_limit=given.time_limit)
    report = found.to_json(given.model)
    if given.output is not None:
        write_text(given.output, json.dumps(report, indent=2) + "\n")
    print(json.dumps(report) if given.json else found)
    return NOT_FOUND if found.total is None else FOUND
