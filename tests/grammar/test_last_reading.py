"""A text that is read again: the tree and the mistakes are those of a first reading."""

from __future__ import annotations

import pytest

from hcmodel import grammar
from hcmodel.grammar import syntax
from hcmodel.grammar.last_reading import Memory

TEXT = """\
# two lines of comment
param n = 3
var x[n] in [0.5, 2]; var y > 0

let area = sum(x[i] *
               y for i in 1..n)
minimize area + 1/y
subject to
    first: area <= 4
    first2: x[1]  + y <= 4; x[2] <= 1
    family[i in 1..n]: x[i] * y <= 3
"""
EDITS = {
    "nothing": ("", ""),
    "a line above": ("# two", "\n\n# two"),
    "a line less": ("param n = 3\n", ""),
    "a statement twice": ("let area", "let other = x[1]\nlet area"),
    "a word": ("<= 3", "<= 30"),
    "an indent": ("    first:", "  first:"),
    "a line break": ("minimize area + 1/y", "minimize area +\n    1/y"),
    "an open bracket": ("x[i] * y <= 3", "x[i * y <= 3"),
    "two numbers": ("area <= 4", "area <= .5"),
    "an operator that is missing": ("let area = sum", "let area = 2 sum"),
    "two objectives": ("subject to", "minimize y\nsubject to"),
    "a constraint outside": ("subject to\n", ""),
}


def read(text: str, memory: Memory | None) -> object:
    try:
        model = grammar.parse(text, memory=memory)
    except grammar.GrammarError as error:
        return [(each.message, each.hint, each.span) for each in error.diagnostics]
    return [(type(node), node, node.span) for node in grammar.walk(model)]


@pytest.mark.parametrize("edit", EDITS.values(), ids=EDITS)
def test_an_edited_text_reads_as_if_it_were_new(edit: tuple[str, str]) -> None:
    memory = Memory()
    changed = TEXT.replace(*edit)
    for text in (TEXT, changed, TEXT):
        assert read(text, memory) == read(text, None)


def test_statements_that_stay_are_not_parsed_again() -> None:
    memory = Memory()
    before = grammar.parse(TEXT, memory=memory).statements
    after = grammar.parse(TEXT.replace("<= 3", "<= 5"), memory=memory).statements
    assert [one is other for one, other in zip(before, after, strict=True)] == [True] * 8 + [False]


def test_the_layout_is_the_same_with_a_memory() -> None:
    memory = Memory()
    grammar.parse("\n" + TEXT, memory=memory)
    assert grammar.format_model(TEXT, memory) == grammar.format_model(TEXT)


def test_a_node_moves_with_everything_under_it() -> None:
    (statement,) = grammar.parse("minimize 1").statements
    moved = syntax.moved(statement, 4)
    assert {node.span.line for node in grammar.walk(moved)} == {5}
    assert moved == statement
