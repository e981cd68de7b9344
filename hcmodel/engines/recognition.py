"""Which entries of a program are sums of terms, found from what the atoms declare about themselves.

One pass over the steps, each of them an operation on arrays of terms (`terms`). It is repeated when
parameters get new values, since coefficients and exponents may be parameters.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.atoms.rules import Argument, Contraction, Dependence
from hcmodel.engines import scalar_terms
from hcmodel.engines.graph_program import Program
from hcmodel.engines.terms import NUMBER, Terms, joined, total
from hcmodel.expressions.graph import Step
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.sparse_data import is_sparse, nonzero_places
from hcmodel.solvers.algebra.marks import every
from hcmodel.solvers.limits import check_time

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# Terms of one step beyond which its structure is not looked for: arrays of so many numbers take 0.1 GB.
MOST_TERMS = 10_000_000

# Constants are arrays, sparse matrices, or floats where they are numbers; numbers that depend on unknowns
# are lists.
Value = Any


def recognised(program: Program) -> Terms:
    """The entries of all roots as sums of terms; those that are none are marked as unknown."""
    with np.errstate(all="ignore"):  # terms that leave the range of numbers are looked for
        return _recognised(program)


def _recognised(program: Program) -> Terms:
    told = [None if terms is None else terms() for terms in program.known]
    if program.is_known:
        return _side_by_side(told)
    roots = program.graph.roots
    told += [None] * (len(roots) - len(told))
    asked = [root for root, terms in zip(roots, told, strict=True) if terms is None]
    wanted = set(program.needed(asked)) if len(asked) < len(roots) else None
    constants = program.constants()
    found: list[Value] = []
    for number, step in enumerate(program.graph.steps):
        if not program.live[number]:
            value = constants[number]
            found.append(_number(value) if step.shape else float(value))
        elif wanted is not None and number not in wanted:
            found.append(None)
        elif isinstance(step.leaf, Variable):
            found.append(_unknowns(step.leaf, program.layout))
        else:
            found.append(_applied(step, [found[argument] for argument in step.arguments]))
    return _side_by_side(
        [found[root] if own is None else own for root, own in zip(roots, told, strict=True)]
    )


def _number(value: Any) -> Value:
    """An array of constants; sparse ones are there only for contractions (`Program.constants`)."""
    return value if is_sparse(value) else np.asarray(value, dtype=float)


def _side_by_side(values: Sequence[Value]) -> Terms:
    """All entries, one value after the other; numbers that follow each other are stacked at once."""
    if len(values) == 1:
        return _as_terms(values[0])
    parts: list[Terms] = []
    for arrays, run in itertools.groupby(
        values, lambda value: isinstance(value, (Terms, np.ndarray))
    ):
        if arrays:
            parts += [_as_terms(value) for value in run]
        else:
            parts.append(scalar_terms.stacked([_as_scalar(value) for value in run]))
    return joined(parts or [Terms.constant(np.zeros(0))])


def _as_scalar(value: Value) -> scalar_terms.Scalar:
    if isinstance(value, float):
        return [(value, NUMBER, ())] if value else []
    assert value is None or isinstance(value, list)
    return value


def _applied(step: Step, arguments: Sequence[Value]) -> Value:
    """The value of one applied atom, at least one of whose arguments is not constant."""
    atom = step.atom
    assert atom is not None
    if not step.shape:
        if not any(isinstance(each, (Terms, np.ndarray)) for each in arguments):
            found = scalar_terms.applied(step, arguments)
            if found is not None or None in arguments:
                return found
        elif atom.moves_entries and len(arguments) == 1:
            return scalar_terms.entry(arguments[0], step)
    if atom.summed:
        return _sum(step, arguments)
    if atom.moves_entries:
        return _moved(step, arguments)
    arrays = [
        _number(a) if isinstance(a, float | np.ndarray) or is_sparse(a) else _as_terms(a)
        for a in arguments
    ]
    terms = _applied_to_arrays(step, arrays).reshaped(step.shape)
    if not step.shape and terms.target.size <= 1:  # go on with numbers
        return None if every(terms.unknown) else scalar_terms.whole(terms)
    return terms


def _unknowns(variable: Variable, layout: Layout) -> Terms:
    weight, positive = entry_weights(variable), variable.set.has_logarithm
    return Terms.of_unknowns(variable.shape, layout.places(variable), weight, positive)


def entry_weights(variable: Variable) -> FloatArray:
    """What each entry of a variable, in C order, is of the number that is stored for it."""
    if not variable.set.is_symmetric:
        return np.ones(variable.size)
    return np.ravel(variable.set.expand(np, np.ones(variable.set.stored_size)))


def _as_terms(value: Value) -> Terms:
    if isinstance(value, Terms):
        return value
    if isinstance(value, list) or value is None:
        return scalar_terms.stacked([value]).reshaped(())
    return Terms.constant(value)


def _applied_to_arrays(step: Step, arguments: Sequence[Value]) -> Terms:
    check_time()
    atom = step.atom
    assert atom is not None
    live = [place for place, each in enumerate(arguments) if isinstance(each, Terms)]
    if all(every(arguments[place].unknown) for place in live):
        return Terms.nothing(step.shape)
    dependence = atom.dependence([each.shape for each in arguments], step.params)
    found: Terms | None = None
    if len(live) == 1 and live[0] in atom.linear_in:
        found = _linear(step, arguments, live[0], dependence)
    if found is None and dependence is Dependence.ELEMENTWISE:
        found = _monomial(step, arguments)
    if found is None and isinstance(dependence, Contraction):
        found = _contracted(step, arguments, dependence.subscripts)
    if found is None and len(arguments) == 1:
        found = _through_logarithms(step, arguments[0])
    return Terms.nothing(step.shape) if found is None else found


def _sum(step: Step, arguments: Sequence[Value]) -> Terms:
    """The sum of arrays and numbers; the numbers are added first."""
    assert step.atom is not None
    signs = step.atom.signs(len(arguments))
    parts: list[Terms] = []
    numbers: list[tuple[Value, int]] = []
    for argument, sign in zip(arguments, signs, strict=True):
        if not isinstance(argument, (Terms, np.ndarray)):
            numbers.append((argument, sign))
            continue
        part = _as_terms(argument)
        parts.append(part if sign == 1 else part.scaled(np.full(part.shape, float(sign))))
    if numbers:
        values, own = zip(*numbers, strict=True)
        parts.append(scalar_terms.stacked([scalar_terms.added(own, values)]).reshaped(()))
    return total(parts, step.shape)


def _moved(step: Step, arguments: Sequence[Value]) -> Terms:
    """Movements of entries, found by moving their numbers; 0 is a zero of the result."""
    assert step.atom is not None
    numbers, start = [], 1
    for each in arguments:
        shape = each.shape if isinstance(each, (Terms, np.ndarray)) else ()
        numbers.append(start + np.arange(_size(shape)).reshape(shape))
        start += numbers[-1].size
    moved = step.atom.function(np, *numbers, **step.params)
    places = np.asarray(moved, dtype=np.intp).reshape(-1)
    if places.all():
        return _side_by_side(arguments).taken(places - 1, step.shape)
    return _side_by_side([0.0, *arguments]).taken(places, step.shape)


def _linear(
    step: Step, arguments: Sequence[Value], place: int, dependence: Dependence | Contraction
) -> Terms | None:
    """An atom that is linear in its one argument that is not constant."""
    assert step.atom is not None
    own = arguments[place]
    assert isinstance(own, Terms)
    if dependence is Dependence.ELEMENTWISE:
        ones = [np.ones(own.shape) if i == place else each for i, each in enumerate(arguments)]
        factors = step.atom.function(np, *ones, **step.params)
        return own.broadcast(step.shape).scaled(np.broadcast_to(factors, step.shape))
    if dependence is Dependence.REDUCTION and len(arguments) == 1:
        groups = reduced_places(step, own.shape)
        if groups is None:
            return None
        weight = step.atom.function(np, np.ones(own.shape), **step.params)
        each = float(np.sum(weight)) / max(own.size, 1)
        return own.grouped(groups, step.shape).scaled(np.full(step.shape, each))
    return None


def reduced_places(step: Step, shape: Shape) -> IndexArray | None:
    """For each entry of the argument the entry of the result; None for running reductions."""
    axes = step.params.get("axis")
    if isinstance(axes, int):
        axes = (axes,)
    every = range(len(shape)) if axes is None else axes
    thin = tuple(1 if i in every else n for i, n in enumerate(shape))
    if _size(thin) != _size(step.shape):
        return None
    numbers = np.arange(_size(thin)).reshape(thin)
    return np.broadcast_to(numbers, shape).reshape(-1)


def _monomial(step: Step, arguments: Sequence[Value]) -> Terms | None:
    """A product of powers, entry by entry."""
    assert step.atom is not None
    facts = [
        Argument(each.shape) if isinstance(each, Terms) else Argument.from_value(each)
        for each in arguments
    ]
    exponents = step.atom.exponents(facts, step.params)
    if exponents is None or any(each is None for each in exponents):
        return None
    if any(isinstance(each, Terms) for each in arguments[len(exponents) :]):
        return None
    if _size(step.shape) > MOST_TERMS:
        return None
    product: Terms | None = None
    for argument, exponent in zip(arguments, exponents, strict=False):
        power = np.broadcast_to(np.asarray(exponent, dtype=float), step.shape)
        factor = _as_terms(argument).broadcast(step.shape).power(power)
        product = factor if product is None else product.times(factor)
    return product


def _through_logarithms(step: Step, argument: Terms) -> Terms | None:
    """Exponentials, logarithms and products along axes, which the cone form of an atom tells."""
    assert step.atom is not None
    forms = step.atom.cone_form
    if forms is None:
        return None
    if forms.plain_to_log is cones.first:
        return argument.exponential()
    if forms.log_to_plain is cones.first:
        return argument.logarithm()
    if forms is cones.PRODUCT:
        groups = reduced_places(step, argument.shape)
        return None if groups is None else argument.product(groups, step.shape)
    return None


# ---- sums of products along shared labels


def _contracted(step: Step, arguments: Sequence[Value], subscripts: str) -> Terms | None:
    """A contraction of one or two arguments; only entries of a constant that are not 0 count."""
    if len(arguments) > 2 or (len(arguments) == 2 and all(map(_nowhere_monomial, arguments))):
        return None
    if subscripts in ("ij,j->i", "j,j->") and not isinstance(arguments[0], Terms):
        return _matrix_times(*arguments)
    constant = next((i for i, each in enumerate(arguments) if not isinstance(each, Terms)), None)
    labels, output = subscripts.split("->")
    terms = labels.split(",")
    shapes = [each.shape for each in arguments]
    filled: tuple[IndexArray, ...] = ()
    if constant is not None and shapes[constant]:
        if _are_too_many(terms, shapes, constant, arguments[constant]):
            return None  # before their places are listed, which takes a second for 20 million
        filled = nonzero_places(arguments[constant])
    index = combinations(terms, shapes, constant, filled)
    if index is None:
        return None
    count = next(iter(index.values())).size if index else 1
    product: Terms | None = None
    for own, argument in zip(terms, arguments, strict=True):
        if is_sparse(argument):  # its entries in the order of `filled`
            product = _multiplied(product, np.repeat(argument.data, count // max(argument.nnz, 1)))
            continue
        places = raveled([index[label] for label in own], argument.shape, count)
        factor = (
            argument.taken(places, (count,))
            if isinstance(argument, Terms)
            else np.asarray(argument).reshape(-1)[places]
        )
        product = _multiplied(product, factor)
    assert product is not None
    groups = raveled([index[label] for label in output], step.shape, count)
    return product.grouped(groups, step.shape)


def _matrix_times(matrix: Any, vector: Terms) -> Terms | None:
    """A matrix or a row of numbers times a vector of terms, as most arrays of terms are written."""
    filled = matrix.nnz if is_sparse(matrix) else np.count_nonzero(matrix)
    if filled > MOST_TERMS:
        return None  # before their places are listed
    places = nonzero_places(matrix)
    check_time()
    data = matrix.data if is_sparse(matrix) else matrix[places]
    rows = places[0] if len(places) == 2 else np.zeros(data.size, dtype=np.intp)
    return vector.combined(places[-1], data, rows, matrix.shape[:-1])


def _are_too_many(
    terms: Sequence[str], shapes: Sequence[Shape], constant: int, numbers: Any
) -> bool:
    """Whether the products of the numbers that are not 0 are too many, diagonals left aside."""
    own = terms[constant]
    if len(set(own)) < len(own):
        return False
    lengths: dict[str, int] = {}
    for labels, shape in zip(terms, shapes, strict=True):
        lengths.update(zip(labels, shape, strict=True))
    filled = numbers.nnz if is_sparse(numbers) else np.count_nonzero(numbers)
    wide = math.prod([length for label, length in lengths.items() if label not in own])
    return bool(filled * wide > MOST_TERMS)


def _nowhere_monomial(argument: Value) -> bool:
    """Whether no entry can be multiplied with another one of this kind: all have unknowns of any sign."""
    return isinstance(argument, Terms) and every(argument.multiplied_by_numbers_only)


def _multiplied(one: Any, two: Any) -> Any:
    """The product of arrays of terms and of numbers."""
    if one is None:
        return two
    if isinstance(one, Terms):
        return one.times(two) if isinstance(two, Terms) else one.scaled(two)
    return two.scaled(one)


def combinations(
    terms: Sequence[str],
    shapes: Sequence[Shape],
    constant: int | None,
    filled: tuple[IndexArray, ...],
) -> dict[str, IndexArray] | None:
    """The index that each label has in each product; None where these are too many."""
    lengths: dict[str, int] = {}
    for own, shape in zip(terms, shapes, strict=True):
        lengths.update(zip(own, shape, strict=True))
    index: dict[str, IndexArray] = {}
    if constant is not None and filled:
        kept: Any = slice(None)
        for label, places in zip(terms[constant], filled, strict=True):
            if label in index:  # a diagonal
                here = index[label] == places
                kept = here if isinstance(kept, slice) else kept & here
            index[label] = places
        index = {label: places[kept] for label, places in index.items()}
    count = next(iter(index.values())).size if index else 1
    rest = [label for label in lengths if label not in index]
    if not rest:
        return index if count <= MOST_TERMS else None
    wide = math.prod([lengths[label] for label in rest])
    if count * wide > MOST_TERMS:
        return None
    found = {label: places.repeat(wide) for label, places in index.items()}
    grid = np.arange(wide).reshape(1, wide)
    if len(rest) > 1:
        grid = np.indices([lengths[label] for label in rest]).reshape(len(rest), wide)
    for label, places in zip(rest, grid, strict=True):
        repeated = np.empty(
            (count, wide), dtype=np.intp
        )  # in less time than np.tile, which is general
        repeated[:] = places
        found[label] = repeated.reshape(-1)
    return found


def raveled(index: Sequence[IndexArray], shape: Shape, count: int) -> IndexArray:
    """Entries counted in C order; all of them 0 for a scalar."""
    check_time()
    if not shape:
        return np.zeros(count, dtype=np.intp)
    if len(index) == 1:
        return np.asarray(index[0], dtype=np.intp)
    return np.asarray(np.ravel_multi_index(tuple(index), shape), dtype=np.intp)


def _size(shape: Shape) -> int:
    return math.prod(shape)
