"""Wrong models and the exact message for each: `wrong_models.txt` is the table.

An entry is the model, a line `-----`, and what a user sees; entries are separated by `=====`.
"""

from pathlib import Path

import pytest

from hcmodel.grammar import GrammarError, format_model, parse

TABLE = Path(__file__).with_name("wrong_models.txt").read_text(encoding="utf-8")
ENTRIES = [each.strip("\n").split("\n-----\n") for each in TABLE.split("\n=====\n")]


def test_the_table_is_large_and_has_no_doubles():
    models = [model for model, _ in ENTRIES]
    assert len(set(models)) == len(models) >= 40


@pytest.mark.parametrize(("model", "expected"), ENTRIES, ids=range(1, len(ENTRIES) + 1))
def test_a_wrong_model_gives_exactly_this_message(model, expected):
    with pytest.raises(GrammarError) as caught:
        parse(model, "model.hc")
    assert str(caught.value) == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        (
            "minimize\tx'",
            "model.hc:1:11: `'` does not transpose\n"
            "  1 | minimize    x'\n"
            "    |              ^\n"
            "hint: write `x.T`",
        ),
        (
            "minimize x\u00a0+ y",
            "model.hc:1:11: unexpected character U+00A0\n"
            "  1 | minimize x\u00a0+ y\n"
            "    |           ^\n"
            "hint: replace the non-breaking space with a plain one",
        ),
        (
            "minimize x\x00",
            "model.hc:1:11: unexpected character U+0000\n"
            "  1 | minimize x\ufffd\n"
            "    |           ^\n"
            "hint: remove it",
        ),
    ],
)
def test_characters_that_cannot_be_seen(model, expected):
    with pytest.raises(GrammarError) as caught:
        parse(model, "model.hc")
    assert str(caught.value) == expected


def test_the_formatter_refuses_a_wrong_model():
    with pytest.raises(GrammarError, match="unknown statement `minimise`"):
        format_model("minimise x")
