"""Tasks handed to an executor, and their answers in the order in which they arrive.

An executor is anything with `submit(function, argument)` whose futures have `add_done_callback` and
`result`: those of concurrent.futures, Dask's client, loky, mpi4py and ipyparallel. A number stands for a
pool of that many processes of our own, which is made again where a worker dies.
"""

from __future__ import annotations

import multiprocessing
import queue
import signal
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, ProcessPoolExecutor
from contextlib import suppress
from dataclasses import field, replace
from typing import Any

from hcmodel.errors import ModelError, SolverError
from hcmodel.records import dataclass
from hcmodel.studies.sweep_table import NOT_RUN, SweepRow
from hcmodel.studies.workers import (
    Answer,
    Shipment,
    Task,
    limit_threads,
    one_thread_for_children,
    run_task,
)

# Tasks in a pool for each worker: one that runs, and one that waits, so that no worker is idle.
TASKS_PER_WORKER = 2


@dataclass
class Pool:
    """The executor of a sweep. `workers` is None where it cannot be known."""

    executor: Any
    workers: int | None
    own: bool = False

    @staticmethod
    def of(given: Any) -> Pool:
        """The pool of what the user handed in, or an error that says what to hand in."""
        if isinstance(given, bool) or given is None or isinstance(given, str):
            raise ModelError(f"executor={given!r}: {EXECUTORS}")
        if isinstance(given, int):
            if given < 1:
                raise ModelError(f"executor={given}: a number of processes is at least 1")
            _check_not_a_worker()
            return Pool(_processes(given), given, own=True)
        if not callable(getattr(given, "submit", None)):
            hint = EXECUTORS
            if callable(getattr(given, "apply_async", None)):
                hint = "a multiprocessing.Pool has no submit; use concurrent.futures.ProcessPoolExecutor"
            raise ModelError(f"executor={given!r} has no method `submit`: {hint}")
        return Pool(given, _workers(given))

    def renew(self) -> None:
        """New processes in the place of a pool of our own that broke."""
        assert self.workers is not None
        self.executor.shutdown(wait=False)
        self.executor = _processes(self.workers)

    def answers(self) -> bool:
        """Whether a process of our own can do anything at all."""
        try:
            return bool(self.executor.submit(bool, 1).result())
        except BrokenExecutor:
            return False

    def close(self, at_once: bool) -> None:
        """End the processes of our own; those of others go on."""
        if not self.own:
            return
        running = list((getattr(self.executor, "_processes", None) or {}).values())
        self.executor.shutdown(wait=not at_once, cancel_futures=True)
        if at_once:  # the rows of running tasks are not wanted any more
            for process in running:
                process.terminate()


EXECUTORS = (
    "give an object with `submit`, such as concurrent.futures.ProcessPoolExecutor(2) or Dask's Client(), "
    "a number of processes, or None to solve the points here, one after another"
)


def _workers(executor: Any) -> int | None:
    """How many workers an executor of others has; None where it does not say."""
    count = getattr(executor, "_max_workers", None)  # concurrent.futures and loky
    client = getattr(executor, "_client", executor)  # Dask, whose executors know their client
    if not isinstance(count, int) and callable(getattr(client, "nthreads", None)):
        count = sum(client.nthreads().values())
    return count if isinstance(count, int) and count > 0 else None


def _processes(count: int) -> ProcessPoolExecutor:
    return ProcessPoolExecutor(count, multiprocessing.get_context("spawn"), _start_worker)


def _start_worker() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the caller, who ends the workers
    limit_threads()


def _check_not_a_worker() -> None:
    """Processes import the script that they come from; one without a guard would start a sweep itself."""
    if multiprocessing.parent_process() is not None:
        raise ModelError(
            "a process of a pool cannot start processes for a sweep: in a script, put the sweep under "
            'if __name__ == "__main__":'
        )


