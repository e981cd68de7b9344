"""What a solve found: the point, what it is, how it is known, and how it was reached.

Everything claimed here comes from a fresh evaluation of the model at the point, never from what a method
reported about itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.user_code import FunctionCalls
from hcmodel.errors import ModelError
from hcmodel.expressions.arguments import as_flag
from hcmodel.expressions.by_name import Duals, UnknownNameError, unknown_name
from hcmodel.expressions.foreign_habits import SOLUTION, missing_attribute
from hcmodel.records import dataclass
from hcmodel.solvers.oracle import OracleCalls
from hcmodel.solvers.result import Termination, Trace
from hcmodel.solving.judge import Status

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Certificate:
    """What was shown about the point; None where nothing was."""

    kind: str
    """How the bound was found: `duality`, `cuts`, `enclosure`, …; `none` without one."""
    violation: float | None
    """The largest violation of a constraint as written."""
    stationarity: float | None
    """The KKT residual."""
    lower_bound: float | None = None
    """The certified bound of the optimal value: no feasible point has a lower value. For a `Maximize`
    model it is an upper bound in spite of its name: no feasible point has a higher value."""
    gap: float | None = None
    """The distance between value and bound."""
    conditions: tuple[str, ...] | None = None
    """What the claim rests on."""


@dataclass(frozen=True)
class BoundDuals:
    """Multipliers of lower and upper bounds: nonnegative of entries, semidefinite of eigenvalues."""

    lower: FloatArray
    upper: FloatArray


@dataclass(frozen=True)
class Solution:
    """The outcome of `Problem.solve`, in the user's units and sign."""

    value: float | None
    """The objective at the point; infinite where the model is infeasible."""
    status: Status
    """What the point is."""
    termination: Termination
    """Why the run stopped."""
    point: Mapping[str, FloatArray]
    """The values of the variables by name; `solution["x"]` is one of them."""
    duals: Mapping[str, FloatArray]
    """The multipliers of the constraints as written, by name."""
    bound_duals: Mapping[str, BoundDuals]
    """The multipliers of the variables' bounds: `lower` and `upper` of each."""
    certificate: Certificate
    """What was shown about the point: bound, gap, violation, KKT residual."""
    trace: Trace
    """One record per iteration; `trace["objective"]` is a column."""
    oracle_calls: OracleCalls
    """Evaluations of objective and constraints, points and Hessians."""
    iterations: int
    """Iterations of all runs."""
    method: str
    """The method asked for, or what `auto` did and why."""
    engine: str
    """What evaluated the functions."""
    compile_seconds: float
    """Time of proof and compilation; 0 where they were known already."""
    solve_seconds: float
    """Time of the runs and the certificate."""
    message: str
    """The status in words, with the reason."""
    conflict: tuple[str, ...] = ()
    """Rows and bounds that cannot hold together, where the model is infeasible."""
    cause: BaseException | None = None
    """The exception of a function or of the callback that ended the solve."""
    index: Mapping[str, tuple[tuple[Any, ...], ...]] = field(default_factory=dict)
    """For variables and constraints of the language, the index or label of each place on each axis."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "trace", Trace(self.trace))
        object.__setattr__(self, "duals", Duals(self.duals))

    function_calls: FunctionCalls = field(default_factory=FunctionCalls)
    """Calls of the functions in `hc.function` and `hc.Map`, wherever in the solve they were made."""

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            raise missing_attribute(SOLUTION, name, "Solution")

    def __call__(self, variable: Any) -> FloatArray:
        """The value of a variable or of its name, as in GPkit."""
        return self[getattr(variable, "name", variable)]

    def __getitem__(self, name: Any) -> FloatArray:
        """The value of a variable, `solution["n"]`, or of an entry, `solution["n", "N2"]`.

        Duals are `solution.duals["name"]`.
        """
        if isinstance(name, tuple):
            return self._entry(*name)
        if not isinstance(name, str):
            raise ModelError(f"a solution is read by the names of variables, not by {name!r}")
        if name in self.point:
            return self.point[name]
        message = unknown_name(name, "variable", self.point)
        if name in self.duals:
            message = f"'{name}' is a constraint; its multiplier is solution.duals['{name}']"
        raise UnknownNameError(message)

    @property
    def variables(self) -> Mapping[str, FloatArray]:
        """The point, by the word that `--json` has for it."""
        return self.point

    @property
    def lower_bound(self) -> float | None:
        """The certified bound of the optimal value, as in `certificate`.

        For a `Minimize` model it is a lower bound, for a `Maximize` model an upper bound.
        """
        return self.certificate.lower_bound

    @property
    def gap(self) -> float | None:
        """The certified gap, as in `certificate`."""
        return self.certificate.gap

    @property
    def violation(self) -> float | None:
        """The largest violation of a constraint as written, as in `certificate`."""
        return self.certificate.violation

    def _entry(self, name: str, *keys: Any) -> FloatArray:
        """An entry by its indices or labels, as the front end counts."""
        array, axes = self[name], self.index.get(name)
        if axes is None or len(axes) != len(keys):
            return np.asarray(array[keys])
        for axis, key in zip(axes, keys, strict=True):
            if key not in axis:
                raise UnknownNameError(f"'{name}' has no entry {key!r}; there are: {axis}")
        return np.asarray(
            array[tuple(axis.index(key) for axis, key in zip(axes, keys, strict=True))]
        )

    def __str__(self) -> str:
        from hcmodel.report.text import solution_text

        return solution_text(self)

    def __repr__(self) -> str:
        from hcmodel.report.text import short_repr

        return short_repr(self)

    def to_text(self, full: bool = False) -> str:
        """What `print` shows; `full` leaves nothing out of long arrays and lists."""
        from hcmodel.report.text import solution_text

        return solution_text(self, as_flag(full, "full"))

    def _repr_html_(self) -> str:
        from hcmodel.report.notebook import solution_html

        return solution_html(self)

    def plot(self, path: Any = None, *, ax: Any = None) -> Any:
        """The run: objective, distance to the certified value on a log scale, violation (extra `plot`).

        `path` is a file to write, `ax` one matplotlib axes for the distance or three for all. Returns
        the figure.
        """
        from hcmodel.report.convergence import convergence

        return convergence(self, path, ax=ax)

    def records(self) -> list[dict[str, Any]]:
        """One dict for each entry of each variable and each constraint's dual: the rows of the tables."""
        from hcmodel.report.frames import solution_records

        return solution_records(self)

    def to_pandas(self) -> Any:
        """A DataFrame with one row for each entry of the solution and of the duals (extra `data`)."""
        from hcmodel.report.frames import require_pandas

        return require_pandas().DataFrame.from_records(self.records())

    def to_csv(self, path: str | None = None) -> str | None:
        """The same table as CSV, in a file or as text."""
        from hcmodel.report.frames import records_csv

        return records_csv(self.records(), path)

    def to_json(self, model: str | None = None) -> dict[str, Any]:
        """A dict of plain numbers and lists, ready for `json.dumps`."""
        from hcmodel.report.json import solution_json

        return solution_json(self, model)


def passed_on(solution: Solution) -> Solution:
    """The solution of a solve that was a part of other work, or Ctrl-C again: that work ends too."""
    if solution.termination is Termination.INTERRUPTED:
        raise KeyboardInterrupt
    return solution
