"""The table of atoms by name, one for Python, the language, the engines and the analysis.

`hcmodel.atoms` fills it. It stands alone so that an expression's operators find their atoms without
importing them: the atoms build expressions, and so import those.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hcmodel.atoms.atom import Atom

ATOMS: dict[str, Atom] = {}
