"""The first line of a CSV, read from the bytes that a file begins with.

Formal guarantee
----------------
These bytes hold records below the header. What leaves this module are the header, which is public,
and the refusal of a file that is no text: whether the first `HEADER_BYTES` hold a zero, or are not
of the declared encoding. Refusals of malformed files are outside the promise.
"""

from __future__ import annotations

import csv
import io

from privtail.schema import headers
from privtail.schema.dialect import Dialect
from privtail.schema.headers import Header

HEADER_BYTES = 1 << 20


def read_header(path: object, start: bytes, dialect: Dialect) -> Header:
    """The header in the first `HEADER_BYTES` of a file.

    Raises
    ------
    InvalidInput
        If this is no CSV, or its names cannot be read: the error says what it is, and the mend.
    """
    headers.require_text(path, start[:2], b"\0" in start, dialect)
    try:
        # The last character may be cut in two.
        whole = len(start) < HEADER_BYTES
        text = start.decode(dialect.encoding, "strict" if whole else "ignore").lstrip("\ufeff")
    except UnicodeError:
        raise headers.undecoded(path, dialect) from None
    lines = list(io.StringIO(text))
    skipped = tuple(filter(None, ("\n", "\r", dialect.comment)))
    above = next((i for i, line in enumerate(lines) if not line.startswith(skipped)), len(lines))
    text = "".join(lines[above:])
    separator = dialect.separator or headers.separator_of(path, lines[above] if text else "")
    try:
        names = tuple(next(csv.reader(io.StringIO(text), delimiter=separator), ()))
    except csv.Error:
        raise headers.unread(path) from None
    return headers.named(path, names, above, dialect, separator)
