"""No text can crash the front end, run long or fill the memory."""

import random
import re
import warnings
from pathlib import Path

import pytest

from hcmodel.errors import HCError
from hcmodel.frontend import values
from hcmodel.problem import parse
from tests.extent import several
from tests.hcmodel.frontend.random_models import WildModels
from tests.steps import counted, measured

EXAMPLES = Path(__file__).parents[3] / "examples"
INDICES = [f"i{number}" for number in range(60)]
GENERATORS = ", ".join(f"{index} in 1..2" for index in INDICES)
TOKEN = re.compile(r"[^\W\d]\w*|\d+(?:\.\d+)?|\.\.|<=|>=|==|!=|\S|\n| +")


# Calls of functions that a text of a few lines may cost, and bytes that it may hold at once.
MOST_CALLS, MOST_MEMORY = 500_000, 400e6


def outcome(text):
    """How parsing ends; anything but a problem or an HCError is a failure of the test."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            parse(text)
            result = "problem"
        except HCError as error:
            result = type(error).__name__
    return result


def cheap_outcome(text):
    """The same, for a text that must not cost many calls or much memory."""
    result, calls = counted(lambda: outcome(text))
    assert calls <= MOST_CALLS, text[:500]
    result, memory = measured(lambda: outcome(text))
    assert memory <= MOST_MEMORY, text[:500]
    return result


def test_random_models_end_in_a_problem_or_an_error():
    models = WildModels(20)
    outcomes = [outcome(models.model()) for _ in range(several(40, 550))]
    outcomes += [cheap_outcome(models.model()) for _ in range(several(15, 50))]
    assert outcomes.count("problem") >= 1
    assert outcomes.count("ModelError") >= len(outcomes) // 2


def test_mutated_examples_end_in_a_problem_or_an_error():
    texts = [path.read_text() for path in sorted(EXAMPLES.glob("*.hc"))]
    pool = [token for text in texts for token in TOKEN.findall(text)]
    shuffle = random.Random(3)
    outcomes = []
    for number in range(several(100, 600)):
        tokens = TOKEN.findall(shuffle.choice(texts))
        for _ in range(shuffle.choice((1, 1, 2))):
            place = shuffle.randrange(len(tokens))
            tokens[place : place + shuffle.randrange(2)] = [shuffle.choice(pool)]
        end = outcome if number % 10 else cheap_outcome
        outcomes.append(end("".join(tokens)))
    assert {"problem", "ModelError", "ModelSyntaxError", "DataError"} <= set(outcomes)


def test_random_bytes_end_in_an_error():
    shuffle = random.Random(4)
    for _ in range(200):
        noise = bytes(shuffle.randrange(256) for _ in range(shuffle.randrange(200)))
        assert outcome(noise.decode("latin-1")) != "problem"


@pytest.mark.parametrize(
    "text",
    [
        "var x[1..10^12]\nminimize sum(x)",
        "var x[10^9, 10^9]\nminimize sum(x)",
        "var x[2000000]\nminimize sum(x)",
        "var x\nminimize x + sum(1 for i in 1..10^12)",
        "var x[9000]\nminimize sum(x[i]*x[j]*exp(x[i]+x[j]) for i in 1..9000, j in 1..9000)",
        "var x[9000]\nminimize sum(x[i] for i in 1..9000, j in i..9000)",
        "var x[9000]\nminimize sum(x)\nsubject to\n"
        "    c[i in 1..9000, j in 1..9000 if i < j]: x[i] <= x[j]",
        "var x\nminimize x*sum(zeros(10^5, 10^5))",
        "var x\nminimize x*sum(kron(eye(2000), eye(2000)))",
        "var x\nminimize x*sum(outer(ones(10^6), ones(10^6)))",
        "var x\nminimize x*9^9^9^9^9^9",
        "param A[10^8] = 1\nvar x\nminimize x*sum(A)",
        "var x\nminimize x + prod(2 for i in 1..10^7, j in 1..10^7)",
        "var x\nminimize reshape(x, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])",
        "var x[" + ",".join(["1"] * 80) + "]\nminimize sum(x)",
        f"var x\nminimize sum(x^({'+'.join(INDICES)}) for {GENERATORS})",
        f"var x\nminimize sum(x for {GENERATORS} if {' + '.join(INDICES)} > 70)",
    ],
)
def test_too_much_is_refused_at_once(text):
    assert cheap_outcome(text) == "ModelError"


def nested(depth):
    """A sum of sums whose factors are vectors, so that each level could be read twice."""
    text = "x"
    for level in range(depth):
        text = f"sum(x * {text} for i{level} in 1..2)"
    return f"var x[2]\nminimize sum({text})"


def nested_filters(depth):
    text = "1"
    for level in range(depth):
        text = f"sum(1 for i{level} in 1..2 if {text} > 0)"
    return f"var x\nminimize x * {text}"


@pytest.mark.parametrize("nest", [nested, nested_filters])
def test_nested_comprehensions_are_not_read_twice_at_each_level(nest):
    assert cheap_outcome(nest(40)) == "problem"
    half, whole = (counted(lambda depth=depth: outcome(nest(depth)))[1] for depth in (20, 40))
    assert whole <= 4 * half  # reading twice at each level would double the calls twenty times


def test_many_large_arrays_are_refused_together(monkeypatch):
    assert 8 * values.MAX_TOTAL <= MOST_MEMORY
    monkeypatch.setattr(values, "MAX_TOTAL", values.MAX_TOTAL // 10)
    lets = "\n".join(f"let a{number} = ones(1000, 1000)" for number in range(40))
    assert cheap_outcome(f"{lets}\nvar x\nminimize x*a1[1,1]") == "ModelError"


@pytest.mark.parametrize("text", ["-" * 150 + "x", "x^" * 150 + "x", "+".join(["x"] * 5000)])
def test_long_and_deep_expressions_load(text):
    assert outcome(f"var x in [0.5, 1]\nminimize {text}") == "problem"
