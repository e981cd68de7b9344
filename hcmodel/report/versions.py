"""`show_versions`: what a bug report needs to know of an installation."""

from __future__ import annotations

import importlib.metadata
import platform
import sys

REQUIRED = ("numpy", "scipy", "lark", "autograd", "clarabel")
# The packages of the extras, as far as they change what hcmodel does.
OPTIONAL = ("matplotlib", "pandas", "dask", "casadi", "pygls", "pygments", "cvxpy")
MISSING = "not installed"


def versions() -> dict[str, str]:
    """Names and versions, in the order in which they are printed."""
    # `hcmodel` itself stands above this module, so it is looked up and not imported
    found = {
        "hcmodel": sys.modules["hcmodel"].__version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "executable": sys.executable,
    }
    for name in (*REQUIRED, *OPTIONAL):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = MISSING
    return found


def show_versions() -> None:
    """Print the versions of hcmodel, of Python, of what hcmodel needs and of its extras."""
    found = versions()
    width = max(len(name) for name in found)
    for name, version in found.items():
        print(f"{name:<{width}}  {version}")
