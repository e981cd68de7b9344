"""`hcmodel sweep`: a model for many values of its parameters, as a table, a CSV file and a picture."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from hcmodel.cli import INTERRUPTED
from hcmodel.cli.target_files import check_target
from hcmodel.errors import HCError
from hcmodel.expressions.output_files import replaced
from hcmodel.report.canvas import require_matplotlib
from hcmodel.solving.judge import Status

# Most values of one parameter: a longer list is usually a mistake in a:b:n.
MOST_VALUES = 100_000
SOLVED = (Status.OPTIMAL, Status.LOCALLY_OPTIMAL)
WITHOUT_SOLUTION = (Status.INFEASIBLE, Status.INFEASIBLE_INACCURATE, Status.UNBOUNDED)


def add_sweep(commands: Any, add_model: Callable[[argparse.ArgumentParser], None]) -> None:
    """The command and its arguments."""
    command = commands.add_parser(
        "sweep",
        help="solve a model for many values of its parameters",
        description="Solve a model for every combination of values. --set cap=0.5:2:20 means 20 values "
        "from 0.5 to 2, cap=1:100:20:log the same on a logarithmic scale, cap=1,2,5 a list; other "
        "settings are as in `hcmodel solve`.",
        epilog="example: hcmodel sweep tank.hc --set cap=0.5:2:20 --workers 2 --csv tank.csv",
    )
    add_model(command)
    command.add_argument("--method", default="auto", metavar="M", help="see `hcmodel methods`")
    command.add_argument("--tol", type=float, default=1e-6, metavar="E", help="default 1e-6")
    command.add_argument("--max-calls", type=int, metavar="N", help="limit of each point")
    command.add_argument("--time-limit", type=float, metavar="S", help="limit of each point")
    command.add_argument("--engine", default="auto", metavar="E", help="default auto")
    command.add_argument("--workers", type=int, metavar="N", help="processes; none: solve here")
    command.add_argument("--starts", type=int, default=0, metavar="N", help="random starts a point")
    command.add_argument(
        "--seed", type=int, default=0, metavar="S", help="of the starts, default 0"
    )
    command.add_argument("--cold", action="store_true", help="no warm starts along the grid")
    command.add_argument("--csv", metavar="F", help="write the rows as they are found")
    command.add_argument("--resume", action="store_true", help="solve only what the CSV file lacks")
    command.add_argument("--plot", metavar="F.png", help="write a picture")
    command.add_argument("--column", metavar="C", help="what the picture shows, default value")
    command.add_argument("--adaptive", action="store_true", help="certified curve over a:b")
    command.add_argument(
        "--accuracy", type=float, default=1e-3, metavar="E", help="of --adaptive, default 1e-3"
    )
    command.add_argument("--json", action="store_true", help="print one JSON object")
    command.set_defaults(run=_sweep)


def _sweep(given: argparse.Namespace) -> int:
    from hcmodel.cli.command import UsageError, load_model, usage
    from hcmodel.engines.registry import check_name
    from hcmodel.expressions.arguments import check_tolerance
    from hcmodel.solving.request import check_arguments

    with usage():
        grid = _grid(given)
        check_name(given.engine)
        check_tolerance(given.tol)
        check_arguments(
            method=given.method,
            tol=given.tol,
            optimal_value=None,
            rule="adaptive",
            constants=None,
            max_calls=given.max_calls,
            time_limit=given.time_limit,
            options=None,
        )
    if not grid and not given.starts:
        raise UsageError("a sweep needs values: --set cap=0.5:2:20, or --starts 20")
    if given.resume and given.csv is None:
        raise UsageError("--resume continues the file of an earlier run: --csv F --resume")
    if given.workers is not None and given.workers < 1:
        raise UsageError(f"--workers {given.workers}: at least one process")
    problem = load_model(given)
    for path in (given.csv, given.plot):
        if path is not None:
            check_target(path, [given.model])
    if given.plot is not None:
        require_matplotlib()
    table = problem.sweep(
        grid,
        executor=given.workers,
        warm_start=not given.cold,
        progress=not given.json,
        adaptive=given.adaptive,
        accuracy=given.accuracy,
        starts=given.starts,
        seed=given.seed,
        file=None if given.adaptive else given.csv,
        resume=given.resume,
        method=given.method,
        tol=given.tol,
        max_calls=given.max_calls,
        time_limit=given.time_limit,
        engine=given.engine,
    )
    if given.adaptive and given.csv is not None:
        with replaced(given.csv) as path:
            table.to_csv(path)
    if given.plot is not None:
        with replaced(given.plot) as path:
            table.plot(path, given.column)
    print(json.dumps({"model": given.model, "rows": table.to_json()}) if given.json else table)
    return INTERRUPTED if table.interrupted else _exit_code({row.status for row in table})


def _exit_code(statuses: set[str]) -> int:
    """0 where every point is solved, 4 where some have no solution, 3 where some were not solved."""
    if statuses <= {*SOLVED}:
        return 0
    return 4 if statuses <= {*SOLVED, *WITHOUT_SOLUTION} else 3


def _grid(given: argparse.Namespace) -> dict[str, Any]:
    """The swept parameters; their first values are left as settings, so that the model can be loaded."""
    grid: dict[str, Any] = {}
    settings = []
    for setting in given.set:
        name, _, text = setting.partition("=")
        if given.adaptive and text.count(":") == 1:
            text += ":2"
        values = _values(name.strip(), text)
        if values is None:
            settings.append(setting)
        else:
            grid[name.strip()] = values
            settings.append(f"{name}={float(values[0])!r}")
    given.set = settings
    return grid


def _values(name: str, text: str) -> Any:
    """The values of `a:b:n`, `a:b:n:log` or `a,b,c`; None of any other setting."""
    if "[" in text or not (":" in text or "," in text) or Path(text).suffix in (".json", ".csv"):
        return None
    wrong = HCError(
        f"--set {name}={text}: write {name}=0.5:2:20 for 20 values from 0.5 to 2, {name}=0.5:2:20:log on "
        f"a logarithmic scale, or {name}=1,2,5 for a list"
    )
    if ":" not in text:
        parts = text.split(",")
        return np.array([_number(part, wrong) for part in parts])
    parts = text.split(":")
    spacing = parts.pop() if len(parts) == 4 else "linear"
    if len(parts) != 3 or spacing not in ("linear", "log") or not parts[2].strip().isdigit():
        raise wrong
    first, last, count = _number(parts[0], wrong), _number(parts[1], wrong), int(parts[2])
    if not 1 <= count <= MOST_VALUES:
        raise HCError(f"--set {name}={text}: from 1 to {MOST_VALUES} values, not {count}")
    if spacing == "linear":
        return np.linspace(first, last, count)
    if not (first > 0 and last > 0):
        raise HCError(f"--set {name}={text}: a logarithmic scale needs positive ends")
    return np.geomspace(first, last, count)


def _number(text: str, wrong: HCError) -> float:
    try:
        return float(text)
    except ValueError:
        raise wrong from None
