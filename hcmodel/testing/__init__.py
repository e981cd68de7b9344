"""Conformance suites for those who extend hcmodel, importable as scikit-learn's `check_estimator` is.

Each check takes what was written, runs it through everything that the rest of hcmodel expects of it, and
raises `AssertionError` with the name of what failed. The checks are imported when they are first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hcmodel.testing.atoms import check_atom
    from hcmodel.testing.backends import check_backend
    from hcmodel.testing.coordinates import check_coordinates
    from hcmodel.testing.domains import check_domain
    from hcmodel.testing.engines import check_engine
    from hcmodel.testing.maps import check_map
    from hcmodel.testing.methods import check_method
    from hcmodel.testing.reductions import check_reduction
    from hcmodel.testing.samples import Sample

__all__ = [
    "Sample",
    "check_atom",
    "check_backend",
    "check_coordinates",
    "check_domain",
    "check_engine",
    "check_map",
    "check_method",
    "check_reduction",
]

# Where each public name is defined.
_MODULES = {
    "Sample": "samples",
    "check_atom": "atoms",
    "check_backend": "backends",
    "check_coordinates": "coordinates",
    "check_domain": "domains",
    "check_engine": "engines",
    "check_map": "maps",
    "check_method": "methods",
    "check_reduction": "reductions",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'hcmodel.testing' has no attribute {name!r}")
    return getattr(importlib.import_module(f"hcmodel.testing.{_MODULES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
