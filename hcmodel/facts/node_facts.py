"""What is known of every sub-expression whatever the coordinates: signs, intervals, constants, rules.

Equal sub-expressions are merged into one `Node`. Its `LocalRule` is what the atom table says here:
the curvatures and monotonicities for the proven signs of the arguments. Only how these compose
depends on the coordinates, so that trying other coordinates asks the table nothing.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from hcmodel.atoms.algebra import Exponents, Factor
from hcmodel.atoms.atom import Atom
from hcmodel.atoms.rules import Argument, Domain, MatrixKind, Sign, sign_of
from hcmodel.expressions.graph import topological_order
from hcmodel.expressions.leaves import Apply, Expression, Leaf, Parameter, Variable
from hcmodel.expressions.sparse_data import Numbers, all_finite, is_sparse
from hcmodel.facts import intervals, matrix_words, patterns
from hcmodel.facts.answers import Answers, ask
from hcmodel.facts.bits import stronger
from hcmodel.facts.definiteness import definiteness
from hcmodel.facts.intervals import Interval
from hcmodel.facts.local_rules import LocalRule, is_supported, local_rule
from hcmodel.facts.patterns import Pattern
from hcmodel.records import dataclass, replace
from hcmodel.solvers.limits import check_time

# What the table says of atoms none of whose arguments is constant, which is the same for all models.
_ASKED: dict[Hashable, Answers] = {}
# How many such answers are kept: a model has some dozens, and this many take some megabytes.
MOST_ANSWERS = 10_000
# What has to be known of a matrix in the domain of an atom, for the domain to be convex (`local_rules`).
ENOUGH = {
    Domain.INVERTIBLE: MatrixKind.SEMIDEFINITE,
    Domain.POSITIVE_DEFINITE: MatrixKind.SYMMETRIC,
}


class Range:
    """The interval of a node, made when it is first asked for: most signs follow without it."""

    __slots__ = ("_found", "_make")

    def __init__(self, make: Callable[[], Interval]) -> None:
        self._make = make
        self._found: Interval | None = None

    @property
    def interval(self) -> Interval:
        if self._found is None:
            with np.errstate(all="ignore"):
                self._found = self._make()
        return self._found


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One merged sub-expression with its facts.

    `supported`: every entry is 0 everywhere, or has the node's strict sign everywhere; so the
    logarithm of its size means something. `variables` has a bit for each variable inside.
    """

    number: int
    expression: Expression
    atom: Atom | None
    params: dict[str, Any]
    arguments: tuple[int, ...]
    constant: bool
    value: Numbers | None
    sign: Sign
    range: Range
    supported: bool
    variables: int
    definiteness: MatrixKind
    exponents: Exponents | None = None  # of the monomial that the node is
    factors: tuple[Factor, ...] = ()  # of the product of matrices that it is
    rule: LocalRule | None = None
    pattern: Pattern | None = None
    undefined: bool = False  # a constant that is no number, such as log(-1)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.expression.shape

    @property
    def interval(self) -> Interval:
        """An interval for every entry, or for all of them."""
        return self.range.interval

    @property
    def known(self) -> bool:
        """Whether the node is a number, entry by entry."""
        return self.value is not None and not self.undefined

    @property
    def exact_interval(self) -> Interval:
        """The interval, entry by entry also where a number has many entries."""
        if self.value is None or self.undefined:
            return self.interval
        return self.value, self.value

    @property
    def argument(self) -> Argument:
        """The facts as the rules of the atom table take them."""
        shape = self.expression.shape
        return Argument(shape, self.sign, self.constant, self.value, self.definiteness)


