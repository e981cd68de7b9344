"""The syntax tree of a `.hc` model: what was written and where, before any name or shape is known.

Every node is a frozen dataclass with a `span`. Spans take no part in equality, so two texts that
differ in layout only have equal trees. Operators are kept as they are written. The nodes share one
`__init__` and the like: to generate them for each class takes eight times as long, and every process that
reads a model makes all of these classes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import MISSING, FrozenInstanceError, dataclass, field, fields
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeAlias


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


if TYPE_CHECKING:
    from typing import TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True, field_specifiers=(field,))
    def node(made: type[T]) -> type[T]: ...

else:

    def node(made: type) -> type:
        """A dataclass without generated code; `Node` has what it needs."""
        return dataclass(init=False, repr=False, eq=False)(made)


@node
class Node:
    """What all nodes share."""

    span: Span = field(compare=False, repr=False, kw_only=True)

    if not TYPE_CHECKING:

        def __init__(self, *values: Any, **named: Any) -> None:
            known = fields(self)
            positional = [each.name for each in known if not each.kw_only]
            if len(values) > len(positional):
                raise TypeError(f"{type(self).__name__} takes {len(positional)} values")
            given = dict(zip(positional, values, strict=False))
            if given.keys() & named.keys():
                raise TypeError(f"{type(self).__name__} was given a value twice")
            given.update(named)
            for each in known:
                if each.name not in given:
                    if each.default is MISSING:
                        raise TypeError(f"{type(self).__name__} needs `{each.name}`")
                    given[each.name] = each.default
            if len(given) > len(known):
                raise TypeError(f"{type(self).__name__} has {[each.name for each in known]}")
            self.__dict__.update(given)

        def __setattr__(self, name: str, value: Any) -> None:
            raise FrozenInstanceError(f"cannot assign to field {name!r}")

        def __delattr__(self, name: str) -> None:
            raise FrozenInstanceError(f"cannot delete field {name!r}")

        def _compared(self) -> tuple[Any, ...]:
            return tuple(self.__dict__[each.name] for each in fields(self) if each.compare)

        def __eq__(self, other: object) -> bool:
            if type(other) is not type(self):
                return NotImplemented
            return self._compared() == other._compared()

        def __hash__(self) -> int:
            return hash(self._compared())

        def __repr__(self) -> str:
            shown = (each.name for each in fields(self) if each.repr)
            parts = ", ".join(f"{name}={self.__dict__[name]!r}" for name in shown)
            return f"{type(self).__qualname__}({parts})"


# ---- expressions --------------------------------------------------------------------------------


@node
class Number(Node):
    """A literal such as `2` or `1e-3`; constants are float64 throughout the language."""

    value: float


@node
class String(Node):
    """A literal such as `"fro"`, which stands only as an argument of a function."""

    value: str


@node
class Name(Node):
    """A name, in an expression or where it is declared."""

    identifier: str


@node
class ListLiteral(Node):
    """`[1, 2]`, or a matrix by rows as a list of lists."""

    items: tuple[Expression, ...]


@node
class Arithmetic(Node):
    """A run of one precedence, evaluated from the left: `a - b + c` or `A * b / c @ D`.

    There is one operator fewer than operands, from `+ -` or from `* / @`, never from both.
    """

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@node
class Signed(Node):
    """`-x` or `+x`."""

    operator: str
    operand: Expression


@node
class Power(Node):
    """`base ^ exponent`."""

    base: Expression
    exponent: Expression


@node
class Transpose(Node):
    """`A.T`."""

    operand: Expression


@node
class Range(Node):
    """`lower..upper`, both ends included."""

    lower: Expression
    upper: Expression


@node
class Everything(Node):
    """The `:` of `x[:, 1]`."""


@node
class Subscript(Node):
    """`base[index, …]`."""

    base: Expression
    indices: tuple[Index, ...]


@node
class Keyword(Node):
    """`axis = 1` among the arguments of a call."""

    name: Name
    value: Expression | String


@node
class Generator(Node):
    """`index in index_set`."""

    index: Name
    index_set: IndexSet


@node
class Comprehension(Node):
    """`element for i in S, j in T if condition`, the only argument of a call."""

    element: Expression
    generators: tuple[Generator, ...]
    condition: Condition | None


@node
class Call(Node):
    """`function(arguments, keyword = value)`; with a comprehension it is the only argument."""

    function: Name
    arguments: tuple[Expression | String | Comprehension, ...]
    keywords: tuple[Keyword, ...]


# ---- conditions ---------------------------------------------------------------------------------


@node
class Comparison(Node):
    """`a <= b` or `a <= b <= c`; one operator fewer than operands."""

    operands: tuple[Expression, ...]
    operators: tuple[str, ...]


@node
class Logical(Node):
    """Conditions joined by `and` or by `or`."""

    operator: str
    operands: tuple[Condition, ...]


@node
class Not(Node):
    """`not condition`."""

    operand: Condition


# ---- domains ------------------------------------------------------------------------------------


@node
class Bound(Node):
    """`>= 0`, `> 0` or `<= 5` after a declared name (`<` for parameters only)."""

    operator: str
    value: Expression


@node
class Interval(Node):
    """`in [lower, upper]`."""

    lower: Expression
    upper: Expression


@node
class Simplex(Node):
    """`in simplex`."""


@node
class PositiveSemidefinite(Node):
    """`in psd`, `in psd(lower)` or `in psd(lower, upper)`: limits of the eigenvalues."""

    lower: Expression | None
    upper: Expression | None


# ---- statements ---------------------------------------------------------------------------------


class Sense(Enum):
    """The direction of an objective."""

    MINIMIZE = "minimize"
    MAXIMIZE = "maximize"


@node
class Labels(Node):
    """`{"N2", "O2"}`: the members of a set by name."""

    names: tuple[str, ...]


@node
class SetDeclaration(Node):
    """`set name = value`."""

    name: Name
    value: IndexSet | Labels


@node
class ParameterDeclaration(Node):
    """`param name[shape] bounds = default`; an empty shape is a scalar."""

    name: Name
    shape: tuple[IndexSet, ...]
    bounds: tuple[Bound | Interval, ...]
    default: Expression | None


@node
class LetDeclaration(Node):
    """`let name[i in S] = value`; without generators the name stands for the value itself."""

    name: Name
    generators: tuple[Generator, ...]
    value: Expression


@node
class VariableDeclaration(Node):
    """`var name[shape] symmetric domains`."""

    name: Name
    shape: tuple[IndexSet, ...]
    domains: tuple[Domain, ...]
    symmetric: bool


@node
class Objective(Node):
    """`minimize expression` or `maximize expression`."""

    sense: Sense
    expression: Expression


@node
class Constraint(Node):
    """`name[generators if condition]: comparison`; a chain has three operands, in one direction."""

    name: Name | None
    generators: tuple[Generator, ...]
    condition: Condition | None
    comparison: Comparison


@node
class Hidden(Node):
    """`hidden expression, …`: the hidden coordinates."""

    expressions: tuple[Expression, ...]


@node
class Start(Node):
    """`start name = value`."""

    name: Name
    value: Expression


@node
class Comment(Node):
    """A comment with its `#`."""

    text: str


@node
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


def children(node: Node) -> Iterator[Node]:
    """The nodes directly under a node, in the order of the text."""
    for each in fields(node):
        value = getattr(node, each.name)
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
