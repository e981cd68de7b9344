"""Which entries of the flat vector each entry of the stack depends on, and greedy colouring.

A pattern is one set of columns for each entry of a step, in C order; FULL stands for all columns.
Rows with more than `WIDEST` columns count as full: they conflict with almost every other row, so
that a sweep of their own costs nothing more, and long sums stay cheap to analyse.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from hcmodel.atoms.rules import Always, Argument, Contraction, Dependence
from hcmodel.expressions.graph import Step
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import Numbers, is_sparse, nonzero_places
from hcmodel.records import dataclass

# Columns above which a row counts as full. Such a row conflicts with almost every other row, so that a
# sweep of its own costs nothing more.
WIDEST = 256
FULL = None
# Products of entries that are looked at one by one.
MOST_PRODUCTS = 1_000_000
NOTHING: frozenset[int] = frozenset()

Zeros = Numbers  # True where an entry is 0; a sparse matrix, whose zeros are those not stored
Columns = frozenset[int] | None
Pattern = list[Columns]


@dataclass(frozen=True)
class Plan:
    """How a Jacobian is found in few sweeps: groups of rows (or columns) that share no entry.

    `indptr` and `indices` hold the pattern in compressed rows, or are None for a dense Jacobian.
    """

    by_rows: bool
    groups: tuple[np.ndarray, ...]
    color: np.ndarray
    indptr: np.ndarray | None
    indices: np.ndarray | None


def zeros(values: Mapping[int, Numbers]) -> dict[int, Zeros]:
    """Where weights are 0, for those of several entries of which some are."""
    found = {
        number: value if is_sparse(value) else value == 0
        for number, value in values.items()
        if is_sparse(value) or np.size(value) > 1
    }
    return {number: zero for number, zero in found.items() if is_sparse(zero) or zero.any()}


def same_zeros(one: Mapping[int, Zeros], other: Mapping[int, Zeros]) -> bool:
    """Whether two sets of weights have their zeros in the same places."""
    return one.keys() == other.keys() and all(
        _same_places(zero, other[number]) for number, zero in one.items()
    )


def _same_places(one: Zeros, other: Zeros) -> bool:
    if is_sparse(one) != is_sparse(other):
        return False
    pairs = zip(nonzero_places(one), nonzero_places(other), strict=True)
    return all(np.array_equal(mine, its) for mine, its in pairs)


def joined(rows: Iterable[Columns]) -> Columns:
    """The union, FULL when it becomes too wide."""
    found: set[int] = set()
    for row in rows:
        if row is FULL:
            return FULL
        found |= row
        if len(found) > WIDEST:
            return FULL
    return frozenset(found)


def propagate(
    step: Step,
    shapes: Sequence[Shape],
    patterns: Sequence[Pattern | None],
    zeros: Sequence[Zeros | None] | None = None,
) -> Pattern:
    """The pattern of one applied atom; arguments without variables have pattern None.

    `zeros` marks, for such arguments, entries that are 0 and take what they weigh out of the result;
    a sparse matrix stands for itself.
    """
    assert step.atom is not None
    dependence = step.atom.dependence(shapes, step.params)
    size = math.prod(step.shape)
    zeros = [None] * len(shapes) if zeros is None else zeros
    if isinstance(dependence, Contraction):
        weighed = _weighed(dependence.subscripts, shapes, patterns, zeros)
        if weighed is not None:
            return weighed
        gathered = _contracted(dependence.subscripts, shapes, patterns)
    elif dependence is Dependence.ELEMENTWISE:
        gathered = [
            _taken(pattern, np.broadcast_to(_numbers(shape), step.shape))
            for shape, pattern in zip(shapes, patterns, strict=True)
            if pattern is not None
        ]
        absences = [zero for zero in zeros if zero is not None and not is_sparse(zero)]
        for absent in (np.broadcast_to(zero, step.shape) for zero in absences):
            gathered = [
                [NOTHING if gone else row for row, gone in zip(rows, absent.flat, strict=True)]
                for rows in gathered
            ]
    elif dependence is Dependence.MOVEMENT:
        return _moved(step, shapes, patterns)
    elif dependence is Dependence.REDUCTION:
        assert patterns[0] is not None
        return _reduced(step.shape, shapes[0], step.params["axis"], patterns[0])
    else:
        everything = joined(row for pattern in patterns if pattern is not None for row in pattern)
        return [everything] * size
    if len(gathered) == 1:
        return gathered[0]
    return [joined(rows) for rows in zip(*gathered, strict=True)]


def _numbers(shape: Shape) -> np.ndarray:
    return np.arange(math.prod(shape)).reshape(shape)


def _taken(pattern: Pattern, numbers: np.ndarray) -> Pattern:
    return [pattern[i] for i in numbers.ravel().tolist()]


def _moved(step: Step, shapes: Sequence[Shape], patterns: Sequence[Pattern | None]) -> Pattern:
    """The atom itself moves the numbers of the entries; 0 stays where it fills with zeros."""
    assert step.atom is not None
    rows: Pattern = [NOTHING]
    numbered = []
    for shape, pattern in zip(shapes, patterns, strict=True):
        numbered.append(_numbers(shape) + len(rows))
        rows.extend(pattern if pattern is not None else [NOTHING] * numbered[-1].size)
    moved = step.atom.function(np, *numbered, **step.params)
    return _taken(rows, np.asarray(moved).astype(int))


def _reduced(result: Shape, shape: Shape, axis: Any, pattern: Pattern) -> Pattern:
    """Each line along the axes is joined; results of the same length repeat their line's union."""
    axes = range(len(shape)) if axis is None else ((axis,) if isinstance(axis, int) else axis)
    kept = tuple(1 if i in axes else length for i, length in enumerate(shape))
    lines = np.broadcast_to(_numbers(kept), shape)
    unions = _grouped(lines, math.prod(kept), pattern)
    if math.prod(result) == len(unions):
        return unions
    return _taken(unions, lines)


