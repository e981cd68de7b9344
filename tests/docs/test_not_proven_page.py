"""The table of docs/guide-not-proven.md: what is on the left is not proven, what is on the right is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hcmodel as hc

PAGE = (Path(__file__).parents[2] / "docs" / "guide-not-proven.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(.+?)` \| `(.+?)` \| .+ \|$", PAGE, re.MULTILINE)


def proven(code: str) -> bool | None:
    """Whether a model with this objective, or with this row below a convex objective, is proven."""
    x, y = (hc.Variable(name=name, bounds=(-5, 5)) for name in "xy")
    t = hc.Variable(name="t", bounds=(0, 5))
    z, M = hc.Variable(2, name="z", bounds=(-5, 5)), hc.Variable((2, 2), name="M", PSD=1e-3)
    names: dict[str, Any] = {"hc": hc, "np": np, "x": x, "y": y, "z": z, "t": t, "M": M}
    written = eval(code, names)
    if not isinstance(written, hc.Constraint):
        return hc.Problem(hc.Minimize(written)).is_hidden_convex()
    squares = hc.sum(z**2) + x**2 + y**2 + t**2 + hc.trace(M)
    return hc.Problem(hc.Minimize(squares), [written]).is_hidden_convex()


def test_the_table_has_its_rows() -> None:
    assert len(ROWS) == 8


@pytest.mark.parametrize(("before", "after"), ROWS, ids=[before for before, _ in ROWS])
def test_only_the_form_on_the_right_is_proven(before: str, after: str) -> None:
    assert proven(before) is None
    assert proven(after) is True
