"""The models of `examples/`, with their data, for suites that run over all of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import hcmodel as hc

FOLDER = Path(__file__).parents[2] / "examples"
ALL = sorted(path.stem for path in FOLDER.glob("*.hc"))
# Models that share the data of another one.
DATA = {"lqr_energy": "lqr"}


def data_file(name: str) -> Path:
    return FOLDER / f"{DATA.get(name, name)}.json"


def data_of(name: str) -> Any:
    path = data_file(name)
    return json.loads(path.read_text()) if path.exists() else {}


def loaded(name: str) -> hc.Problem:
    path = data_file(name)
    return hc.load(FOLDER / f"{name}.hc", path if path.exists() else None)
