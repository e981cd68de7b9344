"""Batches of points of an adaptive sweep, solved here or by the workers of an executor.

The workers stay from one batch to the next, and each gets each model once.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hcmodel.studies.executors import Dispatch, Pool
from hcmodel.studies.grid import Point
from hcmodel.studies.sweep_table import SweepRow
from hcmodel.studies.workers import Shipment, solve_points

if TYPE_CHECKING:
    from hcmodel.problem import Problem


class Batches:
    """Solves points of several problems; `parallel` says whether a batch may have more than one."""

    def __init__(self, executor: Any, options: Mapping[str, Any]) -> None:
        self.options = options
        self._pool = None if executor is None else Pool.of(executor)
        self._shipments: dict[int, Shipment] = {}
        self._stack = ExitStack()

    @property
    def parallel(self) -> bool:
        return self._pool is not None

    def __enter__(self) -> Batches:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._stack.close()
        if self._pool is not None:
            self._pool.close(at_once=kind is not None)

    def rows(self, problem: Problem, points: Sequence[Point]) -> list[SweepRow]:
        """The rows of the points, in their order; Ctrl-C is raised."""
        numbered = [replace(point, number=number) for number, point in enumerate(points)]
        if self._pool is None:
            return list(self._here(problem, numbered))
        shipment = self._shipments.get(id(problem))
        if shipment is None:
            shipment = self._shipments[id(problem)] = self._stack.enter_context(Shipment(problem))
        tasks = deque(shipment.task((point,), False, self.options) for point in numbered)
        sent = Dispatch(self._pool, shipment, tasks, keeps_pool=True)
        found = {row.number: row for row in sent.rows()}
        if sent.was_interrupted:
            raise KeyboardInterrupt
        return [found[point.number] for point in numbered]

    def _here(self, problem: Problem, points: Sequence[Point]) -> list[SweepRow]:
        found = []
        for row in solve_points(problem, points, True, self.options):
            if row is None:
                raise KeyboardInterrupt
            found.append(row)
        return found
