"""Names for what is computed stage by stage: the visits d₂, d₃, … of a process with a finite horizon.

    d₂ = Σ_a,s μ[s] π₁[s,a] P[s,a,·],   d₃ the same with d₂ and π₂,   …

Multiplied out, a term of the last stage has a factor for each stage, and there are as many terms as
paths. With a variable for every d_t, and the row that says what it is, all terms have two factors, and
the maps of decision processes find their λ = d_t π_t. The model is the same: each d_t has one value for
given policies.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.exchanged import exchanged, follow
from hcmodel.expressions.graph import values_at
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.node_facts import Facts
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.map import Points, Step, fresh_among
from hcmodel.records import replace

# The fewest vectors that get names where nothing else needs them: two stages are quickly multiplied out.
FEWEST = 3


def named_visits(model: Model) -> Step | None:
    """The model with a variable for the visits of each stage; None if it has too few stages."""
    facts = Facts()
    visits = staged(model, lambda node: facts[node].argument.sign.is_nonnegative)
    return _Named(model, visits) if visits else None


def staged(model: Model, fits: Callable[[Apply], bool]) -> list[Apply]:
    """Vectors with an entry for each state that are polynomials in policies, arguments first.

    They depend on several policies, or are what such a vector is made of. The costs Σ_a π[s,a] c[s,a] of
    a single stage are not part of visits. The list is empty if there are few and no function of them.
    """
    policies = [each for each in model.variables if each.set.is_distribution and each.ndim == 2]
    if len(policies) < 2:
        return []
    states = {each.shape[0] for each in policies}
    used = {id(each): 1 << number for number, each in enumerate(policies)}
    found, inside = list[Apply](), dict[int, set[int]]()
    others = set[int]()  # what is not a polynomial in the variables
    for node in model.nodes:
        if not isinstance(node, Apply):
            continue
        used[id(node)] = functools.reduce(operator.or_, (used.get(id(a), 0) for a in node.args), 0)
        inside[id(node)] = set().union(*(inside.get(id(each), set()) for each in node.args))
        if not _multiplies(node) or any(id(each) in others for each in node.args):
            others.add(id(node))
        vector = node.size in states and node.size in node.shape and not node.atom.moves_entries
        if vector and used[id(node)] and id(node) not in others and fits(node):
            inside[id(node)].add(id(node))
            found.append(node)
    several = [each for each in found if used[id(each)].bit_count() > 1]
    needed = set().union(*(inside[id(each)] for each in several))
    visits = [each for each in found if id(each) in needed]
    many = len(policies) > FEWEST and len(visits) >= FEWEST
    functions = (inside[each] for each in others)
    return visits if many or any(not needed.isdisjoint(each) for each in functions) else []


def _multiplies(node: Apply) -> bool:
    """Whether a node is a sum of products of its arguments."""
    atom = node.atom
    if atom.summed or atom.is_multilinear or atom.moves_entries:
        return True
    varying = [place for place, each in enumerate(node.args) if each.variables()]
    return len(varying) <= 1 and all(place in atom.linear_in for place in varying)


def with_names(
    model: Model, nodes: Sequence[Apply], name: str, nonneg: bool
) -> tuple[Expanded, tuple[Variable, ...]]:
    """The model with a variable for each of some nodes, arguments first, and rows that define them."""
    names = list(model.variables)
    new: dict[int, Expression] = {}
    rows: list[Constraint] = []
    wanted = {id(each) for each in nodes}
    for place, node in enumerate(model.nodes):
        if id(node) not in wanted:
            continue
        follow(model.nodes[:place], new)
        variable = Variable(node.shape, name=fresh_among(names, name), nonneg=nonneg)
        names.append(variable)
        assert isinstance(node, Apply)
        arguments = tuple(new.get(id(each), each) for each in node.args)
        rows.append(variable == Apply(node.atom, arguments, node.params, node.shape))
        new[id(node)] = variable
    follow(model.nodes, new)
    whole = exchanged(model, new)
    count = len(model.constraints)
    expanded = Expanded.of(replace(whole, constraints=(*whole.constraints, *rows)))
    own = tuple(
        row if place < count else replace(row, position=None)
        for place, row in enumerate(expanded.rows)
    )
    after = replace(expanded, rows=own, is_original=False, written=None)
    return after, tuple(names[len(model.variables) :])


class _Named(Step):
    """A variable for each of some expressions."""

    name = "stages"
    first = True

    def __init__(self, model: Model, visits: Sequence[Apply]) -> None:
        self.after, self.new = with_names(model, visits, "visits", nonneg=True)
        self.gone = ()
        self._model, self._visits = model, tuple(visits)

    def forward(self, point: Points) -> None:
        layout = self._model.layout
        vector = layout.pack([point[each] for each in self._model.variables])
        found = values_at(layout, vector, self._visits)
        point.update(zip(self.new, found, strict=True))

    def back(self, point: Points) -> None:
        """The policies say all."""
