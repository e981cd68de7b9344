"""Files that the command refuses, and files that it writes: as a whole or not at all."""

from __future__ import annotations

import io
import json
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.cli import main
from hcmodel.expressions import output_files
from hcmodel.frontend import read_data

MODEL = "param a = 1\nvar x in [0.4, 3]\nminimize x + a/x\n"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.hc"
    path.write_text(MODEL)
    return path


def npz(path: Path, shape: str, data: bytes) -> str:
    """An archive with one array whose header says whatever it likes."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}".encode()
    header += b" " * (117 - len(header)) + b"\n"
    file = io.BytesIO()
    file.write(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", file.getvalue())
    return str(path)


def test_a_header_that_lies_is_refused_before_memory_is_taken(tmp_path: Path) -> None:
    lying = npz(tmp_path / "lies.npz", "(1000000000000,)", b"\x00" * 80)
    with pytest.raises(hc.DataError, match=r"'a.npy' has 80 bytes, and not the 8000000000000"):
        read_data([lying])
    honest = npz(tmp_path / "honest.npz", "(10,)", b"\x00" * 80)
    assert np.shape(read_data([honest])["a"]) == (10,)


def test_an_archive_that_is_large_inside_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCMODEL_FILE_LIMIT", "1")
    bomb = npz(tmp_path / "bomb.npz", "(262144,)", b"\x00" * (2 << 20))
    assert Path(bomb).stat().st_size < 10_000
    with pytest.raises(hc.DataError, match=r"2 MB of data.*limit of 1 MB.*HCMODEL_FILE_LIMIT"):
        read_data([bomb])
    monkeypatch.setenv("HCMODEL_FILE_LIMIT", "4")
    assert np.shape(read_data([bomb])["a"]) == (262144,)
    monkeypatch.setenv("HCMODEL_FILE_LIMIT", "many")
    with pytest.raises(hc.DataError, match="positive whole number of megabytes"):
        read_data([bomb])


@pytest.mark.parametrize("name", ["zero.json", "zero.npz", "a=zero.csv"])
def test_devices_and_pipes_are_not_files(name: str, tmp_path: Path) -> None:
    path = tmp_path / name.removeprefix("a=")
    os.mkfifo(path)  # reading it would wait for ever
    spec = f"a={path}" if name.startswith("a=") else str(path)
    with pytest.raises(hc.DataError, match="a device or a pipe and not a file"):
        read_data([spec])


def test_a_pipe_is_not_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "m.hc"
    os.mkfifo(path)
    assert main(["solve", str(path)]) == 1
    assert "a device or a pipe" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--output", "--trace", "--plot"])
@pytest.mark.parametrize("used", ["model", "data", "start", "output"])
def test_a_file_that_is_read_is_not_written(
    option: str, used: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data, start = model.with_name("d.json"), model.with_name("s.json")
    data.write_text('{"a": 2}')
    start.write_text('{"x": 1}')
    targets = {"model": model, "data": data, "start": start, "output": model.with_name("o.json")}
    command = ["solve", str(model), "--data", str(data), "--start", str(start)]
    command += ["--output", str(targets["output"]), option, str(targets[used])]
    if option == "--output" and used == "output":
        return
    assert main(command) == 1
    assert "is used by the same command already" in capsys.readouterr().err
    assert model.read_text() == MODEL
    assert json.loads(data.read_text()) == {"a": 2}


def test_what_cannot_be_written_leaves_the_old_file(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    output = model.with_name("o.json")
    output.write_text("old")
    monkeypatch.setattr(output_files.os, "replace", full)
    assert main(["solve", str(model), "--output", str(output)]) == 1
    assert f"{output}: No space left on device" in capsys.readouterr().err
    assert output.read_text() == "old"
    assert sorted(path.name for path in model.parent.iterdir()) == ["m.hc", "o.json"]


def test_control_characters_of_names_are_shown_escaped(
    model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = model.with_name("d.json")
    data.write_text(json.dumps({"evil\x1b[31m": 1}))
    assert main(["solve", str(model), "--data", str(data)]) == 1
    assert main(["solve", str(model), "--set", "evil\x1b]0;title\x07=1"]) == 1
    error = capsys.readouterr().err
    assert "\x1b" not in error
    assert "\x07" not in error
    assert r"evil\x1b[31m" in error


def test_wrong_usage_ends_with_2(model: Path) -> None:
    assert main(["solve", str(model), "--set", "a"]) == 2
    assert main(["solve", str(model), "--tol", "-1"]) == 2
    with pytest.raises(SystemExit) as caught:
        main(["solve"])
    assert caught.value.code == 2
