"""How public names are deprecated, and where public modules have moved to.

`docs/public-interface.md` says what is public. A name that goes is first decorated with `deprecated`; a
module that moves is entered in `MOVED`, so that imports of its old name work and warn.
"""

from __future__ import annotations

import functools
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
import warnings
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

# Old name of a module → the modules in which its names are now.
MOVED: dict[str, tuple[str, ...]] = {
    "hcmodel.expression": ("hcmodel.expressions.leaves",),
    "hcmodel.models": ("hcmodel.problem",),
    "hcmodel.solution": ("hcmodel.solving.solution",),
    "hcmodel.solvers.domain": (
        "hcmodel.solvers.sets.domain",
        "hcmodel.solvers.sets.box",
        "hcmodel.solvers.sets.product",
        "hcmodel.solvers.qp.program",
    ),
}


def deprecated(
    *, since: str, removed: str, instead: str
) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A decorator: each call warns, and says what to use instead.

    `since` and `removed` are the versions in which the warning begins and in which the name goes.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        message = _message(f"{function.__qualname__}()", since, removed, instead)

        @functools.wraps(function)
        def warned(*args: P.args, **keywords: P.kwargs) -> T:
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return function(*args, **keywords)

        warned.__doc__ = f"{function.__doc__ or ''}\n\nDeprecated since {since}: use {instead}."
        return warned

    return decorate


def _message(name: str, since: str, removed: str, instead: str) -> str:
    return (
        f"{name} is deprecated since hcmodel {since} and will be removed in {removed}; "
        f"use {instead} instead"
    )


class _MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules by the names that they had."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(fullname, self) if fullname in MOVED else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _MovedModule(spec.name, f"The old name of {MOVED[spec.name][0]}.")

    def exec_module(self, module: ModuleType) -> None:
        """Nothing to run: names are looked up when they are asked for."""


class _MovedModule(ModuleType):
    """Warns at the first name that is looked up, which is then taken from where it is now."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # the import machinery asks for these
            raise AttributeError(name)
        for place in MOVED[self.__name__]:
            module = importlib.import_module(place)
            if hasattr(module, name):
                message = _message(self.__name__, "0.2", "1.0", place)
                warnings.warn(message, DeprecationWarning, stacklevel=2)
                return getattr(module, name)
        raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")


def install() -> None:
    """Let imports find moved modules, after all others have been tried."""
    if not any(isinstance(finder, _MovedModules) for finder in sys.meta_path):
        sys.meta_path.append(_MovedModules())
