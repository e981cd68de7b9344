"""Discovery: maps of the catalogue are tried until the model in their coordinates is proven convex.

Maps propose what they recognise; one may follow another (prices by demand, then capacities by shares).
The first model in hidden coordinates that has a proof is taken. Nothing is sampled but a few points at
which the models before and after are compared.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Hashable, Iterator
from dataclasses import field

import numpy as np

from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Apply, Expression, Variable
from hcmodel.expressions.model import Model
from hcmodel.facts.curvature import can_be_log
from hcmodel.facts.node_facts import Facts
from hcmodel.facts.polynomials import Sums, TooLargeError
from hcmodel.facts.symbols import Symbols
from hcmodel.maps.algebra.expanded import Expanded
from hcmodel.maps.catalogue import MAPS
from hcmodel.maps.map import Map, Obstacle, Step
from hcmodel.proof.prove import Attempt, Proof
from hcmodel.records import cached_property, dataclass
from hcmodel.reductions.lift import Lift
from hcmodel.reductions.sign import signed
from hcmodel.reductions.split import Split
from hcmodel.reductions.substitution import Substitution, functions_after
from hcmodel.solvers.algebra.marks import all_finite, highest


@dataclass(frozen=True)
class SearchLimits:
    """How far the search goes; each bound is above what a model of the catalogue's suite needs."""

    depth: int = 4
    """Maps one after the other."""
    trials: int = 12
    """Models in hidden coordinates that are looked at: no model of the suite needs more than 6."""
    work: int = 2_000
    """Functions of single entries in all of these together: a signomial with hundreds of exponents has
    as many power maps, and each makes a new model (60 unknowns and 180 terms: 0.8 s each)."""
    fewest: int = 3
    """Trials that are made whatever the functions are: the catalogue's suite needs no more there."""
    split: int = 3
    """Of these, models with a variable for each entry, which have many products to choose from."""
    room: int = 16
    """Symbols in a second search, as a multiple of those in the first one, where maps of the first one
    failed because others had taken all of them. Longer products have to do with fewer symbols."""
    unknowns: int = 20_000
    """Larger models are not multiplied out: it takes a second for this many."""
    many: int = 1_000
    """Unknowns from which only maps that work on whole arrays are tried: others take seconds."""
    products: int = 100_000
    """Products of three and more factors from which the same holds: n stages have n factors."""
    most_products: int = 500_000
    """Products of three and more factors from which no map is tried: each would take seconds."""


LIMITS = SearchLimits()
# The maps that look at a model before it is multiplied out.
AS_WRITTEN = tuple(each for each in MAPS if type(each).propose_written is not Map.propose_written)


@dataclass
class Discovery:
    """A substitution with its proof where one was found, and what was in the way of others."""

    substitution: Substitution | None = None
    proof: Proof | None = None
    obstacles: list[Obstacle] = field(default_factory=list)
    unproven: list[tuple[Model, tuple[Step, ...]]] = field(default_factory=list)
    """Maps that fit, and that the model was not proven in the coordinates of: why is found when asked."""
    late: tuple[Substitution, Proof] | None = None
    """One that counts where there is no other (`Step.late`)."""
    lift: Lift | None = None
    """What came before the substitution, where kinks had to be rows for it."""
    split: Split | None = None
    """The same, where they had to be rows without variables that bound them."""

    @property
    def auxiliary(self) -> frozenset[Variable]:
        """The variables after the substitution that are no coordinates of the model."""
        found = frozenset[Variable]() if self.substitution is None else self.substitution.auxiliary
        if self.lift is None:
            return found
        return found | {each.variable for each in self.lift.definitions}

    @cached_property
    def near_misses(self) -> tuple[str, ...]:
        """What was in the way of the maps that nearly fit, each once."""
        if self.obstacles:
            return tuple(dict.fromkeys(map(str, self.obstacles)))
        reasons = (_reason(model, steps) for model, steps in self.unproven)
        return tuple(str(each) for each in itertools.islice(filter(None, reasons), 1))


def discover(model: Model) -> Discovery:
    """Search coordinates of the catalogue in which a minimisation is proven convex."""
    found = _searched(model)
    if found.proof is None and found.late is not None:
        found.substitution, found.proof = found.late
    return found


def _searched(model: Model) -> Discovery:
    found = Discovery()
    if model.layout.size > LIMITS.unknowns or _has_black_box(model):
        return found
    if _settled_as_written(model, found):
        return found
    for room in (1, LIMITS.room):
        try:
            start = Expanded.of(model, room)
        except TooLargeError:
            return found
        found = Discovery()
        if _explore(model, start, (), found) or not start.symbols.is_full:
            break
    return found


