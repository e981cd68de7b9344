"""The points of a sweep: which values the parameters and the starts have at each of them.

A grid is given as `{parameter: values}`; every combination is one point. Scenarios are given as a list of
`{parameter: value}`, one point each. A variable in the place of a parameter gives starts.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import DataError, ModelError
from hcmodel.expressions.by_name import UnknownNameError, unknown_name
from hcmodel.expressions.labels import in_order
from hcmodel.expressions.leaves import Parameter, Variable
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]
Leaf = Parameter | Variable

# Points up to which a grid is accepted: more is usually a product of axes that was not intended.
MOST_POINTS = 1_000_000


@dataclass(frozen=True)
class Point:
    """What is set before one solve. `number` is its place in the table."""

    number: int
    parameters: Mapping[str, FloatArray]
    start: Mapping[str, FloatArray] = field(default_factory=dict)

    def key(self) -> tuple[Any, ...]:
        """Equal for points with equal values."""
        return tuple(
            (name, array.tobytes())
            for part in (self.parameters, self.start)
            for name, array in sorted(part.items())
        )


@dataclass(frozen=True)
class Grid:
    """All points in the order of the table, and in the order in which they are solved.

    Neighbours in `order` differ by one step along one axis, so that each is a good start for the next.
    """

    points: tuple[Point, ...]
    order: tuple[int, ...]
    parameters: tuple[str, ...]
    starts: tuple[str, ...]
    axes: Mapping[str, FloatArray] | None
    """The values along each axis, None of scenarios."""

    @staticmethod
    def of(model: Model, given: Any) -> Grid:
        """The grid of what the user handed in, or an error that says what is wrong with it."""
        if hasattr(given, "to_dict") and hasattr(
            given, "columns"
        ):  # a table of pandas: one row a point
            given = given.to_dict("records")
        if isinstance(given, Mapping):
            return _product(model, given)
        if isinstance(given, Sequence) and not isinstance(given, str):
            return _scenarios(model, given)
        raise ModelError(
            "a sweep takes {parameter: values}, or a list of {parameter: value}, one for each point; "
            f"not {given!r}"
        )

    def repeated(self, starts: Sequence[Mapping[str, FloatArray]]) -> Grid:
        """Every point from each of the starts."""
        points = tuple(
            Point(number, point.parameters, {**start, **point.start})
            for number, (point, start) in enumerate(itertools.product(self.points, starts))
        )
        count = len(starts)
        order = tuple(count * place + number for number in range(count) for place in self.order)
        names = tuple(dict.fromkeys([*self.starts, *(name for each in starts for name in each)]))
        return Grid(points, order, self.parameters, names, None)


def _product(model: Model, given: Mapping[Any, Any]) -> Grid:
    leaves = [_leaf(model, key) for key in given]
    _check_twice(leaves)
    axes = [_values(leaf, values) for leaf, values in zip(leaves, given.values(), strict=True)]
    lengths = [len(values) for values in axes]
    if math.prod(lengths) > MOST_POINTS:
        raise ModelError(
            f"the grid has {math.prod(lengths)} points, {' × '.join(map(str, lengths))}; "
            f"the limit is {MOST_POINTS}"
        )
    points = tuple(
        _point(number, zip(leaves, values, strict=True))
        for number, values in enumerate(itertools.product(*axes))
    )
    named = {leaf.name: np.array(values) for leaf, values in zip(leaves, axes, strict=True)}
    return Grid(points, _serpentine(lengths), *_kinds(leaves), named)


def _scenarios(model: Model, given: Sequence[Any]) -> Grid:
    points = []
    leaves: dict[str, Leaf] = {}
    for number, scenario in enumerate(given):
        if not isinstance(scenario, Mapping):
            raise ModelError(
                f"scenario {number} of the sweep is {scenario!r}; each one is a dict {{parameter: value}}"
            )
        pairs = [(_leaf(model, key), value) for key, value in scenario.items()]
        _check_twice([leaf for leaf, _ in pairs])
        fitted = [(leaf, _value(leaf, value, "the value")) for leaf, value in pairs]
        points.append(_point(number, fitted))
        leaves.update((leaf.name, leaf) for leaf, _ in pairs)
    return Grid(tuple(points), tuple(range(len(points))), *_kinds(leaves.values()), None)


def _point(number: int, pairs: Iterable[tuple[Leaf, FloatArray]]) -> Point:
    listed = list(pairs)
    return Point(
        number,
        {leaf.name: value for leaf, value in listed if isinstance(leaf, Parameter)},
        {leaf.name: value for leaf, value in listed if isinstance(leaf, Variable)},
    )


def _kinds(leaves: Iterable[Leaf]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    listed = list(leaves)
    parameters = tuple(each.name for each in listed if isinstance(each, Parameter))
    return parameters, tuple(each.name for each in listed if isinstance(each, Variable))


def _leaf(model: Model, key: Any) -> Leaf:
    """The parameter or variable that a key of the grid stands for."""
    known: list[Leaf] = [*model.parameters, *model.variables]
    if isinstance(key, (Parameter, Variable)):
        if any(key is leaf for leaf in known):
            key = key.name
        else:
            raise ModelError(f"{key.name!r} is not in the problem; {_listed(model)}")
    if not isinstance(key, str):
        raise ModelError(
            f"the keys of a sweep are parameters, variables or their names, not {key!r}"
        )
    found = [leaf for leaf in known if leaf.name == key]
    if len(found) > 1:
        raise ModelError(f"'{key}' names {len(found)} things; a sweep needs a name for each")
    if found:
        return found[0]
    if model.source is not None and key in model.source.parameters:
        raise ModelError(
            f"parameter '{key}' decides the structure of the model (lengths, ranges, indices, filters), "
            "so a sweep over it would be one over different models; load the model once for each value"
        )
    raise UnknownNameError(
        unknown_name(key, "parameter", [leaf.name for leaf in known]) + f" ({_listed(model)})"
    )


def _listed(model: Model) -> str:
    names = ", ".join(each.name for each in model.parameters)
    return f"its parameters are: {names}" if names else "it has no parameters; see hc.Parameter"


def _check_twice(leaves: Sequence[Leaf]) -> None:
    seen: set[str] = set()
    for leaf in leaves:
        if leaf.name in seen:
            raise ModelError(f"the sweep gives '{leaf.name}' twice, as an object and by name")
        seen.add(leaf.name)


def _values(leaf: Leaf, values: Any) -> list[FloatArray]:
    """The values along one axis of the grid."""
    if isinstance(values, (str, bytes, Mapping)) or not (
        np.ndim(values) or isinstance(values, Iterable)
    ):
        if leaf.shape == () and isinstance(values, (int, float, np.number)):
            values = [values]
        else:
            raise ModelError(f"the values of '{leaf.name}' are a list or an array, not {values!r}")
    listed = list(values)
    if not listed:
        raise ModelError(f"the list of values of '{leaf.name}' is empty")
    return [_value(leaf, value, f"value {place}") for place, value in enumerate(listed)]


def _value(leaf: Leaf, value: Any, what: str) -> FloatArray:
    """One value as an array of the leaf's shape.

    Whether the numbers are allowed is seen at the point itself: one bad value makes one bad row.
    """
    what = f"{what} of '{leaf.name}'"
    value = in_order(value, leaf.labels, what)
    try:
        array = np.array(0.0 + np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise DataError(f"{what} is not a number or an array of numbers: {value!r}") from None
    if array.shape == leaf.shape:
        return array
    if isinstance(leaf, Variable) and array.ndim == 0:
        return np.full(leaf.shape, float(array))
    hint = ""
    if array.ndim == len(leaf.shape) - 1:
        hint = "; the values of an array parameter are a list of arrays, so write [array] for one"
    raise DataError(f"{what} has shape {array.shape}, but shape {leaf.shape} is needed{hint}")


def _serpentine(lengths: Sequence[int]) -> tuple[int, ...]:
    """The places of a grid, stored in C order, so that neighbours differ by one step on one axis."""
    path: list[tuple[int, ...]] = [()]
    for length in lengths:
        forwards = range(length)
        path = [
            (*before, step)
            for number, before in enumerate(path)
            for step in (forwards if number % 2 == 0 else reversed(forwards))
        ]
    if not lengths:
        return (0,)
    return tuple(int(np.ravel_multi_index(place, tuple(lengths))) for place in path)
