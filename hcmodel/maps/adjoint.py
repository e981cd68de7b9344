"""Values as visits: a weighted solution of a linear system by the system transposed.

The value of a policy solves N(π) V = r(π), and what is minimised is μᵀ V. The same number is dᵀ r for the
visits d that solve Nᵀ d = μ, in which occupancies are linear:

    μᵀ N⁻¹ r  =  (N⁻ᵀ μ)ᵀ r

Several values of one system, of rewards and of costs, become visits that are the same. For regulators,
with P from lyap(F, W) and the cost-to-go X from lyap(Fᵀ, Q + Kᵀ R K),

    trace(W X)  =  trace(P (Q + Kᵀ R K))

Either holds where the weights of the solution are in one proportion wherever it occurs: values of two
starts would need two kinds of visits. Nothing is put in the place of a variable; other maps do the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from hcmodel.atoms.atom import Atom
from hcmodel.expressions.shapes import Shape
from hcmodel.expressions.table import ATOMS
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.algebra.rewriting import Rewriting, applied, substituted
from hcmodel.maps.map import Map, Obstacle, SameVariables, Step, described, symbol_sums
from hcmodel.records import dataclass, replace
from hcmodel.solvers.numerics import DATA_ROUNDING

FloatArray = NDArray[np.float64]
Numbers = NDArray[np.int64]


class Adjoint(Map):
    """⟨μ, solve(N, r)⟩ as ⟨solve(Nᵀ, μ), r⟩; see the module."""

    name = "adjoint"
    summary = "visits d with Nᵀ d = μ in place of values V with N V = r: μᵀ V = dᵀ r"
    literature = "Puterman 1994, section 6.9; Kleinman 1968"
    example = "policy_value.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        seen = set[tuple[bytes, ...]]()
        systems = [each for each in map(_system, model.functions()) if each is not None]
        for system in systems:
            key = system.matrix.content()
            if key not in seen:
                seen.add(key)
                same = [each for each in systems if each.matrix.content() == key]
                found = _substituted(model, same)
                if isinstance(found, Obstacle) and all(each.is_inverse for each in same):
                    turned = _substituted(model, [each.turned() for each in same])
                    found = found if isinstance(turned, Obstacle) else turned
                yield found


@dataclass(frozen=True, eq=False)
class _System:
    """A function that solves a linear system: with which matrix and right-hand side, and by what atom.

    `columns` are the numbers of its symbols, a column for each solution that is weighted by itself, and
    `right` has as many columns.
    """

    function: Opaque
    atom: Atom
    matrix: Sums
    right: Sums
    columns: Numbers
    by_rows: bool = False
    """Whether a row of the function's symbols is a solution: of an inverse, the inverse transposed."""

    @property
    def is_inverse(self) -> bool:
        return len(self.function.arguments) == 1

    def turned(self) -> _System:
        """The inverse of the transposed matrix in place of an inverse."""
        matrix = self.matrix.transposed()
        return replace(self, matrix=matrix, columns=self.columns.T, by_rows=True)

    @property
    def shape(self) -> Shape:
        """That of one solution."""
        rows = self.matrix.shape[0]
        return (rows,) if self.columns.shape[0] == rows else self.matrix.shape


def _system(function: Opaque) -> _System | None:
    """The system behind a function; None where its right-hand side is constant, as that of visits is."""
    adjoint, matrix = function.atom.adjoint, function.arguments[0]
    if adjoint is None or matrix.is_constant:
        return None
    if len(function.arguments) == 1:  # an inverse
        right = Sums.constant(np.eye(matrix.shape[0]), matrix.coding)
    elif function.arguments[1].is_constant:
        return None
    else:
        right = function.arguments[1]
    height = matrix.shape[0] if adjoint.by_columns else matrix.size
    columns = function.numbers.reshape(height, -1)
    return _System(function, ATOMS[adjoint.atom], matrix, right.reshaped(columns.shape), columns)


def _substituted(model: Expanded, systems: list[_System]) -> Step | Obstacle:
    """All solutions of one matrix by its transpose, where they are weighted in one proportion."""
    word = described(model.symbols, systems[0].function.start)
    weights = [_weights(sums, system) for sums in model.arrays for system in systems]
    found = [each for each in weights if each is not None]
    if len(found) < len(weights):
        return Obstacle("adjoint", f"{word} is multiplied by itself")
    every = np.concatenate(found, axis=1)
    if not every.shape[1]:
        return Obstacle("adjoint", f"{word} stands inside of a function")
    direction = every[:, np.abs(every).sum(axis=0).argmax()]
    direction = direction / (np.abs(direction).sum() * (np.sign(direction.sum()) or 1.0))
    pivot = int(np.abs(direction).argmax())
    left = every - np.outer(direction, every[pivot] / direction[pivot])
    if (np.abs(left) > DATA_ROUNDING * np.abs(every).max(axis=0)).any():
        return Obstacle(
            "adjoint", f"the entries of {word} are weighted in more than one proportion"
        )
    after = applied(model, _Values(model, systems, direction, pivot), gone=[], new=[])
    if isinstance(after, np.ndarray):
        return Obstacle("adjoint", f"{word} stands inside of a function")
    return _Transposed(systems, after)


def _weights(sums: Sums, system: _System) -> FloatArray | None:
    """How the entries of a solution are weighted, a column for each place where it stands.

    None where a term has two of its entries as factors.
    """
    digits = sums.digits
    own = np.isin(digits, system.columns + 1)
    count = own.sum(axis=1)
    if (count > 1).any():
        return None
    hit = count == 1
    entry, symbol = sums.entry[hit], digits[hit][own[hit]] - 1
    rest = sums.coding.keys(np.where(own[hit], 0, digits[hit]))
    place, column = divmod(symbol - system.function.start, system.columns.shape[1])
    if system.by_rows:
        place, column = column, place
    _, group = np.unique(np.column_stack([entry, rest, column]), axis=0, return_inverse=True)
    found = np.zeros((system.columns.shape[0], int(group.max(initial=-1)) + 1))
    np.add.at(found, (place, group.reshape(-1)), sums.weight[hit])
    return found


class _Values(Rewriting):
    """A weighted solution replaced: the term of the largest weight stands for all of them."""

    def __init__(
        self, model: Expanded, systems: list[_System], direction: FloatArray, pivot: int
    ) -> None:
        gone = np.concatenate([each.columns.reshape(-1) for each in systems])
        super().__init__(model.symbols, gone)
        self._changes: dict[int, Sums] = {}
        kept = np.concatenate([each.columns[pivot] for each in systems])
        self._dropped = np.setdiff1d(gone, kept)
        for system in systems:
            products = self._visits(system, direction) @ system.right
            self._changes |= dict(
                zip(
                    system.columns[pivot].tolist(),
                    products.scaled(1.0 / direction[pivot]).entries(),
                    strict=True,
                )
            )

    def _visits(self, system: _System, direction: FloatArray) -> Sums:
        """The solution of the transposed system, with the weights as its right-hand side."""
        weights = Sums.constant(direction.reshape(system.shape), self.coding)
        arguments = (system.matrix.transposed(), weights)
        numbers = self.symbols.of_function(system.atom, {}, arguments, system.shape)
        return symbol_sums(self.symbols, numbers.reshape(-1))

    def terms(self, sums: Sums) -> Sums:
        return substituted(sums.chosen(~sums.holding(self._dropped)), self._changes)


class _Transposed(SameVariables):
    """Visits in the place of values; see the module."""

    name = "adjoint"

    def __init__(self, systems: list[_System], after: Expanded) -> None:
        self.after = after
        self.choice = tuple(each.function.start for each in systems)
