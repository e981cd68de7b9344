"""Data from files, the command line and Python; dimensions that follow from them."""

import json

import numpy as np
import pytest

from hcmodel.errors import DataError, ModelError, ModelSyntaxError
from hcmodel.frontend import format_file, read_data
from hcmodel.frontend.data import READERS, Reader
from hcmodel.problem import load, parse

MODEL = "param n, m\nparam A[n,m], c[n] = 1\nvar x[m] in [0, 1]\nminimize c @ A @ x\n"
MATRIX = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]


@pytest.fixture
def model(tmp_path):
    path = tmp_path / "model.hc"
    path.write_text(MODEL)
    return path


def matrix_of(problem):
    return next(each.value for each in problem.parameters if each.name == "A").tolist()


def test_json_files(model, tmp_path):
    (tmp_path / "model.json").write_text(json.dumps({"A": MATRIX}))
    assert matrix_of(load(model, tmp_path / "model.json")) == MATRIX


def test_a_name_that_stands_twice_in_json_is_an_error(model, tmp_path):
    """The last one won, without a word."""
    (tmp_path / "model.json").write_text('{"A": [[1, 2, 3], [4, 5, 6]], "c": [1, 2], "A": [[0]]}')
    with pytest.raises(DataError, match="duplicate key 'A' in the JSON data"):
        load(model, tmp_path / "model.json")


def test_npz_files(model, tmp_path):
    np.savez(tmp_path / "data.npz", A=MATRIX, c=[1, 2])
    problem = load(model, str(tmp_path / "data.npz"))
    assert matrix_of(problem) == MATRIX


def test_csv_files_hold_one_parameter_each(model, tmp_path):
    (tmp_path / "A.csv").write_text("first,second,third\n1,2,3\n4,5,6\n")
    (tmp_path / "c.csv").write_text("7\n8\n")
    data = read_data([f"A={tmp_path / 'A.csv'}", f"c={tmp_path / 'c.csv'}"])
    problem = load(model, data)
    assert matrix_of(problem) == MATRIX
    assert next(p.value for p in problem.parameters if p.name == "c").tolist() == [7, 8]


def test_arrays_from_python_and_settings(model):
    assert matrix_of(load(model, {"A": np.array(MATRIX)}, set={"c": [1, 1]})) == MATRIX


def test_several_sources_the_last_wins(model, tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"A": [[0, 0, 0]], "c": [1]}))
    assert matrix_of(load(model, [tmp_path / "a.json", {"A": MATRIX, "c": [1, 1]}])) == MATRIX


def test_settings_are_numbers_or_lists():
    found = read_data([], ["n=3", "b=[1, 2.5]"])
    assert found["n"] == 3
    assert found["b"].tolist() == [1, 2.5]


def test_ranges_are_inferred_too():
    problem = parse("param T, a[0..T]\nvar x[T]\nminimize a[0]*sum(x)", {"a": [1, 2, 3]})
    assert problem.variables[0].shape == (2,)


def test_lengths_follow_from_defaults():
    problem = parse("param n, a[n] = [1, 2, 3]\nvar x[n]\nminimize a @ x")
    assert problem.variables[0].shape == (3,)


def check(error, text, data, message):
    with pytest.raises(error) as caught:
        parse(text, data, "model.hc")
    assert str(caught.value) == message
    assert caught.value.filename == "model.hc"
    assert all(each.message in message for each in caught.value.diagnostics)


def test_conflicting_lengths():
    check(
        DataError,
        "param n\nparam a[n], b[n]\nvar x[n]\nminimize a @ x + b @ x",
        {"a": [1, 2], "b": [1, 2, 3]},
        "model.hc:2:13: `n` is 2 by the data of `a`, but 3 by those of `b`\n"
        "  2 | param a[n], b[n]\n    |             ^\nhint: the lengths must agree",
    )


def test_missing_data():
    check(
        DataError,
        MODEL,
        None,
        "model.hc:2:7: parameter `A` has no data\n"
        "  2 | param A[n,m], c[n] = 1\n"
        "    |       ^\n"
        "hint: give it as data, with `--set A=[…]`, or a default: `param A[…] = …`",
    )


