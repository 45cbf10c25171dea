"""Private logistic regression, binary and multinomial."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from privtail.algorithms.protocol import Algorithm
from privtail.calibration import calibrate
from privtail.default import ScaledDescent
from privtail.domains import L2, Domain, Unconstrained
from privtail.errors import InvalidInput, told
from privtail.linear_model.estimator import as_a_whole
from privtail.linear_model.fitting import PrivateLinearModel, require_number
from privtail.linear_model.partitionwise import partitionwise
from privtail.linear_model.planning import enough
from privtail.losses import LogisticLoss, Loss, MultinomialLoss, WeightedLoss
from privtail.model.predicting import Link, cut, label_array, likely_labels, probabilities
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.labels import StabilityHistogram
from privtail.trusted.mechanisms.noise import GaussianNoise
from privtail.trusted.problem import Problem
from privtail.trusted.sampling import Everyone
from privtail.trusted.tables import canonical_label

LABELS_DELTA = 0.009
"""Part of delta for the release of undeclared labels: a ledger keeps a hundredth for that."""

MOST_FOR_LABELS = 0.25
"""Most of the budget for undeclared labels, in squares of sensitivity over noise."""

MOST_CLASSES = 64
"""Room in the plan for labels that are not released yet."""

LABELS_PLANNED = (
    "The labels were found privately. The releases are listed as planned, for "
    f"{MOST_CLASSES} classes; {{found}} were found, and no others were released. The cost is that "
    "of the plan."
)
LABELS_LEFT_OUT = (
    f"{{found}} labels were found, but a model has at most {MOST_CLASSES}: its classes are the "
    "first in sorted order, and rows with other labels count as zero. Declare those that matter."
)

CUSHION = 1 - 2.0**-40
"""Events planned for up to 64 classes have this much less noise than any release, roundings
included."""

COUNTS_NOISE = 1 / math.sqrt(10)
"""Noise of the class counts for balanced weights, in that of a gradient: a tenth of its steps."""


@dataclass(eq=False, repr=False)
class PrivateClassifier(ClassifierMixin, PrivateLinearModel):  # type: ignore[misc]
    """Abstract: a linear model of labels, by the logistic or the multinomial loss.

    A label that is not declared (a misspelt one too) makes its row count as zero. There is no
    error, since an error would tell.

    Parameters
    ----------
    classes : sequence of labels or None, default=None
        Declared labels, in any order; ``classes_`` is sorted. None finds them privately, with a
        part of the budget. Then a label is found if enough rows hold it: at delta = 1e-6, 152 of
        7,500 rows at epsilon = 1 and 749 at 0.1; `plan` says how many. If these are a fraction q of
        the rows, the other noise grows by a factor of about 1 + 2q, and of 1.16 at most.
    class_weight : None, mapping or "balanced", default=None
        A mapping gives public weights to the losses of labels; labels that it does not name have
        weight 1. ``"balanced"`` is n / (K count), with counts that are released.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Slopes, in log-odds per unit of the feature; one row for two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Scores where all features are 0.
    classes_ : ndarray of shape (n_classes,)
        Labels, sorted as in scikit-learn (numbers before text). Columns of probabilities are in
        this order, and a score of two classes is that of the second.
    margin_range_ : ndarray of shape (2,) or (n_classes, 2)
        The least and the largest score, to which scores are clipped: of the second of two classes,
        or of each of more. Infinite where nothing was released of it.
    """

    link: ClassVar[Link] = "logit"

    _: KW_ONLY
    classes: Sequence[Any] | None = None
    class_weight: Any = None

    _target_kind = "class"

    @as_a_whole
    def fit(self, X: Any, y: Any = None, groups: Any = None, **unknown: Any) -> Self:
        """Fit the model; charges the ledger once.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table or table of `privtail.open_table`
            Features (n, d). Rows with a missing or non-finite number count as zero.
        y : array of shape (n,) or str, default=None
            Labels; needed. With a table of `privtail.open_table` the name of its column, and with a
            Dask data frame the column itself, ``ddf["cost"]``.
        groups : array of shape (n,) or str, default=None
            The person of each row. Then persons are protected, with ``max_rows`` rows at most.
        **unknown : Any
            Nothing else is accepted; ``sample_weight`` is refused with a reason.

        Returns
        -------
        self

        Raises
        ------
        InvalidInput
            If a parameter or the data cannot be used.
        BudgetExceeded
            If the ledger has too little left. No row was read.
        UnsupportedAccounting
            If no theorem gives the cost of these releases for these neighbours.
        """
        declared = self._declared()
        curator = self._curate(
            X,
            y,
            groups,
            unknown,
            outputs=outputs_of(len(declared or (0, 1))),
            classes=declared or (),
        )
        if declared is None:
            self._require_enough_rows(curator.problem)
        plan = self._open(curator)
        algorithm, domain = self._algorithm(), self._domain(curator.problem.n)
        notes: tuple[str, ...] = ()
        with self._watched():
            if declared is None:
                found = sorted_labels(self._found_labels(curator))
                declared = found[:MOST_CLASSES]
                note = LABELS_PLANNED if found == declared else LABELS_LEFT_OUT
                notes = (note.format(found=len(found)),)
                curator.declare(declared)
                curator.reshape(outputs_of(len(declared)))
            self._count(curator)
            weights = self._weights(curator, declared, plan.multiplier)
            loss = _loss(len(declared), weights)
            result = self._run(curator, algorithm, loss, domain, plan.multiplier, notes)
        d = curator.problem.d
        self.classes_ = label_array(declared)
        self.coef_ = np.ascontiguousarray(result.w[:d].T)
        self.intercept_ = result.w[d].copy() if self.fit_intercept else np.zeros(len(self.coef_))
        self.margin_range_ = np.array(result.margin_range)
        return self

    # ---------------------------------------------------------------- the parts of the model

    def _default(self) -> ScaledDescent:
        declared = self._declared()
        return ScaledDescent(
            targets="class",
            labels=2 if declared is None else len(declared),
            weighted=self.class_weight is not None,
            neighbours=self.neighbours,
        )

    def _curvature(self) -> float:
        return 0.5

    def _loss(self) -> Loss:
        return _loss(self._room(), None)

    def _room(self) -> int:
        """How many labels a plan has room for."""
        declared = self._declared()
        return MOST_CLASSES if declared is None else len(declared)

    def _domain(self, n: int) -> Domain:
        return Unconstrained()

    def _declared(self) -> list[Any] | None:
        """The declared labels; checks them and the weights."""
        given = self.class_weight
        balanced = isinstance(given, str) and given == "balanced"
        if not (given is None or balanced or isinstance(given, Mapping)):
            raise InvalidInput('class_weight must be None, "balanced" or a mapping of labels.')
        weights = given if isinstance(given, Mapping) else {}
        for weight in weights.values():
            require_number("A class weight", weight, 0, open_end=True)
        sizes = [1.0, *map(float, weights.values())]
        if not min(sizes) > np.finfo(np.float64).eps * max(sizes):
            raise InvalidInput(
                "Class weights are so far apart, or from 1, that rounding hides the lighter class: "
                "leave its rows out instead."
            )
        if self.classes is None:
            return None
        declared = sorted_labels(self.classes)
        if len(declared) < 2:
            raise InvalidInput(
                "A classifier needs at least two classes, declared at once:",
                'classes=["no", "yes"].',
                cli="--classes no,yes",
            )
        unknown = [label for label in weights if label not in declared]
        if unknown:
            raise InvalidInput(
                f"class_weight names the label {unknown[0]!r}, which classes does not: name it "
                "in both."
            )
        return declared

    # ---------------------------------------------------------------- what is released

    def _releases(
        self, algorithm: Algorithm, problem: Problem
    ) -> tuple[Problem, Callable[[float], Plan]]:
        """Labels from a share of the budget, then the fit, planned for up to 64 classes."""
        first: Plan = ()
        count = self._room()
        problem = replace(problem, outputs=outputs_of(count))
        if self.classes is None:
            labels = self._labels(problem).event(problem.labels())
            first = (Round(stage="label discovery", events=(labels,)),)

        def make(multiplier: float) -> Plan:
            counts = self._counts(multiplier, problem, count)
            fit = compose(counts, algorithm.plan(multiplier, problem))
            return compose(first, self._counting(problem), _cushioned(fit) if first else fit)

        return problem, make

    def _most_outputs(self) -> int | None:
        return outputs_of(MOST_CLASSES) if self.classes is None else None

    def _labels(self, problem: Problem) -> StabilityHistogram:
        """Finds labels of a part q of the rows, for other noise that is larger by about 2q.

        With all of the budget, labels of a part p of the rows would be found. A share f of it, in
        squares of sensitivity over noise, finds those of q = p / sqrt(f) and raises other noise by
        the factor 1 / sqrt(1 - f), about 1 + f/2. That is 1 + 2q at f = (4p)^(2/3).
        """
        counted, delta = problem.labels(), LABELS_DELTA * self.delta

        def alone(multiplier: float) -> Plan:
            return (Round(events=(StabilityHistogram(multiplier, delta).event(counted),)),)

        whole = calibrate(alone, self._budget())
        part = enough(StabilityHistogram(whole, delta), problem) / problem.n
        share = min(MOST_FOR_LABELS, (4 * part) ** (2 / 3))
        return StabilityHistogram(whole / math.sqrt(share), delta)

    def _require_enough_rows(self, problem: Problem) -> None:
        """Refuse, before the charge, what finds no two labels even where each has half the rows."""
        needed = enough(self._labels(problem), problem)
        if problem.n < 2 * needed:
            raise InvalidInput(
                f"Labels are found if about {needed:,} rows hold each, which is too many for two "
                f"of n = {problem.n:,} rows. No row was read. Declare the labels:",
                "classes=[...].",
                cli="--classes a,b",
            )

    def _found_labels(self, curator: Curator) -> list[Any]:
        mechanism = self._labels(curator.problem)
        found = next(curator.rounds(Everyone(), 1)).labels(mechanism)
        if len(found) < 2:
            needed = enough(mechanism, curator.problem)
            raise InvalidInput(
                f"A classifier needs two labels, and the released label histogram shows "
                f"{'one' if found else 'none'}. A label needs about {needed:,} of the "
                f"n = {curator.problem.n:,} rows to be found. The budget is spent. A target of "
                "numbers takes a regression, such as DPLinearRegression. Declare the labels:",
                "classes=[...].",
                cli="--classes a,b",
            )
        return found

    def _counts(self, multiplier: float, problem: Problem, count: int) -> Plan:
        if self.class_weight != "balanced":
            return ()
        noise = GaussianNoise(COUNTS_NOISE * multiplier)
        return (
            Round(stage="label counts", events=(noise.event(problem.histogram(1, count - 1)),)),
        )

    def _weights(
        self, curator: Curator, declared: Sequence[Any], multiplier: float
    ) -> tuple[float, ...] | None:
        """A weight for every class, or None; balanced ones are released."""
        if self.class_weight is None:
            return None
        if isinstance(self.class_weight, Mapping):
            return self._declared_weights(declared)
        std, K = COUNTS_NOISE * multiplier, len(declared)
        cuts = np.arange(K - 1) + 0.5
        counts = curator.everyone().histogram((-1,), cuts).release(GaussianNoise(std))
        counts = np.maximum(counts, max(2 * std, 1.0))
        return tuple((counts.sum() / (K * counts)).tolist())

    def _declared_weights(self, declared: Sequence[Any]) -> tuple[float, ...] | None:
        if not isinstance(self.class_weight, Mapping):
            return None
        return tuple(float(self.class_weight.get(label, 1.0)) for label in declared)

    # ---------------------------------------------------------------- used

    @partitionwise
    def decision_function(self, X: Any) -> NDArray[np.float64]:
        """Scores, in log-odds.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d), in the units of the fit.

        Returns
        -------
        ndarray of shape (rows,) or (rows, n_classes)
            X coef^T + intercept, clipped to ``margin_range_``; with two classes, the score of the
            second. NaN where a number of the row is missing or not finite.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        scores = self._margins(X)
        return cut(scores[:, 0] if len(self.classes_) == 2 else scores, self.margin_range_)

    @partitionwise
    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Class probabilities.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d), in the units of the fit.

        Returns
        -------
        ndarray of shape (rows, n_classes)
            In the order of ``classes_``. NaN where a number of the row is missing or not finite.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        return probabilities(self.decision_function(X))

    @partitionwise
    def predict(self, X: Any) -> NDArray[Any]:
        """The most probable class of each row.

        Parameters
        ----------
        X : array, CSR matrix, data frame, mapping, Arrow table, table or path
            Features (rows, d), in the units of the fit.

        Returns
        -------
        ndarray of shape (rows,)
            Where a number of the row is missing or not finite: NaN among labels that are numbers,
            else None. With ``invalid="raise"`` such a row is refused.

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        return likely_labels(self.decision_function(X), self.classes_)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy of predictions, as scikit-learn's scores.

        It is computed from rows without noise: outside the promise, unless the rows are public.
        Use `privtail.evaluate` for private rows.

        Parameters
        ----------
        X : array or data frame
            Features (rows, d).
        y : array of shape (rows,)
            Labels.
        sample_weight : array of shape (rows,) or None, default=None
            Weights of the rows.

        Returns
        -------
        float

        Raises
        ------
        InvalidInput
            If the columns are not those of the fit, or cannot be used.
        NotFittedError
            If ``fit`` was not called before.
        """
        return float(super().score(X, y, sample_weight))