class Facts:
    """The merged nodes, arguments first. Expressions can be added at any time."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.variables: list[Variable] = []
        self._of_expression: dict[int, int] = {}
        self._of_key: dict[Hashable, int] = {}
        self._kept: list[Expression] = []  # so that identities stay taken
        self._asked: dict[Hashable, Answers] = {}
        self.loggable = 0
        """The variables that can be in logarithmic coordinates, as bits."""
        self.curved = 0
        """The variables in a cone of matrices, as bits."""

    def copy(self) -> Facts:
        """The same facts, to which other expressions can be added; parameters keep their values."""
        found = Facts()
        found.nodes, found.variables = list(self.nodes), list(self.variables)
        found._of_expression, found._of_key = dict(self._of_expression), dict(self._of_key)
        found._kept, found._asked = list(self._kept), dict(self._asked)
        found.loggable, found.curved = self.loggable, self.curved
        return found

    def __getitem__(self, expression: Expression) -> Node:
        return self.nodes[self.add(expression)]

    def add(self, expression: Expression) -> int:
        """The number of the node of `expression`, entered with all that is under it."""
        known = self._of_expression
        if id(expression) in known:
            return known[id(expression)]
        pending: list[tuple[Expression, bool]] = [(expression, False)]
        with np.errstate(all="ignore"):
            while pending:
                each, arguments_done = pending.pop()
                if id(each) in known:
                    continue
                if arguments_done or not each.args:
                    known[id(each)] = self._enter(each)
                    self._kept.append(each)
                else:
                    pending.append((each, True))
                    pending.extend((argument, False) for argument in reversed(each.args))
        return known[id(expression)]

    def _enter(self, expression: Expression) -> int:
        check_time()
        key: Hashable
        arguments = tuple([self._of_expression[id(argument)] for argument in expression.args])
        if isinstance(expression, Apply):
            key = (expression.atom, arguments, expression.params)
        else:
            assert isinstance(expression, Leaf)
            key = expression.merge_key()
        number = self._of_key.get(key)
        if number is None:
            number = self._of_key[key] = len(self.nodes)
            if isinstance(expression, Variable):
                self.nodes.append(self._variable(number, expression))
            elif isinstance(expression, Apply):
                self.nodes.append(self._application(number, expression, arguments))
            else:
                value = expression.value
                declared = _declared_sign(expression)
                self.nodes.append(_constant(number, expression, (), value, declared))
        return number

    def _variable(self, number: int, variable: Variable) -> Node:
        bit = 1 << len(self.variables)
        self.variables.append(variable)
        if variable.set.has_logarithm:
            self.loggable |= bit
        if variable.set.is_curved:
            self.curved |= bit
        interval, sign = _domain_of(variable)
        return Node(
            number=number,
            expression=variable,
            atom=None,
            params={},
            arguments=(),
            constant=False,
            value=None,
            sign=sign,
            range=Range(functools.partial(intervals.collapsed, interval)),
            supported=sign.is_strict,
            variables=bit,
            definiteness=definiteness(variable),
        )

    def _application(self, number: int, expression: Apply, arguments: tuple[int, ...]) -> Node:
        nodes, variables, undefined = list[Node](), 0, False
        varies = sparse = False
        for i in arguments:
            node = self.nodes[i]
            nodes.append(node)
            variables |= node.variables
            varies = varies or not node.constant
            sparse = sparse or is_sparse(node.value)
            undefined = undefined or node.undefined
        if not varies:
            return _applied_constant(number, expression, arguments, nodes)
        if sparse:
            nodes = _stored_for(expression.atom, nodes)
        atom, params = expression.atom, dict(expression.params)
        answers = self._answers(expression, params, nodes)
        known = [_looked_into(*each) for each in zip(nodes, answers.domains, strict=True)]
        if any(new is not old for new, old in zip(known, nodes, strict=True)):
            nodes = known
            for node in nodes:
                self.nodes[node.number] = node
            answers = self._answers(expression, params, nodes)
        factors = answers.factors
        word = matrix_words.word(factors, nodes, self.nodes) if factors else ()
        pattern = patterns.find(atom, answers, nodes, self.nodes, word)
        sign = stronger(answers.sign, patterns.sign(pattern))
        reach = Range(functools.partial(_enclosed, atom, params, nodes, answers, sign))
        if not expression.size:
            sign = Sign.ZERO
        elif not sign.is_strict:  # nothing is stronger
            sign = stronger(sign, intervals.interval_sign(reach.interval))
        matrix = definiteness(expression, answers.facts)
        if expression.ndim == 2 and word:
            matrix = max(matrix, matrix_words.congruence(word, self.nodes))
        supported = is_supported(atom, params, nodes, answers, sign)
        rule = None
        if not undefined:
            rule = local_rule(atom, params, nodes, answers, sign, supported)
        return Node(
            number=number,
            expression=expression,
            atom=atom,
            params=params,
            arguments=arguments,
            constant=False,
            value=None,
            sign=sign,
            range=reach,
            supported=supported,
            variables=variables,
            definiteness=matrix,
            exponents=answers.exponents,
            factors=factors,
            rule=rule,
            pattern=pattern,
        )

    def _answers(self, expression: Apply, params: dict[str, Any], nodes: Sequence[Node]) -> Answers:
        """The table's answers, asked once for arguments of the same kind."""
        kinds: list[Hashable] = [expression.atom, expression.params]
        varies = True
        for node in nodes:
            number = node.number if node.constant else None
            varies = varies and number is None
            kinds.append((node.expression.shape, node.sign, node.definiteness, number))
        key = tuple(kinds)
        found = self._asked.get(key) or (_ASKED.get(key) if varies else None)
        if found is None:
            facts = [node.argument for node in nodes]
            found = ask(expression.atom, params, facts)
            if varies and not expression.atom.black_box:
                if len(_ASKED) >= MOST_ANSWERS:
                    _ASKED.clear()
                _ASKED[key] = found
            self._asked[key] = found
        return found


