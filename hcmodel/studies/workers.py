"""Where the points of a sweep are solved: here, or by the workers of any executor.

A task names its model by a token. A worker that does not have it yet reads it once from a file that the
caller wrote; where workers see another file system, it says so and gets the model with the task. After
that only numbers travel. Each thread has its own copy, since a solve writes into its problem.
"""

from __future__ import annotations

import contextlib
import copy
import ctypes
import functools
import importlib
import os
import pickle
import tempfile
import threading
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.errors import HCError, ModelError
from hcmodel.records import dataclass
from hcmodel.solvers.result import Termination
from hcmodel.solving.judge import Status
from hcmodel.studies.grid import Point
from hcmodel.studies.sweep_table import SweepRow

if TYPE_CHECKING:
    from hcmodel.problem import Problem

# Environment variables with which BLAS libraries are told how many threads to use.
THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# Models that a worker thread keeps, the last ones used.
KEPT_MODELS = 4
# Points from which the next one may start.
GOOD_STARTS = (Status.OPTIMAL, Status.LOCALLY_OPTIMAL, Status.OPTIMAL_INACCURATE)

_kept = threading.local()
_here: dict[str, Any] = {}
"""Problems of sweeps that this process runs, for threads of a problem that cannot be pickled."""


@dataclass(frozen=True)
class Task:
    """Some points of a sweep, in the order in which they are solved, and how to solve them."""

    token: str
    path: str
    points: tuple[Point, ...]
    warm_start: bool
    options: Mapping[str, Any]
    caller: int
    payload: bytes | None = None
    failed_before: bool = False


@dataclass(frozen=True)
class Answer:
    """The rows of a task. `model_missing`: nothing was done, since the worker has no model."""

    rows: tuple[SweepRow, ...]
    interrupted: bool = False
    model_missing: bool = False


@dataclass
class Shipment:
    """A problem on its way to workers: written to a file once, removed when the sweep ends."""

    problem: Problem
    token: str = field(default_factory=lambda: uuid.uuid4().hex)
    folder: tempfile.TemporaryDirectory[str] | None = None
    payload: bytes | None = None

    def __enter__(self) -> Shipment:
        plain = copy.copy(self.problem)
        plain.solution = None
        _here[self.token] = plain
        self.payload = _pickled(plain)
        self.folder = tempfile.TemporaryDirectory(prefix="hcmodel-sweep-")
        if self.payload is not None:
            Path(self.path).write_bytes(self.payload)
        return self

    @property
    def path(self) -> str:
        assert self.folder is not None
        return str(Path(self.folder.name) / "model.pickle")

    def __exit__(self, *_: object) -> None:
        _here.pop(self.token, None)
        if self.folder is not None:
            self.folder.cleanup()

    def task(self, points: Sequence[Point], warm_start: bool, options: Mapping[str, Any]) -> Task:
        return Task(self.token, self.path, tuple(points), warm_start, options, os.getpid())

    def with_payload(self, task: Task) -> Task:
        """The task with the model in it, for a worker that sees no file of ours."""
        if self.payload is None:
            raise ModelError(
                "the model holds a function that cannot be sent to another process; define it at the top "
                "level of a module, use a ThreadPoolExecutor, or pip install 'hcmodel[sweep]', which "
                "brings cloudpickle"
            )
        return replace(task, payload=self.payload)


def _pickled(problem: Problem) -> bytes | None:
    """The problem as bytes; None where it holds something that no other process can load."""
    try:
        return pickle.dumps(problem)
    except Exception:  # what unpicklable objects raise is up to them
        try:
            cloudpickle = importlib.import_module("cloudpickle")
        except ImportError:
            return None
        try:
            found: bytes = cloudpickle.dumps(problem)
        except Exception:
            return None
        return found


# ---- in the worker


def run_task(task: Task) -> Answer:
    """Solve the points of a task in this worker."""
    if os.getpid() != task.caller:
        limit_threads()
    problem = _problem(task)
    if problem is None:
        return Answer((), model_missing=True)
    rows: list[SweepRow] = []
    for row in solve_points(problem, task.points, task.warm_start, task.options):
        if row is None:
            return Answer(tuple(rows), interrupted=True)
        rows.append(row)
    return Answer(tuple(rows))


def _problem(task: Task) -> Problem | None:
    """This thread's copy of the model, None where it cannot be had."""
    kept: dict[str, Problem] = _kept.__dict__.setdefault("models", {})
    problem = kept.pop(task.token, None)
    if problem is None:
        problem = _received(task)
    if problem is not None:
        kept[task.token] = problem
        for old in list(kept)[:-KEPT_MODELS]:
            del kept[old]
    return problem


def _received(task: Task) -> Problem | None:
    payload = task.payload
    if payload is None and Path(task.path).is_file():
        payload = Path(task.path).read_bytes()
    if payload is not None:
        problem: Problem = pickle.loads(payload)
        return problem
    if os.getpid() == task.caller and task.token in _here:
        copied: Problem = copy.deepcopy(_here[task.token])
        return copied
    return None


def solve_points(
    problem: Problem, points: Sequence[Point], warm_start: bool, options: Mapping[str, Any]
) -> Iterator[SweepRow | None]:
    """The rows of some points in turn; None where Ctrl-C came."""
    use_last = False
    for point in points:
        if not use_last:
            _forget_values(problem)
        try:
            row = _solved(problem, point, warm_start and use_last, options)
        except KeyboardInterrupt:
            row = None
        yield row
        if row is None:
            return
        use_last = warm_start and row.status in GOOD_STARTS


def _solved(
    problem: Problem, point: Point, warm_start: bool, options: Mapping[str, Any]
) -> SweepRow | None:
    """The row of one point; None where Ctrl-C came. What a point raises is the text of its row."""
    try:
        for name, value in point.parameters.items():
            problem.parameters[name].value = value
        problem.solve(start=dict(point.start) or None, warm_start=warm_start, **options)
    except HCError as error:
        return SweepRow.failed(point, str(error))
    except Exception as error:  # a function of the user, or a defect: the other points go on
        return SweepRow.failed(point, f"{type(error).__name__}: {error}")
    assert problem.solution is not None
    if problem.solution.termination is Termination.INTERRUPTED:
        return None
    return SweepRow.solved(point, problem.solution)


def _forget_values(problem: Problem) -> None:
    """Values that a solve wrote are no starts of this point."""
    for variable in problem.variables:
        if variable._value_origin == "solve":
            variable.value = None


@functools.cache
def limit_threads() -> None:
    """One thread for linear algebra in this process, as there is one worker for each core."""
    for name in THREAD_VARIABLES:
        os.environ[name] = "1"
    for package in ("numpy", "scipy"):  # OpenBLAS has read its variables when it was loaded
        folder = Path(str(np.__file__)).parents[1] / f"{package}.libs"
        for path in folder.glob("*openblas*"):
            with contextlib.suppress(OSError):
                _limit_openblas(ctypes.CDLL(str(path)))


def _limit_openblas(library: Any) -> None:
    for name in ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads"):
        function = getattr(library, name, None)
        if function is not None:
            function(1)


@contextlib.contextmanager
def one_thread_for_children() -> Iterator[None]:
    """Processes that start inside use one thread for linear algebra."""
    before = {name: os.environ.get(name) for name in THREAD_VARIABLES}
    os.environ.update({name: os.environ.get(name, "1") for name in THREAD_VARIABLES})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
