"""A cone program whose points are farther inside of its cones.

A backend ends with points that satisfy rows up to its accuracy. Where a function is defined by a cone
only, as x log x is for x >= 0, such a point may have no value. One of this program has, and is hardly
worse.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from hcmodel.records import replace
from hcmodel.solvers.algebra.symmetric import to_vector
from hcmodel.solvers.qp.cone_program import ConeBlock, ConeKind, ConeProgram

FloatArray = NDArray[np.float64]

# An element inside of each cone for three numbers.
INSIDE = {
    ConeKind.EXPONENTIAL: np.array([-1.0, 1.0, 1.0]),  # exp(−1) < 1
    ConeKind.POWER: np.array([1.0, 1.0, 0.0]),
}


def deeper(program: ConeProgram, amount: float) -> ConeProgram:
    """The program with A x + s = b − amount·e, e an element inside of the cones, 0 for equations."""
    inside = [_inside(block) for block in program.cones]
    moved = program.offset - amount * np.concatenate([*inside, np.zeros(0)])
    return replace(program, offset=moved)


def _inside(block: ConeBlock) -> FloatArray:
    if block.kind is ConeKind.ZERO:
        return np.zeros(block.size)
    if block.kind is ConeKind.NONNEGATIVE:
        return np.ones(block.size)
    if block.kind is ConeKind.SECOND_ORDER:
        return np.asarray(np.eye(1, block.size)[0], dtype=float)
    if block.kind is ConeKind.PSD_TRIANGLE:
        return np.asarray(to_vector(np.eye(block.order)))
    return np.asarray(np.tile(INSIDE[block.kind], block.size // 3), dtype=float)
