"""The structural proof: coordinates in which a model is convex, found and derived from its text.

Every block of variables is its own coordinate or, where it is a positive box, its logarithm. Signs
and intervals are proven first (`facts`); curvature and log-curvature are then propagated through
the graph (`curvature`), constraints are brought into the form in which they are convex
(`normal_form`), and the coordinates are searched (`search`). A proof holds for the parameters'
current values.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, Any

from hcmodel.atoms.rules import sign_of
from hcmodel.errors import ModelError
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Constant, Expression, Variable
from hcmodel.facts.curvature import Curvatures, can_be_log
from hcmodel.facts.node_facts import Facts, Node
from hcmodel.proof.coordinate_search import Task, failing, objective_form, row_form, search
from hcmodel.proof.derivation import Derivation, Part
from hcmodel.proof.normal_form import NormalRow, candidates, straight_row
from hcmodel.records import cached_property, dataclass

if TYPE_CHECKING:
    from hcmodel.proof.failure import Failure

__all__ = ["Attempt", "NormalRow", "Proof", "attempt", "prove"]


@dataclass(frozen=True, eq=False)
class Proof:
    """Whether the model was proven convex, in which coordinates and forms, and how.

    `coordinates` has "log" or "identity" for every variable. `objective_form` "log" stands for the
    minimisation of log F, or of -log F where F is maximised, with F > 0. Without a proof they are
    the best that was found, and `failure` names what breaks it.
    """

    proven: bool
    coordinates: Mapping[Variable, str]
    objective_form: str
    rows: tuple[NormalRow, ...]
    failure: Failure | None
    curvatures: Curvatures = field(repr=False)
    """The facts and curvatures behind it, from which a cone program is built."""
    derive: Callable[[], Derivation] = field(repr=False)

    @cached_property
    def derivation(self) -> Derivation:
        """The steps of the proof, for people: made when somebody asks for them."""
        return self.derive()

    def __getstate__(self) -> dict[str, Any]:
        """With its steps: facts know expressions by identity, which a copy does not keep."""
        return {**self.__dict__, "derivation": self.derivation}

    def constants_keep_signs(self) -> bool:
        """Whether everything that is made of parameters alone has the sign that the proof found."""
        return all(
            node.expression.value is not None and sign_of(node.expression.value) is node.sign
            for node in self._data
        )

    @cached_property
    def _data(self) -> tuple[Node, ...]:
        """The nodes that are parameters, or made of these and of numbers alone."""
        nodes = self.curvatures.facts.nodes
        return tuple(node for node in nodes if node.constant and node.expression.parameters())


def prove(
    objective: Expression,
    sign: float,
    constraints: Sequence[Constraint],
    *,
    fixed: Mapping[Variable, str] | None = None,
    source: Any = None,
    facts: Facts | None = None,
) -> Proof:
    """Search coordinates in which the model is convex; `fixed` pins those of some variables.

    `sign` is 1 for a minimisation and -1 for a maximisation; `source` is the text that the model
    was loaded from, where failures get their place. `facts` are those at hand of expressions of the
    model; they become the proof's own.
    """
    made = Attempt(facts)
    made.enter_objective(objective, sign)
    for constraint in constraints:
        made.enter(constraint)
    return made.proof(fixed=fixed, source=source)


def attempt(
    objective: Expression,
    sign: float,
    constraints: Sequence[Constraint],
    *,
    source: Any = None,
    facts: Facts | None = None,
) -> Proof | None:
    """`prove`, but None at once where a function is convex in no coordinates.

    Then a map has to be found, and the words of this failure are not needed.
    """
    made = Attempt(facts)
    made.enter_objective(objective, sign)
    if not made.may_be_convex():
        return None
    for constraint in constraints:
        made.enter(constraint)
        if not made.may_be_convex():
            return None
    return made.proof(source=source)


class Attempt:
    """A model entered function by function, and the search for a proof of it.

    A search among many models (`discovery`) asks `may_be_convex` after each function, and ends where the
    answer is no: that function is convex in no coordinates, and the rest of the model is not needed.
    """

    def __init__(self, facts: Facts | None = None) -> None:
        self._facts = Facts() if facts is None else facts
        self._plain = Curvatures(self._facts, logs=0)
        self._either = Curvatures(self._facts, logs=0, either=True)
        self._rows: dict[int, tuple[Constraint, tuple[NormalRow, ...]]] = {}
        self._latest: tuple[NormalRow, ...] | None = None  # None: the objective
        self._objective: Expression = Constant(0.0)
        self._sign = 1.0
        self._straight = False

    def enter_objective(self, objective: Expression, sign: float) -> None:
        """It is minimised where `sign` is 1, and maximised where it is -1."""
        self._facts.add(objective)
        self._objective, self._sign, self._latest = objective, sign, None
        self._plain.extend()

    def enter(self, constraint: Constraint, position: int | None = None) -> None:
        """A row; `position` is its place among the rows, behind all that were entered if None."""
        self._enter_row(constraint, candidates(self._plain, constraint), position)
        self._plain.extend()

    def _enter_row(
        self, constraint: Constraint, forms: tuple[NormalRow, ...], position: int | None
    ) -> None:
        self._latest = forms
        self._rows[len(self._rows) if position is None else position] = constraint, forms

    def enter_straight_objective(
        self, objective: Expression, sign: float, variables: Iterable[Variable]
    ) -> None:
        """An objective known to be affine in these variables, none of which can be in logarithms."""
        self._objective, self._sign, self._straight = objective, sign, True
        self._latest = None
        self._enter_variables(variables)

    def enter_straight(
        self,
        constraint: Constraint,
        variables: Iterable[Variable],
        position: int | None = None,
    ) -> None:
        """A row known to be affine in these variables, none of which can be in logarithms."""
        self._enter_row(constraint, (straight_row(constraint),), position)
        self._enter_variables(variables)

    def _enter_variables(self, variables: Iterable[Variable]) -> None:
        for variable in variables:
            self._facts.add(variable)
        self._plain.extend()

    def may_be_convex(self) -> bool:
        """Whether the function that was entered last is convex in coordinates that suit it alone.

        Each of its variables is taken to be affine and log-affine at once, where it can be in logarithms.
        """
        curvatures = self._either if self._facts.loggable else self._plain
        curvatures.extend()
        if self._latest is not None:
            return row_form(self._latest, curvatures) is not None
        return objective_form(self._task, curvatures) is not None

    @property
    def _task(self) -> Task:
        rows = [self._rows[each][1] for each in self._order]
        return Task(self._objective, self._sign, rows, self._straight)

    @property
    def _order(self) -> list[int]:
        return sorted(self._rows)

    def proof(self, *, fixed: Mapping[Variable, str] | None = None, source: Any = None) -> Proof:
        """The proof, or what is in its way: see `prove`."""
        constraints = [self._rows[each][0] for each in self._order]
        return _searched(self._task, self._plain, constraints, fixed or {}, source)


def _searched(
    task: Task,
    curvatures: Curvatures,
    constraints: Sequence[Constraint],
    fixed: Mapping[Variable, str],
    source: Any,
) -> Proof:
    """Search the coordinates, and derive the proof in those that were found."""
    facts = curvatures.facts
    logs, free = _pinned(facts.variables, fixed)
    curvatures.assign(logs)
    curvatures.assign(search(task, curvatures, free))
    failed = failing(task, curvatures)
    form = objective_form(task, curvatures) or "plain"
    rows = tuple(row_form(rows, curvatures) or rows[-1] for rows in task.rows)
    failure = None
    if failed:
        from hcmodel.proof.failure import explain

        failure = explain(task, curvatures, failed[0], constraints, source)
    return Proof(
        proven=not failed,
        coordinates={
            variable: "log" if curvatures.logs >> place & 1 else "identity"
            for place, variable in enumerate(facts.variables)
        },
        objective_form=form,
        rows=rows,
        failure=failure,
        curvatures=curvatures,
        derive=functools.partial(_derivation, task, curvatures, form, rows, constraints, source),
    )


def _pinned(variables: Sequence[Variable], fixed: Mapping[Variable, str]) -> tuple[int, int]:
    """The variables pinned to logarithms, and those that the search may choose for, as bits."""
    logs = free = 0
    for place, variable in enumerate(variables):
        coordinate = fixed.get(variable)
        if coordinate not in (None, "log", "identity"):
            raise ModelError(f"a coordinate is 'log' or 'identity', not {coordinate!r}")
        if coordinate == "log" and not can_be_log(variable):
            raise ModelError(
                f"variable '{variable.name}' cannot be in logarithmic coordinates: it needs a box "
                "with a positive lower bound, or pos=True"
            )
        if coordinate == "log":
            logs |= 1 << place
        elif coordinate is None and can_be_log(variable):
            free |= 1 << place
    return logs, free


def _derivation(
    task: Task,
    curvatures: Curvatures,
    form: str,
    rows: Sequence[NormalRow],
    constraints: Sequence[Constraint],
    source: Any,
) -> Derivation:
    from hcmodel.proof.failure import Words

    facts, words = curvatures.facts, Words(source)
    verb = "minimize" if task.sign > 0 else "maximize"
    title = f"{verb}, {'through its logarithm' if form == 'log' else 'as it is'}"
    parts = [Part(title, (facts.add(task.objective),))]
    for position, (row, constraint) in enumerate(zip(rows, constraints, strict=True)):
        relation = "==" if row.equality else "<="
        how = "between logarithms" if row.form == "log" else "as a difference"
        title = f"{constraint.name or f'c{position + 1}'}: left {relation} right, {how}"
        parts.append(Part(title, (facts.add(row.left), facts.add(row.right))))
    curvatures.extend()  # rows that are known to be affine were not looked at
    return Derivation(
        parts=tuple(parts),
        nodes=tuple(facts.nodes),
        channels=tuple(curvatures.channels),
        names={
            node.number: words.of(node.expression)
            for node in facts.nodes
            if node.expression in words.places
        },
        first=words.first,
    )
