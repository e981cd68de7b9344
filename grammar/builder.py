"""Builds syntax nodes while the parser reduces its rules, and checks what rules cannot say.

Lark calls one method per rule or alias with the rule's children: tokens and nodes already built.
No lark object leaves this module in a node, and nothing here recurses, however deep the text.
"""

from __future__ import annotations

import difflib
import unicodedata
from dataclasses import replace
from typing import Any, NoReturn, TypeVar

from lark import Token, Transformer

from hcmodel.grammar import syntax
from hcmodel.grammar.diagnostics import Diagnostic
from hcmodel.grammar.phrases import quote, span_of
from hcmodel.grammar.syntax import Node, Span

MAX_DEPTH = 200  # of the syntax tree of one statement
SUPERSCRIPTS = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789", strict=True))
# Operators of constraints between matrices.
MATRIX_OPERATORS = ("<<", ">>")
DOMAINS = ("simplex", "psd")
SIGN_WORDS = {
    "nonneg": ">= 0",
    "nonnegative": ">= 0",
    "pos": "> 0",
    "positive": "> 0",
    "nonpos": "<= 0",
    "nonpositive": "<= 0",
    "neg": "<= 0",
    "negative": "<= 0",
}

NodeType = TypeVar("NodeType", bound=Node)
Child = Any  # a Token, a Node, or the list that an inner helper rule returned


class RejectedError(Exception):
    """A statement that the rules accept and the language does not."""

    def __init__(self, message: str, hint: str | None, span: Span) -> None:
        super().__init__(message)
        self.diagnostic = Diagnostic(message, hint, span)


def _short(value: Node) -> str:
    """A number or a name as it is written, `value` for anything longer."""
    if isinstance(value, syntax.Number):
        return f"{value.value:g}"
    return value.identifier if isinstance(value, syntax.Name) else "value"


def reject(message: str, hint: str | None, span: Span) -> NoReturn:
    """Stop the parse of this statement with a message."""
    raise RejectedError(message, hint, span)


