"""The grammar file itself: no conflicts, no colliding terminals, cheap to import, built once."""

import subprocess
import sys

import pytest
from lark.exceptions import GrammarError as LarkGrammarError

from hcmodel.grammar import parse
from hcmodel.grammar.parser import GRAMMAR_FILE, build_lark
from tests.steps import counted

MODEL = """
param n
var x[n] in [0.5, 2]
minimize sum(x[i]^2 / x[i+1] for i in 1..n-1)
subject to
    pair[i in 1..n-1]: x[i] * x[i+1] <= 1
hidden log(x)
"""


def test_the_grammar_builds_in_strict_mode():
    pytest.importorskip("interegular")
    lark = build_lark(strict=True)
    assert lark.options.parser == "lalr"


def test_strict_mode_would_notice_a_conflict(monkeypatch, tmp_path):
    pytest.importorskip("interegular")
    text = GRAMMAR_FILE.read_text(encoding="utf-8")
    ambiguous = text.replace("| primary POWER factor", "| power POWER factor")
    assert ambiguous != text
    (tmp_path / "ambiguous.lark").write_text(ambiguous, encoding="utf-8")
    monkeypatch.setattr("hcmodel.grammar.parser.GRAMMAR_FILE", tmp_path / "ambiguous.lark")
    build_lark()
    with pytest.raises(LarkGrammarError, match="Shift/Reduce conflict"):
        build_lark(strict=True)


def test_importing_builds_no_parser_and_loads_no_pygments():
    program = (
        "import sys, hcmodel.grammar.parser as p; "
        "assert p._lark.cache_info().currsize == 0; "
        "p.parse('var x'); p.parse('var y'); "
        "assert p._lark.cache_info().currsize == 1; "
        "assert 'pygments' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_parsing_takes_calls_in_proportion_to_the_text():
    text = MODEL.replace("minimize", "let y =")
    parse(text)  # builds the parser
    short, long = (counted(lambda times=times: parse(text * times))[1] for times in (4, 16))
    assert long < 1.1 * 4 * short


def test_trees_hold_no_lark_objects():
    from hcmodel.grammar.syntax import Name, Node, walk

    model = parse(MODEL)
    for node in walk(model):
        assert isinstance(node, Node)
        if isinstance(node, Name):
            assert type(node.identifier) is str
        for operator in getattr(node, "operators", ()):
            assert type(operator) is str