def _grouped(groups: np.ndarray, count: int, pattern: Pattern) -> Pattern:
    members: list[list[Columns]] = [[] for _ in range(count)]
    for group, row in zip(groups.ravel().tolist(), pattern, strict=True):
        members[group].append(row)
    return [joined(rows) for rows in members]


def _contracted(
    subscripts: str, shapes: Sequence[Shape], patterns: Sequence[Pattern | None]
) -> list[Pattern]:
    """For each argument: join over the labels that vanish, spread over those of the result."""
    inputs, output = subscripts.split("->")
    lengths: dict[str, int] = {}
    for term, shape in zip(inputs.split(","), shapes, strict=True):
        lengths.update(zip(term, shape, strict=True))
    result = tuple(lengths[label] for label in output)
    gathered = []
    for term, shape, pattern in zip(inputs.split(","), shapes, patterns, strict=True):
        if pattern is None:
            continue
        kept = [label for label in output if label in term]
        numbers = _numbers(tuple(lengths[label] for label in kept))
        places = np.indices(shape, sparse=True)
        group = np.broadcast_to(numbers[tuple(places[term.index(label)] for label in kept)], shape)
        for axis, label in enumerate(term):  # a label that is repeated takes the diagonal
            if term.index(label) < axis:
                diagonal = places[axis] == places[term.index(label)]
                group = np.where(diagonal, group, numbers.size)
        unions = _grouped(group, numbers.size + 1, pattern)[: numbers.size]
        spread = numbers.reshape([lengths[o] if o in kept else 1 for o in output])
        gathered.append(_taken(unions, np.broadcast_to(spread, result)))
    return gathered


def weighing(step: Step, number: int) -> bool:
    """Whether a 0 in this argument, a constant, makes the result independent of the others."""
    assert step.atom is not None
    atom = step.atom
    if number in atom.linear_in:
        return atom.dependence != Always(Dependence.DENSE)
    exponents = atom.exponents([Argument(())] * len(step.arguments), step.params)
    return exponents is not None and number >= len(exponents)  # an exponent 0


def _weighed(
    subscripts: str,
    shapes: Sequence[Shape],
    patterns: Sequence[Pattern | None],
    zeros: Sequence[Zeros | None],
) -> Pattern | None:
    """A sparse constant times one variable argument: only what meets an entry that is not 0."""
    inputs, output = subscripts.split("->")
    terms = inputs.split(",")
    if len(terms) != 2 or (patterns[0] is None) == (patterns[1] is None):
        return None
    live = 0 if patterns[1] is None else 1
    pattern, absent = patterns[live], zeros[1 - live]
    if pattern is None or absent is None:
        return None
    lengths = dict(zip(terms[live], shapes[live], strict=True))
    others = [label for label in terms[live] if label not in terms[1 - live]]
    met = nonzero_places(absent if is_sparse(absent) else ~absent)
    places = {label: place[:, None] for label, place in zip(terms[1 - live], met, strict=True)}
    free = [lengths[label] for label in others]
    count = math.prod(free)
    grid = np.indices(free).reshape(len(others), 1, count)
    places.update(zip(others, grid, strict=True))
    lengths.update(zip(terms[1 - live], shapes[1 - live], strict=True))
    if met[0].size * count > MOST_PRODUCTS and not is_sparse(absent):
        return None
    result = _flat_places(output, places, lengths)
    members: list[list[Columns]] = [[] for _ in range(_count_of(output, lengths))]
    for i, j in zip(result, _flat_places(terms[live], places, lengths), strict=True):
        members[i].append(pattern[j])
    return [joined(rows) for rows in members]


