"""The Pygments lexer and the TextMate grammar know the words of the grammar file."""

import json
import re

import pytest

from hcmodel.grammar.keywords import KEYWORDS
from hcmodel.grammar.parser import GRAMMAR_FILE

pygments_token = pytest.importorskip("pygments.token")
MODEL = """# tank
var x[2] in [0.4, 1e3]
let pi2 = pi^2
minimize x[1]*exp(x[2]) + norm(A.T, "fro")
subject to
    area: x[1] <= 1
hidden log(x)
"""


def lexed(text):
    from hcmodel.grammar.lexer import HCLexer

    return [(kind, value) for kind, value in HCLexer().get_tokens(text) if value.strip()]


def test_the_lexer_loses_no_text_and_finds_no_errors():
    from hcmodel.grammar.lexer import HCLexer

    assert "".join(value for _, value in HCLexer().get_tokens(MODEL)) == MODEL
    assert all(kind is not pygments_token.Error for kind, _ in lexed(MODEL))


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        ("# tank", "Comment.Single"),
        ("var", "Keyword.Declaration"),
        ("minimize", "Keyword"),
        ("subject to", "Keyword"),
        ("in", "Operator.Word"),
        ("exp", "Name.Function"),
        ("area", "Name.Label"),
        ("pi", "Name.Constant"),
        ("pi2", "Name"),
        ("1e3", "Literal.Number.Float"),
        ('"fro"', "Literal.String.Double"),
        (".T", "Operator"),
    ],
)
def test_the_lexer_tells_kinds_apart(value, kind):
    kinds = {str(found).removeprefix("Token.") for found, each in lexed(MODEL) if each == value}
    assert kinds == {kind}


def test_a_sign_of_another_language_is_marked():
    assert (pygments_token.Error, "'") in lexed("minimize x'")


@pytest.mark.parametrize("keyword", KEYWORDS.values())
def test_every_keyword_is_highlighted(keyword):
    ((kind, value),) = lexed(keyword)
    assert value == keyword
    assert kind in pygments_token.Keyword


def test_the_textmate_grammar_is_consistent_and_knows_every_keyword():
    grammar = json.loads(GRAMMAR_FILE.with_name("hc.tmLanguage.json").read_text(encoding="utf-8"))
    rules = grammar["repository"]
    assert {each["include"].lstrip("#") for each in grammar["patterns"]} == set(rules)
    patterns = [re.compile(rules[each]["match"]) for each in ("statement", "declaration")]
    for keyword in KEYWORDS.values():
        assert any(each.fullmatch(keyword) for each in patterns), keyword
    for rule in rules.values():
        assert not re.compile(rule["match"]).fullmatch("minimum")
