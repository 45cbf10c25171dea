"""Rows in Parquet, CSV and Arrow files: a room that the first file loads, and no fit of an array.

A `TableFile` is what outside code may hold: names and types are public, cells go to the core.
"""

from privtail.trusted.files.table import TableFile

__all__ = ["TableFile"]
