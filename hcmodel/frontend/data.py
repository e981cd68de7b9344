"""Data of a model: JSON, NPZ and CSV files, `name=value` settings, and arrays from Python.

Everything becomes a mapping of names to float arrays, or to sparse matrices. Whether they fit the model
is decided where the parameters are declared. `READERS` is the table of file formats: a new one is a
function and an entry. No file is ever unpickled.
"""

from __future__ import annotations

import json
import math
import re
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy

from hcmodel.errors import DataError
from hcmodel.expressions.input_files import check_archive, check_file
from hcmodel.expressions.labels import labelled
from hcmodel.expressions.node import as_data
from hcmodel.expressions.sparse_data import Numbers
from hcmodel.records import dataclass

Data: TypeAlias = "Mapping[str, Any] | str | Path | Sequence[Any] | None"
Arrays: TypeAlias = dict[str, Numbers]

DECIMAL_COMMA = re.compile(r'"?-?\d+,\d+"?')
SPARSE_KEYS = {"data", "format", "shape"}  # in every file of scipy.sparse.save_npz


def collect(data: Data, settings: Mapping[str, Any] | None = None) -> Arrays:
    """All data in one mapping; the later source wins, settings last."""
    arrays: Arrays = {}
    for source in _sources(data):
        arrays.update(_arrays(source))
    arrays.update(_arrays({} if settings is None else settings))
    return arrays


def read_data(specs: Sequence[str] = (), sets: Sequence[str] = ()) -> Arrays:
    """The data of a command line: `F.json`, `F.npz`, `A=F.csv`, and settings `n=3`."""
    arrays: Arrays = {}
    for spec in specs:
        arrays.update(_from_spec(spec))
    for setting in sets:
        name, equal, text = setting.partition("=")
        if not equal or not name.strip():
            raise DataError(f"'{setting}' is not a setting; write name=value, for example n=3")
        arrays[name.strip()] = _array(_setting(name.strip(), text), name.strip())
    return arrays


