"""Discovery: maps of the catalogue are tried until the model in their coordinates is proven convex.

Maps propose what they recognise; one may follow another (prices by demand, then capacities by shares).
The first model in hidden coordinates that has a proof is taken. Nothing is sampled but a few points at
which the models before and after are compared.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import field

import numpy as np

from hcmodel.expressions.leaves import Apply, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.curvature import can_be_log
from hcmodel.facts.expansion import Symbols
from hcmodel.facts.polynomials import Sums, TooLargeError
from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.expanded import Expanded
from hcmodel.maps.map import Obstacle, Step
from hcmodel.proof.prove import Proof, prove
from hcmodel.records import dataclass
from hcmodel.reductions.sign import signed_objective
from hcmodel.reductions.substitution import Substitution


@dataclass(frozen=True)
class SearchLimits:
    """How far the search goes; each bound is above what a model of the catalogue's suite needs."""

    depth: int = 4
    """Maps one after the other."""
    trials: int = 40
    """Models in hidden coordinates that are looked at."""
    split: int = 6
    """Of these, models with a variable for each entry, which have many products to choose from."""
    unknowns: int = 20_000
    """Larger models are not multiplied out: it takes a second for this many."""
    many: int = 1_000
    """Unknowns from which only maps that work on whole arrays are tried: others take seconds."""


LIMITS = SearchLimits()


@dataclass
class Discovery:
    """A substitution with its proof where one was found, and what was in the way of others."""

    substitution: Substitution | None = None
    proof: Proof | None = None
    obstacles: list[Obstacle] = field(default_factory=list)

    @property
    def near_misses(self) -> tuple[str, ...]:
        """What was in the way of the maps that nearly fit, each once."""
        own = [str(each) for each in self.obstacles if not each.rewritten]
        return tuple(dict.fromkeys(own or [str(each) for each in self.obstacles[:1]]))


def discover(model: Model) -> Discovery:
    """Search coordinates of the catalogue in which a minimisation is proven convex."""
    found = Discovery()
    if model.layout.size > LIMITS.unknowns or _has_black_box(model):
        return found
    try:
        start = Expanded.of(model)
    except TooLargeError:
        return found
    pending: deque[tuple[Expanded, tuple[Step, ...]]] = deque([(start, ())])
    trials = _Trials()
    postponed: list[tuple[int, tuple[Step, ...]]] = []
    while pending and not trials.spent:
        current, steps = pending.popleft()
        for proposed in _proposals(current):
            if isinstance(proposed, Obstacle):
                found.obstacles.append(proposed)
                continue
            chain = (*steps, proposed)
            if not trials.take(chain):
                continue
            if _multiplies_in_equality(proposed.after):
                postponed.append((len(found.obstacles), chain))
            elif _settle(model, chain, found):
                return found
            if trials.spent:
                break
            if len(chain) < LIMITS.depth and proposed.after is not current:
                pending.append((proposed.after, chain))
    _explain(model, postponed, found)
    return found


class _Trials:
    """The chains of maps that were tried."""

    def __init__(self) -> None:
        self._seen = set[Hashable]()
        self._split = 0

    @property
    def spent(self) -> bool:
        return len(self._seen) >= LIMITS.trials

    def take(self, chain: tuple[Step, ...]) -> bool:
        """Whether a chain is new and may be tried; then it counts."""
        key = _key(chain)
        split = any(step.splits for step in chain)
        if key in self._seen or (split and self._split >= LIMITS.split):
            return False
        self._seen.add(key)
        self._split += split
        return True


def _explain(model: Model, postponed: list[tuple[int, tuple[Step, ...]]], found: Discovery) -> None:
    """Enter what is in the way of models that were passed over, each at its place."""
    for place, chain in reversed(postponed):
        own = Discovery()
        if _settle(model, chain, own):
            found.substitution, found.proof = own.substitution, own.proof
            return
        found.obstacles[place:place] = own.obstacles


def _multiplies_in_equality(model: Expanded) -> bool:
    """Whether an equality has a product with a variable that stays as it is in all coordinates.

    Equalities have to be affine in the coordinates, so that no proof can be found; to look for one takes
    longer than the next map.
    """
    equalities = (row.sums for row in model.rows if row.sense == "==")
    return any(_has_plain_product(sums, model.symbols) for sums in equalities)


def _has_plain_product(sums: Sums, symbols: Symbols) -> bool:
    digits = sums.digits[sums.degrees > 1]
    if not digits.size:
        return False
    variable, plain = (np.zeros(int(digits.max()) + 1, dtype=bool) for _ in range(2))
    variable[0] = True  # no factor
    for source, _, own in symbols.grouped(np.unique(digits[digits > 0]) - 1):
        if isinstance(source, Variable):
            variable[own + 1] = True
            plain[own + 1] = not can_be_log(source)
    return bool((variable[digits].all(axis=1) & plain[digits].any(axis=1)).any())


def _key(steps: tuple[Step, ...]) -> Hashable:
    """What is the same for the same maps in another order."""
    return frozenset(
        (
            *(step.name, step.choice),
            *(tuple(each.name for each in step.gone), tuple(step.texts.values())),
        )
        for step in steps
    )


def _proposals(model: Expanded) -> Iterator[Step | Obstacle]:
    """What the maps make of a model; a map that multiplies too much out gives nothing."""
    many = sum(variable.size for variable in model.variables) > LIMITS.many
    for each in MAPS:
        if many and not each.large:
            continue
        try:
            yield from each.propose(model)
        except TooLargeError:
            yield Obstacle(each.name, "the model in its coordinates is too large to multiply out")


def _has_black_box(model: Model) -> bool:
    """Whether a function of the user is in the model, which is not asked beside a run."""
    nodes = model.nodes
    return any(isinstance(node, Apply) and node.atom.black_box for node in nodes)


def _settle(model: Model, steps: tuple[Step, ...], found: Discovery) -> bool:
    """Whether the model after these steps is proven; then it is what was looked for."""
    try:
        substitution = Substitution.of(model, steps)
    except TooLargeError:
        return False
    known = {variable.name for variable in model.variables}
    lost = [name for name in substitution.released if name not in known]
    if lost:  # what a map knows of its image, without which the model in u is another one
        reason = f"the range of {lost[0]} is not convex in these coordinates"
        found.obstacles.append(Obstacle(steps[-1].name, reason, rewritten=True))
        return False
    after = substitution.after
    objective, sign = signed_objective(after)
    proof = prove(objective, sign, after.constraints)
    if not proof.proven:
        found.obstacles.append(Obstacle(steps[-1].name, str(proof.failure), rewritten=True))
        return False
    wrong = substitution.disagreement()  # few models come so far
    if wrong is not None:
        found.obstacles.append(Obstacle(steps[-1].name, wrong))
        return False
    found.substitution, found.proof = substitution, proof
    return True
