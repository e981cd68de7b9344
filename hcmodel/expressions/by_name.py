"""The variables or parameters of a model, by position and by name.

`problem.variables` is a tuple that also answers to names, and to a call as in CVXPY.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from hcmodel.errors import ModelError
from hcmodel.expressions.leaves import Parameter, Variable

Named = TypeVar("Named", bound=Variable | Parameter)


class ByName(tuple[Named, ...]):
    """A tuple of leaves; `leaves["x"]` is the one named x, `leaves()` a list as in CVXPY."""

    kind: str

    def __new__(cls, leaves: Iterable[Named], kind: str) -> ByName[Named]:
        found = super().__new__(cls, leaves)
        found.kind = kind
        return found

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self), self.kind

    @overload  # type: ignore[override]
    def __getitem__(self, key: slice) -> tuple[Named, ...]: ...
    @overload
    def __getitem__(self, key: int | str) -> Named: ...
    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return super().__getitem__(key)
        found = [leaf for leaf in self if leaf.name == key]
        if len(found) == 1:
            return found[0]
        if found:
            raise ModelError(
                f"{len(found)} {self.kind}s are named '{key}'; give each its own name, or use the objects"
            )
        raise UnknownNameError(unknown_name(key, self.kind, self.names))

    def __setitem__(self, key: Any, value: Any) -> NoReturn:
        raise ModelError(f"a value is set by problem.{self.kind}s[{key!r}].value = {value!r}")

    if not TYPE_CHECKING:  # which would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            hint = ""
            if any(leaf.name == name for leaf in self):
                hint = f"; write problem.{self.kind}s[{name!r}]"
            raise AttributeError(f"'ByName' object has no attribute {name!r}{hint}")

    def __contains__(self, key: object) -> bool:
        if isinstance(key, str):
            return key in self.names
        return any(leaf is key for leaf in self)

    def __call__(self) -> list[Named]:
        return list(self)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(leaf.name for leaf in self)

    def keys(self) -> tuple[str, ...]:
        """The names, as of a dictionary."""
        return self.names


class Values(dict[str, Any]):
    """A dictionary by names, which says what there is where a name is not."""

    kind = "entry"

    def __missing__(self, name: Any) -> NoReturn:
        raise UnknownNameError(unknown_name(name, self.kind, self))


class Duals(Values):
    """Multipliers by the names of constraints."""

    kind = "dual"


class UnknownNameError(ModelError, KeyError):
    """Something was asked for by a name that nothing has; a `KeyError` too."""

    def __str__(self) -> str:
        return str(self.args[0])  # a KeyError would show it in quotes


def unknown_name(name: Any, kind: str, known: Iterable[str]) -> str:
    """What to say where nothing has this name."""
    listed = list(known)
    if not isinstance(name, str):
        return f"a {kind} is asked for by its name, a string, and not by {name!r}"
    close = difflib.get_close_matches(name, listed, 1)
    hint = f"did you mean '{close[0]}'?" if close else f"there are: {_shown(listed)}"
    return f"there is no {kind} named '{name}'; {hint}" if listed else f"there are no {kind}s"


def _shown(names: list[str], most: int = 12) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
