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


@pytest.mark.parametrize("few", [0, 100])
def test_what_classes_show_is_the_same(few, monkeypatch):
    monkeypatch.setattr(records, "FEW", few)
    assert observed(records.dataclass) == observed(dataclasses.dataclass)


@pytest.mark.parametrize("few", [0, 100])
def test_misuse_has_the_same_errors(few, monkeypatch):
    monkeypatch.setattr(records, "FEW", few)
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


def test_init_is_compiled_once_after_a_few_instances():
    point = classes(records.dataclass)[0]
    first = point.__init__
    made = [point(float(number), span=3) for number in range(records.FEW)]
    assert point.__init__ is first
    more = [point(float(number), span=3) for number in range(records.FEW)]
    assert point.__init__ is not first
    assert made == more
    assert [vars(each) for each in made] == [vars(each) for each in more]


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