def _flat_places(term: str, places: dict[str, np.ndarray], lengths: dict[str, int]) -> list[int]:
    """The number of the entry that belongs to each combination of places."""
    flat = np.zeros((1, 1), dtype=int)
    for label in term:
        flat = flat * lengths[label] + places[label]
    shape = np.broadcast_shapes(*(place.shape for place in places.values()))
    return list(np.broadcast_to(flat, shape).ravel().tolist())


def _count_of(term: str, lengths: dict[str, int]) -> int:
    return math.prod([lengths[label] for label in term])


# colouring


def greedy_colors(rows: Sequence[Columns], columns: int) -> np.ndarray:
    """A colour for each row such that rows of one colour share no column."""
    colors = np.zeros(len(rows), dtype=int)
    used = [0] * columns  # for each column, the colours of its rows as a bit mask
    full = [i for i, row in enumerate(rows) if row is FULL]
    for i, row in enumerate(rows):
        if row is FULL:
            continue
        taken = 0
        for column in row:
            taken |= used[column]
        lowest_free = ~taken & (taken + 1)
        colors[i] = lowest_free.bit_length() - 1
        for column in row:
            used[column] |= lowest_free
    first = int(colors.max(initial=-1)) + 1 if len(full) < len(rows) else 0
    colors[full] = np.arange(first, first + len(full))
    return colors


def dense_plan(rows: int, columns: int) -> Plan:
    """One sweep for each row, or for each column when these are fewer."""
    by_rows = rows <= columns
    count = rows if by_rows else columns
    groups = tuple(np.array([i]) for i in range(count))
    return Plan(by_rows, groups, np.arange(count), None, None)


def plan(pattern: Pattern, columns: int, owner: np.ndarray | None = None) -> Plan:
    """The cheaper of row and column groups; compressed storage where most entries are 0.

    `owner` numbers the root that each row belongs to. A row sweep walks only the roots it touches,
    so its cost is the share of them; a column sweep walks all.
    """
    rows = len(pattern)
    by_rows, colors = True, greedy_colors(pattern, columns)
    owner = np.zeros(rows, dtype=int) if owner is None else owner
    touched = np.unique(np.stack([colors, owner]), axis=1).shape[1]
    cost = touched / (int(owner.max(initial=0)) + 1)
    if columns < cost:
        by_rows, colors, cost = False, np.arange(columns), columns
    if FULL not in pattern:
        transposed: list[set[int]] = [set() for _ in range(columns)]
        for i, row in enumerate(pattern):
            for column in row or ():
                transposed[column].add(i)
        column_colors = greedy_colors([frozenset(column) for column in transposed], rows)
        # a column sweep differentiates the row sweep first, so it has to save something
        if _count(column_colors) + 2 < cost:
            by_rows, colors = False, column_colors
    groups = _groups(colors)
    indptr, indices = _compressed(pattern, columns)
    return Plan(by_rows, groups, colors, indptr, indices)


def _count(colors: np.ndarray) -> int:
    return int(colors.max(initial=-1)) + 1


def _groups(colors: np.ndarray) -> tuple[np.ndarray, ...]:
    order = np.argsort(colors, kind="stable")
    return tuple(np.split(order, np.cumsum(np.bincount(colors))[:-1])) if colors.size else ()


def _compressed(pattern: Pattern, columns: int) -> tuple[np.ndarray, np.ndarray]:
    everything = range(columns)
    rows = [everything if row is FULL else sorted(row) for row in pattern]
    indptr = np.cumsum([0, *(len(row) for row in rows)])
    every = itertools.chain.from_iterable(rows)
    indices = np.fromiter(every, dtype=int, count=int(indptr[-1]))
    return indptr, indices
