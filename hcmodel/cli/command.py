"""The command line: solve, check, fmt, show, sweep, report, methods.

Exit codes: 0 optimal or locally optimal (check: not refuted), 1 an error in model or data, 2 wrong
usage (an unknown method or a negative tolerance too), 3 inaccurate, limit or solver error, 4
infeasible or unbounded, 5 refuted by check, 130 interrupted, 141 the reader of the output went away.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import json
import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hcmodel.cli import INTERRUPTED
from hcmodel.cli.convert import add_convert, read_other
from hcmodel.cli.lsp_command import add_lsp
from hcmodel.cli.report_command import add_report
from hcmodel.cli.sweep_command import add_sweep
from hcmodel.cli.target_files import check_target, printable
from hcmodel.errors import HCError, HCWarning
from hcmodel.expressions.input_files import check_file
from hcmodel.expressions.output_files import replaced, write_text
from hcmodel.report.canvas import require_matplotlib
from hcmodel.report.frames import trace_csv
from hcmodel.solvers.result import Termination
from hcmodel.solving.judge import Status
from hcmodel.solving.naming import Naming
from hcmodel.solving.solution import Solution

EXIT_CODES = {
    Status.OPTIMAL: 0,
    Status.LOCALLY_OPTIMAL: 0,
    Status.OPTIMAL_INACCURATE: 3,
    Status.USER_LIMIT: 3,
    Status.SOLVER_ERROR: 3,
    Status.INFEASIBLE: 4,
    Status.INFEASIBLE_INACCURATE: 4,
    Status.UNBOUNDED: 4,
}
MODEL_ERROR, UNFORMATTED, WRONG_USAGE, REFUTED = 1, 1, 2, 5
# What shells report for a command that writes to a closed pipe: 128 + SIGPIPE.
PIPE_CLOSED = 141


class UsageError(HCError):
    """An argument of the command is wrong, whatever the model is."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    parser = _parser()
    given = parser.parse_args(arguments)
    if given.command is None:
        parser.print_help()
        return 0
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # letters that a terminal lacks become ?
            stream.reconfigure(errors="replace")
    if hasattr(given, "model"):
        _import_all()
    with warnings.catch_warnings():  # which restores `showwarning` as well
        warnings.showwarning = _show_warning
        return _run(given)


def _run(given: argparse.Namespace) -> int:
    """Run the chosen command; what goes wrong becomes a message and an exit code."""
    try:
        code = int(given.run(given))
        if sys.stdout is not None:  # as it is where the shell closed it
            sys.stdout.flush()  # while a closed pipe can still be told from a result
        return code
    except UsageError as error:
        _report_error(error, as_json=getattr(given, "json", False))
        return WRONG_USAGE
    except HCError as error:
        return _report_error(error, as_json=getattr(given, "json", False))
    except MemoryError as error:
        message = str(error) or "there is not enough memory for this model"
        return _report_error(HCError(message), getattr(given, "json", False))
    except BrokenPipeError:  # the reader, `head` for example, has seen enough
        _write_nowhere()
        return PIPE_CLOSED
    except OSError as error:
        name = error.filename or ""
        return _report_error(HCError(f"{name}: {error.strerror}"), getattr(given, "json", False))


def _write_nowhere() -> None:
    """Send what is left in the buffers to the null device: at its end, Python writes it out."""
    with open(os.devnull, "w") as nowhere:
        for stream in (sys.stdout, sys.stderr):
            with suppress(AttributeError, OSError, ValueError):  # streams that have no file
                os.dup2(nowhere.fileno(), stream.fileno())


def _parser() -> argparse.ArgumentParser:
    from hcmodel import __version__

    parser = argparse.ArgumentParser(
        prog="hcmodel",
        description="Solve hidden-convex problems written in the .hc language.",
        epilog="example: hcmodel solve tank.hc",
    )
    parser.add_argument("--version", action="version", version=f"hcmodel {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    _add_solve(commands)
    _add_check(commands)
    _add_format(commands)
    _add_show(commands)
    add_sweep(commands, _add_model)
    add_report(commands, _add_model)
    add_convert(commands, _add_model)
    add_lsp(commands)
    table = commands.add_parser(
        "methods",
        help="list the methods",
        description="List the methods with their assumptions and oracle complexity.",
        epilog="example: hcmodel methods",
    )
    table.set_defaults(run=_methods)
    return parser


def _add_model(command: argparse.ArgumentParser) -> None:
    command.add_argument("model", metavar="MODEL", help="a file: .hc, .cbf or .mof.json")
    command.add_argument(
        "--data",
        action="append",
        default=[],
        metavar="F",
        help="parameters from a JSON or NPZ file, or one from CSV as NAME=F.csv; may be repeated",
    )
    command.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="K=V",
        help="a parameter's value, as --set n=3; may be repeated",
    )


