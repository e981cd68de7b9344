"""`python -m hcmodel.cli.check_hook MODEL …`: `hcmodel check` for a pre-commit hook.

A hook hands over several files at once and no options: data come from a file of the same name beside each
model. A model whose data are elsewhere is checked as far as its text goes.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from hcmodel.errors import HCError

ENDINGS = (".json", ".npz")
NO_DATA = "has no data"
REFUTED, WRONG = 5, 1


def main(names: Sequence[str]) -> int:
    """Check all models; the exit code is that of the worst."""
    code = 0
    for name in names:
        found, message = _checked(Path(name))
        print(f"{name}: {message}")
        code = max(code, found)
    return code


def _checked(path: Path) -> tuple[int, str]:
    from hcmodel.problem import load

    beside = [each for each in map(path.with_suffix, ENDINGS) if each.is_file()]
    try:
        analysis = load(path, beside[0] if beside else None).analyze()
    except HCError as error:
        messages = [each.message for each in error.diagnostics]
        if messages and all(message.endswith(NO_DATA) for message in messages):
            return 0, "not analysed: its data are not in a file of the same name"
        return WRONG, str(error)
    return (REFUTED if analysis.verdict == "refuted" else 0), analysis.verdict


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