def test_all_arrays_that_would_give_a_length_are_missing():
    with pytest.raises(DataError) as caught:
        parse("param n\nparam a[n], b[n], c[n] = 1\nvar x[n]\nminimize (a + b + c) @ x")
    messages = [each.message for each in caught.value.diagnostics]
    assert messages == ["parameter `a` has no data", "parameter `b` has no data"]


def test_an_array_with_too_few_indices_gives_no_length():
    check(
        DataError,
        "param n\nparam A[n,n]\nvar x[n]\nminimize sum(A @ x)",
        {"A": [1, 2]},
        "model.hc:2:7: the data of `A` have 1 index, but 2 indices are declared\n"
        "  2 | param A[n,n]\n    |       ^",
    )


def test_a_length_that_arrays_contradict_is_told_once():
    check(
        DataError,
        "param n = 2\nparam a[n], b[n]\nvar x[n]\nminimize a @ x + b @ x",
        {"a": [1, 2, 3], "b": [1, 2, 3]},
        "model.hc:2:7: the data of `a` have shape 3, but 2 is declared\n"
        "  2 | param a[n], b[n]\n    |       ^\nhint: `n` is 2",
    )


def test_a_number_for_an_array():
    check(
        DataError,
        "param c[2]\nvar x[2]\nminimize c @ x",
        {"c": 5},
        "model.hc:1:7: the data of `c` are one number, but an array of 2 is declared\n"
        "  1 | param c[2]\n    |       ^\nhint: give a list of numbers",
    )


def test_an_array_for_a_number():
    check(
        DataError,
        "param c\nvar x\nminimize c*x",
        {"c": [5, 6]},
        "model.hc:1:7: the data of `c` are an array of 2, but one number is declared\n"
        "  1 | param c\n    |       ^\nhint: declare the array: `param c[2]`",
    )


def test_a_list_of_one_number_is_a_number():
    assert parse("param c\nvar x\nminimize c*x", {"c": [5]}).parameters[0].value == 5


def test_misspelt_data():
    check(
        DataError,
        "param rate\nvar x\nminimize rate*x",
        {"rates": 2},
        "model.hc:1:7: parameter `rate` has no data\n"
        "  1 | param rate\n"
        "    |       ^~~~\n"
        "hint: the data have `rates`; did you mean `rate`?",
    )


def test_misshapen_data():
    check(
        DataError,
        "param A[2,3]\nvar x[3]\nminimize sum(A @ x)",
        {"A": np.ones((3, 2))},
        "model.hc:1:7: the data of `A` have shape 3×2, but 2×3 is declared\n"
        "  1 | param A[2,3]\n"
        "    |       ^\n"
        "hint: the data look transposed",
    )


def test_data_outside_the_bounds():
    check(
        DataError,
        "param b[2] > 0\nvar x[2]\nminimize b @ x",
        {"b": [1, 0]},
        "model.hc:1:7: `b[2]` is 0, but must be > 0\n  1 | param b[2] > 0\n    |       ^",
    )


def test_the_file_that_may_hold_missing_data_is_named(model, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(DataError, match=r"it may be in model\.json: give it as data"):
        load(model)


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("a.json", "{", "invalid JSON at line 1"),
        ("a.json", "[1]", "a JSON data file is an object"),
        ("a.json", '{"A": "text"}', "the data of 'A' must be a real number"),
        ("a.json", '{"A": [[1], [1, 2]]}', "the data of 'A' are ragged"),
        ("a.json", '{"A": [NaN]}', "the data of 'A' are NaN at entry [1], counted from 1"),
        ("a.npz", "nonsense", "not an NPZ file"),
        ("a.txt", "1", "data files are .json, .npz, or name=file.csv"),
        ("a.csv", "1", "a CSV file holds one parameter"),
    ],
)
def test_unreadable_data(model, tmp_path, file, content, message):
    (tmp_path / file).write_text(content)
    with pytest.raises(DataError) as caught:
        load(model, tmp_path / file)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [("1,2\n3", "different lengths"), ("1\nx", "line 2 is not a row"), ("", "has no numbers")],
)
def test_unreadable_csv(tmp_path, content, message):
    (tmp_path / "a.csv").write_text(content)
    with pytest.raises(DataError, match=message):
        read_data([f"A={tmp_path / 'a.csv'}"])