def check_depth(root: Node) -> None:
    """Refuse a tree that a recursive reader could not walk."""
    waiting = [(root, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > MAX_DEPTH:
            reject("this expression is nested too deep", "name its parts with `let`", node.span)
        waiting.extend((child, depth + 1) for child in syntax.children(node))


def _span(children: list[Child]) -> Span:
    first, last = children[0], children[-1]
    start: Span = first.span if isinstance(first, Node) else span_of(first)
    end: Span = last.span if isinstance(last, Node) else span_of(last)
    return start.to(end)


def _nodes(children: list[Child], kind: type[NodeType]) -> tuple[NodeType, ...]:
    return tuple(each for each in children if isinstance(each, kind))


def _name(token: Token) -> syntax.Name:
    text = str(token)
    for position, character in enumerate(text):
        if character in SUPERSCRIPTS:
            power = "".join(SUPERSCRIPTS.get(each, "") for each in text[position:])
            reject(
                f"{quote(text)} is not a name", f"write `{text[:position]}^{power}`", span_of(token)
            )
    return syntax.Name(unicodedata.normalize("NFC", text), span=span_of(token))


class TreeBuilder(Transformer[Token, Any]):
    """One method per rule of `hcmodel.lark`."""

    # ---- statements

    def statement(self, children: list[Child]) -> list[Node]:
        return list(_nodes(children, Node))

    def hidden(self, children: list[Child]) -> list[Node]:
        return [syntax.Hidden(_nodes(children, Node), span=_span(children))]  # type: ignore[arg-type]

    def objective(self, children: list[Child]) -> list[Node]:
        keyword, expression = children
        return [syntax.Objective(syntax.Sense(str(keyword)), expression, span=_span(children))]

    def set_item(self, children: list[Child]) -> Node:
        return syntax.SetDeclaration(_name(children[0]), children[2], span=_span(children))

    def labels(self, children: list[Child]) -> Node:
        names = [str(child)[1:-1] for child in children if getattr(child, "type", "") == "STRING"]
        return syntax.Labels(tuple(names), span=_span(children))

    def start_item(self, children: list[Child]) -> Node:
        return syntax.Start(_name(children[0]), children[2], span=_span(children))

    def let_item(self, children: list[Child]) -> Node:
        generators: tuple[syntax.Generator, ...] = ()
        if isinstance(children[1], list):
            generators, condition = children[1]
            if condition is not None:
                reject(
                    "a `let` takes no filter",
                    "filters belong to constraints and comprehensions",
                    condition.span,
                )
        return syntax.LetDeclaration(
            _name(children[0]), generators, children[-1], span=_span(children)
        )

    def parameter(self, children: list[Child]) -> Node:
        default = None
        span = self._declaration_span(children)
        if len(children) > 1 and isinstance(children[-2], Token) and children[-2].type == "EQUAL":
            default, children = children[-1], children[:-2]
        shape, clauses = self._shape_and_clauses(children)
        for clause in clauses:
            self._check_sign_word(clause)
            if isinstance(clause, syntax.Name) and clause.identifier not in (*DOMAINS, "symmetric"):
                reject(
                    f"{quote(clause.identifier)} is not a property of a parameter",
                    "separate declarations with `,`",
                    clause.span,
                )
            if not isinstance(clause, syntax.Bound | syntax.Interval):
                reject(
                    "only a variable has such a domain",
                    "a parameter takes bounds: `param p >= 0` or `param p in [0, 1]`",
                    clause.span,
                )
            if isinstance(clause, syntax.Bound) and clause.operator == "==":
                reject("`==` compares; a value is given with `=`", "write `=`", clause.span)
            self._check_bound(clause)
        bounds = _nodes(clauses, syntax.Bound | syntax.Interval)  # type: ignore[arg-type]
        return syntax.ParameterDeclaration(_name(children[0]), shape, bounds, default, span=span)

    def variable(self, children: list[Child]) -> Node:
        shape, clauses = self._shape_and_clauses(children)
        symmetric = False
        domains: list[syntax.Domain] = []
        for clause in clauses:
            if isinstance(clause, syntax.Name):
                self._check_attribute(clause)
                symmetric = True
                continue
            if isinstance(clause, syntax.Bound) and clause.operator == "<":
                reject("a variable has no strict upper bound", "write `<=`", clause.span)
            self._check_bound(clause)
            domains.append(clause)
        span = self._declaration_span(children)
        return syntax.VariableDeclaration(
            _name(children[0]), shape, tuple(domains), symmetric, span=span
        )

    def _declaration_span(self, children: list[Child]) -> Span:
        last = children[-1]
        if isinstance(last, list):  # a shape
            return span_of(children[0], last[-1])
        return _span(children)

    def _shape_and_clauses(self, children: list[Child]) -> tuple[tuple[Any, ...], list[Child]]:
        if len(children) > 1 and isinstance(children[1], list):
            return _nodes(children[1], Node), children[2:]
        return (), children[1:]

    def _check_attribute(self, word: syntax.Name) -> None:
        text = word.identifier
        if text == "symmetric":
            return
        if text in DOMAINS:
            reject(f"`in` is missing before `{text}`", f"write `in {text}`", word.span)
        self._check_sign_word(word)
        if text.lower() in ("real", "continuous", "free"):
            reject("variables are real numbers anyway", f"remove {quote(text)}", word.span)
        if text.lower() in DOMAINS:
            hint = f"write `in {text.lower()}`"
            reject(f"{quote(text)} is not a property of a variable", hint, word.span)
        if text.lower() in ("integer", "binary", "int", "bool", "boolean"):
            reject("variables are continuous", f"remove {quote(text)}", word.span)
        close = difflib.get_close_matches(text, ("symmetric", *DOMAINS), n=1)
        hint = f"did you mean `{close[0]}`?" if close else "separate declarations with `,`"
        reject(f"{quote(text)} is not a property of a variable", hint, word.span)

    def _check_sign_word(self, clause: Node) -> None:
        if isinstance(clause, syntax.Name) and clause.identifier.lower() in SIGN_WORDS:
            bound = SIGN_WORDS[clause.identifier.lower()]
            word = quote(clause.identifier)
            reject(f"{word} is not a word of the language", f"write `{bound}`", clause.span)

    def _check_bound(self, clause: Node) -> None:
        if isinstance(clause, syntax.Bound) and clause.operator in MATRIX_OPERATORS:
            reject(
                f"{quote(clause.operator)} is not a bound",
                "a semidefinite variable is declared `in psd(0)`",
                clause.span,
            )
        if isinstance(clause, syntax.Bound) and clause.operator in ("==", "!="):
            hint = "bounds are `>=`, `>` and `<=`"
            if clause.operator == "==":
                value = _short(clause.value)
                hint = f"a variable is fixed by equal bounds: `in [{value}, {value}]`"
            reject(f"{quote(clause.operator)} is not a bound", hint, clause.span)

    # ---- constraints

    def constraint(self, children: list[Child]) -> list[Node]:
        *label, comparison = children
        name = _name(label[0]) if label else None
        generators, condition = label[1] if len(label) == 3 else ((), None)
        return [syntax.Constraint(name, generators, condition, comparison, span=_span(children))]

    def relation(self, children: list[Child]) -> Node:
        _check_chain(children[1::2])
        return _comparison(children)

    def shape(self, children: list[Child]) -> list[Child]:
        return children

    def family(self, children: list[Child]) -> list[Child]:
        generators = _nodes(children, syntax.Generator)
        filtered = isinstance(children[-3], Token) and children[-3].type == "IF"
        return [generators, children[-2] if filtered else None]

    def generator(self, children: list[Child]) -> Node:
        return syntax.Generator(_name(children[0]), children[2], span=_span(children))

    def bound(self, children: list[Child]) -> Node:
        return syntax.Bound(str(children[0]), children[1], span=_span(children))

    def interval(self, children: list[Child]) -> Node:
        return syntax.Interval(children[2], children[4], span=_span(children))

    def named_domain(self, children: list[Child]) -> Node:
        name, limits = children[1], _nodes(children[2:], Node)
        span = _span(children)
        if name == "simplex":
            if limits:
                reject("`simplex` takes no arguments", "write `in simplex`", span)
            return syntax.Simplex(span=span)
        if name == "psd":
            if len(limits) > 2:
                reject("`psd` takes at most two arguments", "write `psd(0.001, 1000)`", span)
            lower, upper = (*limits, None, None)[:2]
            return syntax.PositiveSemidefinite(lower, upper, span=span)  # type: ignore[arg-type]
        close = difflib.get_close_matches(str(name).lower(), DOMAINS, n=1)
        hint = "domains are `[lower, upper]`, `simplex`, `psd(lower)` and `psd(lower, upper)`"
        if close:
            hint = f"did you mean `{close[0]}`?"
        reject(f"{quote(str(name))} is not a domain", hint, span_of(name))

    def attribute(self, children: list[Child]) -> Node:
        return _name(children[0])

    # ---- conditions

    def comparison(self, children: list[Child]) -> Node:
        for operator in children[1::2]:
            if operator in MATRIX_OPERATORS:
                reject(
                    f"`{operator}` compares matrices, in constraints only",
                    f"write `{operator[0]}` or `{operator[0]}=`",
                    span_of(operator),
                )
        return _comparison(children)

    def logical(self, children: list[Child]) -> Node:
        return syntax.Logical(str(children[1]), tuple(children[::2]), span=_span(children))

    def negated(self, children: list[Child]) -> Node:
        return syntax.Not(children[1], span=_span(children))

    # ---- expressions

    def range(self, children: list[Child]) -> Node:
        return syntax.Range(children[0], children[2], span=_span(children))

    def everything(self, children: list[Child]) -> Node:
        return syntax.Everything(span=_span(children))

    def arithmetic(self, children: list[Child]) -> Node:
        operands, operators = tuple(children[::2]), tuple(map(str, children[1::2]))
        return syntax.Arithmetic(operands, operators, span=_span(children))

    def signed(self, children: list[Child]) -> Node:
        return syntax.Signed(str(children[0]), children[1], span=_span(children))

    def power(self, children: list[Child]) -> Node:
        return syntax.Power(children[0], children[2], span=_span(children))

    def name(self, children: list[Child]) -> Node:
        return _name(children[0])

    def number(self, children: list[Child]) -> Node:
        value = float(children[0])
        if value == float("inf"):
            reject("this number is too large", "float64 ends near 1.8e308", span_of(children[0]))
        return syntax.Number(value, span=_span(children))

    def string(self, children: list[Child]) -> Node:
        return syntax.String(str(children[0])[1:-1], span=_span(children))

    def group(self, children: list[Child]) -> Node:
        node: Node = children[1]
        # The brackets leave no node, but belong to the place that a message underlines.
        return replace(node, span=_span(children))

    def list_literal(self, children: list[Child]) -> Node:
        return syntax.ListLiteral(_nodes(children, Node), span=_span(children))  # type: ignore[arg-type]

    def subscript(self, children: list[Child]) -> Node:
        base, *indices = children
        base = _name(base) if isinstance(base, Token) else base
        return syntax.Subscript(base, _nodes(indices, Node), span=_span(children))  # type: ignore[arg-type]

    def transpose(self, children: list[Child]) -> Node:
        operand = _name(children[0]) if isinstance(children[0], Token) else children[0]
        return syntax.Transpose(operand, span=_span(children))

    def call(self, children: list[Child]) -> Node:
        arguments: list[Any] = []
        keywords: dict[str, syntax.Keyword] = {}
        for each in _nodes(children, Node):
            if isinstance(each, syntax.Keyword):
                word = each.name.identifier
                if word in keywords:
                    reject(f"{quote(word)} is given twice", None, each.span)
                keywords[word] = each
            elif keywords:
                reject("a plain argument after a named one", "put named ones last", each.span)
            else:
                arguments.append(each)
        return syntax.Call(
            _name(children[0]), tuple(arguments), tuple(keywords.values()), span=_span(children)
        )

    def keyword(self, children: list[Child]) -> Node:
        return syntax.Keyword(_name(children[0]), children[2], span=_span(children))

    def comprehension(self, children: list[Child]) -> Node:
        filtered = isinstance(children[-2], Token) and children[-2].type == "IF"
        return syntax.Comprehension(
            children[0],
            _nodes(children, syntax.Generator),
            children[-1] if filtered else None,
            span=_span(children),
        )


def _comparison(children: list[Child]) -> Node:
    operands, operators = tuple(children[::2]), tuple(map(str, children[1::2]))
    return syntax.Comparison(operands, operators, span=_span(children))


def _check_chain(operators: list[Token]) -> None:
    """A constraint is `a <= b`, `a >= b`, `a == b`, or a chain of three in one direction.

    Between matrices `<<` and `>>` stand in place of `<=` and `>=`.
    """
    for operator in operators:
        if operator in ("<", ">"):
            reject(
                f"a constraint cannot be strict: `{operator}`",
                f"write `{operator}=`",
                span_of(operator),
            )
        if operator == "!=":
            reject("`!=` is not a constraint", "use `<=`, `>=` or `==`", span_of(operator))
    if len(operators) > 2:
        reject(
            "a chain has three terms at most",
            "split it into several constraints",
            span_of(operators[2]),
        )
    if len(operators) == 2 and operators[0] == operators[1] == "==":
        reject("an equality has two sides", "write two constraints", span_of(operators[1]))
    if len(operators) == 2 and operators[0] != operators[1]:
        reject(
            f"a chain goes in one direction, not `{operators[0]}` and `{operators[1]}`",
            "write `lower <= x <= upper`, or two constraints",
            span_of(operators[1]),
        )
