"""What an Arrow type can hold."""

from __future__ import annotations

from typing import Any


def is_text(arrow: Any) -> bool:
    """Whether an Arrow type is text."""
    return str(arrow) in ("string", "large_string", "string_view")


def is_plain(arrow: Any) -> bool:
    """Whether an Arrow type is text, a number or Boolean."""
    return is_text(arrow) or is_number(arrow) or str(arrow) == "bool"


def is_label(arrow: Any) -> bool:
    """Whether cells of an Arrow type can be labels or ids; of a dictionary, its values.

    No lists, records or intervals; nor extension types, whose cells Arrow may fail to turn into
    text, one or all of them; nor times of a zone that this machine does not know; nor dictionaries
    of views, which Arrow cannot decode.
    """
    import pyarrow as pa
    from pyarrow import types as kind

    if kind.is_dictionary(arrow):
        return "_view" not in str(arrow.value_type) and is_label(arrow.value_type)
    unlike = kind.is_nested(arrow) or kind.is_run_end_encoded(arrow) or kind.is_interval(arrow)
    return not (unlike or isinstance(arrow, pa.BaseExtensionType) or in_unknown_zone(arrow))


def in_unknown_zone(arrow: Any) -> bool:
    """Whether an Arrow type, or that of a dictionary's values, is of times in an unknown zone."""
    import pyarrow as pa
    from pyarrow import types as kind

    if kind.is_dictionary(arrow):
        return in_unknown_zone(arrow.value_type)
    if not kind.is_timestamp(arrow):
        return False
    try:
        pa.array([0], arrow).cast(pa.string())
    except pa.ArrowInvalid:
        return True
    return False


def is_day_or_time(arrow: Any) -> bool:
    """Whether an Arrow type is of days, or of times on days."""
    from pyarrow import types as kind

    return bool(kind.is_date(arrow) or kind.is_timestamp(arrow))


def is_bytes(arrow: Any) -> bool:
    """Whether an Arrow type is bytes."""
    return str(arrow).startswith(("binary", "large_binary", "fixed_size_binary"))


def is_number(arrow: Any) -> bool:
    """Whether an Arrow type is a number."""
    from pyarrow import types as kind

    return bool(kind.is_integer(arrow) or kind.is_floating(arrow) or kind.is_decimal(arrow))
