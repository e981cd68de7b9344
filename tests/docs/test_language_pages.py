"""What the language pages show is what hcmodel does.

How blocks of a page are read:

- A ```hc block is a whole model. It must load, and if it has a comment `# … Optimum V` it is solved
  and must reach V. If the next block is ```json, that is its data.
- A ```hc block right behind the HTML comment `<!-- within … -->` is a fragment. The comment holds a
  model, in which the fragment takes the place of the line `…`.
- A ```hc block whose next block is ```text is wrong on purpose: the text is its error.
- A block right behind `<!-- file: NAME -->` is written to that file, whatever its language.
- A ```console block is a session: each line behind `$ ` is run by sh, in a directory that the page's
  blocks share, and must print the lines below it. `<!-- not replayed -->` in front excludes it.
- A ```py block is code for another tool, run where that tool is installed.

In what a session prints, `…` stands for anything. Times, counts of iterations and calls, and
residuals are not compared, other numbers to four digits. Record sessions anew after a change with

    python tests/docs/test_language_pages.py PAGE
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import pkgutil
import re
import shlex
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest

import hcmodel as hc
from hcmodel import frontend, grammar

ROOT = Path(__file__).parents[2]
if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))

from tests.docs.code_blocks import FENCE, matches  # noqa: E402
from tests.processes import run_python  # noqa: E402

DOCS = ROOT / "docs"
LANGUAGE, TUTORIAL, COMING_FROM = (
    DOCS / name for name in ("language.md", "tutorial.md", "coming-from.md")
)
COMMENT_BEFORE = re.compile(r"<!--\s*((?:(?!-->).)*?)\s*-->\s*\Z", re.DOTALL)
OPTIMUM = re.compile(r"#.*Optimum (-?[0-9.]+)")
WHAT_VARIES = [
    (re.compile(r"\d[\d.e-]* s\b"), "T s"),
    (re.compile(r"(_seconds\"?: )[\d.e-]+"), r"\1T"),
    (re.compile(r"(violation +|KKT residual +|stationarity\": |violation\": )[\d.e+-]+"), r"\1R"),
    (re.compile(r"\d+ (iterations|oracle calls)"), r"N \1"),
    (re.compile(r"\d+ points?\b"), "N points"),
    (re.compile(r"(\"(?:objective|constraints|total|points|hessians|iterations)\": )\d+"), r"\1N"),
]
LIMITS = {  # the rows of the reference's table, with the constants of the code
    "characters of a file": ["MAX_CHARACTERS"],
    "words and signs": ["MAX_TOKENS"],
    "brackets inside brackets": ["MAX_NESTING"],
    "characters of a name, of a number": ["MAX_NAME_LENGTH", "MAX_NUMBER_LENGTH"],
    "members of a range": ["MAX_RANGE"],
    "entries of an array": ["MAX_ENTRIES"],
    "indices at once": ["MAX_DIMENSIONS"],
    "index tuples of dependent ranges and filters": ["MAX_TUPLES"],
    "unknowns": ["MAX_UNKNOWNS"],
    "rows of constraints": ["MAX_ROWS"],
}
NUMBER = re.compile(r"(?<![\w.])-?\d+\.\d+(?:e[+-]?\d+)?|(?<![\w.])-?\d+e[+-]?\d+")


@dataclass(frozen=True)
class Block:
    """A fenced block, the comment in front of it, and the block that follows it directly."""

    language: str
    text: str
    line: int
    place: tuple[int, int]
    comment: str
    below: tuple[str, str] | None

    @property
    def file(self) -> str | None:
        found = re.match(r"file: (\S+)", self.comment)
        return found[1] if found else None


def blocks(page: str) -> list[Block]:
    """The fenced blocks of a page."""
    fences = list(FENCE.finditer(page))
    found = []
    for fence, following in zip(fences, [*fences[1:], None], strict=False):
        before = COMMENT_BEFORE.search(page[: fence.start()])
        below = None
        if following is not None and not page[fence.end() : following.start()].strip():
            below = (following[1], following[2])
        line = page.count("\n", 0, fence.start()) + 1
        comment = before[1] if before else ""
        found.append(Block(fence[1], fence[2], line, fence.span(2), comment, below))
    return found


def model_of(block: Block) -> str:
    """The text of a model block, a fragment inside its frame."""
    if not block.comment.startswith("within\n"):
        return block.text
    frame = block.comment.removeprefix("within\n").split("\n")
    return "\n".join(block.text.rstrip("\n") if line == "…" else line for line in frame)


def pages_with(language: str) -> list[object]:
    return [
        pytest.param(block, id=f"{page.name}:{block.line}")
        for page in (LANGUAGE, TUTORIAL, COMING_FROM)
        for block in blocks(page.read_text("utf-8"))
        if block.language == language
    ]


# ---- models -------------------------------------------------------------------------------------


@pytest.mark.parametrize("block", pages_with("hc"))
def test_a_model_of_the_pages_is_as_they_say(block):
    text = model_of(block)
    kind, shown = block.below or ("", "")
    if kind == "text":
        with pytest.raises(hc.HCError) as caught:
            hc.parse(text, filename="model.hc")
        assert matches(shown, str(caught.value)), str(caught.value)
        return
    if block.file is not None:
        return  # part of a session, right or wrong
    problem = hc.parse(text, json.loads(shown) if kind == "json" else None)
    optimum = OPTIMUM.search(text)
    if optimum is not None:
        problem.solve()
        assert problem.status in ("optimal", "locally_optimal")
        assert problem.value == pytest.approx(float(optimum[1]), rel=1e-5)


def test_the_reference_names_every_keyword_and_function():
    from hcmodel.frontend.names import CONSTANTS, function_names
    from hcmodel.grammar.keywords import KEYWORDS

    page = LANGUAGE.read_text("utf-8")
    words = {*KEYWORDS.values(), *function_names(), *CONSTANTS}
    spans = " ".join(re.findall(r"`[^`\n]+`", FENCE.sub("", page)))
    assert {word for word in words if not re.search(rf"\b{word}\b", spans)} == set()


def test_the_reference_states_the_limits_of_the_code():
    found: dict[str, int] = {}
    for package in (frontend, grammar):
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
            if not module.name.endswith(".lexer"):  # the one that needs pygments
                found |= vars(importlib.import_module(module.name))
    page = LANGUAGE.read_text("utf-8")
    table = page[page.index("## Limits") : page.index("## Errors")]
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", table, re.MULTILINE))
    stated = {what: limit.replace(",", "").split() for what, limit in rows.items()}
    for what, names in LIMITS.items():
        assert stated[what] == [str(found[name]) for name in names], what


# ---- sessions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Command:
    """A command of a session, what the page shows below it and what it printed now."""

    text: str
    line: int
    shown: str
    printed: str


def commands(block: Block) -> list[tuple[str, int, str]]:
    """The commands of a console block with their lines and outputs."""
    found: list[tuple[str, int, str]] = []
    for number, line in enumerate(block.text.splitlines(), start=block.line + 1):
        if line.startswith("$ "):
            found.append((line[2:], number, ""))
        else:
            command, first, output = found[-1]
            found[-1] = (command, first, output + line + "\n")
    return found


def replay(page: str, folder: Path) -> list[Command]:
    """Write the files of a page and run its sessions, in the order of the page."""
    done = []
    code = 0
    for block in blocks(page):
        if block.file is not None:
            (folder / block.file).write_text(block.text, encoding="utf-8")
        if block.language != "console" or block.comment == "not replayed":
            continue
        for text, line, shown in commands(block):
            printed, code = _run(text, folder, code)
            done.append(Command(text, line, shown, printed))
    return done


def _run(command: str, folder: Path, last: int) -> tuple[str, int]:
    words = shlex.split(command)
    if words[0] == "hcmodel" and shlex.join(words) == command:  # nothing that a shell would expand
        own = run_python(["-m", *words], folder, together=True)
        return own.stdout, own.returncode
    python = shlex.quote(sys.executable)
    prelude = f'hcmodel() {{ {python} -m hcmodel "$@"; }}; (exit {last}); '
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        ["sh", "-c", prelude + command],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path, "PYTHONIOENCODING": "utf-8"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        stdin=subprocess.DEVNULL,
        encoding="utf-8",
        check=False,
    )
    return done.stdout, done.returncode


def compared(output: str) -> str:
    """An output without what varies from run to run, numbers to four digits."""
    for pattern, replacement in WHAT_VARIES:
        output = pattern.sub(replacement, output)
    return NUMBER.sub(lambda found: f"{round(float(found[0]), 6) + 0.0:.4g}", output)


@pytest.mark.parametrize("page", [LANGUAGE, TUTORIAL, COMING_FROM], ids=lambda page: page.name)
def test_sessions_print_what_the_page_shows(page, tmp_path):
    if page == TUTORIAL:
        pytest.importorskip("matplotlib")  # the session draws a picture
    for command in replay(page.read_text("utf-8"), tmp_path):
        hint = f"{page.name}:{command.line}: $ {command.text}\nprints\n{command.printed}"
        assert matches(compared(command.shown), compared(command.printed)), hint


def test_a_session_with_another_output_is_noticed(tmp_path):
    page = "```console\n$ echo 0.5\n0.7\n$ echo 0.50001\n0.5\n$ false\n$ echo $?\n1\n```\n"
    done = replay(page, tmp_path)
    fits = [matches(compared(each.shown), compared(each.printed)) for each in done]
    assert fits == [False, True, True, True]


def test_times_and_counts_are_not_compared():
    one = "sbl-adals: 54 iterations, 100 oracle calls at 58 points, 0.339 s (compiled in 1e-05 s)"
    other = "sbl-adals: 9 iterations, 10 oracle calls at 5 points, 2 s (compiled in 0.3 s)"
    assert compared(one) == compared(other)
    assert compared("value 5.00000001") == compared("value 5.0")
    assert compared("value 5.01") != compared("value 5.0")


def recorded(page: str, folder: Path) -> str:
    """The page with the outputs of its sessions as they are now; outputs with `…` stay."""
    outputs = {command.line: command for command in replay(page, folder)}
    for block in reversed(blocks(page)):
        if block.language != "console" or block.comment == "not replayed":
            continue
        text = ""
        for command, line, shown in commands(block):
            text += f"$ {command}\n" + (shown if "…" in shown else outputs[line].printed)
        page = page[: block.place[0]] + text + page[block.place[1] :]
    return page


# ---- the other tools ----------------------------------------------------------------------------


@pytest.mark.parametrize("block", pages_with("py"))
def test_the_code_for_other_tools_runs_where_they_are_installed(block):
    for module in re.findall(r"^import (\w+)|^from (\w+)", block.text, re.MULTILINE):
        pytest.importorskip(module[0] or module[1])
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()) as printed:
        warnings.simplefilter("ignore")
        exec(compile(block.text, "coming-from.md", "exec"), {"__name__": "__main__"})
    if block.below is not None and block.below[0] == "text":
        assert matches(compared(block.below[1]), compared(printed.getvalue()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        path = Path(sys.argv[1])
        path.write_text(recorded(path.read_text("utf-8"), Path(folder)), encoding="utf-8")
