"""Dataclasses of the package behave as those of the standard library."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from typing import Any

import pytest

from hcmodel import records

DECORATORS = {"standard": dataclasses.dataclass, "own": records.dataclass}


def classes(dataclass: Callable[..., Any]) -> tuple[type, type, type]:
    @dataclass(frozen=True)
    class Point:
        x: float
        names: list[str] = dataclasses.field(default_factory=list, hash=False)
        note: str = dataclasses.field(default="", compare=False, repr=False)
        span: int = dataclasses.field(default=0, kw_only=True)

        def __post_init__(self) -> None:
            object.__setattr__(self, "double", 2 * self.x)

    @dataclass(frozen=True)
    class Weighted(Point):
        weight: float = 1.0
        made: list[int] = dataclasses.field(init=False, default_factory=lambda: [1])

    @dataclass
    class Counter:
        count: int = 0

        def __repr__(self) -> str:
            return "its own"

    return Point, Weighted, Counter


def observed(dataclass: Callable[..., Any]) -> list[Any]:
    """What the classes show of themselves, in words."""
    point, weighted, counter = classes(dataclass)
    a, b = point(1.0, ["n"], "one"), point(1.0, ["n"], note="two", span=0)
    w = weighted(1.0, weight=3.0, span=4)
    found = [a == b, a == w, a != point(2.0), hash(a) == hash(b), hash(a) == hash(point(2.0))]
    found += [repr(a), repr(w), repr(counter()), counter(3) == counter(3), counter.__hash__]
    found += [a.double, w.double, w.made, point(1.0).names is point(1.0).names]
    found += [dataclasses.asdict(w), dataclasses.replace(a, x=5.0), point.__match_args__]
    found += [[field.name for field in dataclasses.fields(weighted)]]
    parameters = inspect.signature(weighted).parameters.values()
    found += [[(each.name, each.kind, repr(each.default)) for each in parameters]]
    return [repr(each) for each in found]


def errors(dataclass: Callable[..., Any]) -> list[tuple[type, str]]:
    point, weighted, _ = classes(dataclass)
    attempts: list[Callable[[], Any]] = [
        lambda: setattr(point(1.0), "x", 2.0),
        lambda: setattr(weighted(1.0), "other", 2.0),
        lambda: delattr(point(1.0), "x"),
        lambda: point(),
        lambda: point(1.0, [], "", 4),
        lambda: point(1.0, z=2),
        lambda: point(1.0, x=2),
        lambda: weighted(1.0, made=[2]),
        lambda: point(1.0) < point(2.0),
    ]
    found = []
    for attempt in attempts:
        with pytest.raises((TypeError, AttributeError)) as caught:
            attempt()
        found.append((caught.type, str(caught.value)))
    return found


def test_what_classes_show_is_the_same():
    assert observed(records.dataclass) == observed(dataclasses.dataclass)


def test_misuse_has_the_same_errors():
    assert errors(records.dataclass) == errors(dataclasses.dataclass)


@records.dataclass(frozen=True, slots=True)
class Slotted:
    """At the level of a module, so that it can be pickled."""

    x: float
    y: float = 2.0


def test_slots_are_slots_and_can_be_pickled():
    made = Slotted(1.0)
    assert not hasattr(made, "__dict__")
    assert pickle.loads(pickle.dumps(made)) == copy.copy(made) == made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 3.0


@pytest.mark.parametrize("base", DECORATORS)
@pytest.mark.parametrize("derived", DECORATORS)
def test_classes_of_both_kinds_inherit_from_each_other(base, derived):
    @DECORATORS[base](frozen=True)
    class Base:
        x: float

    @DECORATORS[derived](frozen=True)
    class Derived(Base):
        y: float

    made = Derived(1.0, 2.0)
    assert repr(made).endswith("Derived(x=1.0, y=2.0)")
    assert dataclasses.replace(made, x=3.0) != made
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.x = 3.0
    with pytest.raises(TypeError, match="frozen"):
        DECORATORS[derived](type("Loose", (Base,), {}))


def test_classes_with_as_many_fields_share_what_is_compiled():
    first, second = (
        records.dataclass(frozen=True)(type(name, (), {"__annotations__": fields, "b": 2}))
        for name, fields in (("First", {"a": int, "b": int}), ("Second", {"x": int, "b": int}))
    )
    known = len(records._DEFINITIONS)
    made = [first(1), first(a=3, b=4)]
    added = len(records._DEFINITIONS) - known
    assert added <= 1
    assert vars(second(1, b=5)) == {"x": 1, "b": 5}
    assert len(records._DEFINITIONS) == known + added
    assert [vars(each) for each in made] == [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert first.__init__ is not second.__init__
    assert first.__init__.__qualname__ == "First.__init__"


def test_init_may_be_wrapped_before_the_first_instance():
    @records.dataclass
    class Counted:
        x: int = 1

    first, calls = Counted.__init__, []

    def counting(self: Any, *args: Any) -> None:
        calls.append(args)
        first(self, *args)

    Counted.__init__ = counting
    assert [Counted(2), Counted()] == [Counted(2), Counted(1)]
    assert calls == [(2,), (), (2,), (1,)]


def test_a_class_with_many_fields_has_each_under_its_name():
    """Python compiles the dictionaries of many fields in another way than those of few."""
    fields = {f"name{number}": int for number in range(40)}
    many = records.dataclass(frozen=True)(type("Many", (), {"__annotations__": fields}))
    assert vars(many(*range(40))) == dict(zip(fields, range(40), strict=True))


@records.dataclass(frozen=True)
class Plain:
    x: float
    y: float = 2.0

    @records.cached_property
    def total(self) -> float:
        return self.x + self.y


@records.dataclass(frozen=True)
class Checked(Plain):
    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("x is negative")


class Named(Plain):
    """A subclass that is no dataclass of its own."""


def test_replace_makes_the_same_records_as_that_of_the_standard_library() -> None:
    for record in (Plain(1.0), Checked(1.0), Named(1.0), Slotted(1.0)):
        found = records.replace(record, x=3.0)
        assert found == dataclasses.replace(record, x=3.0)
        assert type(found) is type(record)
        assert record.x == 1.0


def test_replace_forgets_what_was_cached() -> None:
    record = Plain(1.0)
    assert record.total == 3.0
    assert records.replace(record, x=5.0).total == 7.0
    assert records.replace(record, x=5.0) == Plain(5.0)


def test_replace_checks_as_the_standard_library_does() -> None:
    with pytest.raises(ValueError, match="x is negative"):
        records.replace(Checked(1.0), x=-1.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        records.replace(Plain(1.0), z=1.0)
    with pytest.raises(ValueError, match="init=False"):
        records.replace(classes(records.dataclass)[1](1.0), made=[2])


def test_cached_properties_are_computed_once_and_shown_by_the_class() -> None:
    made = []

    class Holder:
        @records.cached_property
        def value(self) -> int:
            """What is held."""
            made.append(1)
            return len(made)

    holder = Holder()
    assert (holder.value, holder.value, Holder().value) == (1, 1, 2)
    assert Holder.value.__doc__ == "What is held."
