"""Greek letters where they can be shown, and their names where they cannot."""

from __future__ import annotations

import sys
from typing import Any

_NAMES = str.maketrans(
    {
        "ε": "eps", "δ": "delta", "μ": "mu", "ρ": "rho", "σ": "sigma", "±": "+-", "×": "x",
        "−": "-", "²": "^2", "½": "1/2", "≤": "<=", "≥": ">=", "…": "...", "→": "->", "∞": "inf",
        "─": "-",
    }
)  # fmt: skip


def printable(text: str, stream: Any = None) -> str:
    """``text`` as ``stream`` (standard output) can write it: ``eps`` in Latin-1, and so on."""
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_NAMES).encode(encoding, "backslashreplace").decode(encoding)
    except LookupError:
        return text.translate(_NAMES)
    return text
