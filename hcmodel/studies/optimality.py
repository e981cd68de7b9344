"""The optimality conditions of a solved problem as one square system, with parameters as variables.

    ∇f + Jᵀλ − Σ Aᵀz = 0,   rows of the active set = 0,   S∘Z = ½(S Z + Z S) = 0

Kinks are lifted first, so that all functions are smooth; bounds of variables are rows like others, and
semidefinite sets are blocks S = mat(A x + b) with multipliers Z (Alizadeh, Haeberly and Overton 1998).
A few Newton steps make the point as accurate as its functions are. The derivatives of the solution
follow from the same matrix by the implicit function theorem.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from hcmodel.engines.registry import compile_stack
from hcmodel.errors import ModelError
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.layout import Layout
from hcmodel.expressions.leaves import Apply, Expression, Parameter, Variable
from hcmodel.expressions.sparse_data import dense
from hcmodel.records import dataclass
from hcmodel.reductions.forms import Forms
from hcmodel.reductions.triangle import equates_symmetric, has_symmetric_value, square_parameters
from hcmodel.solvers.algebra.storage import as_array
from hcmodel.solvers.algebra.symmetric import rotated_basis, to_matrix, to_vector
from hcmodel.solvers.numerics import DEPENDENT, PRODUCT_ROUNDING, TINY

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class OptimalityRules:
    """Numbers of the search for the active set and of the Newton steps."""

    near: float = 3e-5
    """Slack, in natural units, up to which a row may be active at a point that was solved to 1e-6."""
    active: float = 1e-9
    """The same after the Newton steps, and the least share of a multiplier that counts as positive."""
    weak: float = 1e-7
    """A multiplier below this share of the largest is 0 at first: the row may be inactive."""
    steps: int = 30
    """Newton steps at most: they converge quadratically, so that six are usual."""
    missed: int = 2
    """Steps in a row that may make the residual larger: the first ones of degenerate systems do."""
    accurate: float = 1e-8
    """Residual, relative to the terms that cancel, from which derivatives would lose their digits."""
    largest: int = 3000
    """Rows of the dense system: its factorisation takes about 10 s and 200 MB there."""
    rounds: int = 8
    """Changes of the active set before the search gives up."""


RULES = OptimalityRules()


class NoDerivative(Exception):  # noqa: N818  (a signal: callers say it in words)
    """Why the solution has no derivative, in words."""


@dataclass(frozen=True)
class Functions:
    """Objective and rows over (x, p), row <= 0 first, from a model whose kinks are lifted."""

    stack: Any
    outer: Any
    layout: Layout
    """The stand-ins of the parameters, in the order in which these were named."""
    parameters: FloatArray

    @staticmethod
    def of(forms: Forms, parameters: Sequence[Parameter]) -> Functions:
        """The functions of the lifted model with these parameters as variables."""
        canonical = forms.lifted.canonical
        symmetric = _symmetric_parameters(forms)
        stand_ins = {
            id(each): Variable(each.shape, name=f"∂{each.name}", symmetric=id(each) in symmetric)
            for each in parameters
        }
        roots = _replaced(canonical.roots, stand_ins)
        layout = Layout([*canonical.layout.variables, *stand_ins.values()])
        if layout.size > RULES.largest:
            raise ModelError(
                f"the model has {canonical.layout.size} unknowns and the parameters "
                f"{layout.size - canonical.layout.size} entries: derivatives are computed for at most "
                f"{RULES.largest} in sum; name fewer parameters"
            )
        stack = compile_stack(roots, layout, 1, engine=forms.compiler.engine)
        own = Layout(list(stand_ins.values()))
        flat = own.pack([dense(parameter.value) for parameter in parameters])
        return Functions(stack, canonical.outer, own, flat)

    def at(self, x: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """Objective, rows, gradient and Jacobian by (x, p)."""
        forward = self.stack.evaluate(np.concatenate([x, self.parameters]), "all")
        values, jacobian = np.asarray(forward.values), as_array(forward.jacobian())
        sign, select = float(self.outer.objective[0]), self.outer.difference
        rows = np.asarray(select @ values[1:])
        return sign * values[0], rows, sign * jacobian[0], np.asarray(select @ jacobian[1:])

    def hessian(self, x: FloatArray, multipliers: FloatArray) -> FloatArray:
        """Of the Lagrangian by (x, p)."""
        inner = self.outer.difference.T @ multipliers
        weights = np.concatenate([self.outer.objective, inner])
        return as_array(self.stack.hessian(np.concatenate([x, self.parameters]), weights))


@dataclass(frozen=True)
class Block:
    """S = mat(matrix @ x + offset) is positive semidefinite; `multiplier` is Z."""

    matrix: FloatArray
    offset: FloatArray
    multiplier: FloatArray = field(default_factory=lambda: np.zeros((0, 0)))

    def slack(self, x: FloatArray) -> FloatArray:
        return to_matrix(self.matrix @ x + self.offset)

    def size(self, units: FloatArray) -> float:
        """How much the entries of S change over natural lengths of x."""
        return max(float(np.max(np.abs(self.matrix) @ units, initial=0.0)), TINY)


@dataclass(frozen=True)
class Conditions:
    """A point with multipliers that satisfies the optimality conditions to rounding.

    `active` lists the rows that are equations: rows of the functions, then those of the set of x.
    `weak` are the other rows without slack.
    """

    functions: Functions
    bounds: FloatArray
    """The rows of the set of x: bounds @ x <= limits, equations after `inequalities` of them."""
    limits: FloatArray
    inequalities: int
    blocks: tuple[Block, ...]
    x: FloatArray
    multipliers: FloatArray
    """Of all rows, 0 for those that are not active."""
    active: NDArray[np.intp]
    weak: NDArray[np.intp]
    units: FloatArray
    scale: float = TINY
    """The size of the objective, and of its change over natural lengths to second order."""

    @property
    def row_multipliers(self) -> FloatArray:
        """Those of the functions' rows."""
        return self.multipliers[: self.functions.outer.size]

    def all_rows(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The values of all rows, their Jacobian by (x, p), and the gradient of the objective."""
        _, rows, gradient, jacobian = self.functions.at(self.x)
        wide = np.zeros((self.bounds.shape[0], jacobian.shape[1]))
        wide[:, : self.x.size] = self.bounds
        held = self.bounds @ self.x - self.limits
        return np.concatenate([rows, held]), np.vstack([jacobian, wide]), gradient

    def equalities(self) -> NDArray[np.bool_]:
        outer = self.functions.outer
        own = np.arange(outer.size) >= outer.inequalities
        return np.concatenate([own, np.arange(self.limits.size) >= self.inequalities])

    def system(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """The matrix K, the residual, and the derivatives of the equations by p."""
        n = self.x.size
        values, jacobian, gradient = self.all_rows()
        hessian = self.functions.hessian(self.x, self.row_multipliers)
        own = jacobian[self.active]
        stationary = gradient + jacobian.T @ self.multipliers
        sizes = [own.shape[0], *[block.offset.size for block in self.blocks]]
        total = n + sum(sizes)
        matrix = np.zeros((total, total))
        matrix[:n, :n] = hessian[:n, :n]
        matrix[:n, n : n + sizes[0]] = own[:, :n].T
        matrix[n : n + sizes[0], :n] = own[:, :n]
        residual, start = [stationary[:n], values[self.active]], n + sizes[0]
        for block in self.blocks:
            stop = start + block.offset.size
            slack, weights = block.slack(self.x), block.multiplier
            residual[0] = residual[0] - block.matrix.T @ to_vector(weights)
            matrix[:n, start:stop] = -block.matrix.T
            matrix[start:stop, :n] = _symmetric_product(weights) @ block.matrix
            matrix[start:stop, start:stop] = _symmetric_product(slack)
            residual.append(to_vector(0.5 * (slack @ weights + weights @ slack)))
            start = stop
        by_parameters = np.zeros((total, hessian.shape[0] - n))
        by_parameters[:n] = hessian[:n, n:]
        by_parameters[n : n + sizes[0]] = own[:, n:]
        return matrix, np.concatenate(residual), by_parameters

    def moved(self, step: FloatArray) -> Conditions:
        """The conditions after a step of all unknowns."""
        n, count = self.x.size, self.active.size
        multipliers = self.multipliers.copy()
        multipliers[self.active] += step[n : n + count]
        blocks, start = [], n + count
        for block in self.blocks:
            stop = start + block.offset.size
            blocks.append(replace(block, multiplier=block.multiplier + to_matrix(step[start:stop])))
            start = stop
        return replace(self, x=self.x + step[:n], multipliers=multipliers, blocks=tuple(blocks))

    def error(self) -> float:
        """The residual relative to the terms that cancel in it, in natural units."""
        values, jacobian, gradient = self.all_rows()
        n = self.x.size
        pull = jacobian[:, :n].T @ self.multipliers
        size = np.abs(gradient[:n]) + np.abs(jacobian[:, :n]).T @ np.abs(self.multipliers)
        worst = 0.0
        for block in self.blocks:
            share = block.matrix.T @ to_vector(block.multiplier)
            pull, size = pull - share, size + np.abs(share)
            slack = block.slack(self.x)
            product = np.abs(slack @ block.multiplier).max(initial=0.0)
            large = max(float(np.abs(slack).max()), block.size(self.units))
            scale = large * np.abs(block.multiplier).max(initial=0.0)
            worst = max(worst, product / max(scale, TINY))
        stationary = np.abs(gradient[:n] + pull) * self.units
        whole = max(float(np.max(size * self.units, initial=0.0)), self.scale)
        reach = np.abs(jacobian[:, :n]) @ self.units
        rows = np.abs(values[self.active]) / np.maximum(reach[self.active], TINY)
        return max(worst, float(stationary.max(initial=0.0)) / whole, float(rows.max(initial=0.0)))

    def solved(self, matrix: FloatArray, right: FloatArray) -> Solved:
        """The least solution of matrix @ y = right, in natural units, and what is known of it."""
        return _solve(matrix, right, self.units)

    def pulled(self, matrix: FloatArray, right: FloatArray, weights: FloatArray) -> FloatArray:
        """−weightsᵀ matrix⁻¹ right by one solve with the transposed matrix."""
        return np.asarray(-right.T @ _least_squares(matrix.T, weights))


@dataclass(frozen=True)
class Solved:
    """y, the relative residual of each column, and whether the entries of x in y are unique."""

    y: FloatArray
    residuals: FloatArray
    unique: bool

    @property
    def residual(self) -> float:
        return float(np.max(self.residuals, initial=0.0))


def _solve(matrix: FloatArray, right: FloatArray, units: FloatArray) -> Solved:
    n = units.size
    columns = np.concatenate([units, np.ones(matrix.shape[1] - n)])
    scaled = matrix * columns
    rows = 1.0 / np.maximum(np.abs(scaled).max(axis=1, initial=0.0), TINY)
    scaled = scaled * rows[:, None]
    tail = 1.0 / np.maximum(np.abs(scaled).max(axis=0, initial=0.0), TINY)
    scaled, columns = scaled * tail, columns * tail
    left, sizes, vectors = np.linalg.svd(scaled)
    rank = int((sizes > DEPENDENT * sizes[0]).sum()) if sizes.size else 0
    target = rows[:, None] * right
    inner = (left[:, :rank].T @ target) / sizes[:rank, None]
    y = vectors[:rank].T @ inner
    miss = np.abs(scaled @ y - target).max(axis=0, initial=0.0)
    null = vectors[rank:, :n]
    unique = not null.size or float(np.abs(null).max()) <= np.sqrt(DEPENDENT)
    size = np.maximum(np.abs(target).max(axis=0, initial=0.0), TINY)
    return Solved(columns[:, None] * y, miss / size, bool(unique))


def _least_squares(matrix: FloatArray, right: FloatArray) -> FloatArray:
    """The least solution of matrix @ y = right with rows and columns at size 1."""
    rows = 1.0 / np.maximum(np.abs(matrix).max(axis=1, initial=0.0), TINY)
    scaled = matrix * rows[:, None]
    columns = 1.0 / np.maximum(np.abs(scaled).max(axis=0, initial=0.0), TINY)
    found, *_ = np.linalg.lstsq(scaled * columns, rows * right, rcond=DEPENDENT)
    return np.asarray(columns * found)


def find_conditions(forms: Forms, x: FloatArray, parameters: Sequence[Parameter]) -> Conditions:
    """The optimality conditions at a solution x of the lifted model, or `NoDerivative`."""
    functions = Functions.of(forms, parameters)
    if functions.stack.has_black_boxes:
        raise NoDerivative(
            "functions of your own (hc.function) have no second derivatives here; write them with atoms, "
            "or take differences of two solves"
        )
    domain = forms.lifted.canonical.domain
    start = _first_conditions(functions, domain, domain.project(x))
    if not np.isfinite(start.all_rows()[1]).all():
        raise NoDerivative("a function has no finite slope at the solution")
    conditions, dropped = start, set[int]()
    for _ in range(RULES.rounds):
        conditions = _newton(conditions)
        changed = _corrected(conditions, dropped)
        if changed is None:
            break
        conditions = changed
    else:
        raise NoDerivative(
            "the rows that hold the solution could not be told from those that do not"
        )
    if conditions.error() > RULES.accurate:
        raise NoDerivative(
            "the solution is not accurate enough for derivatives (a residual of "
            f"{conditions.error():.1e} remains); solve with a smaller tol"
        )
    if functions.stack.kinked and _at_kink(conditions):
        raise NoDerivative("a function that is not smooth has a kink at the solution")
    return conditions


def _first_conditions(functions: Functions, domain: Any, x: FloatArray) -> Conditions:
    """The conditions with the rows near to x as active ones, and multipliers by least squares."""
    bounds, limits, inequalities, cones = _set_rows(domain)
    units = np.asarray(domain.metric(x), dtype=float)
    none = np.zeros(0, dtype=np.intp)
    multipliers = np.zeros(functions.outer.size + limits.size)
    empty = Conditions(
        functions, bounds, limits, inequalities, (), x, multipliers, none, none, units
    )
    values, jacobian, gradient = empty.all_rows()
    n = x.size
    reach = np.maximum(np.abs(jacobian[:, :n]) @ units, TINY)
    equal = empty.equalities()
    near = np.flatnonzero(equal | (values >= -RULES.near * reach))
    columns = [
        jacobian[near, :n].T * units[:, None],
        -jacobian[near][equal[near], :n].T * units[:, None],
    ]
    faces = []
    for block in cones:
        slack = block.slack(x)
        sizes, vectors = np.linalg.eigh(slack)
        zero = sizes <= RULES.near * max(float(np.abs(sizes).max()), block.size(units))
        if zero.any():
            faces.append((block, vectors[:, zero]))
            inner = _inside(vectors[:, zero])
            columns.append(-(block.matrix.T @ inner) * units[:, None])
            columns.append((block.matrix.T @ inner) * units[:, None])
    weights = _nonnegative(np.hstack(columns), -gradient[:n] * units)
    count, twice = near.size, int(equal[near].sum())
    found = weights[:count].copy()
    found[equal[near]] -= weights[count : count + twice]
    largest = float(np.max(np.abs(found) * reach[near], initial=0.0))
    positive = equal[near] | (found * reach[near] > RULES.weak * max(largest, TINY))
    multipliers[near] = np.where(positive, found, 0.0)
    blocks, start = [], count + twice
    for block, vectors in faces:
        inner = _inside(vectors)
        size = inner.shape[1]
        part = weights[start : start + size] - weights[start + size : start + 2 * size]
        start += 2 * size
        blocks.append(replace(block, multiplier=to_matrix(inner @ part)))
    return replace(
        empty,
        multipliers=multipliers,
        active=near[positive],
        weak=near[~positive],
        blocks=tuple(blocks),
    )


def _newton(conditions: Conditions) -> Conditions:
    """The same active rows with the equations solved as well as rounding allows."""
    conditions = replace(conditions, scale=_scale(conditions))
    best, error = conditions, conditions.error()
    current, missed = conditions, 0
    for _ in range(RULES.steps):
        matrix, residual, _ = current.system()
        if not (np.isfinite(matrix).all() and np.isfinite(residual).all()):
            return best
        current = current.moved(-current.solved(matrix, residual[:, None]).y[:, 0])
        now = current.error()
        if now < error:
            best, error, missed = current, now, 0
        elif missed == RULES.missed or not np.isfinite(now):
            break
        else:
            missed += 1
        if error <= PRODUCT_ROUNDING:
            break
    return best


def _scale(conditions: Conditions) -> float:
    objective = abs(float(conditions.functions.at(conditions.x)[0]))
    n, units = conditions.x.size, conditions.units
    hessian = conditions.functions.hessian(conditions.x, conditions.row_multipliers)[:n, :n]
    bent = float(np.max(np.abs(hessian) * units * units[:, None], initial=0.0))
    return max(objective, bent, TINY) if np.isfinite(bent) else max(objective, TINY)


def _corrected(conditions: Conditions, dropped: set[int]) -> Conditions | None:
    """The conditions with another active set where this one is wrong; None where it is right."""
    values, jacobian, _ = conditions.all_rows()
    reach = np.maximum(np.abs(jacobian[:, : conditions.x.size]) @ conditions.units, TINY)
    equal, multipliers = conditions.equalities(), conditions.multipliers
    sizes = np.abs(multipliers) * reach
    small = RULES.active * max(float(np.max(sizes, initial=0.0)), TINY)
    wrong = ~equal & (multipliers * reach < -small)
    mask = np.zeros(values.size, dtype=bool)
    mask[conditions.active] = True
    violated = ~mask & (values > RULES.active * reach)
    vanished = mask & ~equal & (np.abs(multipliers) * reach <= small)
    if wrong.any() or violated.any() or vanished.any():
        again = {int(i) for i in np.flatnonzero(violated)} & dropped
        if again:
            raise NoDerivative("a row holds the solution with a multiplier of 0")
        dropped |= {int(i) for i in np.flatnonzero(wrong | vanished)}
        mask = (mask | violated) & ~(wrong | vanished)
        kept = np.where(mask, multipliers, 0.0)
        weak = np.union1d(conditions.weak, np.flatnonzero(wrong | vanished))
        weak = np.setdiff1d(weak, np.flatnonzero(mask))
        return replace(conditions, multipliers=kept, active=np.flatnonzero(mask), weak=weak)
    return None


def without_slack(conditions: Conditions) -> NDArray[np.intp]:
    """The rows that are not among the equations and have no slack either."""
    values, jacobian, _ = conditions.all_rows()
    reach = np.maximum(np.abs(jacobian[:, : conditions.x.size]) @ conditions.units, TINY)
    rest = np.ones(values.size, dtype=bool)
    rest[conditions.active] = False
    return np.flatnonzero(rest & (values >= -RULES.active * reach))


def _set_rows(domain: Any) -> tuple[FloatArray, FloatArray, int, list[Block]]:
    """A set as bounds @ x <= limits, equations last, and semidefinite blocks."""
    rows = domain.cone_rows()
    identity = np.eye(rows.lower.size)
    low, high = np.isfinite(rows.lower), np.isfinite(rows.upper)
    fixed = low & high & (rows.lower == rows.upper)
    matrices = [-identity[low & ~fixed], identity[high & ~fixed]]
    limits = [-rows.lower[low & ~fixed], rows.upper[high & ~fixed]]
    inequalities = sum(part.size for part in limits)
    matrices.append(identity[fixed])
    limits.append(rows.upper[fixed])
    blocks = []
    for cone in rows.cones:
        matrix = np.asarray(cone.matrix.toarray(), dtype=float)
        if cone.kind == "psd":
            blocks.append(Block(matrix, np.asarray(cone.offset, dtype=float)))
        else:
            matrices.append(matrix)
            limits.append(-np.asarray(cone.offset, dtype=float))
    return np.vstack(matrices), np.concatenate(limits), inequalities, blocks


def _nonnegative(columns: FloatArray, target: FloatArray) -> FloatArray:
    """Weights >= 0 of the columns that come nearest to the target."""
    if not columns.size:
        return np.zeros(columns.shape[1])
    scale = np.maximum(np.linalg.norm(columns, axis=0), TINY)
    try:
        found, _ = scipy.optimize.nnls(columns / scale, target)
    except RuntimeError:
        raise NoDerivative("no multipliers were found at the solution") from None
    return np.asarray(found / scale)


def _inside(vectors: FloatArray) -> FloatArray:
    """The stored vectors of V W Vᵀ for the stored unit vectors W, as columns."""
    count = vectors.shape[1]
    size = count * (count + 1) // 2
    return np.column_stack(
        [to_vector(vectors @ to_matrix(unit) @ vectors.T) for unit in np.eye(size)]
    )


def _symmetric_product(matrix: FloatArray) -> FloatArray:
    """The matrix of W ↦ ½(M W + W M) on stored vectors, for a symmetric M."""
    sizes, vectors = np.linalg.eigh(matrix)
    basis = rotated_basis(vectors)
    rows, columns = np.tril_indices(sizes.size)
    weights = 0.5 * (sizes[columns] + sizes[rows])
    return np.asarray(basis @ (weights[:, None] * basis.T))


def _at_kink(conditions: Conditions) -> bool:
    """Whether slopes jump at the point, on either side of it in some directions."""
    generator = np.random.default_rng(0)
    step = np.sqrt(PRODUCT_ROUNDING)
    _, _, gradient, jacobian = conditions.functions.at(conditions.x)
    here = np.vstack([gradient, jacobian])[:, : conditions.x.size] * conditions.units
    size = max(float(np.abs(here).max(initial=0.0)), TINY)
    for _ in range(2):
        move = step * conditions.units * generator.normal(size=conditions.x.size)
        for sign in (1.0, -1.0):
            _, _, gradient, jacobian = conditions.functions.at(conditions.x + sign * move)
            there = np.vstack([gradient, jacobian])[:, : conditions.x.size] * conditions.units
            if np.abs(there - here).max() > np.sqrt(step) * size:
                return True
    return False


def _symmetric_parameters(forms: Forms) -> set[int]:
    """Parameters whose symmetry lets equations between matrices keep one triangle only.

    They move as symmetric matrices: the derivative by one entry alone would leave the model.
    """
    return {
        id(parameter)
        for constraint in forms.model.constraints
        if equates_symmetric(constraint)
        for parameter in square_parameters(constraint)
        if has_symmetric_value(parameter)
    }


def _replaced(
    roots: Sequence[Expression], stand_ins: dict[int, Variable]
) -> tuple[Expression, ...]:
    """The expressions with some leaves replaced."""
    new: dict[int, Expression] = {}
    for node in topological_order(roots):
        if id(node) in stand_ins:
            new[id(node)] = stand_ins[id(node)]
        elif isinstance(node, Apply):
            arguments = tuple(new[id(argument)] for argument in node.args)
            same = all(a is b for a, b in zip(arguments, node.args, strict=True))
            new[id(node)] = node if same else Apply(node.atom, arguments, node.params, node.shape)
        else:
            new[id(node)] = node
    return tuple(new[id(root)] for root in roots)
