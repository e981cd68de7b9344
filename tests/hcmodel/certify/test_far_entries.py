"""Single entries along which an objective falls: the points, and what enclosures show there."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import hcmodel as hc
from hcmodel.certify.paths import far_entries
from hcmodel.certify.paths.far_entries import RULES, _falling, _towards, falling_entries
from hcmodel.facts.interval_jets import Interval
from hcmodel.solvers import Box


def test_points_approach_a_bound_or_run_outwards() -> None:
    point = np.array([3.0, 5.0])
    path = _towards(point, 0, 1.0, -1.0)
    # 1 + 2/10^k, which ends where the next number is 1
    assert path.points[:3] == pytest.approx(np.array([[3.0, 5.0], [1.2, 5.0], [1.02, 5.0]]))
    assert (path.points[:, 0] > 1).all()
    assert (np.diff(path.points[:, 0]) < 0).all()
    assert len(path.points) < 20
    assert (path.entry, path.edge, path.outward) == (0, 1.0, -1.0)
    out = _towards(point, 1, np.inf, 1.0)
    assert out.points[:2] == pytest.approx(np.array([[3.0, 10.0], [3.0, 55.0]]))
    assert np.isfinite(out.points).all()
    down = _towards(np.array([0.5]), 0, -np.inf, -1.0)
    assert down.points[:2].tolist() == [[-0.5], [-9.5]]  # by 1 at least


def test_values_fall_where_each_enclosure_lies_below_the_one_before_it() -> None:
    def falling(values: Any, width: float = 0.0, widths: Any = None) -> tuple[int, int]:
        own = np.array(values, dtype=float)
        wide = width if widths is None else np.array(widths)
        return _falling(own - wide, own + wide)

    assert falling([5, 4, 3, 2]) == (0, 4)
    assert falling([1, 4, 3, 2]) == (1, 4)
    assert falling([5, 4, 4, 3]) == (2, 4)
    # a wide enclosure at the end shows nothing, unless it lies above
    assert falling([5, 4, 3, 2], widths=[0, 0, 0, 1e9]) == (0, 3)
    assert _falling(np.array([5, 4, 8.0]), np.array([5, 4, np.inf])) == (0, 0)
    assert _falling(np.array([5, 4, -np.inf]), np.array([5, 4, np.inf])) == (0, 2)
    assert falling([np.nan, np.nan]) == (0, 0)
    # relative to the size of the value
    size = 0.4 * RULES.sharp
    assert falling([500, 400.0], widths=[0, size * 400]) == (0, 2)
    assert falling([500, 400.0], widths=[0, 2 * size * 400]) == (0, 1)
    assert falling([-400, -500.0], widths=[0, size * 500]) == (0, 2)


def test_entries_on_which_the_objective_falls_below_the_value_at_hand(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """−x₁ falls outwards, and 1000 − log₁₀ x₀ stays above 0.3, the value of the point."""
    count = 0

    def enclosed(form: Any, points: Any) -> Interval:
        nonlocal count
        count += 1
        return Interval.exactly(function(points))

    monkeypatch.setattr(far_entries, "_enclosed_objective", enclosed)
    form: Any = SimpleNamespace(
        domain=Box(np.array([0.0, 0.0]), np.array([np.inf, np.inf])),
        compiled=SimpleNamespace(has_black_boxes=False),
    )
    here: Any = SimpleNamespace(point=np.array([2.0, 2.0]), objective=0.3)

    function = lambda points: -points[:, 1]  # noqa: E731
    found = list(falling_entries(form, here))
    assert [(path.entry, path.outward) for path in found] == [(1, 1.0)]
    form.domain = Box.of(2)
    function = lambda points: points[:, 1]  # noqa: E731
    assert [(path.entry, path.outward) for path in falling_entries(form, here)] == [(1, -1.0)]
    form.domain = Box(np.array([0.0, 0.0]), np.array([np.inf, np.inf]))
    function = lambda points: 1e3 - np.log10(points[:, 0])  # noqa: E731
    assert list(falling_entries(form, here)) == []  # it stays above the value
    function = lambda points: 10 - np.log10(points[:, 0])  # noqa: E731
    assert [path.entry for path in falling_entries(form, here)] == [0]
    asked = count
    form.compiled.has_black_boxes = True
    assert list(falling_entries(form, here)) == []
    form.compiled.has_black_boxes = False
    many: Any = SimpleNamespace(point=np.zeros(RULES.entries + 1), objective=0.3)
    assert list(falling_entries(form, many)) == []
    fixed: Any = SimpleNamespace(
        domain=Box(np.array([2.0, 2.0]), np.array([2.0, 2.0])), compiled=form.compiled
    )
    assert list(falling_entries(fixed, here)) == []
    assert count == asked


def test_the_objective_is_enclosed_with_its_sign() -> None:
    x = hc.Variable(2, name="x", bounds=(0.5, 9))
    form = hc.Problem(hc.Maximize(3 * x[0] - 1 / x[1])).forms().written
    found = far_entries._enclosed_objective(form, np.array([[1.0, 2.0], [4.0, 0.5]]))
    expected = -np.array([3 - 0.5, 12 - 2.0])
    assert (found.low <= expected).all()
    assert (found.high >= expected).all()
    assert found.high - found.low == pytest.approx(np.zeros(2), abs=1e-9)
