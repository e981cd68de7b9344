"""What a map of the catalogue is: it recognises something in a model and rewrites the model by it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.records import dataclass

ROOT = 0.5  # the exponent of a square root
SHOWN = 4  # the longest sum that a text shows

FloatArray = NDArray[np.float64]
Points = dict[Variable, FloatArray]

# Of central differences: the cube root of rounding, where their two errors are about the same.
STEP = 6e-6


@dataclass(frozen=True, eq=False)
class Obstacle:
    """Why a map does not fit, or without a name all of them: what kept a variable, in words."""

    map: str
    reason: str

    def __str__(self) -> str:
        return f"{self.map} map: {self.reason}" if self.map else self.reason


class Step(ABC):
    """A map applied to a model: the model after it, and the way between the points of both.

    `new` are the variables that it adds and `gone` those that it takes out. `released` are the names of
    variables whose bounds the model after it has lost, so that it has more points than the one before.
    """

    name: str
    new: tuple[Variable, ...]
    gone: tuple[Variable, ...]
    released: tuple[str, ...] = ()
    injective: bool = True
    """Whether different points have different images; if not, a local minimum need not be global."""
    after: Expanded
    texts: Mapping[Variable, str] = {}
    """The new variables in the terms of the old ones; those without a text only bound something."""
    implied: Mapping[Variable, tuple[FloatArray, FloatArray]] = {}
    """Ranges of new variables beyond their sets, which hold at the images of all feasible points."""
    divisors: tuple[Variable, ...] = ()
    """Positive semidefinite matrices, and positive variables, that the way back divides by."""
    ceiling: float | None = None
    """If the minimum of the model after it is not below this value, it is not that of a point of the
    model before it, and the map shows nothing. None if it certainly is."""
    late: bool = False
    """Whether it is used only if no other map proves the model, since few points may have an image."""
    first: bool = False
    """Whether the model after it is searched before anything else."""
    apart: bool = False
    """Whether the model after it is searched by itself, once the maps of the model before have failed."""
    choice: Hashable = None
    """What tells steps of one map with the same new variables apart."""
    renamed: Mapping[Variable, Variable] = {}
    """Of a step that only exchanges variables for others of the same shape: these, old and new."""
    splits: bool = False
    """Whether each entry of an array has become a variable."""
    merged: Mapping[int, tuple[tuple[int, NDArray[np.int64], NDArray[np.int64]], ...]] = {}
    """Rows that entries of several of the user's constraints make up, by the position of the first one:
    for each constraint its position, its entries, and their places in a symmetric matrix."""
    outside: tuple[str, ...] = ()
    """The names of the variables that points without an image differ in from those that have one."""

    @abstractmethod
    def forward(self, point: Points) -> None:
        """Add the values of the new variables to a point."""

    @abstractmethod
    def back(self, point: Points) -> None:
        """Add the values of the variables that are gone."""

    def value(self, value: float) -> float:
        """The objective of the model after it where that of the model before is `value`; increasing."""
        return value

    def value_back(self, value: float) -> float:
        """The inverse of `value`; of a bound, what it says of all points of the model."""
        return value

    def slope(self, value: float) -> float:
        """The derivative of `value_back`."""
        return 1.0

    def fits(self, point: Points) -> bool:
        """Whether a point is one for which the map is right, where rows say so that it may violate."""
        return True

    def settle(self, point: Points) -> None:
        """Move a point onto the rows that the map takes out of the model: most take none."""
        return

    def tangent_back(self, point: Points, moves: Points) -> None:
        """Add how the variables that are gone move as the others do; `point` has all values.

        By central differences, entry by entry so that it is linear; a map may know better.
        """
        total = {variable: np.zeros(variable.shape) for variable in self.gone}
        known = [variable for variable in point if variable not in total]
        for variable in known:
            for place in np.flatnonzero(moves.get(variable, np.zeros(1))).tolist():
                ends = [self._moved(point, variable, place, sign * STEP) for sign in (1.0, -1.0)]
                weight = float(moves[variable].reshape(-1)[place]) / (2 * STEP)
                for gone in self.gone:
                    total[gone] = total[gone] + weight * (ends[0][gone] - ends[1][gone])
        moves.update(total)

    def _moved(self, point: Points, variable: Variable, place: int, length: float) -> Points:
        """The point with one entry moved, and what is gone after it."""
        value = np.array(point[variable], dtype=float)
        value.reshape(-1)[place] += length
        moved = {**point, variable: value}
        self.back(moved)
        return moved


class SameVariables(Step):
    """A step that writes the model in another way: no variable is new, and none is gone."""

    new = gone = ()

    def forward(self, point: Points) -> None:
        """Nothing is new."""

    def back(self, point: Points) -> None:
        """Nothing is gone."""

    def tangent_back(self, point: Points, moves: Points) -> None:
        """Nothing is gone."""


class Together(Step):
    """Several steps of one map, one after the other, that are worth nothing alone."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = tuple(steps)
        gone = {each: None for step in steps for each in step.gone}
        new = {each: None for step in steps for each in step.new}
        self.name, self.after = steps[0].name, steps[-1].after
        self.gone = tuple(each for each in gone if each not in new)
        self.new = tuple(each for each in new if each not in gone)
        self.released = tuple(name for step in steps for name in step.released)
        self.divisors = tuple(each for step in steps for each in step.divisors)
        self.texts = {each: text for step in steps for each, text in step.texts.items()}
        self.implied = {each: ends for step in steps for each, ends in step.implied.items()}

    def forward(self, point: Points) -> None:
        for step in self._steps:
            step.forward(point)

    def back(self, point: Points) -> None:
        for step in reversed(self._steps):
            step.back(point)

    def tangent_back(self, point: Points, moves: Points) -> None:
        for step in reversed(self._steps):
            step.tangent_back(point, moves)


