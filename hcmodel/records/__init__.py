"""`dataclass` as in the standard library, for a package that has hundreds of them and a quick command.

The standard decorator compiles up to six functions for each class when its module is imported. This took
half of the time of `hcmodel solve` that was not spent on importing numpy, scipy and Clarabel. Here the
methods are closures over the names of the fields. `__init__` is made for the first instance of a class:
the code of another class with the same number of fields is copied, and the names in it are replaced.
Fields, `replace`, `asdict` and type checkers see what the standard decorator makes.

`replace` does the same as that of the standard library in a third of the time: methods make a new state
from the last one several times in each iteration. `cached_property` is that of Python 3.12, which takes
no lock.
"""

from __future__ import annotations

import dataclasses
import inspect
import operator
import reprlib
from collections.abc import Callable
from types import CodeType
from typing import TYPE_CHECKING, Any, TypeVar

__all__ = ["cached_property", "dataclass", "replace"]

R = TypeVar("R")

# The names of the fields of each class whose records can be copied without a call of `__init__`, and
# what follows it.
_COPIED: dict[type, tuple[frozenset[str], Callable[[Any], None] | None]] = {}

if TYPE_CHECKING:
    from dataclasses import dataclass
    from functools import cached_property
else:

    class cached_property:  # noqa: N801 (as the standard library calls it)
        """An attribute that is computed when it is first asked for."""

        def __init__(self, func: Callable[[Any], Any]) -> None:
            self.func, self.__doc__ = func, func.__doc__

        def __set_name__(self, owner: type, name: str) -> None:
            self.attrname = name

        def __get__(self, record: Any, owner: type | None = None) -> Any:
            if record is None:
                return self
            value = record.__dict__[self.attrname] = self.func(record)
            return value

    def dataclass(
        cls: type | None = None,
        /,
        *,
        frozen: bool = False,
        eq: bool = True,
        repr: bool = True,
        slots: bool = False,
    ) -> Any:
        """The class with `__init__`, and with the other methods of dataclasses as asked for."""

        def made(cls: type) -> type:
            return _completed(cls, frozen=frozen, eq=eq, shown=repr, slots=slots)

        return made if cls is None else made(cls)


def replace(record: R, /, **changes: Any) -> R:
    """The record with other values of some fields; what it has cached is not copied."""
    kind = type(record)
    if kind not in _COPIED:
        return dataclasses.replace(record, **changes)  # type: ignore[type-var]
    names, finish = _COPIED[kind]
    found = object.__new__(kind)
    values, own = found.__dict__, record.__dict__
    if len(own) == len(names):
        values.update(own, **changes)
    else:
        for name in names:
            values[name] = own[name]
        values.update(changes)
    if len(values) != len(names):
        return dataclasses.replace(record, **changes)  # type: ignore[type-var]
    if finish is not None:
        finish(found)
    return found


