"""The table of methods, their options, and what `minimize` refuses."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest

from hcmodel.solvers import METHODS, Termination, minimize
from hcmodel.solvers.first_order.adaptive_line_search import AdaLSOptions
from hcmodel.solvers.first_order.bundle_level import Options
from hcmodel.solvers.first_order.method_rules import AdaLSRules
from hcmodel.solvers.methods import find_method, make_options
from hcmodel.solvers.second_order.options import AcceptanceOptions
from tests.solvers.models import tank


def test_the_table_is_keyed_by_the_names_it_shows() -> None:
    assert {"sbl-star", "sbl-adals"} <= set(METHODS)
    for name, entry in METHODS.items():
        assert entry.name == name
        assert entry.summary
        assert entry.assumptions
        assert entry.reference
        assert entry.make(entry.options()) is not None
    assert METHODS["sbl-star"].needs_optimal_value
    assert not METHODS["sbl-adals"].needs_optimal_value


def test_an_unknown_method_lists_those_there_are() -> None:
    with pytest.raises(ValueError, match=r"'newton'; there are: .*sbl-star.*, sbl-adals"):
        find_method("newton")
    with pytest.raises(ValueError, match="unknown method"):
        minimize(tank().oracle, tank().domain, method="newton")


def test_an_unknown_option_is_named_beside_the_valid_ones() -> None:
    with pytest.raises(ValueError, match=r"sbl-adals has no option 'memry'; .*memory.*patience"):
        minimize(tank().oracle, tank().domain, options={"memry": 3})
    with pytest.raises(ValueError, match=r"no option 'a', 'b'"):
        make_options(METHODS["sbl-star"], {"b": 1, "a": 2, "memory": 3})


def test_options_come_as_dict_or_dataclass_and_do_the_same() -> None:
    entry = METHODS["sbl-adals"]
    assert make_options(entry, None) == AdaLSOptions()
    assert make_options(entry, {}) == AdaLSOptions()
    assert make_options(entry, {"memory": 1}) == AdaLSOptions(memory=1)
    given = AdaLSOptions(memory=1, objective_steps=0)
    assert make_options(entry, given) is given
    as_dict = {field.name: getattr(given, field.name) for field in fields(given)}
    runs = []
    for options in (given, as_dict):
        model = tank()
        runs.append(minimize(model.oracle, model.domain, model.start, options=options))
    assert runs[0].calls == runs[1].calls
    np.testing.assert_array_equal(runs[0].point, runs[1].point)


def test_a_group_of_options_comes_as_dict_or_dataclass() -> None:
    entry = METHODS["hidden-newton"]
    made = make_options(entry, {"acceptance": {"growth": 2.0}, "radius": 0.5})
    assert made.acceptance == AcceptanceOptions(growth=2.0)
    assert made == make_options(entry, {"acceptance": made.acceptance, "radius": 0.5})
    with pytest.raises(ValueError, match=r"hidden-newton's acceptance has no option 'grwth'"):
        make_options(entry, {"acceptance": {"grwth": 2.0}})
    with pytest.raises(ValueError, match="a dict or AcceptanceOptions"):
        make_options(entry, {"acceptance": 2.0})
    with pytest.raises(ValueError, match="acceptance must be AcceptanceOptions"):
        entry.options(acceptance=2.0)


def test_options_reach_the_method() -> None:
    model = tank()
    result = minimize(model.oracle, model.domain, model.start, options={"objective_steps": 0})
    assert all(record.phase != "objective" for record in result.trace)
    model = tank()
    result = minimize(model.oracle, model.domain, model.start, options={"objective_steps": 3})
    assert sum(record.phase == "objective" for record in result.trace) == 3
    with pytest.raises(ValueError, match="backend 'none'"):
        minimize(model.oracle, model.domain, model.start, options={"backend": "none"})


def test_options_of_another_kind_are_refused() -> None:
    with pytest.raises(ValueError, match="a dict or AdaLSOptions"):
        make_options(METHODS["sbl-adals"], Options())
    with pytest.raises(ValueError, match="a dict or Options"):
        make_options(METHODS["sbl-star"], [("memory", 3)])


@pytest.mark.parametrize(
    "options", [{"memory": 0}, {"memory": -1}, {"failures": -1}, {"objective_steps": -1}]
)
def test_options_out_of_range_are_refused(options: dict[str, int]) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        make_options(METHODS["sbl-adals"], options)


def test_options_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Options().memory = 3  # type: ignore[misc]


def test_a_method_that_needs_the_optimal_value_says_so_and_names_another() -> None:
    with pytest.raises(ValueError, match=r"sbl-star needs optimal_value; .*sbl-adals"):
        minimize(tank().oracle, tank().domain, method="sbl-star")


@pytest.mark.parametrize("tolerance", [0.0, -1e-6, np.nan])
def test_a_tolerance_that_cannot_be_met_is_refused(tolerance: float) -> None:
    # once wrong: only `Problem.solve` checks it; the stand-alone function runs on.
    with pytest.raises(ValueError, match="tolerance"):
        minimize(tank().oracle, tank().domain, tolerance=tolerance)


@pytest.mark.parametrize("start", [np.ones(1), np.ones(3), np.ones((2, 2))])
def test_a_start_of_the_wrong_shape_is_refused(start: np.ndarray) -> None:
    # shapes (1,) and (2, 2) would broadcast
    with pytest.raises(ValueError, match=r"start|shape"):
        minimize(tank().oracle, tank().domain, start)


def test_without_a_start_the_middle_of_the_domain_is_taken() -> None:
    model = tank()
    result = minimize(model.oracle, model.domain, max_calls=2)
    assert result.termination is Termination.CALL_LIMIT
    np.testing.assert_allclose(result.point, np.sqrt(0.4 * 3.0))


def test_numbers_inside_a_first_order_method_can_be_given_too() -> None:
    entry = METHODS["sbl-adals"]
    rules = AdaLSRules(epoch_shift=0.25)
    assert make_options(entry, {"rules": rules}).rules is rules
    assert make_options(entry, {"rules": {"epoch_shift": 0.25}}).rules == rules
    deeper = make_options(entry, {"rules": {"search": {"sufficient": 0.1}}})
    assert deeper.rules.search.sufficient == 0.1
    with pytest.raises(ValueError, match="options of sbl-adals's rules are a dict or AdaLSRules"):
        make_options(entry, {"rules": 3})
    with pytest.raises(ValueError, match=r"sbl-adals's rules has no option 'epoch'"):
        make_options(entry, {"rules": {"epoch": 0.25}})


@pytest.mark.parametrize("wrong", [{"coarse_cut": 1.0}, {"shift_cut": 0.5}, {"short": 0.2}])
def test_numbers_with_which_a_step_would_not_end_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must be"):
        make_options(METHODS["sbl-star"], {"rules": {"level": wrong}})