class Map(ABC):
    """An entry of the catalogue: one file each, with its derivation in words at the top."""

    name: str
    summary: str
    literature: str
    example: str = ""
    """A model that it proves: a file of `examples/`, or a text in the language."""
    large: bool = False
    """Whether it works on whole arrays, so that models of many unknowns take no seconds."""

    def propose_written(self, model: Model) -> Iterator[Step | Obstacle]:
        """What the map makes of a model before products of matrices are multiplied out."""
        return iter(())

    @abstractmethod
    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        """What the map makes of a model: steps, the likeliest first, and near misses."""


def fresh_name(model: Expanded, name: str) -> str:
    """A name that no variable of the model has: the name itself, or with a number."""
    return fresh_among(model.symbols.variables, name)


def fresh_among(variables: Iterable[Variable], name: str) -> str:
    """The same for any variables."""
    taken = {variable.name for variable in variables}
    number = 2
    found = name
    while found in taken:
        found, number = f"{name}{number}", number + 1
    return found


def described(symbols: Symbols, symbol: int) -> str:
    """A symbol as people write it."""
    source, place = symbols.source(symbol)
    if isinstance(source, Opaque):
        root = symbols.power(symbol)[1] == ROOT
        return "sqrt(…)" if root else f"{source.atom.name}(…)"
    if not source.shape:
        return source.name
    entry = np.unravel_index(place, source.shape)
    places = ", ".join(str(int(place) + symbols.first_index) for place in entry)
    return f"{source.name}[{places}]"


def symbol_sums(symbols: Symbols, numbers: NDArray[np.int64]) -> Sums:
    """An array of single symbols."""
    return Sums.symbols(np.asarray(numbers), symbols.coding)


def text_of(symbols: Symbols, sums: Sums) -> str:
    """A scalar as people write it; of a long sum its size and its variables."""
    names = [
        source.name
        for source, _, _ in symbols.grouped(sums.symbols_used())
        if isinstance(source, Variable)
    ]
    if sums.key.size > SHOWN:
        return f"{sums.key.size} terms in {', '.join(names)}" if names else f"{sums.key.size} terms"
    words = []
    for digits, weight in zip(sums.digits.tolist(), sums.weight.tolist(), strict=True):
        factors = [described(symbols, digit - 1) for digit in digits if digit]
        if weight != 1 or not factors:
            factors.insert(0, f"{weight:g}")
        words.append("*".join(factors))
    return " + ".join(words).replace("+ -", "- ")
