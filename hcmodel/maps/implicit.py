"""Solutions of Lyapunov's equations as variables, with the equation as a row.

`lyap(A + B @ K, W)` is the P with F P + P Fᵀ + W = 0, and is defined where F is stable; then P ⪰ 0 for
W ⪰ 0. As a variable P ⪰ 0 with this row, the model has all points that it had: those with a stable
F and perhaps some with a singular P, for which a point that is found is tested by the function itself.
The product map does the rest.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from hcmodel.atoms.rules import Argument, MatrixKind
from hcmodel.expressions.leaves import Variable
from hcmodel.facts.definiteness import of_value
from hcmodel.facts.polynomials import Sums
from hcmodel.facts.symbols import Opaque
from hcmodel.maps.algebra.expanded import Evaluation, Expanded, Row
from hcmodel.maps.algebra.rewriting import Exchange, applied
from hcmodel.maps.map import Map, Obstacle, Points, Step, fresh_name, symbol_sums
from hcmodel.solvers.algebra.symmetric import upper_entries


class Implicit(Map):
    """A solution of a matrix equation as a variable; see the module."""

    name = "implicit"
    summary = "P ⪰ 0 with its equation in place of lyap(…) and dlyap(…)"
    literature = "Boyd, El Ghaoui, Feron, Balakrishnan 1994"
    example = "lqr_direct.hc"
    large = True

    def propose(self, model: Expanded) -> Iterator[Step | Obstacle]:
        for source in model.functions():
            if source.atom.equation is None or len(source.shape) != 2:
                continue
            facts = [_facts(argument) for argument in source.arguments]
            kind = source.atom.definiteness(facts, source.params)
            if kind >= MatrixKind.SEMIDEFINITE:
                yield _substituted(model, source)


def _facts(argument: Sums) -> Argument:
    """What is known of an argument: whether a constant matrix is definite."""
    if not argument.is_constant:
        return Argument(argument.shape)
    return Argument(argument.shape, constant=True, matrix=of_value(argument.value))


def _substituted(model: Expanded, function: Opaque) -> Step | Obstacle:
    new = Variable(function.shape, name=fresh_name(model, "P"), PSD=True)
    numbers = model.symbols.of_variable(new)
    rewriting = Exchange.of(model.symbols, function.numbers, numbers)
    assert function.atom.equation is not None
    unknown = symbol_sums(model.symbols, numbers)
    equation = function.atom.equation([rewriting(each) for each in function.arguments], unknown)
    rows = [Row(equation, "==", None, entries=upper_entries(new.shape[0]))]
    after = applied(model, rewriting, gone=[], new=[new], rows=rows)
    if isinstance(after, np.ndarray):
        return Obstacle("implicit", f"{function.atom.name} depends on itself")
    return _Solution(function, new, after)


class _Solution(Step):
    """The function evaluated is the variable."""

    name = "implicit"

    def __init__(self, function: Opaque, new: Variable, after: Expanded) -> None:
        self.gone = ()
        self.new = (new,)
        self.after = after
        self.texts = {new: f"{function.atom.name}(…)"}
        self._function = function

    def forward(self, point: Points) -> None:
        own = symbol_sums(self.after.symbols, self._function.numbers)
        point[self.new[0]] = Evaluation(self.after.symbols, point).of(own)

    def back(self, point: Points) -> None:
        """Nothing is gone but a function."""
