"""Scripts and commands in a process of their own, without the imports that each would begin with.

Importing hcmodel, numpy, scipy and matplotlib takes longer than what most pages and examples do. A server
imports them once and forks itself for each run, so that what one run changes is not seen by another one.
Where the system has no fork, each run is a new interpreter.

    python tests/processes.py      the server: reads requests from stdin, answers with exit codes
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import json
import os
import runpy
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

ROOT = Path(__file__).parents[1]
PRELOADED = (
    *("hcmodel.frontend", "hcmodel.problem", "hcmodel.cli.command", "hcmodel.solving.run"),
    *("hcmodel.analysis.analyze", "hcmodel.testing", "hcmodel.solvers.methods"),
    *("hcmodel.reductions.discovery", "hcmodel.maps.catalogue", "autograd.numpy", "scipy.optimize"),
    *("matplotlib.figure", "matplotlib.backends.backend_agg"),
)
Finished = subprocess.CompletedProcess[str]


def run_python(arguments: Sequence[str], folder: Path, *, together: bool = False) -> Finished:
    """Run `python ARGUMENTS` in a folder: a script, or `-m` and a module, with its arguments.

    `together` puts the errors where they appear in the output.
    """
    with tempfile.TemporaryDirectory() as scratch:
        output, errors = Path(scratch) / "output", Path(scratch) / "errors"
        if hasattr(os, "fork"):
            code = _server().asked([*arguments], folder, output, output if together else errors)
        else:
            with output.open("wb") as out, errors.open("wb") as err:
                code = subprocess.run(
                    [sys.executable, *arguments],
                    cwd=folder,
                    env=_environment(),
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=subprocess.STDOUT if together else err,
                    check=False,
                ).returncode
        printed = output.read_text("utf-8")
        return Finished([*arguments], code, printed, "" if together else errors.read_text("utf-8"))


def _environment() -> dict[str, str]:
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    return {**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"}


class _Server:
    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            env=_environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            encoding="utf-8",
        )

    def asked(self, arguments: list[str], folder: Path, output: Path, errors: Path) -> int:
        requests, answers = self._process.stdin, self._process.stdout
        assert requests is not None
        assert answers is not None
        print(json.dumps([arguments, *map(str, (folder, output, errors))]), file=requests)
        requests.flush()
        return int(answers.readline())

    def close(self) -> None:
        self._process.communicate()


@functools.cache
def _server() -> _Server:
    server = _Server()
    atexit.register(server.close)
    return server


# ---- the server


def serve() -> None:
    """Answer requests until stdin is closed."""
    for name in PRELOADED:
        with suppress(ImportError):  # matplotlib is an extra
            importlib.import_module(name)
    gc.freeze()  # collections in the children would copy the pages of what was imported
    for line in sys.stdin:
        arguments, folder, output, errors = json.loads(line)
        child = os.fork()
        if child == 0:
            os._exit(_child(arguments, folder, output, errors))
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)


def _child(arguments: list[str], folder: str, output: str, errors: str) -> int:
    """What the interpreter does with its arguments, up to the exit code."""
    os.chdir(folder)
    for stream, path, flags in (
        (0, os.devnull, os.O_RDONLY),
        (1, output, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
        (2, errors, os.O_WRONLY | os.O_CREAT | os.O_APPEND),
    ):
        os.dup2(os.open(path, flags), stream)
    try:
        if arguments[0] == "-m":
            sys.argv, sys.path[0] = arguments[1:], folder
            runpy.run_module(arguments[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv, sys.path[0] = arguments, str(Path(arguments[0]).parent)
            runpy.run_path(arguments[0], run_name="__main__")
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    serve()
