"""Evaluations of a user's program in a file: an interrupted run continues without repeating one."""

from __future__ import annotations

import contextlib
import hashlib
import io
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hcmodel.errors import ModelError
from hcmodel.records import dataclass

FloatArray = NDArray[np.float64]

TABLE = "create table if not exists evaluations (key text primary key, value blob)"


@dataclass(frozen=True)
class EvaluationStore:
    """A file of evaluations. Keys are the function's identity and its arguments to the last bit."""

    path: str

    @classmethod
    def at(cls, cache: Any) -> EvaluationStore:
        """The store in a file, which is created if it does not exist."""
        try:
            path = Path(cache).expanduser().resolve()
        except (TypeError, ValueError):
            raise ModelError(f"cache of hc.function is the path of a file, not {cache!r}") from None
        if not path.parent.is_dir():
            raise ModelError(f"cache={str(cache)!r}: there is no folder {path.parent}")
        if path.is_dir():
            raise ModelError(f"cache={str(cache)!r} is a folder; name a file in it")
        store = cls(str(path))
        with store._opened() as file:
            file.execute(TABLE)
        return store

    def find(self, key: str) -> list[FloatArray] | None:
        """The arrays under a key."""
        with self._opened() as file:
            found = file.execute("select value from evaluations where key = ?", (key,)).fetchone()
        if found is None:
            return None
        with np.load(io.BytesIO(found[0]), allow_pickle=False) as loaded:
            return [loaded[f"arr_{number}"] for number in range(len(loaded.files))]

    def keep(self, key: str, arrays: Sequence[Any]) -> None:
        """Write arrays under a key; they are on the disk when this returns."""
        buffer = io.BytesIO()
        np.savez(buffer, *[np.asarray(array) for array in arrays])
        with self._opened() as file:
            file.execute(TABLE)  # the file may have been deleted since
            file.execute(
                "insert or replace into evaluations values (?, ?)", (key, buffer.getvalue())
            )

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        import sqlite3  # imported late: few programs use it

        try:
            file = sqlite3.connect(self.path)
            try:
                with file:
                    yield file
            finally:
                file.close()
        except sqlite3.DatabaseError as error:
            raise ModelError(
                f"cache={self.path!r} cannot be used ({error}); name a new file, or one that "
                "hcmodel wrote"
            ) from None


def key_of(identity: str, kind: str, arrays: Sequence[Any]) -> str:
    """The key of one evaluation."""
    digest = hashlib.sha256(f"{kind} {identity}".encode())
    for array in arrays:
        values = np.ascontiguousarray(array)
        digest.update(f"{values.shape} {values.dtype}".encode() + values.tobytes())
    return digest.hexdigest()


def identity_of(code: Callable[..., Any]) -> str:
    """What tells functions apart in a file: the name, and the instructions where it is a function.

    A function that was edited has another identity. Data that it reads are not part of it.
    """
    plain = getattr(code, "__func__", code)
    if not isinstance(plain, types.FunctionType):
        plain = type(code).__call__
    body = getattr(plain, "__code__", None)
    owner = code if hasattr(code, "__qualname__") else type(code)
    name = f"{getattr(owner, '__module__', '')}.{getattr(owner, '__qualname__', '')}"
    return name if body is None else f"{name} {_instructions(body)}"


def _instructions(body: types.CodeType) -> str:
    constants = [
        _instructions(each) if isinstance(each, types.CodeType) else repr(each)
        for each in body.co_consts
    ]
    whole = repr((body.co_code, body.co_names, constants))
    return hashlib.sha256(whole.encode()).hexdigest()
