"""One file for a bug report: the model as text, its data, what was asked, what came out, and versions."""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from hcmodel.errors import HCError, ModelError
from hcmodel.expressions.input_files import check_file, check_size
from hcmodel.expressions.model import Model
from hcmodel.expressions.output_files import write_bytes
from hcmodel.expressions.sparse_data import dense
from hcmodel.frontend import parse
from hcmodel.frontend.to_hc import hc_data, to_hc
from hcmodel.report.versions import versions
from hcmodel.solving.request import SolveRequest
from hcmodel.solving.solution import Solution

MODEL, DATA, START = "model.hc", "data.json", "start.json"
SETTINGS = ("method", "tolerance", "optimal_value", "warm_start", "rule", "max_calls", "time_limit")


def dump(path: Path, model: Model, asked: SolveRequest | None, solution: Solution | None) -> None:
    """Write the file; a model that cannot be written as text is described instead."""
    parts: dict[str, Any] = {"versions.json": versions()}
    try:
        parts[MODEL] = to_hc(model)
        data = {name: np.asarray(dense(each)).tolist() for name, each in hc_data(model).items()}
        parts[DATA] = data
    except HCError as error:
        parts["model.txt"] = f"{error}\n\n{_described(model)}"
    if asked is not None:
        parts["settings.json"] = {
            **{name: getattr(asked, name) for name in SETTINGS},
            "engine": asked.engine,
            "polish": asked.polish,
            "options": repr(asked.options),
            "constants": repr(asked.constants),
        }
        if asked.start:
            parts[START] = {
                key if isinstance(key, str) else key.name: np.asarray(value).tolist()
                for key, value in asked.start.items()
            }
    if solution is not None:
        parts["solution.json"] = solution.to_json()
        parts["solution.txt"] = str(solution)
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, part in parts.items():
            text = part if isinstance(part, str) else json.dumps(part, indent=1)
            archive.writestr(name, text)
    write_bytes(path, content.getvalue())


def _described(model: Model) -> str:
    rows = [repr(constraint) for constraint in model.constraints]
    variables = [f"{each!r} {each.set.summary()}" for each in model.variables]
    return "\n".join([repr(model.objective), *rows, *variables])


def load_dump(path: Path) -> Model:
    """The model of a file that `dump` wrote."""
    try:
        check_file(path)
        with zipfile.ZipFile(path) as archive:
            check_size(path, sum(member.file_size for member in archive.infolist()))
            names = archive.namelist()
            if MODEL not in names:
                raise ModelError(
                    f"{path}: the file has no {MODEL}; a model with functions of Python cannot be saved"
                )
            text = archive.read(MODEL).decode("utf-8")
            data = json.loads(archive.read(DATA)) if DATA in names else None
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        raise ModelError(f"{path}: this is not a file of problem.dump: {error}") from None
    return parse(text, data or None, f"{path}/{MODEL}")
