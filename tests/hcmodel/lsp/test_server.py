"""The language server by a scripted client over standard input and output, and what it rests on."""

from __future__ import annotations

import builtins
import sys
from pathlib import Path
from typing import Any

import pytest

from hcmodel.cli import main
from hcmodel.lsp.document import Document
from tests.hcmodel.lsp.client import Client
from tests.problems.examples import FOLDER

MODEL = """\
var x[2] in [0.4, 3]
let area = x[1]*x[2]
minimize area + 4/x[1] + 1/x[2]
subject to
    cap: area <= 1
"""


def test_a_session_over_standard_input_and_output() -> None:
    uri = "file:///models/tank.hc"
    with Client() as client:
        assert client.open(uri, MODEL) == []
        (mistake,) = client.change(uri, MODEL.replace("cap: area", "cap: aera"), 2)
        assert "did you mean `area`?" in mistake["message"]
        assert mistake["range"]["start"] == {"line": 4, "character": 9}
        assert mistake["severity"] == 1
        assert client.change(uri, MODEL, 3) == []
        hover = client.at("hover", uri, 2, 10)["contents"]["value"]
        assert "scalar, positive" in hover
        assert "log-log affine" in hover
        words = {item["label"] for item in client.at("completion", uri, 2, 9)}
        assert {"area", "x", "exp", "minimize"} <= words
        place = client.at("definition", uri, 4, 10)["range"]["start"]
        assert place == {"line": 1, "character": 4}
        client.change(uri, MODEL.replace(" <= 1", "<=1"), 4)
        options = {"tabSize": 4, "insertSpaces": True}
        (edit,) = client.ask("textDocument/formatting", textDocument={"uri": uri}, options=options)
        assert "area <= 1" in edit["newText"]


def document(text: str, path: Path | None = None) -> Document:
    made = Document(path)
    made.update(text)
    return made


def test_data_beside_a_model_are_read() -> None:
    path = FOLDER / "pricing.hc"
    found = document(path.read_text(), path)
    assert found.problems == ()
    hover = found.hover(8, 6)
    assert hover is not None
    assert "8, positive, convex" in hover[0]


def test_missing_data_are_a_remark_and_not_an_error() -> None:
    found = document("param n\nvar x[n] > 0\nminimize sum(x)\n")
    assert [(each.is_error, "no data" in each.message) for each in found.problems] == [
        (False, True)
    ]


def test_an_operation_has_shape_sign_and_curvature() -> None:
    found = document("var x[3] in [1, 2]\nminimize sum( exp(x))\n")
    hover = found.hover(2, 14)  # between the bracket and `exp`
    assert hover is not None
    assert "scalar, positive, convex" in hover[0]
    assert found.hover(1, 30) is None
    function = found.hover(2, 16)
    assert function is not None
    assert function[0].startswith("**function `exp`**")


def test_an_operation_is_shown_with_the_indices_of_the_language() -> None:
    found = document("var x[3] in [1, 2]\nminimize x[1] + x[2..3] @ x[2..3]\n")
    hover = found.hover(2, 15)  # the sum
    assert hover is not None
    assert "x[1] + x[2..3] @ x[2..3]" in hover[0]


def test_names_of_the_last_good_text_stay_while_one_types() -> None:
    found = document(MODEL)
    assert found.update(MODEL + "    more: area <=")[0].is_error
    assert found.formatted() is None
    assert "area" in {each.word for each in found.completions()}
    assert found.definition(3, 11) is not None


def test_without_pygls_the_command_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    original = builtins.__import__

    def refuse(name: str, *arguments: Any, **named: Any) -> Any:
        if name.startswith(("pygls", "lsprotocol")):
            raise ImportError(name)
        return original(name, *arguments, **named)

    for name in [each for each in sys.modules if each.startswith("hcmodel.lsp.server")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(builtins, "__import__", refuse)
    assert main(["lsp"]) == 1
    assert "pip install 'hcmodel[lsp]'" in capsys.readouterr().err
