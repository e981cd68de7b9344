"""`__init__` of a record, made from a template when the first instance is.

Compiling a function for each class takes longer than all instances of most classes do. Two classes with
as many fields of the same kinds have the same `__init__` but for names, and these can be replaced in a
code object: so one function is compiled for each kind of class, and a class costs a copy of it.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from dataclasses import MISSING
from dataclasses import fields as fields_of
from typing import Any, NamedTuple


class Absent:
    """Stands for an argument whose default a function makes."""

    def __repr__(self) -> str:
        return "<factory>"


ABSENT = Absent()


class _Kind(NamedTuple):
    """What a template knows of a field: its default is made by a function, and how it is given."""

    made: bool
    given: bool
    by_name: bool


def first_init(cls: type, *, frozen: bool, plain: bool) -> Callable[..., None]:
    """An `__init__` that puts the one for all later instances into its place.

    `plain` classes have all fields in the dictionary of an instance, and nothing else at first.
    """

    def complete() -> Callable[..., None]:
        if vars(cls)["__init__"] is __init__:
            cls.__init__ = _init(cls, frozen, plain)  # type: ignore[misc]
        return cls.__init__  # type: ignore[misc, no-any-return]

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:  # noqa: N807 (its name in tracebacks)
        complete()(self, *args, **keywords)

    __init__.complete = complete  # type: ignore[attr-defined]
    return __init__


def _init(cls: type, frozen: bool, plain: bool) -> Callable[..., None]:
    absent = MISSING
    # a field that is not given and has no function is an attribute of the class
    fields = [e for e in fields_of(cls) if e.init or e.default_factory is not absent]
    kinds = tuple(
        _Kind(e.default_factory is not absent, e.init, e.init and e.kw_only is True) for e in fields
    )
    code = _template(kinds, frozen, frozen and plain, hasattr(cls, "__post_init__"))
    names = {f"field{number}": field.name for number, field in enumerate(fields)}
    named = code.replace(
        co_varnames=_renamed(code.co_varnames, names),
        co_names=_renamed(code.co_names, names),
        co_consts=_renamed(code.co_consts, names),
        co_filename=f"<{cls.__qualname__}>",
        co_qualname=f"{cls.__qualname__}.__init__",
    )
    known: dict[str, Any] = {"set_": object.__setattr__, "ABSENT": ABSENT}
    defaults: dict[str, Any] = {}
    for number, (field, kind) in enumerate(zip(fields, kinds, strict=True)):
        if kind.made:
            known[f"factory{number}"] = field.default_factory
        if kind.given and (kind.made or field.default is not absent):
            defaults[field.name] = ABSENT if kind.made else field.default
    placed = [e.name for e, kind in zip(fields, kinds, strict=True) if not kind.by_name]
    in_place = tuple(defaults.pop(name) for name in placed if name in defaults)
    init = types.FunctionType(named, known, "__init__", in_place)
    init.__kwdefaults__ = defaults or None
    return init


def _renamed(values: tuple[Any, ...], names: dict[str, str]) -> tuple[Any, ...]:
    """Names and constants of a code object; keys of a dictionary are a constant tuple."""
    return tuple(
        _renamed(value, names)
        if type(value) is tuple
        else names.get(value, value)
        if type(value) is str
        else value
        for value in values
    )


@functools.cache
def _template(
    kinds: tuple[_Kind, ...], frozen: bool, at_once: bool, finished: bool
) -> types.CodeType:
    """The code for fields called field0, field1, …, whose functions are factory0, factory1, …"""
    parameters, by_name, values = ["self"], ["*"], []
    for number, kind in enumerate(kinds):
        name, value = f"field{number}", f"field{number}"
        if kind.made:
            value = f"factory{number}()"
        if kind.made and kind.given:
            value = f"{value} if {name} is ABSENT else {name}"
        if kind.given:
            (by_name if kind.by_name else parameters).append(name)
        values.append((name, value))
    if at_once:  # three times as quick as one by one past `__setattr__`, which refuses
        entries = ", ".join(f"{name!r}: {value}" for name, value in values)
        body = [f"set_(self, '__dict__', {{{entries}}})"]
    elif frozen:
        body = [f"set_(self, {name!r}, {value})" for name, value in values]
    else:
        body = [f"self.{name} = {value}" for name, value in values]
    if finished:
        body.append("self.__post_init__()")
    if len(by_name) > 1:
        parameters += by_name
    source = f"def __init__({', '.join(parameters)}):\n " + "\n ".join(body or ["pass"])
    module = compile(source, "<record>", "exec")
    return next(each for each in module.co_consts if isinstance(each, types.CodeType))
