"""The words of an experiment: a study is data sets x methods x budgets x repetitions.

How to add a study
------------------
1. A data set in ``experiments/data/NAME.py``: a function ``draw(rng, setting) -> Task`` and one or
   several ``DataSet(name=..., draw=draw)``. A `Task` is what the methods train on (X, y, loss,
   domain) and what is measured of their answer: ``measure(w) -> {metric: value}`` for w of shape
   (d, K). ``setting`` maps names to numbers: those of the grid (``setting["n"]``) and those of the
   study's choices (``setting["step_size"]``); a variation or another grid changes nothing else. A
   real table names what it reads in ``needs`` and reads it with ``experiments.data.real.table``.
2. The methods (``experiments/methods.py``): ``Published(name, build=..., printed=...)`` for an
   algorithm of the papers, ``Auto(name, make=...)`` for privtail's default,
   ``Reference(name, solve=...)`` for a fit without privacy. ``build(task, budget, setting)``
   returns the algorithm.
   With ``printed(algorithm, problem, budget)``, which returns the noise multiplier that the paper
   prints, a method is run twice: `AS_PRINTED`, on a curator that was opened with the epsilon which
   that noise truly costs, and `STATED`, calibrated to the stated epsilon.
3. A ``Study(...)`` in the ``STUDIES`` tuple of ``experiments/PAPER.py``, with its `Choice`s (what
   the paper left out: value, reason, and one other value), its grids and its claims
   (``experiments/claims.py``). Nothing else: the runner, the command, the report and the tests find
   it there.

Run one with ``privtail reproduce PAPER --quick`` or ``python -m experiments.runner NAME``.

Every combination is one `Cell`. The records of a cell depend on its data set, setting and
repetition alone, so that all methods and budgets see the same records; its noise depends on all.
A cell gives rows (x, metric, value): one x, that of the grid, or, where the axis is
``"iteration"``, at most 40 along the path of the method. Methods without a path have one row, with
x = NaN, which a figure draws as a level line.
"""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from experiments.claims import Claim
    from privtail.domains import Domain
    from privtail.losses import AnyLoss

Doubles = NDArray[np.float64]
Setting = Mapping[str, float]

Accounting = Literal["as printed", "at the stated epsilon", "auto", "no privacy"]
AS_PRINTED: Accounting = "as printed"
STATED: Accounting = "at the stated epsilon"
AUTO: Accounting = "auto"
NO_PRIVACY: Accounting = "no privacy"

ITERATION = "iteration"
MOST_POINTS = 40


@dataclass(frozen=True, kw_only=True, eq=False)
class Task:
    """What was drawn: records to train on, and what is measured of a model.

    Attributes
    ----------
    X, y : (n, d) features and (n,) targets; labels are 0 and 1.
    loss, domain : what is minimized.
    measure : metrics by name of w, shape (d + intercept, K).
    truth : facts that a method without knowledge would not have (an oracle's radius, w*).
    """

    X: Doubles
    y: Doubles
    loss: AnyLoss
    domain: Domain
    measure: Callable[[Doubles], Mapping[str, float]]
    truth: Mapping[str, Any] = field(default_factory=dict)
    intercept: bool = False

    @property
    def n(self) -> int:
        """Records."""
        return len(self.y)

    @property
    def d(self) -> int:
        """Features."""
        return int(self.X.shape[1])


