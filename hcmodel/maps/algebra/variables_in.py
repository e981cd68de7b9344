"""Which variables sums have, and which of a model are linked by its rows."""

from __future__ import annotations

from hcmodel.expressions.leaves import Variable
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque, Symbols
from hcmodel.maps.algebra.expanded import Expanded


def linked_variables(
    model: Expanded, variables: set[Variable], without: Variable | None = None
) -> set[Variable]:
    """Some variables and those that share rows with them, or with those that do; one may be left out."""
    found = set(variables)
    rows = [variables_in(model.symbols, row.sums) - {without} for row in model.rows]
    growing = True
    while growing:
        growing = False
        for each in rows:
            if each & found and not each <= found:
                found |= each
                growing = True
    return found


def variables_in(symbols: Symbols, sums: Sums) -> set[Variable]:
    """The variables of an array, those inside of functions among them."""
    found: set[Variable] = set()
    for source, _, _ in symbols.grouped(sums.symbols_used()):
        if isinstance(source, Opaque):
            for argument in source.arguments:
                found |= variables_in(symbols, argument)
        else:
            found.add(source)
    return found