def test_a_file_that_names_its_parameters_takes_no_name(tmp_path):
    (tmp_path / "a.json").write_text('{"A": 1}')
    with pytest.raises(DataError, match="names its parameters itself; write "):
        read_data([f"A={tmp_path / 'a.json'}"])


def test_a_named_file_with_an_unknown_suffix_is_a_table_of_numbers(tmp_path):
    (tmp_path / "a.dat").write_text("1;2\n3;4\n")
    assert read_data([f"A={tmp_path / 'a.dat'}"])["A"].tolist() == [[1, 2], [3, 4]]


def test_an_entry_of_the_table_makes_a_format_known(model, tmp_path, monkeypatch):
    def read_lines(path):
        pairs = (line.split(":") for line in path.read_text().splitlines())
        return {name: [float(number) for number in numbers.split()] for name, numbers in pairs}

    monkeypatch.setitem(READERS, ".lines", Reader(read_lines))
    (tmp_path / "a.lines").write_text("b: 1 2\nc: 3\n")
    found = read_data([str(tmp_path / "a.lines")])
    assert {name: array.tolist() for name, array in found.items()} == {"b": [1, 2], "c": [3]}
    with pytest.raises(DataError, match=r"or \.lines"):
        read_data([str(tmp_path / "a.txt")])
    (tmp_path / "model.lines").write_text("")
    with pytest.raises(DataError, match=r"it may be in model\.lines"):
        load(model)


@pytest.mark.parametrize(
    ("setting", "hint"),
    [
        ("b=abc", "is not a number or a list; write b=3 or b=[4, 5]"),
        ("b=4,5", "is not a number or a list; write b=[4, 5]"),
        ("b=[4 5]", "is not a number or a list; write b=[4, 5]"),
        ("b=", "is not a number or a list; write b=3 or b=[4, 5]"),
        ("b=b.csv", "is not a number or a list; files are given with --data b=b.csv"),
    ],
)
def test_what_to_write_for_a_setting(setting, hint):
    with pytest.raises(DataError) as caught:
        read_data([], [setting])
    assert str(caught.value) == f"the setting '{setting}' {hint}"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([[1, 2], [3, np.nan]], "the data of 'A' are NaN at entry [2,2], counted from 1"),
        (np.array([1.0, np.inf]), "the data of 'A' are infinite at entry [2], counted from 1"),
        (np.nan, "the data of 'A' are NaN"),
        (None, "the data of 'A' are null; give numbers, or leave the name out"),
    ],
)
def test_numbers_that_are_none(value, message):
    with pytest.raises(DataError) as caught:
        parse("param A\nvar x\nminimize A*x", {"A": value})
    assert str(caught.value) == message


@pytest.mark.parametrize("setting", ["n", "=3", "n=x"])
def test_wrong_settings(setting):
    with pytest.raises(DataError, match=setting):
        read_data([], [setting])


def test_files_that_are_not_models(tmp_path):
    (tmp_path / "bytes.hc").write_bytes(b"\xff\xfe")
    with pytest.raises(ModelSyntaxError, match="not UTF-8 text"):
        load(tmp_path / "bytes.hc")
    with pytest.raises(DataError, match=r"absent\.hc: cannot be read: No such file"):
        load(tmp_path / "absent.hc")


def test_no_data_file_is_unpickled(model, tmp_path):
    np.savez(tmp_path / "evil.npz", A=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="not an NPZ file of plain arrays"):
        load(model, tmp_path / "evil.npz")


def test_a_syntax_error_carries_its_diagnostics():
    with pytest.raises(ModelSyntaxError) as caught:
        parse("minimize (x", filename="m.hc")
    assert caught.value.diagnostics[0].span.column == 10
    with pytest.raises(ModelError) as caught:
        parse("minimize y", filename="m.hc")
    assert caught.value.diagnostics[0].message == "unknown name `y`"


def test_a_file_is_formatted_or_its_mistakes_are_told(tmp_path):
    path = tmp_path / "model.hc"
    path.write_text("var x;minimize x**2\n")
    assert format_file(path) == ("var x;minimize x**2\n", "var x\nminimize x^2\n")
    path.write_text("minimize (x")
    with pytest.raises(ModelSyntaxError, match=r"model\.hc:1:10: `\(` is never closed"):
        format_file(path)
