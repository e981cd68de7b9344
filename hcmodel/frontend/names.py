"""The names of a model: what each stands for, in the order of declaration, and what it may not be."""

from __future__ import annotations

import math
from collections.abc import Iterator
from enum import Enum
from functools import cache

import numpy as np

from hcmodel.atoms.compositions import COMPOSITIONS
from hcmodel.expressions.leaves import Expression
from hcmodel.expressions.table import ATOMS
from hcmodel.frontend.mistakes import Mistake, PoisonedError, did_you_mean, nearest
from hcmodel.frontend.values import Value, number
from hcmodel.grammar import Span, syntax
from hcmodel.records import dataclass

CONSTANTS = {"pi": math.pi, "e": math.e, "inf": math.inf}
CONSTANT_FUNCTIONS = ("eye", "ones", "zeros")
# These atoms are operators of the language, or have no form in it.
NO_FUNCTIONS = ("add", "sub", "neg", "mul", "div", "matmul", "index", "function")


@cache
def function_names() -> tuple[str, ...]:
    """The functions that a model may call."""
    atoms = [name for name in ATOMS if name not in NO_FUNCTIONS]
    return tuple(sorted([*atoms, *COMPOSITIONS, *CONSTANT_FUNCTIONS]))


class Kind(Enum):
    """What a name was declared as; the value is the word for it in messages."""

    SET = "set"
    PARAMETER = "parameter"
    LET = "`let`"
    VARIABLE = "variable"
    CONSTANT = "constant"


@dataclass(frozen=True, eq=False)
class Symbol:
    """A declared name; `value` is None where its declaration was wrong."""

    name: str
    kind: Kind
    span: Span
    value: Value | None
    data: np.ndarray | None = None  # of a parameter, the number at load time


class Names:
    """The table, filled statement by statement."""

    def __init__(self, model: syntax.Model) -> None:
        self._symbols: dict[str, Symbol] = {}
        self._later = {name.identifier: name.span for name in declared_names(model)}
        self.places: dict[Expression, Span] = {}  # where each applied atom stands in the text

    def declare(self, symbol: Symbol) -> None:
        self._symbols[symbol.name] = symbol

    def check_declarable(self, name: syntax.Name) -> None:
        """Refuse names of functions and names that are taken."""
        word = name.identifier
        if word in function_names():
            raise Mistake(
                f"`{word}` is a function and cannot be declared", name.span, "choose another name"
            )
        if word in self._symbols:
            line = self._symbols[word].span.line
            raise Mistake(
                f"`{word}` is declared twice", name.span, f"first declared on line {line}"
            )

    def get(self, word: str) -> Symbol | None:
        return self._symbols.get(word)

    def find(self, name: syntax.Name, indices: tuple[str, ...], place: str = "") -> Symbol:
        """The symbol, or a mistake that suggests another name or, by the place, a declaration."""
        word = name.identifier
        symbol = self._symbols.get(word)
        if symbol is None:
            if word in CONSTANTS:
                return Symbol(word, Kind.CONSTANT, name.span, number(CONSTANTS[word]))
            if word in self._later and word in function_names():
                raise PoisonedError(word)  # its declaration is a mistake of its own
            raise self._unknown(name, indices, place)
        if symbol.value is None:
            raise PoisonedError(word)
        return symbol

    def _unknown(self, name: syntax.Name, indices: tuple[str, ...], place: str) -> Mistake:
        word = name.identifier
        if word in self._later:
            line = self._later[word].line
            return Mistake(
                f"`{word}` is used before its declaration", name.span, f"declared on line {line}"
            )
        if word in function_names():
            return Mistake(f"`{word}` is a function", name.span, f"write `{word}(…)`")
        if place == "index" and word == "end":
            return Mistake("`end` is no index", name.span, "write the number of the last entry")
        close = nearest(word, [*indices, *self._symbols])
        if close is not None:
            return Mistake(f"unknown name `{word}`; did you mean `{close}`?", name.span)
        hint = DECLARE[place].replace("NAME", word)
        if word == "T":
            hint += "; a transpose is written `.T`"
        return Mistake(f"unknown name `{word}`", name.span, hint)

    def unknown_function(self, call: syntax.Call) -> Mistake:
        """The mistake of calling what is no function."""
        name = call.function
        word = name.identifier
        if word == "range" and word not in self._symbols:
            return Mistake("ranges are written with `..`", call.span, _range_hint(call))
        if word in self._symbols:
            return Mistake(
                f"`{word}` is a {self._symbols[word].kind.value}, not a function",
                name.span,
                f"index with `{word}[…]`, multiply with `{word} * (…)`",
            )
        hint = SYNONYMS.get(word.lower()) or did_you_mean(word, function_names())
        return Mistake(f"unknown function `{word}`", name.span, hint)


def _range_hint(call: syntax.Call) -> str:
    """`range(3)` as `1..3`, with names and numbers as they stand."""
    ends = [
        each.identifier if isinstance(each, syntax.Name) else f"{each.value:g}"
        for each in call.arguments
        if isinstance(each, syntax.Name | syntax.Number)
    ]
    if len(ends) != len(call.arguments) or len(ends) not in (1, 2):
        return "write `1..n`; both ends belong to it"
    return f"write `{'..'.join(['1', *ends][-2:])}`; both ends belong to it"