@dataclass
class Dispatch:
    """The tasks of a sweep on their way through a pool.

    Where the pool breaks, as a process pool does when one of its workers is killed, the tasks that were
    in it are lost. A pool of our own is made again and solves their points one at a time, so that a point
    that kills its worker twice is known and becomes a row with that error.
    """

    pool: Pool
    shipment: Shipment
    waiting: deque[Task]
    suspects: deque[Task] = field(default_factory=deque)
    running: dict[Any, Task] = field(default_factory=dict)
    done: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    broken: str = ""
    answered: bool = False
    """Whether any worker has ever answered."""
    was_interrupted: bool = False
    keeps_pool: bool = False
    """Whether more tasks follow, in another dispatch."""

    def rows(self) -> Iterator[SweepRow]:
        """The rows as they arrive."""
        try:
            while self.waiting or self.suspects or self.running:
                yield from self._fill()
                if self.running:
                    yield from self._collect(self.done.get())
                if self.broken and not self.running:
                    yield from self._recover()
        except KeyboardInterrupt:
            self.was_interrupted = True
            yield from self._finished()
            for future in list(self.running):
                with suppress(
                    Exception
                ):  # executors differ; what cannot be cancelled ends by itself
                    future.cancel()
        finally:
            if not self.keeps_pool:
                self.pool.close(at_once=self.was_interrupted)

    def _fill(self) -> Iterator[SweepRow]:
        """Submit what fits into the pool."""
        while not self.broken:
            if self.suspects:
                if self.running:
                    return
                task = self.suspects.popleft()
            elif self.waiting and self._has_room():
                task = self.waiting.popleft()
            else:
                return
            yield from self._submit(task)

    def _has_room(self) -> bool:
        workers = self.pool.workers
        return workers is None or len(self.running) < TASKS_PER_WORKER * workers

    def _submit(self, task: Task) -> Iterator[SweepRow]:
        try:
            with one_thread_for_children():
                future = self.pool.executor.submit(run_task, task)
        except (BrokenExecutor, RuntimeError) as error:  # the second one: it was shut down
            self.broken = _text(error)
            self.suspects.append(task)
            return
        if not callable(getattr(future, "add_done_callback", None)):
            raise ModelError(
                f"the futures of {type(self.pool.executor).__name__} have no add_done_callback; "
                f"{EXECUTORS}"
            )
        self.running[future] = task
        future.add_done_callback(self.done.put)
        yield from ()

    def _collect(self, future: Any) -> Iterator[SweepRow]:
        """The rows of a future that is done."""
        task = self.running.pop(future)
        try:
            answer: Answer = future.result()
        except BrokenExecutor as error:
            self.broken = _text(error)
            yield from self._lost(task)
            return
        except CancelledError:
            yield from failed_rows(task, "the executor cancelled this task", NOT_RUN)
            return
        except Exception as error:  # whatever an executor does to a task is a row, as for a point
            yield from failed_rows(task, f"the executor failed: {_text(error)}")
            return
        self.answered = True
        if answer.model_missing:
            self.waiting.appendleft(self.shipment.with_payload(task))
            return
        yield from answer.rows
        if answer.interrupted:
            raise KeyboardInterrupt

    def _finished(self) -> Iterator[SweepRow]:
        """The rows of tasks that were done when Ctrl-C came."""
        with suppress(queue.Empty):
            while True:
                future = self.done.get_nowait()
                if not future.cancelled() and future.exception() is None:
                    yield from future.result().rows
                del self.running[future]

    def _lost(self, task: Task) -> Iterator[SweepRow]:
        """A task whose worker died, with its points one at a time; the second time it is given up."""
        if task.failed_before:
            yield from failed_rows(
                task, "the worker that solved this point died twice: too little memory, or a crash"
            )
            return
        self.suspects.extend(
            replace(task, points=(point,), failed_before=True) for point in task.points
        )

    def _recover(self) -> Iterator[SweepRow]:
        if self.pool.own:
            self.pool.renew()
            self.broken = ""
            self.answered = self.answered or self.pool.answers()
            if self.answered:
                return
            raise SolverError(
                "the processes of the sweep end before they solve anything: in a script, put it under "
                'if __name__ == "__main__":, since processes import the script that starts them'
            )
        for task in (*self.suspects, *self.waiting):
            yield from failed_rows(
                task,
                f"the executor does not take tasks any more ({self.broken}); make a new one and run the "
                "sweep again, with file=… and resume=True it solves only what is missing",
                NOT_RUN,
            )
        self.suspects.clear()
        self.waiting.clear()


def failed_rows(task: Task, error: str, status: str = "error") -> Iterator[SweepRow]:
    """Rows without solutions for all points of a task."""
    for point in task.points:
        yield SweepRow.failed(point, error, status)


def dispatch(executor: Any, shipment: Shipment, tasks: Sequence[Task]) -> Dispatch:
    """The tasks on their way through an executor."""
    return Dispatch(Pool.of(executor), shipment, deque(tasks))


def _text(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
