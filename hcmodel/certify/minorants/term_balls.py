"""A ball that holds every feasible point of low value, from the terms of sums of exponentials.

In a form whose rows are sums of exponentials (`reductions.sum_arrays`) each term by itself is at most the
right side of its row, and each term of the objective at most its level: half-spaces a_k·(v − ũ) <= β_k,
which hold for every feasible v. At a stationary point the shares of the terms times the multipliers of
their rows are weights y >= 0 with Σ y_k a_k = 0, the multipliers of bounds among them. So

    Σ y_k (β_k − a_k·d) = y·β    for d = v − ũ,    and    β_k − y·β/y_k <= a_k·d <= β_k,

which bounds d where these normals span the space. No program is solved. Multipliers that are not exact
leave Σ y_k a_k = r; other weights near by balance (`term_duals`), and give a lower bound of their own.
What rounding leaves of r adds |r||d| to y·β and is moved to the other side.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.certify.certificate_options import ENCLOSURE
from hcmodel.certify.minorants.balls import ball, least_singular_value
from hcmodel.certify.minorants.term_duals import WeighedTerms
from hcmodel.records import dataclass
from hcmodel.reductions.cone.compressed_rows import Rows, stacked
from hcmodel.reductions.sums.sum_arrays import SumArrays
from hcmodel.solvers.algebra.marks import all_finite, length, some
from hcmodel.solvers.numerics import PRODUCT_ROUNDING, TINY
from hcmodel.solvers.oracle import Evaluation
from hcmodel.solvers.sets.half_spaces import HalfSpaces

FloatArray = NDArray[np.float64]
IndexArray = NDArray[np.intp]

# The rows and shares of half-spaces that are no terms.
NO_TERMS: tuple[IndexArray, FloatArray] = (np.zeros(0, dtype=np.intp), np.zeros(0))


@dataclass(frozen=True, eq=False)
class _Half:
    """Half-spaces `normals`·d <= offsets with weights; `both` where −offsets <= normals·d too.

    `rows` and `shares` are those of `WeighedTerms`; bounds have none.
    """

    normals: Rows
    offsets: FloatArray
    weights: FloatArray
    both: bool
    rows: IndexArray
    shares: FloatArray


def term_ball(
    arrays: SumArrays, evaluation: Evaluation, multipliers: FloatArray, level: float
) -> tuple[float, WeighedTerms] | None:
    """A radius around the point that holds all feasible v of value at most `level`; None without one.

    With the terms, whose weights balance where such weights are near.
    """
    u = evaluation.point
    if u.size > ENCLOSURE.largest_search or not evaluation.has_objective:
        return None
    halves = [_objective(arrays, u, level), *_rows(arrays, u, multipliers)]
    terms = WeighedTerms(
        stacked([half.normals for half in halves]),
        *(
            np.concatenate([getattr(half, name) for half in halves])
            for name in ("weights", "rows", "shares")
        ),
    )
    if terms.normals.nnz > ENCLOSURE.most_half_spaces * ENCLOSURE.largest_search:
        return None
    room = np.where(
        terms.slope > 0, u - arrays.lower, arrays.upper - u
    )  # to what may hold an entry
    terms = terms.balanced(~(room <= ENCLOSURE.held)) or terms
    bounds, left = _bounds(arrays, u, terms.slope)
    held = [half for half in bounds if half.offsets.size]
    parts = [half for half in (*halves, *held) if half.offsets.size]
    normals = stacked([terms.normals, *[half.normals for half in held]]) if held else terms.normals
    offsets = np.concatenate([half.offsets for half in parts])
    weights = np.concatenate([terms.weights, *[half.weights for half in held]])
    both = np.repeat([half.both for half in parts], [half.offsets.size for half in parts])
    found = _radius(normals, offsets, weights, both, left, u)
    if found is None:
        found = _by_program(normals, offsets, both)
    return None if found is None else (found, terms)


def _by_program(normals: Rows, offsets: FloatArray, both: NDArray[np.bool_]) -> float | None:
    """By a linear program, where the weights leave out directions: rows with room may close them."""
    dense = normals.dense()
    opposite = both.nonzero()[0]
    whole = np.concatenate([dense, -dense[opposite]])
    room = np.concatenate([offsets, offsets[opposite]])
    unit = max(float(np.abs(room).max(initial=0.0)), ENCLOSURE.smallest_image)
    return ball(HalfSpaces(whole, room), unit)


def _radius(
    normals: Rows,
    offsets: FloatArray,
    weights: FloatArray,
    both: NDArray[np.bool_],
    left: FloatArray,
    u: FloatArray,
) -> float | None:
    """From the width of each pair of half-spaces, with rounding added to offsets and to Σ y_k a_k."""
    size = Rows(np.abs(normals.data), normals.indices, normals.indptr, normals.shape[1])
    offsets = offsets + PRODUCT_ROUNDING * (size @ np.abs(u) + np.abs(offsets) + 1.0)
    rounding = np.zeros(u.size)
    _add(rounding, size, np.abs(weights))
    rest = length(np.abs(left) + PRODUCT_ROUNDING * rounding)
    total = float(np.where(both, np.abs(weights), weights) @ offsets)
    total = max(total, TINY) * (1 + PRODUCT_ROUNDING * weights.size)
    used = (both | (weights > TINY * total)).nonzero()[0]
    own, tight = offsets[used], weights[used]
    with np.errstate(all="ignore"):
        widths = np.maximum(np.abs(own), np.abs(total / tight - own))
        widths = np.where(both[used], np.abs(own), widths)
        widths = np.maximum(widths, PRODUCT_ROUNDING)
        shares = np.where(both[used], 0.0, 1.0 / (tight * widths))
    matrix = normals[used].scaled(1.0 / widths).dense()
    if not all_finite(matrix) or used.size < u.size:
        return None
    lost = rest * length(shares)
    # no singular value is less than the least one, and that is at most the length of each column
    most = float(np.sqrt(np.einsum("ij,ij->j", matrix, matrix).min(initial=np.inf)))
    if not max(lost, float(np.sqrt(used.size)) / ENCLOSURE.farthest) < most:
        return None
    smallest = least_singular_value(matrix) - lost
    if not smallest > 0:
        return None
    return float(np.sqrt(used.size)) / smallest


def _add(total: FloatArray, rows: Rows, weights: FloatArray) -> None:
    """Σ weights of the rows, to a vector."""
    total += np.bincount(
        rows.indices, rows.data * weights.repeat(rows.lengths), minlength=total.size
    )


def _objective(arrays: SumArrays, u: FloatArray, level: float) -> _Half:
    entries, places = arrays.entries, arrays.places
    first = np.zeros(1, dtype=np.intp)
    if not places.in_logs:
        normals = entries.affine[first].scaled(np.full(1, places.sign))
        value = normals @ u + places.sign * entries.offset[:1]
        return _Half(normals, level - value, np.ones(1), False, np.zeros(1, np.intp), np.ones(1))
    terms = entries.terms[first].indices
    normals = entries.exponents[terms].scaled(np.full(terms.size, places.sign))
    values = normals @ u + places.sign * entries.logs[terms]
    shares = np.exp(values - values.max())
    shares /= shares.sum()
    return _Half(normals, level - values, shares, False, np.zeros(terms.size, np.intp), shares)


def _rows(arrays: SumArrays, u: FloatArray, multipliers: FloatArray) -> list[_Half]:
    """Of rows as they are, of rows between logarithms, and of equalities, which hold both ways."""
    entries, places = arrays.entries, arrays.places
    found = []
    for marks, straight in ((places.plain, True), (places.single | places.sums, False)):
        own = marks.nonzero()[0]
        if not own.size:
            continue
        if straight:
            left, right, owner = places.left[own], places.right[own], np.arange(own.size)
            parts, numbers = entries.affine, entries.offset
        else:
            terms = entries.terms[places.left[own]]
            owner = np.arange(own.size).repeat(terms.lengths)
            left, right = terms.indices, entries.only(places.right[own])[owner]
            parts, numbers = entries.exponents, entries.logs
        normals, divided = parts[left], parts[right]
        if divided.nnz:  # most are divided by a number
            normals = normals + (-divided)
        values = normals @ u + numbers[left] - numbers[right]
        shares = np.ones(owner.size) if straight else _shares(values, owner, own.size)
        rows = own[owner]
        weights = multipliers[rows] * shares
        equality = places.equality[rows]
        for chosen, both in ((~equality, False), (equality, True)):
            which = chosen.nonzero()[0]
            if not which.size:
                continue
            offsets = np.abs(values[which]) if both else -values[which]
            kept = weights[which] if both else np.maximum(weights[which], 0.0)
            part = normals if which.size == rows.size else normals[which]
            found.append(_Half(part, offsets, kept, both, 1 + rows[which], shares[which]))
    return found


def _shares(values: FloatArray, owner: IndexArray, count: int) -> FloatArray:
    """What each term, given by its logarithm, is of the sum of its owner."""
    top = np.full(count, -np.inf)
    np.maximum.at(top, owner, values)
    terms = np.exp(values - top[owner])
    return np.asarray(terms / np.bincount(owner, terms, minlength=count)[owner])


def _bounds(
    arrays: SumArrays, u: FloatArray, pull: FloatArray
) -> tuple[tuple[_Half, ...], FloatArray]:
    """The bounds, with the weights that take up `pull`, and what they leave of it."""
    below, above = u - arrays.lower, arrays.upper - u
    low, high = np.isfinite(below), np.isfinite(above)
    if not some(low | high):
        return (), pull
    left = pull.copy()
    left[(low & (pull > 0)) | (high & (pull < 0))] = 0.0
    found = []
    for marks, room, sign in ((low & ~high, below, -1.0), (high & ~low, above, 1.0)):
        entries = marks.nonzero()[0]
        normals = Rows.units(entries, u.size).scaled(np.full(entries.size, sign))
        weights = np.maximum(-sign * pull[entries], 0.0)
        found.append(_Half(normals, room[entries], weights, False, *NO_TERMS))
    entries = (low & high).nonzero()[0]
    widest = np.maximum(below, above)[entries]
    units = Rows.units(entries, u.size)
    # the weights count towards y·β: those of the bound that holds the entry back, at its own distance
    held = np.where(pull > 0, below, above)[entries] * np.abs(pull[entries])
    found.append(_Half(units, widest, held / np.maximum(widest, TINY), True, *NO_TERMS))
    return tuple(found), left
