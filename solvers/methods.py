"""The table of methods, and `minimize`, which runs one of them on an oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.solvers.adaptive_line_search import AdaLSOptions, AdaptiveLineSearch
from hcmodel.solvers.bundle_level import Options, StarBundleLevel
from hcmodel.solvers.domain import Domain
from hcmodel.solvers.loop import Method, Task, run
from hcmodel.solvers.oracle import Budget, Oracle
from hcmodel.solvers.result import Record, Result

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class MethodEntry:
    """A row of the table. `complexity` counts oracle calls to accuracy ε, logarithms left out."""

    name: str
    make: Callable[[Any], Method[Any]]
    options: type[Any]
    summary: str
    assumptions: str
    complexity: str
    reference: str
    needs_optimal_value: bool = False
    needs_smooth: bool = False


METHODS: dict[str, MethodEntry] = {
    entry.name: entry
    for entry in (
        MethodEntry(
            name="sbl-star",
            make=StarBundleLevel,
            options=Options,
            summary="shifted bundle level, optimal value given",
            assumptions="smooth rows, optimal_value known",
            complexity="ε⁻¹",
            reference="Fatkhullin et al. 2025, (S-StarBL), Theorem 2",
            needs_optimal_value=True,
            needs_smooth=True,
        ),
        MethodEntry(
            name="sbl-adals",
            make=AdaptiveLineSearch,
            options=AdaLSOptions,
            summary="shifted bundle level with adaptive line search",
            assumptions="smooth rows, strong duality",
            complexity="λ ε⁻¹",
            reference="Fatkhullin et al. 2025, Algorithms 4 and 5, Theorem 3",
            needs_smooth=True,
        ),
    )
}


def make_options(entry: MethodEntry, given: Any) -> Any:
    """The method's frozen options from a dict of its fields, the dataclass itself, or None."""
    if given is None:
        return entry.options()
    if isinstance(given, entry.options):
        return given
    if not isinstance(given, Mapping):
        raise ValueError(f"options of {entry.name} are a dict or {entry.options.__name__}")
    valid = [field.name for field in fields(entry.options)]
    unknown = sorted(set(given) - set(valid))
    if unknown:
        names = ", ".join(repr(name) for name in unknown)
        raise ValueError(f"{entry.name} has no option {names}; its options are: {', '.join(valid)}")
    return entry.options(**given)


def find_method(name: str) -> MethodEntry:
    if name not in METHODS:
        raise ValueError(f"unknown method {name!r}; there are: {', '.join(METHODS)}")
    return METHODS[name]


def minimize(
    oracle: Oracle,
    domain: Domain,
    start: FloatArray | None = None,
    *,
    method: str = "sbl-adals",
    tolerance: float = 1e-6,
    optimal_value: float | None = None,
    max_calls: int | None = None,
    time_limit: float | None = None,
    callback: Callable[[Record], bool | None] | None = None,
    options: Any = None,
) -> Result:
    """Minimise over a domain with a method of the table; usable without the modelling layer."""
    entry = find_method(method)
    chosen = make_options(entry, options)
    if entry.needs_optimal_value and optimal_value is None:
        raise ValueError(f"{entry.name} needs optimal_value; without it use method='sbl-adals'")
    if oracle.dimension != domain.dimension:
        raise ValueError(f"oracle of dimension {oracle.dimension}, domain of {domain.dimension}")
    if not (np.isfinite(tolerance) and tolerance > 0):
        raise ValueError(f"tolerance must be a positive number, not {tolerance!r}")
    deadline = None if time_limit is None else time.monotonic() + time_limit
    counted = Oracle(oracle.stack, oracle.outer, budget=Budget(max_calls, deadline))
    task = Task(counted, domain, tolerance, optimal_value)
    first = domain.middle() if start is None else np.asarray(start, dtype=float)
    if first.shape != (domain.dimension,):
        raise ValueError(f"the start has shape {first.shape}, not ({domain.dimension},)")
    return run(entry.make(chosen), task, first, callback)
