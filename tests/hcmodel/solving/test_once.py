"""A solve does each kind of work once."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import hcmodel as hc
from hcmodel.certify.search import Search
from hcmodel.reductions import forms, lift, smooth

TANK = Path(__file__).parents[3] / "examples" / "tank.hc"


def test_a_solve_lifts_proves_canonicalises_compiles_and_searches_its_bound_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        original = getattr(owner, name)

        def wrapper(*arguments: Any, **options: Any) -> Any:
            counts[name] += 1
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, wrapper)

    problem = hc.load(TANK)
    counted(lift, "lift")
    counted(forms, "prove")
    counted(smooth, "canonicalize")
    counted(smooth, "compile_stack")
    counted(Search, "improve")
    problem.solve()
    assert problem.status == "optimal"
    assert counts == dict.fromkeys(counts, 1)
    assert set(counts) == {"lift", "prove", "canonicalize", "compile_stack", "improve"}
