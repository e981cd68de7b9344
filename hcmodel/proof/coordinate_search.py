"""The search for coordinates: each positive block of variables is its own coordinate or its logarithm.

Three assignments are tried first: nothing in logarithms, everything that can be, and what the two
imply function by function. From the best of them a local search flips the variables under the
sub-expressions where curvature is lost, alone and together, while that helps; then from logarithms of
everything, where that is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hcmodel.atoms.rules import Sign
from hcmodel.expressions.leaves import Expression
from hcmodel.facts.bits import CONCAVE, CONVEX
from hcmodel.facts.curvature import Curvatures
from hcmodel.proof.normal_form import NormalRow, holds, is_affine
from hcmodel.records import dataclass

# Assignments of coordinates that are tried, and the nodes that all of them together may look at. Both
# bound the work of a search that fails.
MAX_TRIALS = 200
MAX_WORK = 100_000
Score = tuple[int, int, int]  # functions that fail, nodes where curvature is lost, or unknown


@dataclass(frozen=True)
class Task:
    """What must be convex: the objective, and each constraint in one of its forms."""

    objective: Expression
    sign: float
    rows: Sequence[Sequence[NormalRow]]
    straight: bool = False
    """Whether the objective is known to be affine whatever the coordinates are."""


def objective_form(task: Task, curvatures: Curvatures) -> str | None:
    """How the objective is convex: through its logarithm, plainly, or not at all.

    Logarithms come first, but for functions of matrices that are convex as they are: their value bounds
    the unknowns of the cone program, and its logarithm does not.
    """
    if task.straight:
        return "plain"
    number = curvatures.facts.add(task.objective)
    wanted = CONVEX if task.sign > 0 else CONCAVE
    plain, log, _ = curvatures.channels[number]
    if plain & wanted and curvatures.facts.nodes[number].variables & curvatures.facts.curved:
        return "plain"
    if curvatures.facts.nodes[number].sign is Sign.POSITIVE and log & wanted:
        return "log"
    return "plain" if plain & wanted else None


def row_form(rows: Sequence[NormalRow], curvatures: Curvatures) -> NormalRow | None:
    """The form in which a constraint holds: as it stands where that is affine, else the first one."""
    if is_affine(rows[-1], curvatures):
        return rows[-1]
    return next((row for row in rows if holds(row, curvatures)), None)


def failing(task: Task, curvatures: Curvatures) -> list[int | None]:
    """The positions of the constraints that fail, and None for the objective."""
    found: list[int | None] = [None] if objective_form(task, curvatures) is None else []
    found += [i for i, rows in enumerate(task.rows) if row_form(rows, curvatures) is None]
    return found


def roots_of(task: Task, function: int | None) -> list[Expression]:
    """The expressions that a function is made of, as written."""
    if function is None:
        return [task.objective]
    row = task.rows[function][-1]
    return [row.left, row.right]


@dataclass(frozen=True)
class Losses:
    """Under functions that fail: the nodes where curvature is lost, and how many are without it."""

    lost: tuple[int, ...]
    unknown: int


def losses(task: Task, curvatures: Curvatures, functions: Sequence[int | None]) -> Losses:
    """Curvature is lost at a node that has none, while all its arguments have."""
    facts, channels = curvatures.facts, curvatures.channels
    pending = [facts.add(root) for each in functions for root in roots_of(task, each)]
    seen = set(pending)
    lost: list[int] = []
    unknown = 0
    while pending:
        node = facts.nodes[pending.pop()]
        inner = [i for i in node.arguments if not facts.nodes[i].constant]
        if not channels[node.number][0]:
            unknown += 1
            if all(channels[i][0] for i in inner):
                lost.append(node.number)
        for i in inner:
            if i not in seen:
                seen.add(i)
                pending.append(i)
    return Losses(tuple(sorted(lost)), unknown)


def search(task: Task, curvatures: Curvatures, free: int) -> int:
    """The best assignment found, as bits of the variables in logarithms; only `free` ones change."""
    fixed = curvatures.logs & ~free
    trials = _Trials(task, curvatures)
    for logs in (fixed, fixed | free):
        if trials.take(logs)[0] == 0:
            return logs
    implied = trials.implied(fixed, free)
    trials.take(implied)
    starts = sorted({trials.best: None, fixed | free: None}, key=trials.scores.__getitem__)
    for start in starts:  # one that is far from the best may be near to the coordinates
        while trials.scores[start][0] and not trials.spent:
            better = trials.improved(start, free)
            if better is None:
                break
            start = better
        if trials.best_score[0] == 0:
            break
    return trials.best


class _Trials:
    """The assignments tried so far and the best of them."""

    def __init__(self, task: Task, curvatures: Curvatures) -> None:
        self.task = task
        self.curvatures = curvatures
        self.scores: dict[int, Score] = {}
        self.failing: dict[int, list[int | None]] = {}
        self.best = curvatures.logs
        self.best_score: Score = (len(task.rows) + 2, 0, 0)

    @property
    def spent(self) -> bool:
        """Whether the search has had its share of work."""
        trials = len(self.scores)
        return trials >= MAX_TRIALS or trials * len(self.curvatures.facts.nodes) > MAX_WORK

    def take(self, logs: int) -> Score:
        if logs not in self.scores:
            self.curvatures.assign(logs)
            failed = failing(self.task, self.curvatures)
            found = losses(self.task, self.curvatures, failed)
            self.failing[logs] = failed
            self.scores[logs] = len(failed), len(found.lost), found.unknown
        score = self.scores[logs]
        if score < self.best_score:
            self.best, self.best_score = logs, score
        return score

    def implied(self, fixed: int, free: int) -> int:
        """Logarithms but for the variables of functions that hold only without them."""
        needed = set(self.failing[fixed | free]) - set(self.failing[fixed])
        facts = self.curvatures.facts
        plain = 0
        for function in needed:
            for root in roots_of(self.task, function):
                plain |= facts[root].variables
        return fixed | (free & ~plain)

    def improved(self, start: int, free: int) -> int | None:
        """An assignment that a move leads to and that is better than the start; None: there is none."""
        for logs in self._moves(start, free):
            if self.spent:
                return None
            if self.take(logs) < self.scores[start]:
                return logs
        return None

    def _moves(self, start: int, free: int) -> Iterator[int]:
        self.curvatures.assign(start)
        nodes = self.curvatures.facts.nodes
        lost = losses(self.task, self.curvatures, self.failing[start]).lost
        groups = [nodes[number].variables & free for number in lost]
        for function in self.failing[start]:
            variables = 0
            for root in roots_of(self.task, function):
                variables |= self.curvatures.facts[root].variables
            groups.append(variables & free)
        seen = {start}
        singles = [1 << i for group in groups for i in range(group.bit_length()) if group >> i & 1]
        for logs in (
            *(start & ~group for group in groups),
            *(start | group for group in groups),
            *(start ^ bit for bit in singles),
        ):
            if logs not in seen:
                seen.add(logs)
                yield logs
