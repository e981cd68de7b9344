"""Sums of rows that bound a form, found by a linear program and added up in rational numbers.

Rows that are read one after the other (`propagation`) do not see that x + y <= 1 and x - y <= -1 leave
x <= 0. The multipliers of the linear program min c·x are rounded to fractions; whatever they are, what
the rows so weighted say of c·x is true, and it is 0 where it is exactly 0.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from fractions import Fraction

import numpy as np

from hcmodel.certify.domains.propagation import Propagation, Row
from hcmodel.solvers.numerics import BACKEND_ROUNDING

# Weights of rows are fractions with denominators up to this: those of small models in whole numbers are.
LARGEST_DENOMINATOR = 1000


def implied_row(search: Propagation, rows: Sequence[Row], form: Row) -> Row | None:
    """A row that says that a form is not negative; None where the rows do not say so together."""
    columns = {
        term: i for i, term in enumerate({t: 0 for row in (*rows, form) for t, _ in row.terms})
    }
    weights = _weights(search, rows, form, columns)
    if weights is None:
        return None
    total = dict(form.terms)
    constant, parts = form.constant, form.parts
    for weight, row in zip(weights, rows, strict=True):
        if weight:
            constant, parts = constant + weight * row.constant, parts | row.parts
            for term, own in row.terms:
                total[term] = total.get(term, Fraction(0)) + weight * own
    left = [(term, own) for term, own in total.items() if own]
    least = search.total(Row(left, constant, parts))
    if isinstance(least.value, float) or least.value < 0:
        return None
    negated = [(term, -own) for term, own in form.terms]
    return Row(negated, least.value - form.constant, least.parts, least.is_open)


def _weights(
    search: Propagation, rows: Sequence[Row], form: Row, columns: dict[Hashable, int]
) -> list[Fraction] | None:
    """Weights of the rows, not negative but for equalities, in which the form is bounded by 0."""
    if not columns:
        return None
    import scipy.optimize  # most models need no linear program

    matrix, right = np.zeros((len(rows), len(columns))), np.zeros(len(rows))
    for i, row in enumerate(rows):
        right[i] = -float(row.constant)
        for term, weight in row.terms:
            matrix[i, columns[term]] = float(weight)
    cost = np.zeros(len(columns))
    for term, weight in form.terms:
        cost[columns[term]] = float(weight)
    bounds = [tuple(_number(end.value) for end in search.range(term)) for term in columns]
    equal = np.array([row.equality for row in rows], dtype=bool)
    found = scipy.optimize.linprog(
        cost,
        matrix[~equal],
        right[~equal],
        matrix[equal],
        right[equal],
        bounds=bounds,
        method="highs",
    )
    if (
        found.status != 0
        or found.fun + float(form.constant) < -BACKEND_ROUNDING * np.abs(cost).sum()
    ):
        return None
    marginals = np.zeros(len(rows))
    marginals[~equal], marginals[equal] = found.ineqlin.marginals, found.eqlin.marginals
    marginals[~equal] = np.minimum(marginals[~equal], 0.0)
    return [Fraction(-each).limit_denominator(LARGEST_DENOMINATOR) for each in marginals.tolist()]


def _number(value: Fraction | float) -> float | None:
    try:
        number = float(value)
    except OverflowError:  # a fraction beyond all doubles
        return None
    return number if math.isfinite(number) else None
