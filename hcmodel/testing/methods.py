"""`check_method`: a method of the table on small problems whose minima are known in closed form.

The problems are plain numpy functions with Hessians, so that no modelling layer takes part: what is
checked is the method, the loop that runs it and the oracle that counts for it.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers import kkt
from hcmodel.solvers.coordinates.plain import PlainCoordinates
from hcmodel.solvers.methods import METHODS, MethodEntry, minimize
from hcmodel.solvers.oracle import Forward, Oracle
from hcmodel.solvers.outer import Outer
from hcmodel.solvers.result import Record, Result, Termination
from hcmodel.solvers.sets.box import Box
from hcmodel.testing.known_problems import KnownProblem, known_problems
from hcmodel.testing.naming import named

FloatArray = NDArray[np.float64]
# Limits on calls that are tried: before, at and after the first point, and in the middle of a run.
LIMITS = (1, 2, 3, 5, 8, 20)
# Calls of a run that is too long to be repeated to its end.
LONG_RUN = 200
# Ways to end without having failed or having been stopped.
ENDS = (
    Termination.CONVERGED,
    Termination.LEVEL_REACHED,
    Termination.GAP_CLOSED,
    Termination.HULL_STATIONARY,
    Termination.STALLED,
    Termination.PROMISE_DONE,
)


@dataclass(frozen=True)
class CountingStack:
    """The functions of a problem, with their own count of how often each part was asked for."""

    problem: KnownProblem
    asked: Counter[str] = field(default_factory=Counter)
    points: list[FloatArray] = field(default_factory=list)
    objective_size: int = 1
    sparse_hessian: bool = False

    @property
    def dimension(self) -> int:
        return self.problem.domain.dimension

    @property
    def size(self) -> int:
        return 1 + self.problem.rows

    @property
    def kinked(self) -> bool:
        return self.problem.kinked

    def evaluate(self, x: FloatArray, part: str) -> Forward:
        parts = {"objective": slice(0, 1), "constraints": slice(1, None), "all": slice(None)}
        for each in ("objective", "constraints") if part == "all" else (part,):
            self.asked[each] += 1
        self.points.append(x.copy())
        return _Pass([(value, slope) for value, slope, _ in self.problem.functions(x)[parts[part]]])

    def hessian(self, x: FloatArray, weights: FloatArray) -> FloatArray:
        self.asked["hessians"] += 1
        hessians = [hessian for _, _, hessian in self.problem.functions(x)]
        return np.asarray(np.einsum("i,ijk->jk", weights, np.array(hessians)))


class _Pass:
    def __init__(self, found: list[tuple[float, FloatArray]]) -> None:
        self.values = np.array([value for value, _ in found])
        self._slopes = np.array([slope for _, slope in found])

    def jacobian(self) -> FloatArray:
        return self._slopes

    def pullback(self, weights: FloatArray) -> FloatArray:
        return np.asarray(weights @ self._slopes)


def check_method(
    entry: MethodEntry,
    *,
    accuracy: float = 1e-5,
    max_calls: int = 5000,
    options: Mapping[str, Any] | None = None,
) -> tuple[str, ...]:
    """Check a method on every problem that its entry admits; the names of these are returned.

    `accuracy` is the error in the value that is allowed after `max_calls` oracle calls, relative to
    max(1, |value|). Raises `AssertionError` with the name of the problem and what failed.
    """
    checker = _Checker(entry, accuracy, max_calls, dict(options or {}))
    problems = [problem for problem in known_problems() if _admits(entry, problem)]
    assert problems, f"{entry.name}: its entry admits none of the problems"
    with _registered(entry):
        for problem in problems:
            with named(f"{entry.name} on '{problem}'"):
                checker.is_repeatable(problem, checker.converges(problem))
                checker.keeps_limits(problem)
                checker.listens_to_the_callback(problem)
    return tuple(str(problem) for problem in problems)


@contextlib.contextmanager
def _registered(entry: MethodEntry) -> Iterator[None]:
    """The entry is in the table for as long as it is checked."""
    before = METHODS.get(entry.name)
    METHODS[entry.name] = entry
    try:
        yield
    finally:
        if before is None:
            del METHODS[entry.name]
        else:
            METHODS[entry.name] = before


def _admits(entry: MethodEntry, problem: KnownProblem) -> bool:
    if entry.needs_no_rows and problem.rows:
        return False
    if entry.program is not None and entry.program not in problem.programs:
        return False
    return not (problem.kinked and (entry.needs_smooth or entry.second_order))


@dataclass(frozen=True)
class _Checker:
    entry: MethodEntry
    accuracy: float
    max_calls: int
    options: dict[str, Any]

    def run(self, problem: KnownProblem, **limits: Any) -> tuple[Result, CountingStack]:
        stack = CountingStack(problem)
        start = problem.start.copy()
        start.flags.writeable = False  # a method that writes to the start fails here
        result = minimize(
            Oracle(stack, Outer.of_rows(problem.inequalities, problem.equalities)),
            problem.domain,
            start,
            method=self.entry.name,
            optimal_value=problem.value if self.entry.needs_optimal_value else None,
            options=self.options,
            whole=problem.programs.get(self.entry.program or ""),
            geometry=PlainCoordinates(problem.domain) if self.entry.uses_coordinates else None,
            affords_hessian=self.entry.program is not None,
            **{"max_calls": self.max_calls, **limits},
        )
        if result.evaluation is not None:
            shared = np.shares_memory(result.point, start)
            assert not shared, "the result shares memory with the start"
        self._counts_are_honest(result, stack)
        return result, stack

    def _counts_are_honest(self, result: Result, stack: CountingStack) -> None:
        # Where no call is left for the method, the start is judged, which no method pays for.
        judged = int(result.calls.points == 0)
        for part in ("objective", "constraints", "hessians"):
            told, seen = getattr(result.calls, part), max(stack.asked[part] - judged, 0)
            assert told == seen, f"{part}: {told} calls are told of and {seen} were made"
        domain = stack.problem.domain
        if self.entry.linear_sets:  # equations of the set hold in the limit
            domain = Box(*domain.entry_bounds())
        inside = [domain.contains(point, 1e-9) for point in stack.points]
        assert all(inside), f"{inside.count(False)} points outside the domain were evaluated"

    def converges(self, problem: KnownProblem) -> Result:
        result, _ = self.run(problem)
        assert result.evaluation is not None, f"no point: {result.termination.value}"
        evaluation, size = result.evaluation, max(1.0, abs(problem.value))
        error = (evaluation.objective - problem.value) / size
        assert abs(error) <= self.accuracy, f"error {error:.1e} after {result.calls.total} calls"
        assert evaluation.relative_violation <= 1e-6, f"violation {evaluation.relative_violation}"
        assert problem.domain.contains(result.point, 1e-9), "the point is outside the domain"
        stopped = result.termination is Termination.CALL_LIMIT
        assert stopped or result.termination in ENDS, f"it ends with {result.termination.name}"
        multipliers = result.multipliers
        assert multipliers.shape == (problem.rows,), f"{multipliers.size} multipliers"
        if result.termination is Termination.CONVERGED:
            residual = kkt.residual(evaluation, problem.domain, multipliers)
            assert residual <= 1e-6, f"converged with a KKT residual of {residual:.1e}"
            signs = multipliers[: problem.inequalities] >= 0
            assert signs.all(), "an inequality has a negative multiplier"
        return result

    def is_repeatable(self, problem: KnownProblem, one: Result) -> None:
        """A second run does the same as the first one, or, where that was long, as another one."""
        limits = {"max_calls": LONG_RUN} if one.calls.total > LONG_RUN else {}
        if limits:
            one, _ = self.run(problem, **limits)
        other, _ = self.run(problem, **limits)
        assert np.array_equal(one.point, other.point), "a second run ends elsewhere"
        assert one.calls == other.calls, "a second run makes other calls"

    def keeps_limits(self, problem: KnownProblem) -> None:
        for limit in LIMITS:
            result, _ = self.run(problem, max_calls=limit)
            assert result.calls.total <= limit, f"{result.calls.total} calls of {limit}"
            ended = result.termination in (*ENDS, Termination.CALL_LIMIT)
            assert ended, f"{result.termination.name} after {limit} calls"
            assert result.evaluation is not None, (
                f"no point after {limit} calls, not even the start"
            )
        result, stack = self.run(problem, time_limit=1e-12)
        assert result.termination is Termination.TIME_LIMIT, "a limit on time is not kept"
        assert len(stack.points) <= 1, "more than the start was evaluated after the limit on time"

    def listens_to_the_callback(self, problem: KnownProblem) -> None:
        seen: list[Record] = []

        def stop(record: Record) -> bool:
            seen.append(record)
            return record.iteration >= 1

        result, _ = self.run(problem, callback=stop)
        if len(seen) > 1:
            assert result.termination is Termination.CALLBACK, "the callback does not stop it"
        assert [record.iteration for record in seen] == list(range(len(seen))), "records are lost"
        assert tuple(seen) == result.trace, "the trace is not what the callback saw"
        calls = [record.calls for record in seen]
        assert calls == sorted(calls), "the count of calls falls"
        assert calls[-1] <= result.calls.total, "a record counts calls that were not made"
