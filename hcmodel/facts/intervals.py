"""An interval for every entry of an expression, over the variables' domains.

Where entries are many, one interval stands for all of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.atoms.enclosures import UNBOUNDED, Interval, Ranges
from hcmodel.atoms.rules import Sign
from hcmodel.expressions.sparse_data import Numbers, dense, extremes, is_sparse

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom
    from hcmodel.facts.answers import Answers

__all__ = [
    "UNBOUNDED",
    "Interval",
    "collapsed",
    "enclosure",
    "interval_sign",
    "of_numbers",
    "with_sign",
]

# Beyond as many entries one interval holds for all, so that facts cost little beside the model itself.
MAX_ENTRIES = 4096


def collapsed(interval: Interval) -> Interval:
    """The interval itself, or one that holds all entries where these are many."""
    low, high = interval
    if low.size <= MAX_ENTRIES and high.size <= MAX_ENTRIES:
        return interval
    return np.asarray(low.min()), np.asarray(high.max())


def of_numbers(value: Numbers) -> Interval:
    """Both ends at the value, entry by entry; those of a sparse matrix as far as they are few."""
    if not is_sparse(value):
        return collapsed((value, value))
    if np.prod(value.shape, dtype=object) <= MAX_ENTRIES:
        return dense(value), dense(value)
    low, high = extremes(value)
    return np.asarray(low), np.asarray(high)


def interval_sign(interval: Interval) -> Sign:
    """The strongest sign that the ends prove."""
    low, high = interval
    if low.size == 0 or high.size == 0:
        return Sign.ZERO
    below, above = float(low.min()), float(high.max())
    if below > 0:
        return Sign.POSITIVE
    if above < 0:
        return Sign.NEGATIVE
    if below == 0:
        return Sign.ZERO if above == 0 else Sign.NONNEGATIVE
    return Sign.NONPOSITIVE if above == 0 else Sign.UNKNOWN


def with_sign(interval: Interval, sign: Sign) -> Interval:
    """The interval cut at 0 where the sign says so."""
    low, high = interval
    if sign.is_nonnegative:
        low = np.maximum(low, 0.0)
        high = np.maximum(high, 0.0)
    if sign.is_nonpositive:
        low = np.minimum(low, 0.0)
        high = np.minimum(high, 0.0)
    return np.asarray(low), np.asarray(high)


def enclosure(
    atom: Atom,
    params: dict[str, Any],
    arguments: Sequence[Interval],
    known: Sequence[bool],
    answers: Answers,
) -> Interval:
    """An interval for each entry of an atom applied to arguments inside the given intervals.

    Arguments that are `known` are numbers: both ends are their value, entry by entry.
    """
    ranges = Ranges(
        atom,
        params,
        arguments,
        [fact.shape for fact in answers.facts],
        known,
        answers.domains,
        answers.moves,
        answers.curvature,
        answers.dependence,
    )
    return atom.enclosure(ranges)
