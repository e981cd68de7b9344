"""pandas, which comes with the extra `data` and is imported only where a table is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from hcmodel.errors import DataError


def require_pandas() -> Any:
    """The module, or one line on how to install it."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise DataError("tables of pandas need pandas: pip install 'hcmodel[data]'") from None