def _settled_as_written(model: Model, found: Discovery) -> bool:
    """Whether a map proves the model without its products of matrices multiplied out.

    What is in the way of such a map is found again, and said, by the search that multiplies out.
    """
    for each in AS_WRITTEN:
        try:
            if any(_settle_written(model, step, found) for step in each.propose_written(model)):
                return True
        except TooLargeError:
            continue
    return False


def _settle_written(model: Model, step: Step | Obstacle, found: Discovery) -> bool:
    if isinstance(step, Obstacle):
        return False
    if step.first:
        return _explore(model, step.after, (step,), found)
    return _settle(model, (step,), found)


def _explore(model: Model, start: Expanded, before: tuple[Step, ...], found: Discovery) -> bool:
    """Whether a proof was found by maps after these steps, the shortest chains first."""
    pending: deque[tuple[Expanded, tuple[Step, ...]]] = deque([(start, before)])
    trials, known = _Trials(start), _KnownFacts()
    while pending and not trials.spent:
        current, steps = pending.popleft()
        if trials.refuses(steps):
            continue
        apart: list[tuple[Step, ...]] = []
        for proposed in _proposed(current, found):
            chain = (*steps, proposed)
            if not trials.take(chain):
                continue
            if proposed.first:
                again = len(chain) <= LIMITS.depth  # its map may propose the like of it without end
                if again and _explore(model, proposed.after, chain, found):
                    return True
                continue
            if steps == before and _is_apart(chain):
                apart.append(chain)
                continue
            if _settle(model, chain, found, known.of(chain)):
                return True
            if len(chain) < LIMITS.depth and proposed.after is not current:
                pending.append((proposed.after, chain))
            if trials.ended(steps):
                break
        if any(_settle_or_explore(model, chain, found) for chain in apart):
            return True
    return False


def _settle_or_explore(model: Model, chain: tuple[Step, ...], found: Discovery) -> bool:
    """Whether the model after these steps is proven, or in other coordinates."""
    return _settle(model, chain, found) or _explore(model, chain[-1].after, chain, found)


def _proposed(model: Expanded, found: Discovery) -> Iterator[Step]:
    """The steps that maps propose; what is in the way of others is noted."""
    for proposed in _proposals(model):
        if isinstance(proposed, Obstacle):
            found.obstacles.append(proposed)
        else:
            yield proposed


def _is_apart(chain: tuple[Step, ...]) -> bool:
    """Whether the last step of a chain is the first one whose model is searched by itself."""
    return chain[-1].apart and not any(step.apart for step in chain[:-1])


class _Trials:
    """The chains of maps that were tried."""

    def __init__(self, start: Expanded) -> None:
        self._seen = set[Hashable]()
        self._split = 0
        functions = sum(start.symbols.function(each) is not None for each in start.used().tolist())
        affordable = LIMITS.work // max(functions, 1)
        self._most = min(LIMITS.trials, max(LIMITS.fewest, affordable))

    @property
    def spent(self) -> bool:
        return len(self._seen) >= self._most

    def refuses(self, chain: tuple[Step, ...]) -> bool:
        """Whether no chain that begins with this one may be tried any more."""
        return self._split >= LIMITS.split and any(step.splits for step in chain)

    def ended(self, chain: tuple[Step, ...]) -> bool:
        """Whether nothing after this chain may be tried any more."""
        return self.spent or self.refuses(chain)

    def take(self, chain: tuple[Step, ...]) -> bool:
        """Whether a chain is new and may be tried; then it counts."""
        key = _key(chain)
        if key in self._seen or self.refuses(chain):
            return False
        self._seen.add(key)
        self._split += any(step.splits for step in chain)
        return True


class _KnownFacts:
    """What is known of the expressions of one step after the other, where these differ in own rows only.

    Most of these rows are about the same expressions, and a step whose first row is not convex has told
    what the next one asks.
    """

    def __init__(self) -> None:
        self._key: Hashable = None
        self._facts = Facts()

    def of(self, chain: tuple[Step, ...]) -> Facts | None:
        """The facts for the last step of a chain; None where there is no other step like it."""
        last = chain[-1]
        if last.choice is None:
            return None
        key = (last.name, *(id(each) for step in chain for each in step.new))
        if key != self._key:
            self._key, self._facts = key, Facts()
        return self._facts


