"""Sums of entries of an inverse, as quadratic forms of it.

The variance of an estimate in a design with weights w is an entry of M(w)⁻¹, and M is affine in w. With
C ⪰ 0 the sum of C_ij (M⁻¹)_ij is trace(C M⁻¹), and with C = L Lᵀ it is trace(Lᵀ M⁻¹ L), which is convex
in M ⪰ 0 (`matrix_frac`). A single entry of the diagonal has C = e eᵀ. M has to be semidefinite wherever
it is defined, by its coefficients (`affine_matrices`): where it has an inverse it is definite then. The
cost trace(Y P⁻¹ Yᵀ) of the inputs of a regulator has products of such entries with those of Y.
"""

from __future__ import annotations

import numpy as np

from hcmodel.atoms.rules import MatrixKind
from hcmodel.expressions.leaves import Variable
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.affine_matrices import affine_definiteness
from hcmodel.facts.polynomials import Sums, added
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.inverse_terms import InverseTerms, is_semidefinite_by_sets, with_inverses
from hcmodel.maps.algebra.quadratics import factored


def is_inverse(function: Opaque) -> bool:
    """Whether a function is the inverse of a matrix."""
    return function.atom is ATOMS["inv"]


def with_fractions(sums: Sums, symbols: Symbols) -> Sums:
    """The same sums with entries of inverses as quadratic forms, where these are convex or concave."""
    written = _with_fractions(sums, symbols)
    if not _has(written, "solve", symbols):
        return written
    inverses = with_inverses(symbols, written)
    changed = _with_fractions(inverses, symbols)
    return written if _has(changed, "inv", symbols) else changed


def _has(sums: Sums, name: str, symbols: Symbols) -> bool:
    """Whether there is a function of this name in sums."""
    return any(each.atom is ATOMS[name] for each in symbols.functions(sums.symbols_used()))


def _with_fractions(sums: Sums, symbols: Symbols) -> Sums:
    for function in symbols.functions(sums.symbols_used()):
        if is_inverse(function):
            sums = _without_entries(sums, function, symbols)
            sums = _without_products(sums, function, symbols)
    return sums


def _without_products(sums: Sums, function: Opaque, symbols: Symbols) -> Sums:
    """The same sums without the products of one inverse and one or two variables, as Yᵀ M⁻¹ Y has them.

    The terms with M⁻¹ of an entry are Σ yᵀ M⁻¹ y for several affine y, or the negative of that.
    """
    matrix, own = function.arguments[0], sums.holding(function.numbers)
    if not (sums.degrees[own] > 1).any():
        return sums
    proven = affine_definiteness(matrix, symbols) >= MatrixKind.SEMIDEFINITE
    if not proven and not is_semidefinite_by_sets(symbols, matrix):
        return sums
    plain = np.zeros(symbols.count + 1, dtype=bool)
    for source, _, used in symbols.grouped(sums.symbols_used()):
        plain[used + 1] = isinstance(source, Variable)
    inverse = InverseTerms(function.numbers, matrix)
    kept, parts = np.ones(sums.key.size, dtype=bool), list[Sums]()
    for entry in np.unique(sums.entry[own & (sums.degrees > 1)]).tolist():
        mine = own & (sums.entry == entry)
        terms = sums.chosen(mine).reshaped((sums.size,)).taken(np.array([entry]), (1, 1))
        for sign in (1.0, -1.0):
            found = inverse.squares(terms.scaled(sign), plain)
            if found is None:
                continue
            kept &= ~mine
            for above in found:
                number = int(symbols.of_function(ATOMS["matrix_frac"], {}, (above, matrix), ()))
                place, key = np.array([entry], dtype=np.intp), np.array([number + 1])
                parts.append(Sums(sums.shape, place, key, np.array([sign]), sums.coding))
            break
    return added([sums.chosen(kept), *parts]) if parts else sums


def _without_entries(sums: Sums, function: Opaque, symbols: Symbols) -> Sums:
    """The same sums without the terms of one inverse, entry by entry where they have a sign together."""
    order, matrix = function.shape[0], function.arguments[0]
    own = (sums.degrees == 1) & sums.holding(function.numbers)
    if not own.any() or affine_definiteness(matrix, symbols) < MatrixKind.SEMIDEFINITE:
        return sums
    kept, parts = np.ones(sums.key.size, dtype=bool), list[Sums]()
    for entry in np.unique(sums.entry[own]).tolist():
        mine = own & (sums.entry == entry)
        weights = np.zeros(order * order)
        weights[sums.key[mine] - 1 - function.start] = sums.weight[mine]
        square = weights.reshape(order, order)
        sign, factor = factored((square + square.T) / 2)
        if factor is None:
            continue
        above = Sums.constant(factor.T, sums.coding)
        number = int(symbols.of_function(ATOMS["matrix_frac"], {}, (above, matrix), ()))
        kept &= ~mine
        place = np.array([entry], dtype=np.intp)
        key = np.array([number + 1], dtype=np.int64)
        parts.append(Sums(sums.shape, place, key, np.array([sign]), sums.coding))
    return added([sums.chosen(kept), *parts]) if parts else sums
