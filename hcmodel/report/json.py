"""A solution as plain dicts, lists and numbers; unknown and non-finite numbers are null."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from hcmodel.solving.solution import Solution


def plain(value: Any) -> Any:
    """Arrays to nested lists, non-finite numbers to None."""
    if value is None:
        return None
    array = np.asarray(value, dtype=float)
    if array.ndim:
        return [plain(entry) for entry in array]
    return float(array) if np.isfinite(array) else None


def solution_json(solution: Solution, model: str | None = None) -> dict[str, Any]:
    """The object that `hcmodel solve --json` prints."""
    certificate = solution.certificate
    return {
        "model": model,
        "status": solution.status.value,
        "termination": solution.termination.name.lower(),
        "method": solution.method,
        "engine": solution.engine,
        "value": plain(solution.value),
        "violation": plain(certificate.violation),
        "lower_bound": plain(certificate.lower_bound),
        "gap": plain(certificate.gap),
        "certificate": {
            "kind": certificate.kind,
            "conditions": list(certificate.conditions) if certificate.conditions else None,
            "stationarity": plain(certificate.stationarity),
        },
        "variables": {name: plain(array) for name, array in solution.point.items()},
        "duals": {name: plain(array) for name, array in solution.duals.items()},
        "bound_duals": {
            name: {"lower": plain(duals.lower), "upper": plain(duals.upper)}
            for name, duals in solution.bound_duals.items()
        },
        "oracle_calls": solution.oracle_calls.as_dict(),
        "iterations": solution.iterations,
        "compile_seconds": solution.compile_seconds,
        "solve_seconds": solution.solve_seconds,
        "conflict": list(solution.conflict),
        **_labels(solution),
    }


def _labels(solution: Solution) -> dict[str, Any]:
    """The labels of each axis of variables and constraints over sets of labels, if there are any."""
    found = {
        name: [list(axis) for axis in axes]
        for name, axes in solution.index.items()
        if any(isinstance(key, str) for axis in axes for key in axis)
    }
    return {"labels": found} if found else {}
