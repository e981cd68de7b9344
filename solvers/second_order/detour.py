"""Steps in x itself, where a bound that is curved in u blocks the hidden straight line.

The model leaves such bounds out, so it cannot see what blocks a step. In x the bound is flat: after a
number of blocked steps a few are taken there, and more of them each time this happens.
"""

from __future__ import annotations

from hcmodel.records import dataclass, replace
from hcmodel.solvers.second_order.options import DetourOptions


@dataclass(frozen=True)
class Detour:
    """How many steps in x are left, how long the last detour was, and the blocked steps in a row."""

    left: int = 0
    length: int = 0
    blocked: int = 0

    @property
    def active(self) -> bool:
        return self.left > 0

    def is_due(self, options: DetourOptions) -> bool:
        """Whether the next step that is blocked begins a detour."""
        return self.blocked >= options.patience

    def begun(self, options: DetourOptions) -> Detour:
        length = min(max(1, options.growth * self.length), options.longest)
        return Detour(left=length, length=length)

    def after_step(self, blocked: bool) -> Detour:
        """After an accepted step, which ended at such a bound or did not."""
        return replace(self, left=max(self.left - 1, 0), blocked=self.blocked if blocked else 0)
