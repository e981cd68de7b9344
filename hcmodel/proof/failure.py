"""Why a proof fails: the smallest sub-expression that breaks it, and the reason in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hcmodel.atoms.rules import Domain, Monotonicity
from hcmodel.expressions.constraint import Constraint
from hcmodel.expressions.leaves import Expression, Variable
from hcmodel.expressions.printing import infix
from hcmodel.facts.bits import AFFINE, CONCAVE, CONVEX, PASSING, SWAPPED, UNKNOWN, WORDS
from hcmodel.facts.curvature import Curvatures, can_be_log
from hcmodel.facts.node_facts import Node
from hcmodel.proof.coordinate_search import Task, failing
from hcmodel.records import dataclass

if TYPE_CHECKING:  # models in Python need no syntax tree
    from hcmodel.grammar import Span, syntax

# Characters of an expression in a message, and of an argument beside the whole: one line of a terminal.
MAX_TEXT = 80
MAX_PART = 40
ASKED = {
    Domain.POSITIVE: "to be positive",
    Domain.NONNEGATIVE: "to be >= 0",
    Domain.NONZERO: "to be of one sign and never 0",
    Domain.ABOVE_MINUS_ONE: "to be > -1",
    Domain.INVERTIBLE: "to be affine and positive definite",
    Domain.POSITIVE_DEFINITE: "to be affine and symmetric",
    Domain.HURWITZ: "to be constant",
    Domain.SCHUR: "to be constant",
}


@dataclass(frozen=True)
class Failure:
    """Which sub-expression of which function breaks the proof, and why.

    `function` is "objective" or the constraint's name, `constraint` its position. `span` is the
    place in the model's text, where there is one.
    """

    function: str
    constraint: int | None
    expression: Expression
    reason: str
    span: Span | None = None

    def __str__(self) -> str:
        return f"{self.function}: {self.reason}"


def explain(
    task: Task,
    curvatures: Curvatures,
    function: int | None,
    constraints: Sequence[Constraint],
    source: Any = None,
) -> Failure:
    """The failure of one function under the coordinates of `curvatures`."""
    name = "objective"
    if function is not None:
        name = constraints[function].name or f"c{function + 1}"
    path, want = blamed(task, curvatures, function)
    words = Words(source)
    reason = _Reason(task, curvatures, path[-1], want, words).text()
    return Failure(name, function, path[-1], reason, _span(source, function, name, path))


def blamed(
    task: Task, curvatures: Curvatures, function: int | None
) -> tuple[list[Expression], int]:
    """The path from a function that fails to the smallest part to blame, and what it should be."""
    if function is None:
        sides = [(task.objective, CONVEX if task.sign > 0 else CONCAVE)]
    else:
        row = task.rows[function][-1]
        wanted = (AFFINE, AFFINE) if row.equality else (CONVEX, CONCAVE)
        sides = [(row.left, wanted[0]), (row.right, wanted[1])]
    for expression, want in sides:
        number = curvatures.facts.add(expression)
        if (curvatures.channels[number][0] & want) != want:
            return _descend(curvatures, expression, want)
    raise AssertionError("the function does not fail")


def _descend(
    curvatures: Curvatures, expression: Expression, want: int
) -> tuple[list[Expression], int]:
    """From an expression that is not as wanted down to the smallest one to blame.

    Below one without curvature nothing in particular is wanted (UNKNOWN).
    """
    nodes, channels = curvatures.facts.nodes, curvatures.channels
    path = [expression]
    while True:
        node = curvatures.facts[path[-1]]
        rule = node.rule
        linear = rule is not None and rule.plain == AFFINE
        asked = dict.fromkeys(node.arguments, UNKNOWN)
        if linear and rule is not None:
            for i, passing in zip(rule.arguments, rule.passing, strict=True):
                asked[i] = _asked(passing, want)
        inner = [i for i in node.arguments if not nodes[i].constant]
        wrong = [i for i in inner if not channels[i][0]]
        wrong.sort(key=lambda i: channels[i][1] != UNKNOWN)
        if not wrong and linear:
            wrong = [i for i in inner if (channels[i][0] & asked[i]) != asked[i]]
        if not wrong or (nodes[wrong[0]].atom is None and not _adds(node)):
            return path, want
        path.append(path[-1].args[node.arguments.index(wrong[0])])
        want = asked[wrong[0]]


def _adds(node: Node) -> bool:
    return node.atom is not None and bool(node.atom.summed) and len(node.arguments) > 1


def _asked(passing: tuple[int, ...], want: int) -> int:
    """What an argument must be for the node to be what is wanted."""
    if want == UNKNOWN:
        return UNKNOWN
    if passing == PASSING[Monotonicity.INCREASING]:
        return want
    if passing == PASSING[Monotonicity.DECREASING]:
        return SWAPPED[want]
    return UNKNOWN if passing == PASSING[Monotonicity.CONSTANT] else AFFINE


class Words:
    """How expressions are called: as the model's text has them where it does, else in Python."""

    def __init__(self, source: Any) -> None:
        self.places: Mapping[Expression, Span] = getattr(source, "places", {})
        self.lines: list[str] = source.text.splitlines() if self.places else []
        self.first = 0 if source is None else 1

    def of(self, expression: Expression, length: int = MAX_TEXT) -> str:
        span = self.places.get(expression)
        text = infix(expression, self.first) if span is None else self._written(span)
        return text if len(text) <= length else text[: length - 1] + "…"

    def _written(self, span: Span) -> str:
        if span.line == span.end_line:
            return self.lines[span.line - 1][span.column - 1 : span.end_column - 1]
        first, *inner = self.lines[span.line - 1 : span.end_line]
        parts = [first[span.column - 1 :], *inner[:-1], inner[-1][: span.end_column - 1]]
        return " ".join(part.strip() for part in parts)