def _add_solve(commands: Any) -> None:
    solve = commands.add_parser(
        "solve",
        help="solve a model",
        description="Solve a model and print its solution.",
        epilog="example: hcmodel solve posynomial.hc --data posynomial.json --tol 1e-7 --json",
    )
    _add_model(solve)
    solve.add_argument("--method", default="auto", metavar="M", help="see `hcmodel methods`")
    solve.add_argument("--tol", type=float, default=1e-6, metavar="E", help="default 1e-6")
    solve.add_argument(
        "--option",
        action="append",
        default=[],
        metavar="K=V",
        help="an option of the method; may be repeated",
    )
    solve.add_argument(
        "--start", metavar="F", help="a JSON file {variable: value}, or what --output wrote"
    )
    solve.add_argument("--optimal-value", type=float, metavar="V", help="if it is known")
    solve.add_argument("--rule", default="adaptive", metavar="R", help="default adaptive")
    solve.add_argument("--max-calls", type=int, metavar="N", help="limit on oracle calls")
    solve.add_argument("--time-limit", type=float, metavar="S", help="limit in seconds")
    solve.add_argument("--engine", default="auto", metavar="E", help="default auto")
    solve.add_argument("--verbose", action="store_true", help="print each iteration")
    solve.add_argument("--progress", action="store_true", help="show progress in pipes too")
    solve.add_argument("--full", action="store_true", help="print arrays and lists in full")
    solve.add_argument("--json", action="store_true", help="print one JSON object")
    solve.add_argument("--output", metavar="F", help="write the JSON object to a file")
    solve.add_argument("--trace", metavar="F.csv", help="write the trace as CSV")
    solve.add_argument("--trace-points", action="store_true", help="with the point of each record")
    solve.add_argument("--plot", metavar="F.png", help="write a picture of the convergence")
    solve.add_argument(
        "--relax",
        action="store_true",
        help="do not solve: say which rows have to be relaxed and by how much, least in total",
    )
    solve.set_defaults(run=_solve)


def _add_check(commands: Any) -> None:
    check = commands.add_parser(
        "check",
        help="say whether a model is hidden convex",
        description="Prove a model hidden convex, or try to refute it; exit 5 if it is refuted.",
        epilog="example: hcmodel check tank.hc --samples 500",
    )
    _add_model(check)
    check.add_argument(
        "--samples",
        type=int,
        metavar="N",
        help="points to try it on, default 200; a proven model is sampled only if this is given",
    )
    check.add_argument("--seed", type=int, default=0, metavar="S", help="default 0")
    check.add_argument("--time-limit", type=float, metavar="S", help="limit in seconds")
    check.add_argument("--json", action="store_true", help="print one JSON object")
    check.set_defaults(run=_check)


def _add_format(commands: Any) -> None:
    fmt = commands.add_parser(
        "fmt",
        help="format models",
        description="Format models in place, or check that they are formatted.",
        epilog="example: hcmodel fmt --check examples/*.hc",
    )
    fmt.add_argument("models", nargs="+", metavar="MODEL")
    fmt.add_argument("--check", action="store_true", help="change nothing; exit 1 if one would")
    fmt.set_defaults(run=_format)


def _add_show(commands: Any) -> None:
    show = commands.add_parser(
        "show",
        help="show a model's sizes and canonical form",
        description="Show the sizes and the canonical form of a model.",
        epilog="example: hcmodel show tank.hc --latex",
    )
    _add_model(show)
    show.add_argument("--latex", action="store_true", help="print the model as LaTeX")
    show.set_defaults(run=_show)