def _has_numbers(model: Expanded) -> bool:
    """Whether all weights are numbers: the root of a negative one, as of √(n/n) for n < 0, is none."""
    return all(all_finite(sums.weight) for sums in model.everywhere())


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
    products = sum(int(np.count_nonzero(sums.degrees > 2)) for sums in model.everywhere())
    if products > LIMITS.most_products:
        yield Obstacle("", "the products are too many to multiply out: make their parts variables")
        return
    unknowns = sum(variable.size for variable in model.variables)
    many = unknowns > LIMITS.many or products > LIMITS.products
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


def _settle(
    model: Model, steps: tuple[Step, ...], found: Discovery, facts: Facts | None = None
) -> bool:
    """Whether the model after these steps is proven; then it is what was looked for."""
    try:
        attempted = _attempted(model, steps, facts)
        if attempted is not None and facts is not None:
            left = set(facts.variables).difference(attempted[0].after.variables)
            if left:  # from a row of another step
                attempted = _attempted(model, steps)
    except TooLargeError:
        return False
    proof = None if attempted is None else attempted[1].proof()
    if attempted is None or proof is None or not proof.proven:
        found.unproven.append((model, steps))
        return False
    substitution = attempted[0]
    left = set(substitution.after.variables).difference(steps[-1].after.variables)
    names = ", ".join(sorted(each.name for each in left))
    # few models come so far
    wrong = f"{names} is left in the model" if left else substitution.disagreement()
    if wrong is not None:
        found.obstacles.append(Obstacle(steps[-1].name, wrong))
        return False
    if any(step.late for step in steps):
        found.late = found.late or (substitution, proof)
        return False
    found.substitution, found.proof = substitution, proof
    return True


def _attempted(
    model: Model, steps: tuple[Step, ...], facts: Facts | None = None
) -> tuple[Substitution, Attempt] | None:
    """The model after these steps; None where some function of it is convex in no coordinates.

    Most models of a search end at one of their first functions, and the others are not made.
    """
    if _lost_range(model, steps) is not None or _multiplies_in_equality(steps[-1].after):
        return None
    if not _has_numbers(steps[-1].after):
        return None
    attempt = Attempt(facts)
    functions: dict[int, Expression | Constraint] = {}
    last, written = steps[-1].after, all(step.renamed for step in steps)
    arrays = last.arrays
    for place, function in functions_after(model, steps):
        functions[place] = function
        straight = None if written else _straight_in(arrays[place], last.symbols)
        if straight is not None:
            _enter_straight(attempt, place, function, straight)
            continue
        _enter(attempt, place, function)
        if not attempt.may_be_convex():
            return None
    made = [functions[place] for place in range(len(functions))]
    return Substitution.of_functions(model, steps, made), attempt


def _straight_in(sums: Sums, symbols: Symbols) -> list[Variable] | None:
    """The variables that sums are affine in, where none of them can be in logarithms; None for others."""
    if highest(sums.degrees) > 1:
        return None
    found = [source for source, _, _ in symbols.grouped(sums.symbols_used())]
    variables = [source for source in found if isinstance(source, Variable)]
    plain = len(variables) == len(found) and not any(map(can_be_log, variables))
    return variables if plain else None


def _enter_straight(
    attempt: Attempt, place: int, function: Expression | Constraint, variables: list[Variable]
) -> None:
    if isinstance(function, Constraint):
        attempt.enter_straight(function, variables, place)
    else:
        attempt.enter_straight_objective(*signed(function), variables)


def _enter(attempt: Attempt, place: int, function: Expression | Constraint) -> None:
    if isinstance(function, Constraint):
        attempt.enter(function, place)
    else:
        attempt.enter_objective(*signed(function))


def _lost_range(model: Model, steps: tuple[Step, ...]) -> str | None:
    """What a map knows of its image and has lost: without it the model in u is another one."""
    known = {variable.name for variable in model.variables}
    return next((name for step in steps for name in step.released if name not in known), None)


def _reason(model: Model, steps: tuple[Step, ...]) -> Obstacle | None:
    """What is in the way of a proof of the model after these steps."""
    lost = _lost_range(model, steps)
    if lost is not None:
        reason = f"the range of {lost} is not convex in these coordinates"
        return Obstacle(steps[-1].name, reason)
    if not _has_numbers(steps[-1].after):
        return None
    attempt = Attempt()
    try:
        for place, function in functions_after(model, steps):
            _enter(attempt, place, function)
    except TooLargeError:
        return None
    return Obstacle(steps[-1].name, str(attempt.proof().failure))
