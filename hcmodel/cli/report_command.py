"""`hcmodel report MODEL -o F.html`: one self-contained page about a model and its solution."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hcmodel.cli import INTERRUPTED
from hcmodel.cli.target_files import check_target
from hcmodel.expressions.output_files import write_text
from hcmodel.solvers.result import Termination


def add_report(commands: Any, add_model: Callable[[argparse.ArgumentParser], None]) -> None:
    """The command and its arguments."""
    report = commands.add_parser(
        "report",
        help="write an HTML page about a model and its solution",
        description="Solve a model and write one HTML file with model, analysis, pictures, "
        "certificate and tables. It needs no other file and no network.",
        epilog="example: hcmodel report lqr.hc --data lqr.json -o lqr.html",
    )
    add_model(report)
    report.add_argument(
        "-o", "--output", metavar="F.html", help="default: the name of the model, with .html"
    )
    report.add_argument("--method", default="auto", metavar="M", help="see `hcmodel methods`")
    report.add_argument("--tol", type=float, default=1e-6, metavar="E", help="default 1e-6")
    report.add_argument("--time-limit", type=float, metavar="S", help="limit in seconds")
    report.set_defaults(run=_report)


def _report(given: argparse.Namespace) -> int:
    from hcmodel.cli.command import EXIT_CODES, load_model, usage
    from hcmodel.expressions.arguments import check_tolerance
    from hcmodel.solving.request import check_arguments

    with usage():
        check_tolerance(given.tol)
        check_arguments(
            method=given.method,
            tol=given.tol,
            optimal_value=None,
            rule="adaptive",
            constants=None,
            max_calls=None,
            time_limit=given.time_limit,
            options=None,
        )
    target = given.output or Path(given.model).with_suffix(".html").name
    check_target(target, [given.model, *(spec.rpartition("=")[2] for spec in given.data)])
    problem = load_model(given)
    problem.solve(given.method, tol=given.tol, time_limit=given.time_limit, progress=True)
    write_text(target, problem.report(title=Path(given.model).name))
    print(f"{problem.status}: {target} written")
    stopped = problem.solution.termination is Termination.INTERRUPTED
    return INTERRUPTED if stopped else EXIT_CODES[problem.solution.status]
