"""Cross-validation that pays once: a fit for every fold, and one evaluation of all records.

Formal guarantee
----------------
The records are dealt into k folds by position and public chance, so a record's fold is public and
the same in neighbouring tables. The fit of fold f sees the records of all other folds. The
evaluation sees every record once: beside the prediction of the model that was fitted without its
fold. That row is a function of the record, of its position and of released models (`FoldedModel`).

So a record is in k - 1 fits and in the evaluation. Each of these k costs at most rho / k in zCDP,
which `Allowance` enforces; zCDP adds up, also where the later ones depend on what the earlier ones
released. Together they cost rho. The fit that does not see the record adds nothing: its data are
the same in both tables. The whole is charged before the first fit, as one event of rho-zCDP: the
"best" of exactly one trial.

One person, several rows. The first position of a person, in the public order of `Curator`, takes
all rows of the person along, as in `search`. So a person is missing in the fit of one fold, is in
the k - 1 others, and in the evaluation: the argument holds with "person" for "record", if
neighbours differ in the rows of one person, for `Persons.seats` decides of every other person by
that person's positions alone. Fits get all n positions, those of a fold's persons without a seat,
and as public size the number of positions that are dealt elsewhere; every release is charged for
``max_rows`` rows. An `Allowance` admits the `Seats` that it was made with and no others.

Assumed, not enforced: ``fit`` keeps nothing of its calls but the model that it returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from privtail import progress
from privtail.errors import InvalidInput, NotPlanned, require_whole
from privtail.trusted.allowance import Allowance
from privtail.trusted.budget import ROW
from privtail.trusted.curator import Curator
from privtail.trusted.events import Event
from privtail.trusted.problem import Problem
from privtail.trusted.records.persons import Seats
from privtail.trusted.row_errors import FoldedModel, LinearModel
from privtail.trusted.search import BestTrial, require_dealt, rows_of, seats_of, unseen

Result = TypeVar("Result")


Fit = Callable[[int, Any, Any, Any, Seats | None, Allowance], Any]
"""From a fold, X, y and exposure of the records outside it, and an allowance to a model.

With persons, X, y and exposure are those of everybody; the seats tell who is outside the fold.
"""


class Folds:
    """A deal of a curator's records into folds, what each may cost, and the run over them.

    Parameters
    ----------
    curator : holds all records, and the plan that pays.
    X, y, exposure : its records, in the user's containers; of a file names of columns will do.
    count : number of folds, from 2 to n.

    Raises
    ------
    InvalidInput
        If the records cannot be dealt.
    """

    def __init__(self, curator: Curator, X: Any, y: Any, exposure: Any, count: int) -> None:
        count = require_whole("cv", count, 2)
        n = curator.problem.n
        if n < 2:
            raise InvalidInput("Folds need at least two rows, or two persons: bring more.")
        if count > n:
            raise InvalidInput(
                f"Of {n} rows there are no {count} folds.",
                f"Give cv={n} at most.",
                cli=f"Give --folds {n} at most.",
            )
        require_dealt(curator, X, y, exposure)
        self._curator, self._count = curator, count
        self._X, self._y, self._exposure = X, y, exposure
        self._labels = curator._fresh(count).labels(0, n)

    @property
    def labels(self) -> NDArray[np.int64]:
        """(n,) the fold of every record, or of persons that begin there; public chance, a copy."""
        return self._labels.copy()

    def event(self, multiplier: float) -> Event:
        """The bill of all fits and of the evaluation."""
        rows = self._curator.problem.max_rows
        mechanism = BestTrial(multiplier=multiplier, trials=1, rows=rows)
        return replace(mechanism.event(), question="folds")

    def rho(self, multiplier: float) -> float:
        """The budget of one fit, and of the evaluation, in zCDP."""
        if not multiplier:
            return math.inf
        return BestTrial(multiplier=multiplier, trials=1).rho / self._count * (1 - 1e-12)

    def problem(self, fold: int) -> Problem:
        """The public sizes of what the fit of a fold sees."""
        n, whole = int(np.count_nonzero(self._labels != fold)), self._curator.problem
        most = n if self._curator.unit == ROW else whole.n
        return replace(whole, n=n, expected=float(n), most=most)

    def run(
        self, multiplier: float, fit: Fit, released: Callable[[Any], LinearModel],
        evaluate: Callable[[FoldedModel, Seats | None, Allowance], Result],
    ) -> tuple[Sequence[Any], Result]:  # fmt: skip
        """Fit every fold, then evaluate all records. The next planned event pays for all."""
        multiplier = BestTrial(multiplier=multiplier, trials=1).multiplier  # read once
        opening = self._curator.everyone()._opening
        opening.charge(self.event(multiplier))
        paid = self.rho(multiplier)
        models = []
        for fold in range(self._count):
            progress.report(fold, self._count + 1, "fits of folds")
            ids = np.flatnonzero(self._labels != fold)
            seats, rows = self._seats(ids), (self._X, self._y, self._exposure)
            allowance = self._curator.allowance(paid, seats)
            with progress.watching(unseen):
                X, y, exposure = (rows_of(v, ids) for v in rows) if seats is None else rows
                models.append(fit(fold, X, y, exposure, seats, allowance))
            if not allowance.spent:
                raise NotPlanned("The fit of a fold has spent nothing: it is not on its allowance.")
        progress.report(self._count, self._count + 1, "evaluation")
        seats = self._seats(np.arange(len(self._labels)))
        folds = self._labels.copy()
        if seats is not None:
            folds[seats.positions] = self._labels[seats.leaders]
        folded = FoldedModel(tuple(map(released, models)), folds)
        with progress.watching(unseen):
            found = evaluate(folded, seats, self._curator.allowance(paid, seats))
        opening.released()
        return models, found

    def _seats(self, ids: NDArray[np.int64]) -> Seats | None:
        """The persons that begin at these positions; None where rows are protected."""
        return None if self._curator.unit == ROW else seats_of(self._curator, ids)
