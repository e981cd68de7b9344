"""A form whose functions are affine or sums of exponentials in u, as arrays.

The structured stack (`engines.structured`) has the functions of such a form as matrices in x. Here they
are sorted by u: every row is

    between logarithms    Σ_k exp(E_k u + b_k) <= exp(e·u + c)    posynomial <= monomial
    ... with one term     E u + b <= e·u + c, or ==
    as it is              left <= right, or ==, both affine

so that a form that has these arrays is convex, whatever else is known of it. Programs are put together
from them without a look at the proof's nodes (`cone_sums`, `convex_sums`).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms import cones
from hcmodel.engines.engine import CompiledStack
from hcmodel.engines.structured import StructuredStack
from hcmodel.expressions.graph import Graph
from hcmodel.expressions.leaves import Variable
from hcmodel.records import dataclass
from hcmodel.reductions.cone.affine import Affine
from hcmodel.reductions.cone.compressed_rows import Rows
from hcmodel.reductions.smooth import SmoothProgram
from hcmodel.reductions.wider_bounds import with_wider_bounds
from hcmodel.solvers.algebra.marks import every, some
from hcmodel.solvers.coordinates.logarithmic import LogStack
from hcmodel.solvers.numerics import DATA_ROUNDING
from hcmodel.solvers.outer import Outer

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]
Marks = NDArray[np.bool_]

FIRST: IndexArray = np.zeros(1, dtype=np.intp)  # the objective
# Entries of objective and rows up to which those that are not 0 are marked, one byte each.
MARKED = 1_000_000


def arrays_of_sums(program: SmoothProgram) -> SumArrays | None:
    """The arrays of a form; None where a function is neither affine nor such a sum."""
    compiled = program.compiled
    if not isinstance(compiled, StructuredStack) or compiled.kinked:
        return None
    if not all(compiled.structured[: compiled.program.stop]):
        return None
    domain = program.domain.cone_rows()
    if domain.cones:
        return None
    entries = Entries.of(compiled, program)
    places = None if entries is None else Places.of(program, entries)
    if entries is None or places is None:
        return None
    ends = with_wider_bounds(program.layout, program.logs, domain.lower, domain.upper)
    return SumArrays(entries, places, *ends)


def affine_roots(program: SmoothProgram) -> dict[int, Affine]:
    """The roots that are affine in u = x, by their identities, read off the compiled stack."""
    compiled = program.compiled
    if not isinstance(compiled, StructuredStack) or program.stack is not compiled:
        return {}
    data, _ = compiled.terms
    curved = np.zeros(data.size + 1, dtype=np.intp)
    curved[data.rows + 1] = curved[data.logarithms.rows + 1] = 1
    before = curved.cumsum()  # the rows that are not affine
    found: dict[int, Affine] = {}
    start = 0
    for root, structured in zip(program.canonical.roots, compiled.structured, strict=False):
        if not structured:
            continue
        stop = start + root.size
        if before[stop] == before[start]:
            own = data.linear.between(start, stop)
            rows = Rows.of_entries(own.values, own.rows, own.columns, own.shape)
            found[id(root)] = Affine(root.shape, data.offset[start:stop], rows)
        start = stop
    return found


def needs_logarithms(compiled: CompiledStack, outer: Outer) -> bool:
    """Whether a term of a minimised objective, or of the lesser side of a row, is not convex as it is.

    A product of powers of positive numbers is convex if no exponent is positive, or one is and all add up
    to at least 1. Other terms are convex in no coordinates but logarithms, as far as a proof can tell.
    The exponential of a sum of logarithms is one of these where a logarithm has a positive weight.
    """
    if not isinstance(compiled, StructuredStack) or compiled.kinked:
        return False
    if not all(compiled.structured[: compiled.program.stop]):
        return False
    data, _ = compiled.terms
    count, owner, exponents = data.weights.size, data.exponents.rows, data.exponents.values
    linear = data.linear  # also the exponential of one logarithm
    rising = np.bincount(owner, exponents > 0, minlength=count)
    total = np.bincount(owner, exponents, minlength=count)
    lesser = np.zeros(data.size, dtype=bool)
    lesser[0] = outer.objective[0] > 0
    lesser[compiled.objective_size + outer.left.entries[: outer.inequalities]] = True
    bent = (rising > 1) | ((rising == 1) & (total < 1.0 - DATA_ROUNDING))
    own = lesser[data.rows] & (data.weights > 0)
    if some(own & bent):
        return True
    rises = some(own & (rising > 0)) or some(lesser[linear.rows] & (linear.values > 0))
    return rises and _only_in_logarithms(compiled.program.graph)


def _only_in_logarithms(graph: Graph) -> bool:
    """Whether no atom but the logarithm is applied to a variable, or to entries taken out of one."""
    plain: set[int] = set()
    for number, step in enumerate(graph.steps):
        if isinstance(step.leaf, Variable):
            plain.add(number)
        elif step.atom is not None and not plain.isdisjoint(step.arguments):
            if step.atom.moves_entries:
                plain.add(number)
            elif step.atom.cone_form is None or step.atom.cone_form.log_to_plain is not cones.first:
                return False
    return plain.isdisjoint(graph.roots)


@dataclass(frozen=True, eq=False)
class SumArrays:
    """Rows and objective as affine functions and sums of exponentials, and the bounds of u."""

    entries: Entries
    places: Places
    lower: FloatArray
    upper: FloatArray

    @property
    def exponents(self) -> int:
        """The number of exponents in all sums of several terms."""
        groups = self.places.left[self.places.sums]
        if self.places.in_logs and self.entries.counts[0] > 1:
            groups = np.append(groups, 0)
        own = self.entries.terms[groups].indices
        return int(self.entries.exponents.lengths[own].sum())

    @property
    def linear_density(self) -> float | None:
        """The share of entries that are not 0 in objective and rows, where these are affine and small.

        None where they are not, where an unknown stands on both sides or twice in a sum, or where it
        takes as long as to make the program.
        """
        places, affine, width = self.places, self.entries.affine, self.lower.size
        count = places.left.size + 1
        if places.in_logs or not every(places.plain) or count * width > MARKED:
            return None
        marks = np.zeros((count, width), dtype=bool)
        filled = 0
        rows = np.arange(1, count)
        for own, at in ((FIRST, FIRST), (places.left, rows), (places.right, rows)):
            part = affine[own]
            marks[at.repeat(part.lengths), part.indices] = True
            filled += part.indices.size
        return filled / max(marks.size, 1) if np.count_nonzero(marks) == filled else None


class Entries:
    """The entries of φ by u: affine parts, and terms weight·exp(E u), the numbers among them."""

    def __init__(
        self,
        logarithms: Marks,
        affine: Rows,
        offset: FloatArray,
        exponents: Rows,
        weights: FloatArray,
        owner: IndexArray,
    ) -> None:
        self.logarithms = logarithms  # the entries of u that are logarithms
        self.affine, self.offset, self.exponents = affine, offset, exponents
        size = offset.size
        order = owner.argsort(kind="stable")
        self.terms = Rows(np.ones(owner.size), order, starts_of(owner[order], size), owner.size)
        self.counts = self.terms.lengths
        numbers = exponents.lengths == 0
        self.is_affine = np.bincount(owner[~numbers], minlength=size) == 0
        negative = np.bincount(owner[~(weights > 0)], minlength=size) > 0
        flat = affine.lengths == 0
        self.is_posynomial = flat & (self.counts > 0) & ~negative
        self.is_monomial = self.is_posynomial & (self.counts == 1)
        with np.errstate(all="ignore"):
            self.logs = np.log(weights)

    def only(self, places: IndexArray) -> IndexArray:
        """The terms of entries that have one each."""
        return self.terms[places].indices

    @staticmethod
    def of(stack: StructuredStack, program: SmoothProgram) -> Entries | None:
        """None where a power or a logarithm is of a variable that is its own coordinate."""
        data, _ = stack.terms
        inner = program.stack
        logs = inner.logs if isinstance(inner, LogStack) else np.zeros(stack.dimension, dtype=bool)
        linear, logarithms, powers = data.linear, data.logarithms, data.exponents
        if not (every(logs[powers.columns]) and every(logs[logarithms.columns])):
            return None
        through = logs[linear.columns]  # x = exp(u): a term of its own
        straight = ~through
        affine = Rows.of_entries(
            np.concatenate([linear.values[straight], logarithms.values]),
            np.concatenate([linear.rows[straight], logarithms.rows]),
            np.concatenate([linear.columns[straight], logarithms.columns]),
            (data.size, stack.dimension),
        )
        numbers = data.offset.nonzero()[0]
        count, more = data.weights.size, int(through.sum())
        exponents = Rows.of_entries(
            np.concatenate([powers.values, np.ones(more)]),
            np.concatenate([powers.rows, count + np.arange(more)]),
            np.concatenate([powers.columns, linear.columns[through]]),
            (count + more + numbers.size, stack.dimension),
        )
        weights = np.concatenate([data.weights, linear.values[through], data.offset[numbers]])
        owner = np.concatenate([data.rows, linear.rows[through], numbers])
        if np.count_nonzero(weights) < weights.size:  # a coefficient of 0
            kept = weights.nonzero()[0]
            exponents, weights, owner = exponents[kept], weights[kept], owner[kept]
        return Entries(logs, affine, data.offset, exponents, weights, owner)


@dataclass(frozen=True, eq=False)
class Places:
    """The entries of φ on both sides of the rows, and the kinds of the rows; and of the objective.

    `sums` are rows with several terms on the left, `single` those with one term on each side, and
    `plain` those that are compared as they are.
    """

    left: IndexArray
    right: IndexArray
    equality: Marks
    plain: Marks
    single: Marks
    sums: Marks
    sign: float
    in_logs: bool

    @staticmethod
    def of(program: SmoothProgram, entries: Entries) -> Places | None:
        """None where a row or the objective has no such form."""
        outer, split = program.outer, program.compiled.objective_size
        left, right = split + outer.left.entries, split + outer.right.entries
        equality = np.arange(outer.size) >= outer.inequalities
        logs = outer.forms != 0 if outer.forms.size else np.zeros(outer.size, dtype=bool)
        plain = ~logs & entries.is_affine[left] & entries.is_affine[right]
        logs &= entries.is_monomial[right]
        single = logs & entries.is_monomial[left]
        sums = logs & entries.is_posynomial[left] & ~single & ~equality
        if not every(plain | single | sums):
            return None
        sign = float(outer.objective[0])
        if outer.objective_form == "plain":
            fits = entries.is_affine[0]
        else:
            fits = (entries.is_posynomial if sign > 0 else entries.is_monomial)[0]
        if not fits:
            return None
        in_logs = outer.objective_form != "plain"
        return Places(left, right, equality, plain, single, sums, sign, in_logs)


def starts_of(numbers: IndexArray, count: int) -> IndexArray:
    """Where each number begins in a sorted list."""
    return numbers.searchsorted(np.arange(count + 1))
