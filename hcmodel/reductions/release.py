"""Bounds that bend in hidden coordinates are left out.

A minimiser without them that satisfies them is a minimiser of the model; they would block straight
lines in u that leave the box and come back. A bound or a proof of infeasibility without them holds for
the model too.
"""

from __future__ import annotations

import numpy as np

from hcmodel.records import replace
from hcmodel.reductions.reduction import Claim, Reduction, Refusal
from hcmodel.reductions.smooth import SmoothProgram


class Release(Reduction[SmoothProgram, SmoothProgram]):
    """The same functions over a larger domain."""

    # OPTIMAL is carried back only where the point satisfies the bounds, which the judge looks at.
    keeps = frozenset({Claim.BOUND, Claim.INFEASIBLE})

    @staticmethod
    def of(program: SmoothProgram) -> Release | Refusal:
        geometry = program.map_geometry
        if geometry is None or not program.bending:
            return Refusal(None, "no bound bends in the coordinates")
        if program.compiled.has_black_boxes:
            return Refusal(
                None, "functions of the user's own are not evaluated outside their bounds"
            )
        free = program.domain.without_bounds(geometry.bending)
        straight = np.zeros_like(geometry.bending)
        released = replace(
            program,
            domain=free,
            map_geometry=replace(geometry, domain=free, bending=straight),
        )
        return Release(program, released)

    @property
    def names(self) -> tuple[str, ...]:
        """The variables whose bounds are left out."""
        return tuple(variable.name for variable in self.before.bending)
