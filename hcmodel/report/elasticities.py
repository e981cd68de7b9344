"""What relaxing a row by one per cent does to the optimal value, from its dual.

For `lhs <= rhs` the value changes by -dual·δ when the right-hand side grows by δ. One per cent is of
the size of the right-hand side at the solution, or of the left-hand side where that is 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.records import dataclass

if TYPE_CHECKING:
    from hcmodel.expressions.model import Model
    from hcmodel.solving.solution import Solution

# Effects below this share of the value are rounding of the duals.
SMALLEST_SHARE = 1e-8


@dataclass(frozen=True)
class Elasticity:
    """One row. `share` is the relative improvement of the value for one per cent of the row."""

    row: tuple[str, tuple[int, ...]]
    label: str
    share: float
    maximise: bool

    @property
    def short(self) -> str:
        return f"{100 * self.share:.3g} %"

    @property
    def words(self) -> str:
        verb = "raises" if self.maximise else "lowers"
        return f"{self.label}: relaxing by 1 % {verb} the value by {100 * self.share:.3g} %"


def elasticities(
    model: Model, names: Any, solution: Solution, first_index: int
) -> tuple[Elasticity, ...]:
    """The rows whose relaxation improves the value, the most important first."""
    if solution.value is None or not solution.value or not solution.point:
        return ()
    found = []
    for name, constraint in zip(names, model.constraints, strict=True):
        dual = solution.duals.get(name)
        if dual is None or constraint.sense not in ("<=", ">="):
            continue
        size = _sizes(constraint)
        if size is None or size.shape != dual.shape:
            continue
        share = 0.01 * np.abs(dual) * size / abs(solution.value)
        for index in np.ndindex(dual.shape):
            if np.isfinite(share[index]) and share[index] > SMALLEST_SHARE:
                places = ", ".join(str(first_index + place) for place in index)
                label = f"{name}[{places}]" if index else name
                found.append(Elasticity((name, index), label, float(share[index]), model.sign < 0))
    return tuple(sorted(found, key=lambda each: -each.share))


def _sizes(constraint: Any) -> Any:
    """The sizes of the sides at the solution, entry by entry; None where a value is missing."""
    left, right = constraint.lhs.value, constraint.rhs.value
    if left is None or right is None or hasattr(left, "toarray") or hasattr(right, "toarray"):
        return None
    sizes = [np.abs(np.broadcast_to(side, constraint.shape)) for side in (right, left)]
    return np.where(sizes[0] > 0, sizes[0], sizes[1])
