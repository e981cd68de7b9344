"""Algorithms on oracles and domains, usable without the modelling layer."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcmodel.solvers.methods import METHODS, minimize
    from hcmodel.solvers.oracle import Evaluation, Oracle, OracleCalls, function_oracle
    from hcmodel.solvers.result import Record, Result, Termination
    from hcmodel.solvers.sets.box import Box
    from hcmodel.solvers.sets.domain import Domain
    from hcmodel.solvers.sets.product import Product

__all__ = [
    "METHODS",
    "Box",
    "Domain",
    "Evaluation",
    "Oracle",
    "OracleCalls",
    "Product",
    "Record",
    "Result",
    "Termination",
    "function_oracle",
    "minimize",
]

# Where each public name is defined; it is imported when it is first used.
_MODULES = {
    "METHODS": "methods",
    "minimize": "methods",
    "Evaluation": "oracle",
    "Oracle": "oracle",
    "OracleCalls": "oracle",
    "function_oracle": "oracle",
    "Record": "result",
    "Result": "result",
    "Termination": "result",
    "Box": "sets.box",
    "Domain": "sets.domain",
    "Product": "sets.product",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hcmodel.solvers' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hcmodel.solvers.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
