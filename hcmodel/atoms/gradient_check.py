"""`hc.function(check=True)`: a gradient that a user gave, compared once with differences."""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from hcmodel.atoms.user_code import Program, differences_of, name_of
from hcmodel.errors import ModelError
from hcmodel.records import dataclass

# Differences of a smooth function agree with its gradient to about 1e-10, relative to the largest entry;
# a wrong formula is wrong by more than this.
AGREEMENT = 1e-4


@dataclass(frozen=True)
class CheckedGradient:
    """The user's gradient; its first call at a point where all is finite compares it."""

    gradient: Program
    program: Program
    _compared: list[bool] = field(default_factory=list, compare=False, repr=False)

    @property
    def __name__(self) -> str:
        return name_of(self.gradient)

    def __call__(self, *arrays: Any) -> Any:
        found = self.gradient(*arrays)
        if not self._compared:
            self._compare(found, [np.asarray(array, dtype=float) for array in arrays])
        return found

    def _compare(self, found: Any, arrays: list[Any]) -> None:
        many = isinstance(found, (tuple, list)) and len(found) == len(arrays)
        given = found if many else (found,)
        expected = differences_of(self.program.callable, "3-point")(*arrays)
        pairs = [
            (np.asarray(own), np.asarray(by_difference))
            for own, by_difference in zip(given, expected, strict=False)
        ]
        if len(given) != len(arrays) or any(own.shape != its.shape for own, its in pairs):
            return  # a wrong shape has a message of its own
        if not all(np.isfinite(part).all() for pair in pairs for part in pair):
            return
        self._compared.append(True)
        size = max(float(np.max(np.abs(its), initial=1.0)) for _, its in pairs)
        for number, (own, its) in enumerate(pairs):
            wrong = np.argwhere(np.abs(own - its) > AGREEMENT * size)
            if len(wrong):
                self._complain(
                    number, tuple(int(i) for i in wrong[0]), own, its, arrays, len(wrong)
                )

    def _complain(
        self, number: int, entry: tuple[int, ...], own: Any, its: Any, arrays: Any, count: int
    ) -> None:
        place = f"entry {list(entry)} of the derivative" if entry else "the derivative"
        sign = " (the opposite sign)" if np.isclose(own[entry], -its[entry]) else ""
        more = f", and {count - 1} more entries differ" if count > 1 else ""
        values = ", ".join(np.array2string(array, precision=4, threshold=6) for array in arrays)
        raise ModelError(
            f"grad of '{name_of(self.program)}' is wrong: {place} by argument {number} is "
            f"{float(own[entry]):.6g}, but differences of the function give "
            f"{float(its[entry]):.6g}{sign}{more}; the arguments are {values}"
        )
