"""Whether a model has a point at which every function is defined.

log(x) with x == 0 and 1/(x + y) with x + y <= 0, x, y >= 0 have no value at any point of their models. A
method that takes rows for satisfied within a tolerance finds points beside them, at which the
function can be arbitrarily large or small: so this is looked at before any method runs.
"""

from __future__ import annotations

from hcmodel.certify.domains.domain_conditions import (
    Condition,
    conditions_of,
    is_of_the_model,
    is_pinned,
    is_questionable,
)
from hcmodel.expressions.model import Model
from hcmodel.records import dataclass
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.reduction import BoundOrigin, Origin


@dataclass(frozen=True)
class Nowhere:
    """Rows and bounds that leave no point, and what a function asks for that none of them gives."""

    parts: tuple[Origin | BoundOrigin, ...]
    condition: Condition | None


def nowhere_in(forms: Forms, *, every: bool = False) -> Nowhere | None:
    """The same of a model about which a run has left doubts, its kinks as rows where it takes these.

    `every`: also where all functions are defined everywhere, as tanh(x) >= 1 holds by rounding only.
    """
    found, lift = nowhere_defined(forms.model, forms.bounds.after, every=every), forms.lift
    if found is not None or not lift.definitions:
        return found
    found = nowhere_defined(lift.after, lift.after, every=every)
    if found is None:
        return None
    parts = [lift.origin(each) if isinstance(each, Origin) else each for each in found.parts]
    own = forms.model.layout.holds
    kept = [each for each in parts if isinstance(each, Origin) or (each and own(each.variable))]
    return Nowhere(tuple(kept), None)  # its function is one of variables that were added


def nowhere_defined(
    model: Model, bounded: Model, *, first: bool = False, every: bool = False
) -> Nowhere | None:
    """Why no point of a model satisfies its rows, as far as functions at the edge of domains say it.

    `bounded` is the model with rows that are bounds in its variables' sets, and is looked at before: most
    models need nothing else. The `first` look, which every solve begins with, is at small models with
    entries or sums that rows and bounds fix, or keep from being positive.
    """
    if first and not is_pinned(bounded):
        return None
    if not every and not is_questionable(bounded, first):
        return None
    from hcmodel.certify.domains.outside_domains import System  # of few models

    conditions = [each for each in conditions_of(model) if is_of_the_model(each)]
    system = System.of(model, conditions, first=first)
    return None if system is None else system.contradiction(deep=not first)