class _Reason:
    """The sentence about one node."""

    def __init__(
        self,
        task: Task,
        curvatures: Curvatures,
        expression: Expression,
        want: int,
        words: Words,
    ) -> None:
        self.task = task
        self.curvatures = curvatures
        self.nodes = curvatures.facts.nodes
        self.channels = curvatures.channels
        self.node = curvatures.facts[expression]
        self.name = words.of(expression)
        self.words = words
        self.want = want
        inner = [self.nodes[i] for i in self.node.arguments]
        self.varying = [each for each in inner if not each.constant]

    def text(self) -> str:
        node, name = self.node, self.name
        plain, log, _ = self.channels[node.number]
        if node.undefined:
            return f"{name} is not a number"
        if plain and self.want:
            where = f" in the coordinate log({name})" if node.atom is None else ""
            return f"{name} is {WORDS[plain]}{where}, where {_article(self.want)} term is needed"
        assert node.atom is not None
        if node.rule is None or self._leaves_domain():
            return self._outside()
        kind = self._kind_of_product()
        if log and self.want and not (kind and self.want != CONCAVE):
            return f"{name} is only log-{WORDS[log]}, where {_article(self.want)} term is needed"
        if kind:
            return self._product(kind)
        if node.atom.is_homogeneous and node.rule.plain == AFFINE:
            return self._sum()
        return self._composition()

    def _kind_of_product(self) -> str | None:
        """What to call a node that multiplies or divides varying terms; None if it does not."""
        node = self.node
        assert node.atom is not None
        if node.exponents is not None and len(node.exponents) == 1:
            return None  # a power
        if node.exponents is not None and len(self.varying) == len(node.exponents):
            divides = any(each is not None and np.any(each < 0) for each in node.exponents)
            return "a quotient" if divides else "a product"
        facts = [self.nodes[i].argument for i in node.arguments]
        degree = node.atom.degree(facts, node.params)
        return "a product" if degree is not None and degree > 1 else None

    def _leaves_domain(self) -> bool:
        rule = self.node.rule
        assert rule is not None
        return any(
            (self.channels[i][0] & need) != need
            for i, need in zip(rule.arguments, rule.needs, strict=True)
        )

    def _outside(self) -> str:
        node = self.node
        assert node.atom is not None
        nodes = [self.nodes[i] for i in node.arguments]
        for each in nodes:
            if each.undefined:
                return f"{self.words.of(each.expression)} is not a number"
        domains = node.atom.domains([each.argument for each in nodes], node.params)
        argument, domain = next(
            (each, domain)
            for each, domain in zip(nodes, domains, strict=True)
            if domain is not Domain.REALS and not each.constant
        )
        part = self.words.of(argument.expression, MAX_PART)
        meant = self._inverse(part) if domain is Domain.NONZERO else ""
        return f"{self.name} needs {part} {ASKED[domain]}, which is not proven{meant}"

    def _inverse(self, part: str) -> str:
        """What to say of a square matrix to the power −1, which is meant to be its inverse."""
        exponents, shape = self.node.exponents, self.node.expression.shape
        inverse = exponents is not None and len(exponents) == 1 and np.all(exponents[0] == -1.0)
        if not inverse or len(shape) != 2 or shape[0] != shape[1]:
            return ""
        if self.words.first:
            return f"; `^` works entry by entry, and the inverse of a matrix is `inv({part})`"
        return f"; ** works entry by entry, and the inverse of a matrix is hc.inv({part})"

    def _product(self, kind: str) -> str:
        if self.want == CONCAVE:
            return f"{self.name} is {kind} of varying terms, where a concave term is needed"
        start = f"{self.name} is {kind} of varying terms, convex only through logarithms"
        lacking = [each for each in self.varying if not self.channels[each.number][1] & CONVEX]
        lacking.sort(key=lambda factor: factor.supported)
        if lacking:
            return f"{start}, but {self._no_logarithm(lacking[0])}"
        return f"{start}, but {self.words.of(self.varying[-1].expression, MAX_PART)} is not log-concave"

    def _no_logarithm(self, factor: Node) -> str:
        """Why the size of a factor is not log-convex."""
        if not factor.supported:
            return f"{self.words.of(factor.expression)} may be 0 or change its sign"
        leaf = factor
        while leaf.atom is not None and leaf.atom.moves_entries:
            leaf = self.nodes[leaf.arguments[0]]
        if isinstance(leaf.expression, Variable) and can_be_log(leaf.expression):
            return self._kept_plain(leaf.expression.name)
        log = self.channels[factor.number][1]
        return f"{self.words.of(factor.expression)} is {'only log-concave' if log else 'not log-convex'}"

    def _kept_plain(self, name: str) -> str:
        """What breaks if the variables of this node are in logarithms."""
        facts, logs = self.curvatures.facts, self.curvatures.logs
        for place, variable in enumerate(facts.variables):
            if self.node.variables >> place & 1 and can_be_log(variable):
                logs |= 1 << place
        other = Curvatures(facts, logs)
        failed = failing(self.task, other)
        if not failed:
            return f"{name} is pinned to its own coordinate"
        path, _ = blamed(self.task, other, failed[0])
        return f"with {name} in logarithms {self.words.of(path[-1])} breaks the proof"

    def _sum(self) -> str:
        rule = self.node.rule
        assert rule is not None
        kinds: dict[int, str] = {}
        for i, passing in zip(rule.arguments, rule.passing, strict=True):
            falls = passing == PASSING[Monotonicity.DECREASING]
            text = self.words.of(self.nodes[i].expression)
            if falls:
                text = f"-({text})" if " + " in text or " - " in text else f"-{text}"
            kinds.setdefault(passing[self.channels[i][0]], text)
        if CONVEX in kinds and CONCAVE in kinds:
            return (
                f"{self.name} adds {kinds[CONVEX]}, which is convex, and {kinds[CONCAVE]}, "
                "which is concave"
            )
        return f"{self.name} adds terms whose curvatures do not agree"

    def _composition(self) -> str:
        node, rule = self.node, self.node.rule
        assert node.atom is not None
        assert rule is not None
        if not rule.plain:
            if node.atom.black_box:
                return f"{self.name} is a program: nothing is known about its curvature"
            return (
                f"{self.name}: the curvature of `{node.atom.name}` is not known for such arguments"
            )
        for i, passing in zip(rule.arguments, rule.passing, strict=True):
            plain = self.channels[i][0]
            if not rule.plain & passing[plain]:
                asked = _asked(passing, rule.plain)
                found = WORDS[plain] if plain else "known only through its logarithm"
                return (
                    f"{self.name} is {WORDS[rule.plain]} in its argument, which must be "
                    f"{WORDS[asked]}, but {self.words.of(self.nodes[i].expression)} is {found}"
                )
        return f"{self.name} has arguments whose curvatures do not agree"


def _article(want: int) -> str:
    return f"{'an' if want == AFFINE else 'a'} {WORDS[want]}"


# places in the text


def _span(source: Any, function: int | None, name: str, path: Sequence[Expression]) -> Span | None:
    """The place of the innermost node on the path that has one, else of its statement."""
    if source is None:
        return None
    places = getattr(source, "places", {})
    for expression in reversed(path):
        if expression in places:
            found: Span = places[expression]
            return found
    return _statement(source.model, function, name)


def _statement(model: syntax.Model, function: int | None, name: str) -> Span | None:
    """The place of the objective, or of the constraint with this name."""
    from hcmodel.grammar import syntax

    statements = [each for each in model.statements if isinstance(each, syntax.Constraint)]
    stem = name.removesuffix(".lower").removesuffix(".upper")
    for number, statement in enumerate(statements, start=1):
        own = f"c{number}" if statement.name is None else statement.name.identifier
        if function is not None and own in (name, stem):
            return statement.comparison.span
    for each in model.statements:
        if isinstance(each, syntax.Objective) and function is None:
            return each.expression.span
    return None
