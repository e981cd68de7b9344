"""What is public: completion shows it and nothing else, and nothing goes without a warning."""

from __future__ import annotations

import functools
import importlib
import re
import subprocess
import sys
import tomllib
import types
import warnings
from pathlib import Path

import pytest

import hcmodel as hc
import hcmodel.solvers
import hcmodel.testing
from hcmodel.deprecation import MOVED, deprecated
from hcmodel.report.versions import OPTIONAL, REQUIRED

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "public-interface.md").read_text("utf-8")
# The modules whose `__all__` is public: the first table of the page.
PUBLIC = re.findall(r"^\| `(hc[a-z_.]*)` \|", PAGE.split("The names in `__all__`")[0], re.MULTILINE)


def public_module(name: str) -> types.ModuleType:
    """A module by the name that the page has for it."""
    found = functools.reduce(getattr, name.split(".")[1:], hc)
    assert isinstance(found, types.ModuleType)
    return found


def test_a_public_name_is_no_module_except_plot() -> None:
    for name in hc.__all__:
        is_module = isinstance(getattr(hc, name), types.ModuleType)
        assert is_module == (name == "plot"), name  # `hc.plot` is a name for all pictures


def test_the_page_lists_public_modules() -> None:
    assert {"hcmodel", "hc.plot", "hcmodel.solvers", "hcmodel.testing"} <= set(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_public_modules_offer_what_they_list_and_completion_shows_nothing_else(name: str) -> None:
    module = public_module(name)
    for each in module.__all__:
        assert getattr(module, each) is not None
    assert dir(module) == sorted(module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)


def test_submodules_are_attributes_though_completion_does_not_show_them() -> None:
    program = (
        "import sys, hcmodel as hc; "
        "assert 'hcmodel.testing' not in sys.modules; "
        "hc.testing.check_engine; hc.solvers.minimize; hc.errors.HCError"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Variabel'"):
        _ = hc.Variabel
    with pytest.raises(AttributeError, match="no attribute 'check_nothing'"):
        _ = hcmodel.testing.check_nothing


@pytest.mark.parametrize("call", [hc.solve, hc.exp, lambda p: hc.solve(p, "auto")])
def test_a_problem_handed_to_a_function_is_told_how_to_be_solved(call) -> None:
    x = hc.Variable(name="x", bounds=(0, 1))
    problem = hc.Problem(hc.Minimize(x))
    with pytest.raises(hc.ModelError, match=r"to solve a problem, write problem\.solve\(\)"):
        call(problem)


# versions


def test_versions_of_everything_that_matters_are_printed(capsys) -> None:
    hc.show_versions()
    lines = dict(line.split(None, 1) for line in capsys.readouterr().out.splitlines())
    assert lines["hcmodel"] == hc.__version__
    assert lines["python"] == ".".join(map(str, sys.version_info[:3]))
    assert {*REQUIRED, *OPTIONAL, "platform"} <= set(lines)
    for name in REQUIRED:
        assert re.match(r"\d+\.\d+", lines[name]), name


def test_an_extra_that_is_missing_is_said_to_be(monkeypatch, capsys) -> None:
    monkeypatch.setattr("hcmodel.report.versions.OPTIONAL", ("no-such-package",))
    hc.show_versions()
    assert re.search(r"no-such-package +not installed", capsys.readouterr().out)


def test_all_required_packages_are_listed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert {re.split("[><=]", each)[0] for each in project["dependencies"]} == set(REQUIRED)
    assert project["version"] == hc.__version__


# deprecation


def test_a_deprecated_function_works_warns_and_says_what_to_use() -> None:
    @deprecated(since="0.3", removed="0.5", instead="hc.norm")
    def length(x: float, *, scale: float = 1.0) -> float:
        """The length of x."""
        return abs(x) * scale

    with pytest.warns(
        DeprecationWarning, match=r"length\(\) is deprecated since hcmodel 0.3"
    ) as seen:
        assert length(-2, scale=3) == 6
    assert "removed in 0.5; use hc.norm instead" in str(seen[0].message)
    assert seen[0].filename == __file__
    assert length.__name__ == "length"
    assert "The length of x." in length.__doc__
    assert "Deprecated since 0.3: use hc.norm." in length.__doc__


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("hcmodel.expression", "Variable"),
        ("hcmodel.models", "load"),
        ("hcmodel.solution", "Status"),
        ("hcmodel.solvers.domain", "Box"),
        ("hcmodel.solvers.domain", "StepRows"),
    ],
)
def test_a_module_that_moved_is_found_by_its_old_name(module: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{module} is deprecated since"):
        found = getattr(importlib.import_module(module), name)
    new = [importlib.import_module(place) for place in MOVED[module]]
    assert any(getattr(place, name, None) is found for place in new)


def test_from_imports_of_moved_modules_work() -> None:
    with pytest.warns(DeprecationWarning, match=r"use hcmodel\.expressions\.leaves instead"):
        from hcmodel.expression import Parameter
    assert Parameter is hc.Parameter
    with pytest.raises(ImportError, match="Nothing"):
        from hcmodel.solution import Nothing  # noqa: F401


def test_nothing_in_hcmodel_uses_an_old_name() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        program = "import hcmodel.cli, hcmodel.testing.engines, sys; "
        program += f"assert not set({sorted(MOVED)!r}) & set(sys.modules)"
        subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT)