def _import_all() -> None:
    """What a model needs, without the collections of garbage that so many new objects would start."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        importlib.import_module("hcmodel.frontend")
        importlib.import_module("hcmodel.problem")
    finally:
        if enabled:
            gc.enable()


def load_model(given: argparse.Namespace) -> Any:
    """The problem of the model and the data that a command names."""
    from hcmodel.frontend import read_data
    from hcmodel.problem import load

    for setting in given.set:
        if not setting.partition("=")[1]:
            raise UsageError(f"--set takes name=value, for example n=3, and not '{setting}'")
    other = read_other(given)
    return load(given.model, read_data(given.data, given.set)) if other is None else other


def _solve(given: argparse.Namespace) -> int:
    options = _check_solve_arguments(given)
    problem = load_model(given)
    if given.relax:
        from hcmodel.cli.relax import relax

        return relax(given, problem)
    read = [given.model, given.start, *(spec.rpartition("=")[2] for spec in given.data)]
    written = [path for path in (given.output, given.trace, given.plot) if path is not None]
    for number, path in enumerate(written):
        check_target(path, [*read, *written[:number]])
    if given.plot is not None:
        require_matplotlib()
    start = None
    if given.start is not None:
        start = _read_start(given.start)
    problem.solve(
        given.method,
        tol=given.tol,
        optimal_value=given.optimal_value,
        start=start,
        rule=given.rule,
        max_calls=given.max_calls,
        time_limit=given.time_limit,
        engine=given.engine,
        options=options,
        trace_points=given.trace_points,
        verbose=given.verbose and not given.json,
        progress="always" if given.progress else not given.json,
    )
    solution: Solution = problem.solution
    report = solution.to_json(given.model)
    if not given.json and not given.verbose:
        print(solution.to_text(given.full))
    if given.output is not None:
        write_text(given.output, json.dumps(report, indent=2) + "\n")
    if given.trace is not None:
        write_text(given.trace, trace_csv(solution))
    if given.plot is not None:
        with replaced(given.plot) as path:
            solution.plot(path)
    if given.json:  # last, so that an error on the way leaves one object on standard output
        print(json.dumps(report))
    if solution.termination is Termination.INTERRUPTED:
        return INTERRUPTED
    return EXIT_CODES[solution.status]


@contextmanager
def usage() -> Iterator[None]:
    """Errors inside are errors of usage."""
    try:
        yield
    except HCError as error:
        raise UsageError(str(error)) from None


def _check_solve_arguments(given: argparse.Namespace) -> dict[str, Any] | None:
    """Raise where an argument is wrong, before the model is read; the options of the method."""
    from hcmodel.engines.registry import check_name
    from hcmodel.expressions.arguments import check_tolerance
    from hcmodel.solving.request import check_arguments

    with usage():
        options = _options(given.option) or None
        check_name(given.engine)
        check_tolerance(given.tol)
        check_arguments(
            method=given.method,
            tol=given.tol,
            optimal_value=given.optimal_value,
            rule=given.rule,
            constants=None,
            max_calls=given.max_calls,
            time_limit=given.time_limit,
            options=options,
        )
    return options


def _check(given: argparse.Namespace) -> int:
    from hcmodel.analysis.analyze import check_counts
    from hcmodel.report.analysis import analysis_text
    from hcmodel.solving.request import check_number

    with usage():
        check_counts(given.samples, given.seed)
        check_number("time_limit", given.time_limit, positive=True)
    analysis = load_model(given).analyze(given.samples, given.seed, given.time_limit)
    if given.json:
        print(json.dumps(analysis.to_json()))
    else:
        print(analysis_text(analysis, given.model))
    return REFUTED if analysis.verdict == "refuted" else 0


def _read_start(path: str) -> dict[str, Any]:
    try:
        check_file(Path(path))
        start = json.loads(Path(path).read_text())
    except (ValueError, UnicodeDecodeError) as error:
        raise HCError(f"{path} is not a JSON file: {error}") from None
    if not isinstance(start, dict):
        raise HCError(f"{path}: a start is an object {{variable: value}}")
    if "status" in start and isinstance(start.get("variables"), dict):  # what --output wrote
        start = {name: value for name, value in start["variables"].items() if value is not None}
    return start


def _options(pairs: Sequence[str]) -> dict[str, Any]:
    options: dict[str, Any] = {}
    for pair in pairs:
        name, separator, text = pair.partition("=")
        if not separator or not name:
            raise HCError(f"--option {pair}: write --option name=value")
        try:
            options[name] = json.loads(text)
        except ValueError:
            options[name] = text
    return options


def _format(given: argparse.Namespace) -> int:
    from hcmodel.frontend import format_file

    code = 0
    for name in given.models:
        before, after = format_file(name)
        if before == after:
            continue
        if given.check:
            print(f"{name} would be formatted")
            code = UNFORMATTED
        else:
            write_text(name, after)
            print(f"{name} formatted")
    return code


def _show(given: argparse.Namespace) -> int:
    from hcmodel.report.show import problem_latex, problem_text

    problem = load_model(given)
    names = Naming.of(problem.model).constraints
    print(problem_latex(problem) if given.latex else problem_text(problem, names))
    return 0


def _methods(given: argparse.Namespace) -> int:
    from hcmodel.report.show import methods_text

    print(methods_text())
    return 0


def _report_error(error: HCError, as_json: bool) -> int:
    """Errors go to standard error; with --json an object goes to standard output as well."""
    if as_json:
        diagnostics = getattr(error, "diagnostics", ())
        first = diagnostics[0] if diagnostics else None
        described = {
            "file": getattr(error, "filename", None),
            "line": first.span.line if first else None,
            "column": first.span.column if first else None,
            "message": first.message if first else str(error),
            "hint": first.hint if first else None,
        }
        print(json.dumps({"error": described}))
    else:
        print(printable(str(error)), file=sys.stderr)
    return MODEL_ERROR


def _show_warning(message: Any, category: type[Warning], *_: Any, **__: Any) -> None:
    word = "warning" if issubclass(category, HCWarning) else category.__name__
    print(printable(f"{word}: {message}"), file=sys.stderr)
