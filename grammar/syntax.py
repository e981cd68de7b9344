"""The syntax tree of a `.hc` model: what was written and where, before any name or shape is known.

Every node is a frozen dataclass with a `span`. Spans take no part in equality, so two texts that
differ in layout only have equal trees. Operators are kept as they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field, fields
from enum import Enum
from typing import Any, TypeAlias

from hcmodel.records import dataclass


@dataclass(frozen=True)
class Span:
    """Where a node stands: from 1, columns in characters, the end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int

    def to(self, end: Span) -> Span:
        """The span from the start of this one to the end of another."""
        return Span(self.line, self.column, end.end_line, end.end_column)


@dataclass(frozen=True)
class Node:
    """What all nodes share."""

    span: Span = field(compare=False, repr=False, kw_only=True)


# ---- expressions --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Number(Node):
    """A literal such as `2` or `1e-3`; constants are float64 throughout the language."""

    value: float


@dataclass(frozen=True)
class String(Node):
    """A literal such as `"fro"`, which stands only as an argument of a function."""

    value: str


@dataclass(frozen=True)
class Name(Node):
    """A name, in an expression or where it is declared."""

    identifier: str


@dataclass(frozen=True)
class ListLiteral(Node):
    """`[1, 2]`, or a matrix by rows as a list of lists."""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Arithmetic(Node):
    """A run of one precedence, evaluated from the left: `a - b + c` or `A * b / c @ D`.

    There is one operator fewer than operands, from `+ -` or from `* / @`, never from both.
    """

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Signed(Node):
    """`-x` or `+x`."""

    operator: str
    operand: Expression


@dataclass(frozen=True)
class Power(Node):
    """`base ^ exponent`."""

    base: Expression
    exponent: Expression


@dataclass(frozen=True)
class Transpose(Node):
    """`A.T`."""

    operand: Expression


@dataclass(frozen=True)
class Range(Node):
    """`lower..upper`, both ends included."""

    lower: Expression
    upper: Expression


@dataclass(frozen=True)
class Everything(Node):
    """The `:` of `x[:, 1]`."""


@dataclass(frozen=True)
class Subscript(Node):
    """`base[index, …]`."""

    base: Expression
    indices: tuple[Index, ...]


@dataclass(frozen=True)
class Keyword(Node):
    """`axis = 1` among the arguments of a call."""

    name: Name
    value: Expression | String


@dataclass(frozen=True)
class Generator(Node):
    """`index in index_set`."""

    index: Name
    index_set: IndexSet


@dataclass(frozen=True)
class Comprehension(Node):
    """`element for i in S, j in T if condition`, the only argument of a call."""

    element: Expression
    generators: tuple[Generator, ...]
    condition: Condition | None


@dataclass(frozen=True)
class Call(Node):
    """`function(arguments, keyword = value)`; with a comprehension it is the only argument."""

    function: Name
    arguments: tuple[Expression | String | Comprehension, ...]
    keywords: tuple[Keyword, ...]


# ---- conditions ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison(Node):
    """`a <= b` or `a <= b <= c`; one operator fewer than operands."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@dataclass(frozen=True)
class Logical(Node):
    """Conditions joined by `and` or by `or`."""

    operator: str
    operands: tuple[Condition, ...]


@dataclass(frozen=True)
class Not(Node):
    """`not condition`."""

    operand: Condition


# ---- domains ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound(Node):
    """`>= 0`, `> 0` or `<= 5` after a declared name (`<` for parameters only)."""

    operator: str
    value: Expression


@dataclass(frozen=True)
class Interval(Node):
    """`in [lower, upper]`."""

    lower: Expression
    upper: Expression


@dataclass(frozen=True)
class Simplex(Node):
    """`in simplex`."""


@dataclass(frozen=True)
class PositiveSemidefinite(Node):
    """`in psd`, `in psd(lower)` or `in psd(lower, upper)`: limits of the eigenvalues."""

    lower: Expression | None
    upper: Expression | None


# ---- statements ---------------------------------------------------------------------------------


class Sense(Enum):
    """The direction of an objective."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


