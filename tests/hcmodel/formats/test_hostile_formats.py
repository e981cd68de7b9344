"""Files of other tools that are no files, are broken, or are larger inside than they look."""

from __future__ import annotations

import gzip
import json
import os
import zipfile
from pathlib import Path

import pytest

import hcmodel as hc


def test_a_device_is_refused_before_it_is_read(tmp_path: Path) -> None:
    """/dev/zero has no end; it was read until the memory was full."""
    for name in ("model.cbf", "model.mof.json", "model.cbf.gz"):
        (tmp_path / name).symlink_to("/dev/zero")
        with pytest.raises(hc.DataError, match="a device or a pipe"):
            hc.read(tmp_path / name)


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.cbf")
    with pytest.raises(hc.DataError, match="a device or a pipe"):
        hc.read(tmp_path / "model.cbf")


def test_a_packed_file_is_measured_as_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCMODEL_FILE_LIMIT", "1")
    bomb = tmp_path / "model.mof.json.gz"
    bomb.write_bytes(gzip.compress(b" " * (3 << 20)))
    assert bomb.stat().st_size < 10_000
    with pytest.raises(hc.DataError, match="limit of 1 MB; raise it with HCMODEL_FILE_LIMIT"):
        hc.read(bomb)


@pytest.mark.parametrize("place", [0, 12, 20, -3])
def test_a_damaged_packed_file_is_named(tmp_path: Path, place: int) -> None:
    """The middle of the stream was a zlib.error."""
    path = tmp_path / "model.mof.json.gz"
    content = bytearray(gzip.compress(json.dumps({"name": "a model " * 20}).encode(), mtime=0))
    content[place] ^= 0xFF
    path.write_bytes(content)
    with pytest.raises(hc.HCError, match=r"model.mof.json.gz"):
        hc.read(path)


def test_a_dump_is_measured_before_it_is_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HCMODEL_FILE_LIMIT", "1")
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("model.hc", "var x\nminimize x\n" + " " * (3 << 20))
    with pytest.raises(hc.DataError, match="limit of 1 MB"):
        hc.load(tmp_path / "bomb.zip")


def tank() -> hc.Problem:
    x = hc.Variable(name="x", bounds=(0.4, 3))
    return hc.Problem(hc.Minimize(x + 1 / x))


@pytest.mark.parametrize("name", ["m.hc", "m.mof.json", "m.cbf", "m.cbf.gz", "dump.zip"])
def test_a_write_that_fails_leaves_the_old_file(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, problem = tmp_path / name, tank()
    path.write_text("old")

    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(hc.DataError, match=f"{name}: No space left on device"):
        (problem.dump if name == "dump.zip" else problem.write)(path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == [name]


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "m.mof.json").mkdir()
    with pytest.raises(hc.DataError, match="this is a folder"):
        tank().write(tmp_path / "m.mof.json")