# What to declare an unknown name as, by the place where it stands.
DECLARE = {
    "": "declare it: `var NAME`, `param NAME` or `let NAME = …`",
    "length": "declare it: `param NAME`",
    "set": "declare it: `set NAME = …`, or write a range: `1..n`",
    "index": "declare it: `param NAME`, or let it run: `for NAME in 1..n`",
}

SYNONYMS = {
    "ln": "write `log(…)`, the natural logarithm",
    "log10": "write `log(…) / log(10)`",
    "log2": "write `log(…) / log(2)`",
    "pow": "write `base ^ exponent`",
    "sqr": "write `square(…)` or `…^2`",
    "tr": "write `trace(…)`",
    "len": "give the length as a parameter: `param n`",
    "dot_product": "write `dot(…, …)`",
    "identity": "write `eye(n)`",
    "product": "write `prod(…)`",
    "summation": "write `sum(…)`",
    "average": "write `mean(…)`",
    "det_log": "write `logdet(…)`",
    "pos": "write `max(…, 0)`",
    "diff": "write `x[2..n] - x[1..n-1]`",
    "tv": "write `norm(x[2..n] - x[1..n-1], 1)`",
    "vec": "write `reshape(A, [n*m])`",
    "transposed": "write `A.T`",
}


def declared_names(model: syntax.Model) -> Iterator[syntax.Name]:
    """All names that the model declares."""
    for statement in model.statements:
        if isinstance(
            statement,
            syntax.SetDeclaration
            | syntax.ParameterDeclaration
            | syntax.LetDeclaration
            | syntax.VariableDeclaration,
        ):
            yield statement.name


def unresolved(
    node: syntax.Node, names: Names, place: str = ""
) -> Iterator[Mistake | PoisonedError]:
    """What is wrong with the names under a node, all of it, before anything is evaluated."""
    waiting: list[tuple[syntax.Node, tuple[str, ...], str]] = [(node, (), place)]
    while waiting:
        current, indices, place = waiting.pop()
        if isinstance(current, syntax.Name):
            if current.identifier not in indices:
                try:
                    names.find(current, indices, place)
                except (Mistake, PoisonedError) as wrong:
                    yield wrong
            continue
        children: list[tuple[syntax.Node, tuple[str, ...], str]] = []
        if isinstance(current, syntax.Call):
            word = current.function.identifier
            if word not in function_names() or names.get(word) is not None:
                yield names.unknown_function(current)
            children = [(each, indices, place) for each in (*current.arguments, *current.keywords)]
        elif isinstance(current, syntax.Keyword):
            children = [(current.value, indices, place)]
        elif isinstance(current, syntax.Subscript):
            children = [(current.base, indices, place)]
            children += [(each, indices, "index") for each in current.indices]
        elif isinstance(current, syntax.Comprehension | syntax.Constraint | syntax.LetDeclaration):
            for generator in current.generators:
                is_name = isinstance(generator.index_set, syntax.Name)
                children.append((generator.index_set, indices, "set" if is_name else "length"))
                indices = (*indices, generator.index.identifier)
            children += [(each, indices, place) for each in _body(current)]
        else:
            children = [(each, indices, place) for each in syntax.children(current)]
        waiting.extend(reversed(children))


def _body(
    node: syntax.Comprehension | syntax.Constraint | syntax.LetDeclaration,
) -> list[syntax.Node]:
    if isinstance(node, syntax.LetDeclaration):
        return [node.value]
    inner = node.element if isinstance(node, syntax.Comprehension) else node.comparison
    return [inner] if node.condition is None else [inner, node.condition]


# ---- structural parameters ----------------------------------------------------------------------


def structural_names(model: syntax.Model) -> frozenset[str]:
    """Names that shapes, ranges, filters, indices and domains depend on: fixed at load."""
    roots: list[syntax.Node] = []
    lets: dict[str, syntax.LetDeclaration] = {}
    for statement in model.statements:
        if isinstance(statement, syntax.LetDeclaration):
            lets[statement.name.identifier] = statement
        elif isinstance(statement, syntax.SetDeclaration):
            roots.append(statement.value)
        elif isinstance(statement, syntax.VariableDeclaration):
            roots += [*statement.shape, *statement.domains]
        elif isinstance(statement, syntax.ParameterDeclaration):
            roots += statement.shape
        roots += _structural_parts(statement)
    found: set[str] = set()
    while roots:
        for node in syntax.walk(roots.pop()):
            if isinstance(node, syntax.Name) and node.identifier not in found:
                found.add(node.identifier)
                if node.identifier in lets:
                    roots.append(lets[node.identifier].value)
    return frozenset(found)


def _structural_parts(statement: syntax.Node) -> Iterator[syntax.Node]:
    for node in syntax.walk(statement):
        if isinstance(node, syntax.Generator):
            yield node.index_set
        elif isinstance(node, syntax.Comprehension | syntax.Constraint):
            if node.condition is not None:
                yield node.condition
        elif isinstance(node, syntax.Subscript):
            yield from node.indices
        elif isinstance(node, syntax.Call):
            yield from (keyword.value for keyword in node.keywords)
            yield from _shape_arguments(node)


def _shape_arguments(call: syntax.Call) -> list[syntax.Node]:
    """The arguments that fix shapes, of those that are given by position."""
    name = call.function.identifier
    if name in CONSTANT_FUNCTIONS:
        return list(call.arguments)
    function = COMPOSITIONS.get(name) or ATOMS.get(name)
    if function is None:
        return []
    parameters = zip(function.signature.parameters, call.arguments, strict=False)
    return [argument for word, argument in parameters if word in function.static]