@dataclass(frozen=True)
class Labels(Node):
    """`{"N2", "O2"}`: the members of a set by name."""

    names: tuple[str, ...]


@dataclass(frozen=True)
class SetDeclaration(Node):
    """`set name = value`."""

    name: Name
    value: IndexSet | Labels


@dataclass(frozen=True)
class ParameterDeclaration(Node):
    """`param name[shape] bounds = default`; an empty shape is a scalar."""

    name: Name
    shape: tuple[IndexSet, ...]
    bounds: tuple[Bound | Interval, ...]
    default: Expression | None


@dataclass(frozen=True)
class LetDeclaration(Node):
    """`let name[i in S] = value`; without generators the name stands for the value itself."""

    name: Name
    generators: tuple[Generator, ...]
    value: Expression


@dataclass(frozen=True)
class VariableDeclaration(Node):
    """`var name[shape] symmetric domains`."""

    name: Name
    shape: tuple[IndexSet, ...]
    domains: tuple[Domain, ...]
    symmetric: bool


@dataclass(frozen=True)
class Objective(Node):
    """`minimize expression` or `maximize expression`."""

    sense: Sense
    expression: Expression


@dataclass(frozen=True)
class Constraint(Node):
    """`name[generators if condition]: comparison`; a chain has three operands, in one direction."""

    name: Name | None
    generators: tuple[Generator, ...]
    condition: Condition | None
    comparison: Comparison


@dataclass(frozen=True)
class Hidden(Node):
    """`hidden expression, …`: the hidden coordinates."""

    expressions: tuple[Expression, ...]


@dataclass(frozen=True)
class Start(Node):
    """`start name = value`."""

    name: Name
    value: Expression


@dataclass(frozen=True)
class Comment(Node):
    """A comment with its `#`."""

    text: str


@dataclass(frozen=True)
class Model(Node):
    """A whole file. `param a, b` gives two statements; comments are not compared."""

    statements: tuple[Statement, ...]
    comments: tuple[Comment, ...] = field(compare=False)


Expression: TypeAlias = (
    Number | Name | ListLiteral | Arithmetic | Signed | Power | Transpose | Subscript | Call
)
IndexSet: TypeAlias = Expression | Range
Index: TypeAlias = Expression | Range | Everything | String
Condition: TypeAlias = Comparison | Logical | Not
Domain: TypeAlias = Bound | Interval | Simplex | PositiveSemidefinite
Statement: TypeAlias = (
    SetDeclaration
    | ParameterDeclaration
    | LetDeclaration
    | VariableDeclaration
    | Objective
    | Constraint
    | Hidden
    | Start
)


_FIELDS: dict[type[Node], tuple[str, ...]] = {}


def _fields(kind: type[Node]) -> tuple[str, ...]:
    if kind not in _FIELDS:
        _FIELDS[kind] = tuple(each.name for each in fields(kind))
    return _FIELDS[kind]


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in the order of the text."""
    for name in _fields(type(node)):
        value = getattr(node, name)
        if isinstance(value, Node):
            yield value
        elif isinstance(value, tuple):
            yield from (item for item in value if isinstance(item, Node))


def walk(node: Node) -> Iterator[Node]:
    """A node and all nodes under it, each before its children, without recursion."""
    waiting = [node]
    while waiting:
        node = waiting.pop()
        yield node
        waiting.extend(reversed(list(children(node))))


def moved(node: Node, lines: int) -> Node:
    """A copy of a node that stands so many lines further down."""
    given = {name: _moved(getattr(node, name), lines) for name in _fields(type(node))}
    return type(node)(**given)


def _moved(value: Any, lines: int) -> Any:
    if isinstance(value, Node):
        return moved(value, lines)
    if isinstance(value, Span):
        return Span(value.line + lines, value.column, value.end_line + lines, value.end_column)
    if isinstance(value, tuple):
        return tuple(_moved(each, lines) for each in value)
    return value
