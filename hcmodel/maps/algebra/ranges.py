"""The range of an affine function over the points of a model, as far as its affine rows tell it.

A sign that does not follow from the bounds of the variables alone may follow from the rows: a denominator
is positive where a row says so. The range is that of a linear program over the bounds, the
distributions and the affine rows; rows that are not affine are left out, so that it is never too small.
"""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.sparse import csr_array, hstack, vstack

from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import ONE, Sums
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.gather import gathered
from hcmodel.maps.algebra.quadratics import combined, is_square_form, quadratic
from hcmodel.solvers.numerics import BACKEND_ROUNDING

FloatArray = NDArray[np.float64]

INFEASIBLE = 2  # a status of scipy's linear programs


def is_affine(model: Expanded, sums: Sums) -> bool:
    """Whether an array of sums is affine in the variables."""
    if int(sums.degrees.max(initial=0)) > 1:
        return False
    owners = model.symbols.grouped(sums.symbols_used())
    return all(isinstance(source, Variable) for source, _, _ in owners)


def sign_of(model: Expanded, sums: Sums) -> int:
    """1 for a scalar that is nowhere negative, −1 for one that is nowhere positive, else 0."""
    low, high = (float(end) for end in model.symbols.interval(gathered(sums, model.symbols)))
    if low < 0 < high and is_affine(model, sums):
        low, high = affine_range(model, sums)
    elif low < 0 < high and (is_square_form(sums) or is_square_form(-sums)):
        return 1 if is_square_form(sums) else -1
    if low >= 0:
        return 1
    return -1 if high <= 0 else 0


def is_positive(model: Expanded, sums: Sums) -> bool:
    """Whether a scalar is nowhere 0 or negative, by the bounds and the affine rows.

    A sum of squares |L x|² is 0 where L x = 0, which the affine rows may exclude: Σx = 1 for an L of full
    rank. The largest entry of |L x| has a least value, that of a linear program.
    """
    symbols = model.symbols
    if float(symbols.interval(sums)[0]) > 0:
        return True
    if is_affine(model, sums):
        return affine_range(model, sums)[0] > 0
    if sums.key.size == 1 and sums.degrees[0] == 1:
        return bool(sums.weight[0] > 0) and _is_positive_function(model, int(sums.key[0]) - 1)
    if int(sums.degrees.max(initial=0)) > 2:
        return False
    sign, factor, digits = quadratic(sums)
    if factor is None or sign < 0:
        return False
    inside = combined(factor, digits, symbols.coding)
    return is_affine(model, inside) and _least_size(model, inside) > 0


def _is_positive_function(model: Expanded, symbol: int) -> bool:
    """Whether a power or a norm is nowhere 0."""
    symbols = model.symbols
    function = symbols.function(symbol)
    if function is not None and function.atom is ATOMS["norm"]:
        inside = function.arguments[0]
        return is_affine(model, inside) and _least_size(model, inside) > 0
    base, power = symbols.power(symbol)
    return power > 0 and power != 1 and is_positive(model, base)


def _least_size(model: Expanded, sums: Sums) -> float:
    """The least value of the largest entry of |·| of an affine array, where rows do not contradict."""
    upper, right, *equalities, bounds, columns = affine_program(model)
    varying = sums.key != ONE
    place = np.searchsorted(columns, sums.key[varying] - 1)
    cells = sums.weight[varying], (sums.entry[varying], place)
    matrix, shift = csr_array(cells, shape=(sums.size, columns.size)), sums.value.reshape(-1)
    rows = vstack([hstack([sign * matrix, -np.ones((sums.size, 1))]) for sign in (1.0, -1.0)])
    found = scipy.optimize.linprog(
        np.append(np.zeros(columns.size), 1.0),
        vstack([hstack([upper, csr_array((right.size, 1))]), rows]),
        np.concatenate([right, -shift, shift]),
        hstack([equalities[0], csr_array((equalities[1].size, 1))]),
        equalities[1],
        bounds=np.vstack([bounds, [0.0, np.inf]]),
        method="highs",
    )
    size = float(np.abs(sums.weight).max(initial=0.0))
    return float(found.fun) if found.status == 0 and found.fun > BACKEND_ROUNDING * size else 0.0


def affine_range(model: Expanded, sums: Sums) -> tuple[float, float]:
    """The least and largest value of an affine scalar; infinite where no row holds it.

    Where the rows contradict each other it is 0: all that is said of every point is true then.
    """
    program = affine_program(model)
    columns = program[-1]
    cost = np.zeros(columns.size)
    varying = sums.key != ONE
    cost[np.searchsorted(columns, sums.key[varying] - 1)] = sums.weight[varying]
    shift = float(sums.weight[~varying].sum())
    size = float(np.abs(sums.weight).max(initial=0.0))
    ends = []
    for sign in (1.0, -1.0):
        found = scipy.optimize.linprog(
            sign * cost, *program[:-2], bounds=program[-2], method="highs"
        )
        if found.status == INFEASIBLE:
            return 0.0, 0.0
        end = sign * float(found.fun) + shift if found.status == 0 else -sign * np.inf
        ends.append(0.0 if abs(end) <= BACKEND_ROUNDING * size else end)
    return ends[0], ends[1]


def affine_program(
    model: Expanded,
) -> tuple[csr_array, FloatArray, csr_array, FloatArray, FloatArray, NDArray[np.int64]]:
    """Inequalities, equalities and bounds of the affine rows, and the symbols of the columns."""
    symbols = model.symbols
    numbers = {v: symbols.of_variable(v) for v in model.variables}
    columns = np.unique(np.concatenate([np.ravel(own) for own in numbers.values()]))
    low, high = np.full(columns.size, -np.inf), np.full(columns.size, np.inf)
    parts: dict[str, list[tuple[csr_array, FloatArray]]] = {"<=": [], "==": []}
    for variable, own in numbers.items():
        places = np.searchsorted(columns, np.ravel(own))
        ends = [np.broadcast_to(e, variable.shape).reshape(-1) for e in variable.set.interval]
        low[places], high[places] = ends
        if variable.set.is_curved:
            diagonal = np.searchsorted(columns, np.diag(own))
            low[diagonal] = np.maximum(low[diagonal], 0.0)
        if variable.set.is_distribution:
            rows = np.arange(own.size) // own.shape[-1]
            shape = int(rows[-1]) + 1, columns.size
            parts["=="].append(
                (csr_array((np.ones(own.size), (rows, places)), shape=shape), np.ones(shape[0]))
            )
    for row in model.rows:
        if row.sense in parts and is_affine(model, row.sums):
            varying = row.sums.key != ONE
            place = np.searchsorted(columns, row.sums.key[varying] - 1)
            cells = row.sums.weight[varying], (row.sums.entry[varying], place)
            matrix = csr_array(cells, shape=(row.sums.size, columns.size))
            right = -row.sums.value.reshape(-1)
            if row.entries is not None:
                matrix, right = matrix[row.entries], right[row.entries]
            parts[row.sense].append((matrix, right))
    empty = csr_array((0, columns.size)), np.zeros(0)
    stacks = []
    for sense in ("<=", "=="):
        matrices, rights = zip(*(parts[sense] or [empty]), strict=True)
        stacks += [csr_array(vstack(matrices)), np.concatenate(rights)]
    return (*stacks, np.column_stack([low, high]), columns)