def test_the_command_is_where_the_entry_point_says() -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts == {"hcmodel": "hcmodel.cli:main"}
    from hcmodel.cli import main

    assert callable(main)


# the page


def test_the_page_lists_what_is_public() -> None:
    for module in re.findall(r"^\| `(hcmodel[a-z_.]*)` \|", PAGE, re.MULTILINE):
        assert importlib.import_module(module) is not None
    for old, new in MOVED.items():
        assert f"`{old}`" in PAGE
        assert f"`{new[0]}`" in PAGE


@pytest.mark.parametrize(
    ("program", "absent"),
    [
        ("import hcmodel", ["autograd", "lark", "matplotlib", "clarabel", "hcmodel.problem"]),
        (
            "import hcmodel as hc; x = hc.Variable(2, bounds=(0.4, 3)); "
            "hc.Problem(hc.Minimize(hc.sum(x + 4 / x)), [x[0] * x[1] <= 1]).solve()",
            ["autograd", "lark", "matplotlib"],
        ),
        (
            "import hcmodel as hc; hc.parse('var x >= 0.4\\nminimize x + 1/x').solve()",
            ["autograd", "matplotlib"],
        ),
        (  # takes as long to import as hcmodel takes for this run
            "import hcmodel as hc; x = hc.Variable(2, bounds=(0.4, 3)); "
            "code = hc.function(lambda x: max(x[0] + x[1], 1 / x[0] / x[1]), x, grad='2-point'); "
            "hc.Problem(hc.Minimize(code), hidden=[hc.log(x)]).solve()",
            ["scipy.optimize", "scipy.linalg", "lark", "matplotlib"],
        ),
    ],
)
def test_what_is_not_needed_is_not_imported(program: str, absent: list[str]) -> None:
    # older versions of scipy import more for sparse matrices alone
    first = "import scipy.sparse.linalg, sys; before = set(sys.modules)"
    found = f"print([m for m in {absent!r} if m in set(sys.modules) - before])"
    check = f"{first}; {program}; {found}"
    done = subprocess.run(
        [sys.executable, "-c", check], check=True, cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"


def test_a_solve_imports_only_the_methods_that_it_runs() -> None:
    check = (
        "import hcmodel as hc; x = hc.Variable(2, bounds=(0.4, 3)); "
        "hc.Problem(hc.Minimize(hc.sum(x + 4 / x)), [x[0] * x[1] <= 1]).solve(); import sys; "
        "print([m for m in sys.modules if m.startswith('hcmodel.solvers.first_order.')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", check], check=True, cwd=ROOT, capture_output=True, text=True
    )
    assert done.stdout.strip() == "[]"
