"""The cone program of a linear regulator, solved by Riccati's equation.

    minimise ⟨C, S⟩   s.t.   F S E + (F S E)ᵀ + W = 0,   S = [P, X; Xᵀ, T] ⪰ 0,
    F = [A, B],   E = [I; 0],   C = [Q, N; Nᵀ, R]

is what the costs of ẋ = A x + B u with noise W become in the coordinates (P, K P): every entry of S is an
unknown of its own. The minimum has X = P Kᵀ and T = K P Kᵀ with K = −R⁻¹(Bᵀ Π + Nᵀ), where Π solves

    Aᵀ Π + Π A − (Π B + N) R⁻¹ (Bᵀ Π + Nᵀ) + Q = 0

and is the multiplier of the rows. The dual matrix Z = C + FᵀΠEᵀ + EΠF, of rank m, is on the edge of its
cone; costs that are less by some roundings give one inside, from which a bound can be proven.

An interior-point method takes O(n⁶) operations, this O(n³), and it keeps its digits where the data differ
by many orders of magnitude. Other cones, such as bounds of P, may follow; the answer is returned only if
it lies in them and satisfies the optimality conditions.

D. Kleinman, *On an iterative technique for Riccati equation computations*, IEEE Transactions on Automatic
Control 13 (1968); the first Π is scipy's, by A. Laub's method.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.records import dataclass
from hcmodel.solvers.algebra.symmetric import cholesky_rounding, to_matrix, to_vector
from hcmodel.solvers.numerics import EIGENVALUE_ROUNDING, OPERATION_ROUNDING, SUM_ROUNDING
from hcmodel.solvers.qp.balance import balanced
from hcmodel.solvers.qp.cone_program import (
    ConeKind,
    ConeProgram,
    ConeSolution,
    ConeStatus,
    is_accurate,
)

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class RegulatorRules:
    """Which programs are solved this way at once, and how."""

    # The order of S from which it is quicker than Clarabel, which is asked first about smaller ones.
    fewest: int = 12
    # Newton steps, and solutions of each linear equation: the second takes out the rounding of the first.
    refinements: int = 2
    # How far inside of its cone Z is, in units of its rounding: one for a proof, and one to spare.
    inside: float = 2.0


RULES = RegulatorRules()


@dataclass(frozen=True, eq=False)
class _Regulator:
    """The data of the program, and where its rows stand."""

    A: FloatArray
    B: FloatArray
    C: FloatArray
    W: FloatArray
    sign: float
    """The rows of the program are this many times those of the equation, with W on the other side."""
    zero: slice
    block: slice
    unknowns: scipy.sparse.linalg.SuperLU
    """Of the matrix from the unknowns to −S."""
    growth: float
    """How much rounding grows on the way back from X to its unknowns."""


def solve_regulator(
    program: ConeProgram, tolerance: float, *, small: bool = False
) -> ConeSolution | None:
    """The solution; None where the program is of another kind or this way is not accurate.

    Programs that an interior-point method solves as fast are taken only if they are asked for as `small`.
    """
    regulator = _regulator(program, 0 if small else RULES.fewest)
    if regulator is None:
        return None
    try:
        found = _solved(regulator)
    except (np.linalg.LinAlgError, ValueError):  # no stabilising solution, as scipy says it
        return None
    if found is None:
        return None
    S, multiplier, inside = found
    if not _is_accurate(program, _whole(program, regulator, S, multiplier), tolerance):
        return None
    return _whole(program, regulator, S, inside)


def _is_accurate(program: ConeProgram, solution: ConeSolution, tolerance: float) -> bool:
    """Whether it is a solution, in units in which one row is as large as another."""
    balance = balanced(program)
    if balance is None:
        return is_accurate(program, solution, tolerance)
    return is_accurate(balance.program, balance.taken(solution), tolerance)


def _regulator(program: ConeProgram, fewest: int) -> _Regulator | None:
    """The data of a regulator; None where the program is none."""
    places = _places(program)
    if places is None:
        return None
    zero, block, states, order = places
    if order < fewest or program.quadratic.nnz or program.offset[block].any():
        return None
    rows = program.sparse.tocsr()
    try:
        unknowns = scipy.sparse.linalg.splu(rows[block].tocsc())
    except RuntimeError:  # some entries of S are no unknowns of their own
        return None
    offset = _symmetric(program.offset[zero], states)
    sign = 1.0 if np.trace(offset) > 0 else -1.0
    diagonal = zero.start + np.cumsum([0, *range(states, 1, -1)])
    weights = unknowns.solve(np.asarray(rows[diagonal].T.todense()), trans="T")
    F = np.array([to_matrix(weights[:, i])[i] for i in range(states)])
    F[np.arange(states), np.arange(states)] /= 2.0
    C = -to_matrix(unknowns.solve(program.linear, trans="T"))
    found = _Regulator(
        A=sign * F[:, :states],
        B=sign * F[:, states:],
        C=C,
        W=sign * offset,
        sign=sign,
        zero=zero,
        block=block,
        unknowns=unknowns,
        growth=_growth(rows[block], states, order),
    )
    usable = np.isfinite(found.growth) and _has_these_rows(found, rows[zero])
    return found if usable else None


def _places(program: ConeProgram) -> tuple[slice, slice, int, int] | None:
    """The rows of the equation and of S, and the orders of P and S."""
    zero: list[slice] = []
    block: list[slice] = []
    first = 0
    for cone in program.cones:
        own = slice(first, first + cone.size)
        first = own.stop
        if cone.kind is ConeKind.ZERO:
            zero.append(own)
        elif cone.kind is ConeKind.PSD_TRIANGLE and cone.size == program.linear.size:
            block.append(own)
    if len(zero) != 1 or len(block) != 1:
        return None
    states, order = (_order(own.stop - own.start) for own in (zero[0], block[0]))
    if states is None or order is None or not 0 < states < order:
        return None
    return zero[0], block[0], states, order


def _growth(block: Any, states: int, order: int) -> float:
    """‖|M⁻¹| |M|‖ of the matrix M from the unknowns of one row of X to that row (Skeel's condition)."""
    columns = np.arange(states, order)
    row = block[columns * (columns + 1) // 2]
    own = row[:, np.unique(row.indices)].toarray()
    if own.shape[0] != own.shape[1]:
        return np.inf
    return float((np.abs(np.linalg.pinv(own)) @ np.abs(own)).sum(axis=1).max())


def _order(size: int) -> int | None:
    """The order of the matrix whose triangle has `size` entries; None where there is none."""
    order = (math.isqrt(8 * size + 1) - 1) // 2
    return order if order * (order + 1) == 2 * size else None


def _symmetric(rows: FloatArray, order: int) -> FloatArray:
    """The matrix of rows for its upper triangle, row by row."""
    matrix = np.zeros((order, order))
    matrix[np.triu_indices(order)] = rows
    return np.asarray(matrix + np.triu(matrix, 1).T)


def _has_these_rows(regulator: _Regulator, rows: Any) -> bool:
    """Whether the rows of the program are those of the equation, at a random S."""
    states, order = regulator.A.shape[0], regulator.C.shape[0]
    S = np.random.default_rng(0).normal(size=(order, order))
    S += S.T
    F = np.hstack([regulator.A, regulator.B])
    half = F @ S[:, :states]
    expected = -regulator.sign * (half + half.T)[np.triu_indices(states)]
    found = rows @ regulator.unknowns.solve(-to_vector(S))
    size = float(np.abs(expected).max(initial=0.0))
    return bool(np.abs(found - expected).max(initial=0.0) <= EIGENVALUE_ROUNDING * size)


def _solved(regulator: _Regulator) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """S, Π and a multiplier next to Π with Z inside of its cone; None where K does not stabilise."""
    A, B, n = regulator.A, regulator.B, regulator.A.shape[0]
    Q, N, R = regulator.C[:n, :n], regulator.C[:n, n:], regulator.C[n:, n:]
    factor = scipy.linalg.cho_factor(R)
    multiplier = scipy.linalg.solve_continuous_are(A, B, Q, R, s=N)
    for _ in range(RULES.refinements):
        K = -scipy.linalg.cho_solve(factor, B.T @ multiplier + N.T)
        gain = np.vstack([np.eye(n), K])
        multiplier = _lyapunov((A + B @ K).T, gain.T @ regulator.C @ gain)
    K = -scipy.linalg.cho_solve(factor, B.T @ multiplier + N.T)
    if np.linalg.eigvals(A + B @ K).real.max() >= 0:
        return None
    gain = np.vstack([np.eye(n), K])
    P = _lyapunov(A + B @ K, regulator.W)
    less = regulator.C - np.diag(RULES.inside * _rounding(regulator, multiplier))
    return gain @ P @ gain.T, multiplier, _lyapunov((A + B @ K).T, gain.T @ less @ gain)


def _rounding(regulator: _Regulator, multiplier: FloatArray) -> FloatArray:
    """What each row of Z = C + FᵀΠEᵀ + EΠF may lose by rounding and in a proof that Z is semidefinite."""
    F, C = np.hstack([regulator.A, regulator.B]), regulator.C
    states, order = F.shape
    size, half = np.abs(C), np.abs(F).T @ np.abs(multiplier)
    size[:, :states] += half
    size[:states] += half.T
    size[states:] *= regulator.growth
    size[:states, states:] *= regulator.growth
    diagonal = np.diagonal(C).copy()
    diagonal[:states] += 2.0 * np.einsum("ij,ij->j", F[:, :states], multiplier)
    terms = SUM_ROUNDING + 2.0 * order * OPERATION_ROUNDING
    lost = terms * size.sum(axis=1) + cholesky_rounding(order) * np.abs(diagonal)
    return np.asarray(lost)


def _lyapunov(A: FloatArray, W: FloatArray) -> FloatArray:
    """X with A X + X Aᵀ + W = 0, by Bartels and Stewart's method; scipy's warns where it should fail."""
    form, basis = scipy.linalg.schur(A)
    found = np.zeros_like(W)
    for _ in range(RULES.refinements):
        rest = A @ found + found @ A.T + W
        right = -(basis.T @ rest @ basis)
        step, scale, failed = scipy.linalg.lapack.dtrsyl(form, form, right, tranb="T")
        if failed or scale != 1.0:
            raise np.linalg.LinAlgError("two eigenvalues add up to 0")
        found = found + basis @ step @ basis.T
        found = 0.5 * (found + found.T)
    return np.asarray(found)


def _whole(
    program: ConeProgram, regulator: _Regulator, S: FloatArray, multiplier: FloatArray
) -> ConeSolution:
    """The solution in the unknowns of the program; other cones have no weight."""
    primal = regulator.unknowns.solve(-to_vector(S))
    dual = np.zeros(program.offset.size)
    both = 2.0 * multiplier - np.diag(
        np.diag(multiplier)
    )  # an entry stands for its mirror image too
    dual[regulator.zero] = -regulator.sign * both[np.triu_indices(both.shape[0])]
    slope = program.linear + program.sparse.T @ dual
    dual[regulator.block] = -regulator.unknowns.solve(slope, trans="T")
    slack = program.offset - program.sparse @ primal
    slack[regulator.zero] = 0.0
    return ConeSolution(ConeStatus.SOLVED, primal, slack, dual, RULES.refinements)
