"""Write the tables of docs/atoms.md from the atom table of hcmodel.

Facts that are constants appear as their value. Facts that are rules appear as the first line of the
rule's docstring, so the page says what the code says.
"""

from __future__ import annotations

import sys
from typing import Any

from regions import main, table

import hcmodel as hc
from hcmodel.atoms import ATOMS, Atom
from hcmodel.atoms.compositions import COMPOSITIONS
from hcmodel.atoms.rules import Always

PAGE = "atoms.md"
FAMILIES = {
    "arithmetic": "Operators",
    "elementwise": "Functions of one number",
    "piecewise": "Absolute value, maxima, norms",
    "aggregates": "Sums and products",
    "probability": "Entropy and soft maxima",
    "structure": "Shapes and indexing",
    "linalg": "Products of matrices and vectors",
    "matrix_equations": "Inverses, determinants, Lyapunov equations",
    "spectral": "Eigenvalues and positive matrices",
    "black_box": "Your own function",
}
# How atoms are written that have an operator, beside or instead of a name.
WRITTEN = {
    "add": "a + b",
    "sub": "a - b",
    "neg": "-a",
    "mul": "a * b",
    "div": "a / b",
    "power": "a ** p",
    "matmul": "a @ b",
    "index": "a[key]",
    "transpose": "a.T",
    "broadcast_to": "np.broadcast_to(a, shape)",
}
# Shapes of atoms whose rule has no docstring of its own.
SHAPES = {
    "matmul": "as numpy's matmul",
    "dot": "as numpy's dot, up to two axes",
    "outer": "(m,), (n,) → (m, n)",
    "kron": "(m, n), (p, q) → (m p, n q)",
    "einsum": "the labels after ->",
    "trace": "a square matrix in, a number out",
    "quad_form": "(n,), (n, n) → a number",
    "solve": "that of b",
    "lyap": "two (n, n) → (n, n)",
    "dlyap": "two (n, n) → (n, n)",
    "cumsum": "that of a; one axis where `axis` is None",
    "index": "as numpy's indexing",
    "reshape": "`shape`",
    "transpose": "the axes reordered",
    "broadcast_to": "`shape`",
    "hstack": "as numpy's hstack",
    "vstack": "as numpy's vstack",
    "concatenate": "as numpy's concatenate",
    "diag": "(n,) → (n, n); a matrix → its diagonal",
    "function": "`shape`",
}
CHANNELS = {
    "plain → plain": "curvature",
    "log → log": "log_curvature",
    "log → plain": "log_to_plain",
    "plain → log": "plain_to_log",
}
SHORT_FORMS = (
    """These functions are written with other atoms. Most have the name that CVXPY gives them."""
)
USES = ("atom", "written", "meaning", "domain", "shape", "kind")
FACTS = ("atom", "sign", "monotonicity", *CHANNELS)


def regions() -> dict[str, str]:
    """The body of the page's one region."""
    parts: list[str] = []
    for family, title in FAMILIES.items():
        atoms = [atom for atom in ATOMS.values() if _family(atom) == family]
        parts += [
            f"## {title}",
            table(USES, [_uses(atom) for atom in atoms]),
            table(FACTS, [_facts(atom) for atom in atoms]),
        ]
    short = [
        [f"`hc.{each.name}{each.signature}`", _sentence(each.documentation)]
        for each in COMPOSITIONS.values()
    ]
    short.append(["`hc.bmat(blocks)`", _sentence(hc.bmat.__doc__)])
    parts += ["## Short forms", SHORT_FORMS, table(("written", "meaning"), short)]
    missing = {atom.name for atom in ATOMS.values() if _family(atom) not in FAMILIES}
    if missing:
        raise ValueError(f"no family of the page holds {sorted(missing)}; add it to FAMILIES")
    return {"atoms": "\n\n".join(parts)}


def _uses(atom: Atom) -> list[str]:
    name, meaning = f"`{atom.name}`", _sentence(atom.documentation)
    return [name, _call(atom), meaning, _domain(atom), _shape(atom), _fact(atom.kind)]


def _facts(atom: Atom) -> list[str]:
    curvatures = [_fact(getattr(atom, channel)) for channel in CHANNELS.values()]
    return [f"`{atom.name}`", _fact(atom.sign), _fact(atom.monotonicity_rule), *curvatures]


def _family(atom: Atom) -> str:
    return str(atom.function.__module__).rpartition(".")[2]


def _call(atom: Atom) -> str:
    forms = [f"`{WRITTEN[atom.name]}`"] if atom.name in WRITTEN else []
    if atom.name in hc.__all__:
        forms.append(f"`hc.{atom.name}{str(atom.signature).replace(', /', '')}`")
    if not forms:
        raise ValueError(f"how is '{atom.name}' written? add it to WRITTEN")
    return ", ".join(forms)


def _sentence(documentation: str) -> str:
    return documentation.splitlines()[0].removesuffix(".")


def _fact(rule: Any) -> str:
    """The value of a constant fact, or what the rule says of itself; a dash for nothing known."""
    if isinstance(rule, Always):
        values = rule.value if isinstance(rule.value, tuple) else (rule.value,)
        return "; ".join("–" if value.value == "unknown" else value.value for value in values)
    if not rule.__doc__:
        raise ValueError(f"the rule {rule.__name__} needs a docstring for the page of atoms")
    text = _sentence(rule.__doc__)
    return text if text[1:2].isupper() else text[0].lower() + text[1:]


def _domain(atom: Atom) -> str:
    text = _fact(atom.domain)
    return "" if text == "all reals" else text


def _shape(atom: Atom) -> str:
    if atom.name in SHAPES:
        return SHAPES[atom.name]
    return _fact(atom.shape)


if __name__ == "__main__":
    sys.exit(main(PAGE, regions))
