"""Products of matrices as words of nodes: x @ (inv(X) @ x), however it is bracketed, is x' X⁻¹ x."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from hcmodel.atoms.algebra import Factor
from hcmodel.atoms.rules import MatrixKind
from hcmodel.expressions.sparse_data import equal

if TYPE_CHECKING:
    from hcmodel.facts.node_facts import Node

LONGEST = 8  # letters; longer products are not looked at
DEEPEST = 32  # products inside products


class Letter(NamedTuple):
    """A node, its transpose, its inverse, or the transpose of its inverse; vectors are columns."""

    number: int
    transposed: bool = False
    inverted: bool = False


Word = tuple[Letter, ...]


def word(factors: Sequence[Factor], arguments: Sequence[Node], nodes: Sequence[Node]) -> Word:
    """The letters of a product; none where there are no factors or too many letters.

    `nodes` has all earlier nodes by their numbers.
    """
    letters: list[Letter] = []
    for place, transposed, inverted in factors:
        letter = Letter(arguments[place].number, transposed, inverted)
        letters += _expanded(letter, nodes, DEEPEST)
        if len(letters) > LONGEST:
            return ()
    return tuple(letters)


def _expanded(letter: Letter, nodes: Sequence[Node], depth: int) -> list[Letter]:
    node = nodes[letter.number]
    factors = node.factors
    if not factors or not depth or (letter.inverted and len(factors) > 1):
        symmetric = node.definiteness >= MatrixKind.SYMMETRIC
        return [Letter(letter.number, letter.transposed and not symmetric, letter.inverted)]
    found: list[Letter] = []
    for factor in reversed(factors) if letter.transposed else factors:
        inner = Letter(
            node.arguments[factor.place],
            factor.transposed != letter.transposed,
            factor.inverted != letter.inverted,
        )
        found += _expanded(inner, nodes, depth - 1)
        if len(found) > LONGEST:
            break
    return found


def congruence(word: Word, nodes: Sequence[Node]) -> MatrixKind:
    """What is known of B' B and of B' X B, with any number of matrices on both sides."""
    count = len(word)
    if count < 2:
        return MatrixKind.GENERAL
    for i in range(count // 2):
        if not _are_transposes(word[i], word[count - 1 - i], nodes):
            return MatrixKind.GENERAL
    if count % 2 == 0:
        return MatrixKind.SEMIDEFINITE
    return min(MatrixKind.SEMIDEFINITE, nodes[word[count // 2].number].definiteness)


def _are_transposes(first: Letter, second: Letter, nodes: Sequence[Node]) -> bool:
    if first.inverted != second.inverted:
        return False
    node, other = nodes[first.number], nodes[second.number]
    turned = first.transposed != second.transposed
    if first.number == second.number:
        return turned or node.definiteness >= MatrixKind.SYMMETRIC
    if node.value is None or other.value is None:
        return False
    return equal(node.value, other.value if turned else other.value.T)
