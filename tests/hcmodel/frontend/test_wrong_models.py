"""Models that parse and make no sense, and the exact message for each: `wrong_models.txt`.

An entry is the model, a line `-----`, and what a user sees; entries are separated by `=====`.
"""

from pathlib import Path

import pytest

from hcmodel.errors import HCError
from hcmodel.problem import parse

TABLE = Path(__file__).with_name("wrong_models.txt").read_text(encoding="utf-8")
ENTRIES = [each.strip("\n").split("\n-----\n") for each in TABLE.split("\n=====\n")]


def test_the_table_is_large_and_has_no_doubles():
    models = [model for model, _ in ENTRIES]
    assert len(set(models)) == len(models) >= 60


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("model", "expected"), ENTRIES, ids=range(1, len(ENTRIES) + 1))
def test_a_wrong_model_gives_exactly_this_message(model, expected):
    with pytest.raises(HCError) as caught:
        parse(model, filename="model.hc")
    assert str(caught.value) == expected


def test_ten_mistakes_are_shown_at_most():
    text = "var x\nminimize x\nsubject to\n" + "\n".join(f"    x <= a{i}" for i in range(30))
    with pytest.raises(HCError) as caught:
        parse(text)
    assert len(caught.value.diagnostics) == 10


def test_one_mistake_gives_one_message():
    text = "param a = nothing\nlet b = a + 1\nvar x in [0, b]\nminimize a*x + b\nstart x = a"
    with pytest.raises(HCError) as caught:
        parse(text)
    assert [each.message for each in caught.value.diagnostics] == ["unknown name `nothing`"]
