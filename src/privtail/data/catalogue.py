"""Public tables for experiments: which there are, where they are, where to get them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from privtail.data import ADULT


@dataclass(frozen=True, kw_only=True)
class TableInfo:
    """A public table.

    Attributes
    ----------
    name : what studies call it.
    file : where it lies in the folder of real data.
    rows, features, target : its size and its target.
    source, doi, licence, authors : where it comes from.
    sha256 : checksum of the file.
    note : how the file differs from the published table.
    """

    name: str
    file: str
    rows: int
    features: int
    target: str
    source: str
    doi: str
    licence: str
    authors: str
    sha256: str
    note: str = ""


TABLES = (
    TableInfo(
        name="adult", file="adult/adult.parquet", rows=48_842, features=14, target="income",
        source="UCI 2 (Adult, also Census Income)", doi="10.24432/C5XW20", licence="CC BY 4.0",
        authors="Becker and Kohavi 1996",
        sha256="48d4b1211a6ef64bc27899565ea418eefe50d5e0bfc136ed6e82f04f7b82213a",
        note="comes with privtail",
    ),
    TableInfo(
        name="covertype", file="covertype/covertype_397k.parquet", rows=397_051, features=54,
        target="Cover_Type", source="UCI 31 (Covertype)", doi="10.24432/C50K5N",
        licence="CC BY 4.0", authors="Jock A. Blackard and Colorado State University 1998",
        sha256="f8d80d16a800506e9dc44b2d4fe07786f9aa01ce816a06dc1cf32224dc8de97b",
        note="a stratified random 68.3 % of the 581,012 rows, shuffled",
    ),
    TableInfo(
        name="blogfeedback", file="blogfeedback/blogfeedback.parquet", rows=60_021, features=280,
        target="target", source="UCI 304 (BlogFeedback)", doi="10.24432/C58S3F",
        licence="CC BY 4.0", authors="Buza 2014",
        sha256="6f4632f1909d3387a2063601b526699424653b0f1110fe02ad1ce0947b3fcce1",
        note="52,397 training and 7,624 test rows; column split says which",
    ),
    TableInfo(
        name="winnipeg", file="winnipeg_subset/winnipeg_subset_3901.parquet", rows=3_901,
        features=174, target="label", source="UCI 525 (Crop mapping, Winnipeg)",
        doi="10.24432/C5G89D", licence="CC BY 4.0", authors="Khosravi 2020",
        sha256="2cf238aa076fbcd68cd4939a524257429bc1b241c66d6b8c090b4911e2f768bb",
        note="a sample of 325,834 rows, four of seven classes",
    ),
    TableInfo(
        name="news", file="online_news_popularity/onp_59feat_partial.parquet", rows=31_803,
        features=59, target="shares", source="UCI 332 (Online News Popularity)",
        doi="10.24432/C5NS3V", licence="CC BY 4.0", authors="Fernandes et al. 2015",
        sha256="db33e1ed6f5b6b3cfc98e4c5c23bbfbd7d962f58217470f1cb5dff1baf111f84",
        note="31,803 of 39,644 rows; leave out columns row and part",
    ),
    TableInfo(
        name="news-14", file="online_news_popularity/onp_full_14feat.parquet", rows=39_644,
        features=14, target="shares", source="UCI 332 (Online News Popularity)",
        doi="10.24432/C5NS3V", licence="CC BY 4.0", authors="Fernandes et al. 2015",
        sha256="b32ea1da051624cca6ea1d98e04a4c37d8ce0cbfe8c5b91602dc31da9ffee1b5",
        note="all rows, 14 of 59 features",
    ),
)  # fmt: skip

CATALOGUE = {info.name: info for info in TABLES}


BESIDE = "../shared/data"
"""Where tables are looked for when PRIVTAIL_DATA names no other folder."""


def folder() -> Path | None:
    """The folder of real data: that of PRIVTAIL_DATA, or `BESIDE`; None if it is not there."""
    named = Path(os.environ.get("PRIVTAIL_DATA") or BESIDE)
    return named if named.is_dir() else None


def located(name: str) -> Path | None:
    """Where a table is, or None."""
    if name == "adult":
        return ADULT
    base = folder()
    path = None if base is None else base / CATALOGUE[name].file
    return path if path is not None and path.is_file() else None
