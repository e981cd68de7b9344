"""No text does anything but parse or give a GrammarError; how long it takes is for the benchmark."""

import random

import pytest

from hcmodel.grammar import GrammarError, format_model, parse
from hcmodel.grammar.parser import MAX_DIAGNOSTICS
from hcmodel.grammar.phrases import (
    MAX_CHARACTERS,
    MAX_NAME_LENGTH,
    MAX_NESTING,
    MAX_NUMBER_LENGTH,
    MAX_TOKENS,
)
from tests.extent import several

MODEL = """param n  # size
var P[n,n] symmetric in psd(1e-3, 1e3)
let y[i in 1..n-1] = x[2*i+1,j]^-2 * 3
minimize trace((Q + K.T @ R) @ P) + norm(x, "fro", axis=1)
subject to
    pair[i in 1..n-1 if i != 3 and not i > 4]: 0 <= x[i] * x[:,1] <= 1
hidden P, K @ P
start P = [[1, 0], [0, 1]]
"""
WORDS = "( ) [ ] { } in for if var let : ; , .. .T ' = == <= < + - * ^ ** x 3 1e5 .5 psd and not #"
PIECES = [*WORDS.split(" "), *'\n\t "é漢²\x00\u2028\ud800', "subject to", "minimise", "hidden"]


def outcome(text):
    """The messages of a text, none if it is a model."""
    found = None
    try:
        parse(text)
    except GrammarError as error:
        found = error
    if found is None:
        return ()
    assert 1 <= len(found.diagnostics) <= MAX_DIAGNOSTICS
    assert str(found)
    return tuple(each.message for each in found.diagnostics)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(" * 40_000, f"brackets are nested more than {MAX_NESTING} deep"),
        ("minimize " + "f[" * 20_000, f"brackets are nested more than {MAX_NESTING} deep"),
        ("(" * 100_000, f"the model has more than {MAX_TOKENS} words and signs"),
        ("minimize " + "-" * 8_000 + "x", "this expression is nested too deep"),
        ("minimize " + "x^" * 8_000 + "x", "this expression is nested too deep"),
        ("minimize x" + ".T" * 8_000, "this expression is nested too deep"),
        ("minimize x" + "[1]" * 8_000, "this expression is nested too deep"),
        ("x" * (MAX_NAME_LENGTH + 1), f"this name is longer than {MAX_NAME_LENGTH} characters"),
        ("let x = " + "9" * 41, f"this number is longer than {MAX_NUMBER_LENGTH} characters"),
        (" " * (MAX_CHARACTERS + 1), "the file has 262145 characters; the limit is 262144"),
    ],
)
def test_limits_are_errors_at_once(text, message):
    assert outcome(text) == (message,)


@pytest.mark.parametrize(
    "text",
    [
        "minimize " + "(" * MAX_NESTING + "x" + ")" * MAX_NESTING,
        "let " + "x" * MAX_NAME_LENGTH + " = " + "1" * MAX_NUMBER_LENGTH,
        "minimize " + " + ".join(["a*b"] * 3_000),
        "let x = [" + ", ".join(["1"] * 10_000) + "]",
        "\n" * MAX_CHARACTERS,
        "# c\n" * (MAX_CHARACTERS // 16),
    ],
)
def test_what_stays_within_the_limits_parses(text):
    assert outcome(text) == ()


def test_deep_trees_compare_and_print_without_recursion_errors():
    text = "minimize " + "-f([" * 25 + "x" + "])^2*3 + 1" * 25
    assert parse(text) == parse(text)
    assert repr(parse(text))


def test_at_most_ten_mistakes_are_reported_in_the_order_of_the_text():
    with pytest.raises(GrammarError) as caught:
        parse("minimize (x\nlet y == 2\n" + "var x y\n" * 20)
    lines = [each.span.line for each in caught.value.diagnostics]
    assert lines == list(range(1, 11))


def test_random_characters():
    chance = random.Random(1)
    for _ in range(several(60, 150)):
        size = chance.randrange(200)
        outcome("".join(chr(chance.randrange(256)) for _ in range(size)))
        outcome("".join(chr(chance.randrange(0x11000)) for _ in range(size // 4)))


def test_random_words():
    chance = random.Random(2)
    for _ in range(several(80, 200)):
        words = chance.choices(PIECES, k=chance.randrange(60))
        outcome(chance.choice(["", " "]).join(words))


def test_mutated_models():
    chance, parsed = random.Random(3), 0
    for _ in range(several(80, 200)):
        text = MODEL
        for _ in range(chance.randrange(1, 5)):
            place = chance.randrange(len(text))
            text = text[:place] + chance.choice(PIECES) + text[place + chance.randrange(3) :]
        if outcome(text) == ():
            parsed += 1
            assert parse(format_model(text)) == parse(text)
    assert parsed > 3


def test_truncated_models():
    for place in range(0, len(MODEL), several(3, 1)):
        outcome(MODEL[:place])
        outcome(MODEL[place:])