@dataclass(eq=False, repr=False)
class DPLogisticRegression(PrivateClassifier):
    """Logistic regression under differential privacy; no bounds on the data are needed.

    Parameters
    ----------
    C : float, default=inf
        Inverse strength of the ridge penalty, above 0, in one over the unit of a squared feature.
        As in scikit-learn the objective is |coef|^2/2 + C sum of losses. ``inf`` is no penalty;
        scikit-learn's default is 1. A penalty counts in your units, so it shrinks the slopes of
        columns that vary little in their units to nearly zero.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPLogisticRegression
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_t(2.5, size=(20_000, 2))
    >>> y = (X @ [1.0, 2.0] + rng.logistic(size=20_000) > 0).astype(int)
    >>> model = DPLogisticRegression(classes=[0, 1], noise="simulated", random_state=0).fit(X, y)
    >>> bool((model.predict(X) == y).mean() > 0.7)
    True
    """

    kind: ClassVar[str] = "logistic"

    C: float = math.inf

    def _domain(self, n: int) -> Domain:
        if math.inf == self.C:
            return Unconstrained()
        require_number("C", self.C, 0, open_end=True)
        return L2(alpha=1 / (self.C * n))


def sorted_labels(labels: Iterable[Any]) -> list[Any]:
    """Labels in scikit-learn's order: numbers by size, then text; what is none of these last.

    Raises
    ------
    InvalidInput
        If they are not a list of labels.
    """
    if isinstance(labels, str) or not isinstance(labels, Iterable):
        raise InvalidInput(f"classes must be a list of labels, got {told(labels)}.")
    if isinstance(labels, Iterator):
        raise InvalidInput("classes can be read once alone: give a list of labels.")

    def place(label: Any) -> tuple[int, Any]:
        plain = canonical_label(label)
        return (2, 0) if plain is None else (int(isinstance(plain, str)), plain)

    return sorted(labels, key=place)


def outputs_of(classes: int) -> int:
    """The number of scores of a model of ``classes`` classes: one for two."""
    return 1 if classes == 2 else classes


def _cushioned(plan: Plan) -> Plan:
    """The same releases with a little less noise; what else follows from the noise stays."""
    return tuple(
        replace(r, events=tuple(replace(e, scale=CUSHION * e.scale) for e in r.events))
        for r in plan
    )


def _loss(classes: int, weights: tuple[float, ...] | None) -> Loss:
    loss = LogisticLoss() if classes == 2 else MultinomialLoss(classes=classes)
    return loss if weights is None else WeightedLoss(loss=loss, weights=weights)