@dataclass(frozen=True, kw_only=True)
class DataSet:
    """A law or a table. ``needs`` names files of `privtail.data.catalogue` that must be there."""

    name: str
    draw: Callable[[np.random.Generator, Setting], Task]
    needs: tuple[str, ...] = ()
    says: str = ""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a method found: w, its path [(x, w), ...], what it truly cost, and its statement."""

    w: Doubles
    epsilon_true: float
    statement: str
    path: tuple[tuple[int, Doubles], ...] = ()


class Method(Protocol):
    """A way to find w. Methods of one name are one line of a figure."""

    @property
    def name(self) -> str:
        """As figures and claims call it."""
        ...

    @property
    def accountings(self) -> tuple[Accounting, ...]:
        """The ways in which it is run."""
        ...

    def run(self, task: Task, cell: Cell, setting: Setting, seed: int) -> Outcome:
        """Fit; ``cell`` has accounting, epsilon and delta."""
        ...


@dataclass(frozen=True, kw_only=True)
class Axis:
    """The x of a figure: a name of the grid, ``"epsilon"`` or ``"iteration"``; its label."""

    name: str
    label: str
    log: bool = False


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A measured quantity: its label with units, and whether its axis is logarithmic."""

    name: str
    label: str
    log: bool = True


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A number that the paper left out: ``value`` and why, and ``other``, tried once.

    With ``reading`` it is a sentence of the paper that can be read in two ways, and ``reading``
    says in words how ``other`` reads it: both are run in full, and the report gives the verdicts
    of both.
    """

    name: str
    value: float
    reason: str
    other: float | None = None
    reading: str = ""

    @property
    def variant(self) -> str:
        """The variation by name."""
        return f"{self.name} = {self.other:g}" if self.other is not None else ""


@dataclass(frozen=True, kw_only=True)
class Grid:
    """How much is run.

    Attributes
    ----------
    fixed : settings that all cells share, n and d for instance.
    points : values along the axis; empty for the axes ``iteration`` and ``epsilon``.
    epsilons, repetitions : budgets and independent data sets.
    varied : repetitions of every variation; 0 for none.
    varied_epsilons : budgets of the variations; None for all.
    """

    fixed: Mapping[str, float]
    points: tuple[float, ...] = ()
    epsilons: tuple[float, ...]
    repetitions: int
    varied: int = 3
    varied_epsilons: tuple[float, ...] | None = None


@dataclass(frozen=True, kw_only=True)
class Study:
    """One figure or table of a paper.

    Attributes
    ----------
    name : "wang2020-figure-1a": paper, item.
    item, title : as the paper says; what is shown.
    delta : of n.
    panels : what is laid out in columns, ``"epsilon"`` or ``"dataset"``; ``"overlay"`` draws all
        budgets of the first method in one panel of a data set.
    expectation : the paper's claim in its words, for the report.
    note : what a reader of the figure has to know besides.
    guides : exponent of x in a theorem, by the name of a data set: a line beside the first method.
    floors : exponent of x in the paper's lower bound, by the name of a data set: another line.
    neighbours : relation that the budgets are stated for.
    """

    name: str
    item: str
    title: str
    axis: Axis
    metrics: tuple[Metric, ...]
    data: tuple[DataSet, ...]
    methods: tuple[Method, ...]
    quick: Grid
    full: Grid
    delta: Callable[[int], float]
    choices: tuple[Choice, ...] = ()
    claims: tuple[Claim, ...] = ()
    panels: Literal["epsilon", "dataset", "overlay"] = "epsilon"
    expectation: str = ""
    note: str = ""
    guides: Mapping[str, float] = field(default_factory=dict)
    floors: Mapping[str, float] = field(default_factory=dict)
    neighbours: Literal["replace_one", "zero_out"] = "replace_one"

    @property
    def paper(self) -> str:
        """The first word of the name."""
        return self.name.split("-", maxsplit=1)[0]

    @property
    def readings(self) -> dict[str, str]:
        """The variants that are other readings of the paper, with their words."""
        return {c.variant: c.reading for c in self.choices if c.variant and c.reading}

    @property
    def tried(self) -> tuple[str, ...]:
        """The other variants."""
        return tuple(c.variant for c in self.choices if c.variant and not c.reading)

    def grid(self, *, full: bool) -> Grid:
        """The grid that was asked for."""
        return self.full if full else self.quick

    def setting(self, cell: Cell, grid: Grid) -> dict[str, float]:
        """All numbers of a cell: choices, then the grid's, then x."""
        found = {c.name: c.value for c in self.choices}
        found |= {c.name: c.other for c in self.choices if c.other is not None
                  and c.variant == cell.variant}  # fmt: skip
        found |= grid.fixed
        if not math.isnan(cell.x):
            found[self.axis.name] = cell.x
        return found

    def cells(self, *, full: bool = False) -> Iterator[Cell]:
        """Every combination; cells of the same records follow each other."""
        grid = self.grid(full=full)
        points = grid.points or (math.nan,)
        variants = [("", grid.repetitions)]
        variants += [
            (c.variant, grid.repetitions if c.reading else grid.varied)
            for c in self.choices if c.variant
        ]  # fmt: skip
        for variant, repetitions in variants:
            for data in self.data:
                for x in points:
                    for repetition in range(repetitions):
                        yield from self._budgets(variant, data, x, repetition, grid)

    def _budgets(
        self, variant: str, data: DataSet, x: float, repetition: int, grid: Grid
    ) -> Iterator[Cell]:
        for method in self.methods:
            for accounting in method.accountings:
                budgets = grid.epsilons
                if variant in self.tried and grid.varied_epsilons is not None:
                    budgets = grid.varied_epsilons
                if accounting == NO_PRIVACY:
                    budgets = (math.inf,)
                for epsilon in budgets:
                    yield Cell(
                        study=self.name, variant=variant, dataset=data.name, method=method.name,
                        accounting=accounting, epsilon=epsilon, x=x, repetition=repetition,
                    )  # fmt: skip


@dataclass(frozen=True, kw_only=True, eq=False)
class Cell:
    """One combination; its key fixes all its randomness, and says which cells are equal."""

    study: str
    variant: str
    dataset: str
    method: str
    accounting: Accounting
    epsilon: float
    x: float
    repetition: int
    delta: float = math.nan
    neighbours: Literal["replace_one", "zero_out"] = "replace_one"

    def __eq__(self, other: object) -> bool:
        # Fields may be NaN, which from Python 3.13 on makes equal data classes differ.
        return isinstance(other, Cell) and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    @functools.cached_property
    def key(self) -> str:
        """Short and unique."""
        return _digest(
            self.study, self.variant, self.dataset, self.method, self.accounting, self.epsilon,
            self.x, self.repetition,
        )[:20]  # fmt: skip

    @property
    def data_seed(self) -> np.random.SeedSequence:
        """Of the records: the same for all methods, budgets and variations."""
        return _seed(self.dataset, self.x, self.repetition)

    @property
    def noise_seed(self) -> int:
        """Of everything else."""
        return int(_seed(self.key).generate_state(1)[0])


def _digest(*parts: object) -> str:
    return hashlib.sha256("|".join(map(str, parts)).encode()).hexdigest()


def _seed(*parts: object) -> np.random.SeedSequence:
    return np.random.SeedSequence(int(_digest(*parts), 16))