def _setting(name: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        hint = f"write {name}=3 or {name}=[4, 5]"
        items = text.replace(",", " ").strip("[] ").split()
        if len(items) > 1 and all(_is_number(item) for item in items):
            hint = f"write {name}=[{', '.join(items)}]"
        elif Path(text).suffix.lower() in READERS:
            hint = f"files are given with --data {name}={text}"
        raise DataError(f"the setting '{name}={text}' is not a number or a list; {hint}") from None


def _is_number(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def _sources(data: Data) -> Sequence[Any]:
    if data is None:
        return ()
    if isinstance(data, (Mapping, str, Path)):
        return (data,)
    if hasattr(data, "columns") and hasattr(data, "to_dict"):  # a DataFrame: one parameter a column
        return (data.to_dict("list"),)
    if isinstance(data, (list, tuple)):
        return data
    raise DataError(f"data is a mapping of names to arrays, a file, or a list of these: {data!r}")


def _arrays(source: Any) -> Arrays:
    if isinstance(source, Mapping):
        return {_name(name): _array(value, str(name)) for name, value in source.items()}
    if isinstance(source, (str, Path)):
        return _from_spec(str(source))
    raise DataError(f"data is a mapping of names to arrays, or a file; not {source!r}")


def _name(name: Any) -> str:
    if not isinstance(name, str):
        raise DataError(f"data are given by name; {name!r} is not a name")
    return name


class LabelledArray(np.ndarray):
    """Numbers with the labels of each axis, None where an axis has none.

    `keyed` says that the labels are all there is: an object of JSON has no order.
    """

    labels: tuple[tuple[str, ...] | None, ...]
    keyed: bool


def labels_of(array: Numbers) -> tuple[tuple[str, ...] | None, ...] | None:
    """The labels of the axes of data, None where there are none."""
    return array.labels if isinstance(array, LabelledArray) else None


def needs_labels(array: Numbers) -> bool:
    """Whether data make no sense without their labels."""
    return isinstance(array, LabelledArray) and array.keyed


def _labelled(value: Any, name: str) -> LabelledArray | None:
    """Objects of pandas and dictionaries with the labels of their axes; None for other data."""
    given = labelled(value, f"the data of '{name}'")
    if given is None:
        return None
    plain = np.asarray(_array(given.values, name))
    found = plain.view(LabelledArray)
    found.labels = tuple(
        tuple(axis) if all(isinstance(each, str) for each in axis) else None for axis in given.axes
    )
    found.keyed = given.keyed
    return found


def _array(value: Any, name: str) -> Numbers:
    labelled = _labelled(value, name)
    if labelled is not None:
        return labelled
    if isinstance(value, list) and _is_ragged(value):
        raise DataError(f"the data of '{name}' are ragged: all rows must have one length")
    if value is None:
        raise DataError(f"the data of '{name}' are null; give numbers, or leave the name out")
    _check_finite(value, name)
    try:
        return as_data(value, f"the data of '{name}'", sparse=True)
    except (ValueError, TypeError, OverflowError):
        raise DataError(f"the data of '{name}' are not an array of numbers") from None


def _check_finite(value: Any, name: str) -> None:
    """Refuse NaN and infinity, with the place counted as the language counts."""
    array = np.asarray(value) if isinstance(value, (list, tuple, float, np.ndarray)) else None
    if array is None or array.dtype.kind != "f":
        return
    wrong = np.argwhere(~np.isfinite(array))
    if len(wrong):
        what = "NaN" if np.isnan(array[tuple(wrong[0])]) else "infinite"
        entry = ",".join(str(int(i) + 1) for i in wrong[0])
        where = f"at entry [{entry}], counted from 1" if entry else ""
        raise DataError(f"the data of '{name}' are {what} {where}".rstrip())


def _is_ragged(value: list[Any]) -> bool:
    try:
        return np.asarray(value).dtype.kind == "O"
    except ValueError:
        return True


@dataclass(frozen=True)
class Reader:
    """One kind of data file.

    A file may be `named`: it says which parameters it holds, and `read` returns a dictionary. It may be
    `anonymous`: it holds one array, and the user names the parameter. The caller checks the values.
    """

    read: Callable[[Path], Any]
    named: bool = True
    anonymous: bool = False


def _from_spec(spec: str) -> Arrays:
    name, equal, file = spec.partition("=")
    if equal and not Path(spec).exists():
        reader = READERS.get(Path(file).suffix.lower(), PLAIN_TABLE)
        found = reader.read(Path(file)) if reader.anonymous else {}
        if isinstance(found, dict):
            raise DataError(f"{spec}: this file names its parameters itself; write {file}")
        return {name.strip(): _array(found, name.strip())}
    path = Path(spec)
    suffix = path.suffix.lower()
    if suffix not in READERS:
        kinds = [each if known.named else f"name=file{each}" for each, known in READERS.items()]
        raise DataError(f"{spec}: data files are {', '.join(kinds[:-1])}, or {kinds[-1]}")
    reader = READERS[suffix]
    found = reader.read(path) if reader.named else None
    if not isinstance(found, dict):
        kind = suffix.removeprefix(".").upper()
        what = f"a {kind} file" if found is None else "this file, a sparse matrix of scipy,"
        raise DataError(f"{spec}: {what} holds one parameter; write name={spec}")
    return {name: _array(value, name) for name, value in found.items()}


def _text(path: Path) -> str:
    try:
        check_file(path)
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise DataError(f"{path}: the file is not UTF-8 text") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: {getattr(error, 'strerror', None) or error}") from None


def _without_repetition(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object of JSON; a name that occurs twice would silently lose its first value."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise DataError(f"duplicate key '{twice}' in the JSON data; keep one of them")
    return found


def _read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(_text(path), object_pairs_hook=_without_repetition)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise DataError(f"{path}: invalid JSON at {place}: {error.msg}") from None
    except (RecursionError, ValueError):
        raise DataError(f"{path}: invalid JSON") from None
    if not isinstance(found, dict):
        raise DataError(f'{path}: a JSON data file is an object {{"name": value, …}}')
    return found


def _read_npz(path: Path) -> Any:
    """Arrays by name, or the one sparse matrix that `scipy.sparse.save_npz` wrote."""
    try:
        check_archive(path)
        with np.load(path, allow_pickle=False) as archive:
            if not set(archive.files) >= SPARSE_KEYS:
                return {name: archive[name] for name in archive.files}
        return scipy.sparse.load_npz(path)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or 'not an NPZ file'}") from None
    except (RuntimeError, NotImplementedError):  # encrypted, or packed in a way of others
        raise DataError(f"{path}: an NPZ file that cannot be unpacked; save it again") from None
    except (ValueError, zipfile.BadZipFile, EOFError, KeyError, AttributeError, TypeError):
        raise DataError(f"{path}: not an NPZ file of plain arrays") from None


def _read_csv(path: Path) -> list[list[float]]:
    """The rows of a CSV file of numbers; a first row of words is a header."""
    rows: list[list[float]] = []
    header: list[str] | None = None
    for number, line in enumerate(_text(path).splitlines(), start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        _check_commas(path, number, line, header)
        cells = [cell.strip() for cell in line.replace(";", ",").split(",")]
        try:
            rows.append([float(cell) for cell in cells])
        except ValueError:
            if rows or header is not None:
                raise DataError(f"{path}: line {number} is not a row of numbers") from None
            header = cells
    if not rows:
        raise DataError(f"{path}: the file has no numbers")
    if len({len(row) for row in rows}) > 1:
        raise DataError(f"{path}: the rows have different lengths")
    return rows


def _check_commas(path: Path, number: int, line: str, header: list[str] | None) -> None:
    """Refuse commas that stand for decimal points: 1,5 would be read as two numbers."""
    between = DECIMAL_COMMA.search(line)
    if between is None:
        return
    alone = header is not None and len(header) == 1 and line.count(",") == 1
    if ";" in line or '"' in line or "\t" in line or alone:
        wrong = between.group().strip('"')
        raise DataError(
            f"{path}: line {number} has decimal commas ({wrong}); write decimal points "
            f"({wrong.replace(',', '.')}), for example with pandas.read_csv(file, sep=';', "
            "decimal=',').to_csv(file, index=False)"
        )


PLAIN_TABLE = Reader(_read_csv, named=False, anonymous=True)

# By the suffix of the file. A named file with another suffix is read as a table of numbers.
READERS: dict[str, Reader] = {
    ".json": Reader(_read_json),
    ".npz": Reader(_read_npz, anonymous=True),
    ".csv": PLAIN_TABLE,
}
