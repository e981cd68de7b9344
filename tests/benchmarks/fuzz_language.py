"""Fuzz the language: `python tests/benchmarks/fuzz_language.py [count] [seed]`, 20,000 inputs by default.

Mutated examples and random text go through the parser, the front end and the formatter. Nothing but
`HCError` may come out, and no input may take longer than two seconds.
"""

from __future__ import annotations

import random
import sys
import time
import warnings
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

import hcmodel as hc  # noqa: E402

SLOWEST = 2.0
WORDS = [
    *"var param let set minimize maximize subject to hidden start in if for simplex psd".split(),
    *"symmetric sum prod max abs log exp norm solve eye ones x y n A 1..n 1..10^12 [ ] ( ) { }".split(),
    *": , ; . .. .T ' \" # @ * / + - ^ ** = == <= >= < > 1 2.5 1e308 1e999 -1 0 nan inf é λ 😀".split(),
    *("~", "and", "or", "not", "import", "__class__", "\t", "\n", "\r", "\x00", " "),
]


def mutated(text: str, chance: random.Random, most: int = 6) -> str:
    for _ in range(chance.randint(1, most)):
        place = chance.randrange(len(text) + 1)
        kind = chance.randrange(6)
        if kind == 0:
            text = text[:place] + text[place + chance.randint(1, 12) :]
        elif kind == 1:
            text = text[:place] + chance.choice(WORDS) + text[place:]
        elif kind == 2:
            other = chance.randrange(len(text) + 1)
            low, high = sorted((place, other))
            text = text[:low] + text[low:high] * 2 + text[high:]
        elif kind == 3:
            text = text[:place] + chr(chance.randrange(1, 0x3000)) + text[place + 1 :]
        elif kind == 4:
            text = text.replace(chance.choice(WORDS), chance.choice(WORDS), 1)
        else:
            lines = text.splitlines(keepends=True)
            chance.shuffle(lines)
            text = "".join(lines)
    return text


def random_text(chance: random.Random) -> str:
    if chance.random() < 0.3:
        return bytes(chance.randrange(256) for _ in range(chance.randrange(300))).decode("latin-1")
    return " ".join(chance.choice(WORDS) for _ in range(chance.randrange(1, 60)))


def fuzz(count: int, seed: int) -> tuple[int, float]:
    """How many inputs loaded, and the slowest seconds; raises at the first defect."""
    chance = random.Random(seed)
    models = [path.read_text() for path in sorted((ROOT / "examples").glob("*.hc"))]
    loaded, slowest = 0, 0.0
    for number in range(count):
        text = mutated(chance.choice(models), chance) if number % 4 else random_text(chance)
        clock = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                hc.parse(text, {})
            loaded += 1
        except hc.HCError:
            pass
        except Exception as error:
            raise AssertionError(f"{type(error).__name__}: {error} from\n{text!r}") from error
        seconds = time.perf_counter() - clock
        if seconds > SLOWEST:
            raise AssertionError(f"{seconds:.1f} s for\n{text!r}")
        slowest = max(slowest, seconds)
    return loaded, slowest


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    loaded, slowest = fuzz(count, seed)
    print(f"{count} inputs, {loaded} of them models, slowest {slowest:.2f} s, no defect")
