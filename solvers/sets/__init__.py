"""Convex sets: everything that methods, certificates and the analysis ask of the set of the variables."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcmodel.solvers.sets.bounded_matrices import BoundedMatrices
    from hcmodel.solvers.sets.bounded_simplices import BoundedSimplices
    from hcmodel.solvers.sets.box import Box
    from hcmodel.solvers.sets.domain import Domain
    from hcmodel.solvers.sets.matrices import SymmetricMatrices
    from hcmodel.solvers.sets.product import Product, side_by_side
    from hcmodel.solvers.sets.simplices import Simplices

__all__ = [
    "BoundedMatrices",
    "BoundedSimplices",
    "Box",
    "Domain",
    "Product",
    "Simplices",
    "SymmetricMatrices",
    "side_by_side",
]

# Where each name is defined; it is imported when it is first used.
_MODULES = {
    "BoundedMatrices": "bounded_matrices",
    "BoundedSimplices": "bounded_simplices",
    "Box": "box",
    "Domain": "domain",
    "Product": "product",
    "Simplices": "simplices",
    "SymmetricMatrices": "matrices",
    "side_by_side": "product",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hcmodel.solvers.sets' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"hcmodel.solvers.sets.{_MODULES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