def _enclosed(
    atom: Atom, params: dict[str, Any], nodes: Sequence[Node], answers: Answers, sign: Sign
) -> Interval:
    """The interval of an atom applied to nodes, cut where the sign is known."""
    reach, known = list[Interval](), list[bool]()
    for node in nodes:
        number = None if node.undefined else node.value
        reach.append(node.range.interval if number is None else (number, number))
        known.append(number is not None)
    found = intervals.enclosure(atom, params, reach, known, answers)
    return intervals.collapsed(intervals.with_sign(found, sign))


def _looked_into(node: Node, domain: Domain) -> Node:
    """The argument, with what its entries show where its operations do not show that it is definite."""
    wanted = ENOUGH.get(domain)
    if wanted is None or node.definiteness >= wanted or node.constant or node.expression.ndim != 2:
        return node
    found = _by_entries(node.expression)
    return node if found <= node.definiteness else replace(node, definiteness=found)


def _by_entries(matrix: Expression) -> MatrixKind:
    """What is proven of a matrix by multiplying it out."""
    from hcmodel.facts.affine_matrices import affine_definiteness  # most models need none of them
    from hcmodel.facts.expansion import expand
    from hcmodel.facts.polynomials import TooLargeError

    leaves = [node for node in topological_order([matrix]) if isinstance(node, Parameter)]
    if matrix.shape[0] != matrix.shape[1] or any(leaf.value is None for leaf in leaves):
        return MatrixKind.GENERAL
    try:
        (sums,), symbols = expand([matrix])
        return affine_definiteness(sums, symbols)
    except TooLargeError:
        return MatrixKind.GENERAL


def _stored_for(atom: Atom, nodes: list[Node]) -> list[Node]:
    """The arguments, with sparse constants made dense where the atom asks for it."""
    stored = atom.operands([node.value for node in nodes])
    return [
        node if new is node.value else replace(node, value=new)
        for node, new in zip(nodes, stored, strict=True)
    ]


def _applied_constant(
    number: int, expression: Apply, arguments: tuple[int, ...], nodes: Sequence[Node]
) -> Node:
    params = dict(expression.params)
    values = [node.value for node in nodes]
    value: Numbers | None = None
    if all(each is not None for each in values):
        try:
            value = expression.atom.numbers(values, params)
        except np.linalg.LinAlgError:
            value = np.full(expression.shape, np.nan)
    sign = expression.atom.sign([node.argument for node in nodes], params)
    return _constant(number, expression, arguments, value, sign)


def _constant(
    number: int,
    expression: Expression,
    arguments: tuple[int, ...],
    value: Numbers | None,
    declared: Sign,
) -> Node:
    """A node without variables: its value says everything, else what is declared."""
    undefined = value is not None and not all_finite(value)
    if undefined:
        declared = Sign.UNKNOWN
    elif value is not None:
        declared = sign_of(value)
    return Node(
        number=number,
        expression=expression,
        atom=None,
        params={},
        arguments=arguments,
        constant=True,
        value=value,
        sign=declared,
        range=Range(functools.partial(_reach, None if undefined else value, declared)),
        supported=declared is not Sign.UNKNOWN,
        variables=0,
        definiteness=definiteness(expression, value=value),
        undefined=undefined,
    )


def _reach(value: Numbers | None, sign: Sign) -> Interval:
    """The interval of a constant; its value, where that is unknown, has the sign."""
    interval = intervals.UNBOUNDED if value is None else intervals.of_numbers(value)
    return intervals.with_sign(interval, sign)


def _declared_sign(leaf: Expression) -> Sign:
    if isinstance(leaf, Parameter):
        if leaf.pos:
            return Sign.POSITIVE
        return Sign.NONNEGATIVE if leaf.nonneg else Sign.UNKNOWN
    return Sign.UNKNOWN


def _domain_of(variable: Variable) -> tuple[Interval, Sign]:
    interval = variable.set.interval
    if variable.set.positive:
        return interval, Sign.POSITIVE
    return interval, intervals.interval_sign(interval)