class _Signature:
    """The signature of the class for `inspect` and `help`, made when it is asked for."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        waiting = getattr(owner.__init__, "own", None)  # type: ignore[misc]
        complete = inspect.signature(owner.__init__ if waiting is None else waiting())  # type: ignore[misc]
        return complete.replace(parameters=list(complete.parameters.values())[1:])


_SIGNATURE = _Signature()


def _completed(cls: type, *, frozen: bool, eq: bool, shown: bool, slots: bool) -> type:
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # else the standard decorator makes a text of the signature
    own = set(vars(cls))
    hashes = "__hash__" in own and not (vars(cls)["__hash__"] is None and "__eq__" in own)
    cls = _with_fields(cls, frozen, slots)
    fields = dataclasses.fields(cls)
    methods: dict[str, Any] = {"__init__": _first_init(cls, frozen), "__signature__": _SIGNATURE}
    if shown:
        methods["__repr__"] = _representation([field.name for field in fields if field.repr])
    if eq:
        methods["__eq__"] = _equality([field.name for field in fields if field.compare])
    if slots and frozen:
        methods["__getstate__"], methods["__setstate__"] = _pickling(
            [field.name for field in fields]
        )
    for name, method in methods.items():
        if name not in own:
            setattr(cls, name, method)
    if eq and not hashes:
        keyed = [each.name for each in fields if (each.compare if each.hash is None else each.hash)]
        cls.__hash__ = _hashing(keyed) if frozen else None  # type: ignore[assignment]
    if frozen:
        cls.__setattr__, cls.__delattr__ = _refusals(cls, {field.name for field in fields})  # type: ignore[method-assign]
    if "__init__" not in own and _is_plain(cls):
        names = frozenset(field.name for field in fields)
        _COPIED[cls] = names, getattr(cls, "__post_init__", None)
    return cls


def _is_plain(cls: type) -> bool:
    """Whether `__init__` sets all fields, in a dictionary, and does nothing else but `__post_init__`."""
    named = cls.__dataclass_fields__  # type: ignore[attr-defined]
    return (
        not any("__new__" in vars(base) for base in cls.__mro__[:-1])
        and len(named) == len(dataclasses.fields(cls))
        and all(field.init for field in named.values())
        and not any("__slots__" in vars(base) for base in cls.__mro__[:-1])
    )


def _with_fields(cls: type, frozen: bool, slots: bool) -> type:
    """The class with its fields, as the standard decorator finds them.

    It compiles two functions for a class that it knows to be frozen; so it is told of none, and what it
    wrote down is corrected afterwards, for subclasses that users decorate with it.
    """
    bases = [vars(base).get("__dataclass_params__") for base in cls.__mro__[1:]]
    if any(base is not None and base.frozen is not frozen for base in bases):
        raise TypeError(f"{cls.__name__} and its base have to be frozen both, or neither")
    try:
        for base in filter(None, bases):
            base.frozen = False
        cls = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots)(cls)
    finally:
        for base in filter(None, bases):
            base.frozen = frozen
    cls.__dataclass_params__.frozen = frozen  # type: ignore[attr-defined]
    return cls


_set = object.__setattr__
# Compiled definitions of `__init__`, by their text, in which the fields are f0, f1, …
_DEFINITIONS: dict[str, CodeType] = {}


def _first_init(cls: type, frozen: bool) -> Callable[..., None]:
    """An `__init__` that makes the one of the class when it is first called; of many it never is."""

    made: Callable[..., None] | None = None

    def own() -> Callable[..., None]:
        nonlocal made
        made = made or _own_init(cls, frozen)
        if vars(cls)["__init__"] is __init__:  # and it was not wrapped
            cls.__init__ = made  # type: ignore[misc]
        return made

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:  # noqa: N807 (its name in tracebacks)
        own()(self, *args, **keywords)

    __init__.own = own  # type: ignore[attr-defined]
    return __init__


def _own_init(cls: type, frozen: bool) -> Callable[..., None]:
    known: dict[str, Any] = {"set_": _set, "ABSENT": _ABSENT}
    names, parameters, by_name, assigned = dict[str, str](), ["self"], ["*"], {}
    defaults: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for number, field in enumerate(dataclasses.fields(cls)):
        name = value = f"f{number}"
        names[name] = field.name
        listed = by_name if field.kw_only else parameters
        made = field.default_factory is not dataclasses.MISSING
        if not (field.init or made):
            continue  # a default is an attribute of the class
        default = _ABSENT if made else field.default
        if made:
            known[f"make_{name}"] = field.default_factory
            value = (
                f"make_{name}() if {name} is ABSENT else {name}" if field.init else f"make_{name}()"
            )
        if field.init:
            listed.append(name)
        if field.init and default is not dataclasses.MISSING:
            defaults[bool(field.kw_only)][field.name] = default
        assigned[name] = value
    if frozen and _is_plain(cls):  # three times as quick as one by one
        entries = ", ".join(f"{name!r}: {value}" for name, value in assigned.items())
        body = [f"set_(self, '__dict__', {{{entries}}})"]
    elif frozen:
        body = [f"set_(self, {name!r}, {value})" for name, value in assigned.items()]
    else:
        body = [f"self.{name} = {value}" for name, value in assigned.items()]
    if hasattr(cls, "__post_init__"):
        body.append("self.__post_init__()")
    if len(by_name) > 1:
        parameters += by_name
    text = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    init = _defined(text, known, names, f"{cls.__qualname__}.__init__")
    init.__defaults__, init.__kwdefaults__ = tuple(defaults[0].values()), defaults[1]
    return init


def _defined(
    text: str, known: dict[str, Any], names: dict[str, str], title: str
) -> Callable[..., None]:
    """The function of a definition whose fields get their names; texts are compiled once."""
    definition = _DEFINITIONS.get(text)
    if definition is None:
        definition = _DEFINITIONS[text] = compile(text, "<dataclass>", "exec")
    exec(definition, known)
    init: Callable[..., None] = known["__init__"]
    code = init.__code__

    def renamed(each: Any) -> Any:
        if isinstance(each, tuple):
            return tuple([renamed(part) for part in each])
        return names.get(each, each) if isinstance(each, str) else each

    init.__code__ = code.replace(
        co_varnames=renamed(code.co_varnames),
        co_names=renamed(code.co_names),
        co_consts=renamed(code.co_consts),
        co_qualname=title,
    )
    init.__qualname__ = title
    return init


class _Absent:
    """Stands for an argument whose default a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


_ABSENT = _Absent()


def _representation(names: list[str]) -> Callable[[Any], str]:
    @reprlib.recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807
        entries = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{type(self).__qualname__}({entries})"

    return __repr__


def _equality(names: list[str]) -> Callable[[Any, Any], bool]:
    values = _values_of(names)

    def __eq__(self: Any, other: Any) -> bool:  # noqa: N807
        if other.__class__ is not self.__class__:
            return NotImplemented
        return values(self) == values(other)

    return __eq__


def _hashing(names: list[str]) -> Callable[[Any], int]:
    values = _values_of(names)

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return __hash__


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that gives some fields of a record as a tuple."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda record: tuple([getattr(record, name) for name in names])


def _pickling(names: list[str]) -> tuple[Callable[..., Any], Callable[..., None]]:
    """`__getstate__` and `__setstate__` of a class whose slots are set by nothing else."""

    def __getstate__(self: Any) -> list[Any]:  # noqa: N807
        return [getattr(self, name) for name in names]

    def __setstate__(self: Any, state: list[Any]) -> None:  # noqa: N807
        for name, value in zip(names, state, strict=True):
            object.__setattr__(self, name, value)

    return __getstate__, __setstate__


def _refusals(cls: Any, names: set[str]) -> tuple[Callable[..., None], Callable[..., None]]:
    """`__setattr__` and `__delattr__` of a frozen class."""

    def __setattr__(self: Any, name: str, value: Any) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:  # noqa: N807
        if type(self) is cls or name in names:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    return __setattr__, __delattr__
