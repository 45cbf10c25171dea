"""What all linear models share: from parameters to a calibrated, released and documented fit."""

from __future__ import annotations

import itertools
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from privtail.algorithms.protocol import Algorithm, require_domain, require_loss
from privtail.algorithms.result import Result
from privtail.calibration import calibrate
from privtail.compilation import steady
from privtail.default import ScaledDescent
from privtail.domains import Domain, Slopes, Unconstrained, of_slopes
from privtail.errors import InvalidInput, require_whole, told
from privtail.inference import SlopeErrors
from privtail.linear_model.fitted import FittedLinearModel
from privtail.linear_model.penalties import silenced
from privtail.linear_model.planning import FitPlan
from privtail.linear_model.remarks import narrowed, slopeless, unmatched, unsized
from privtail.losses import LABELS, AnyLoss, Targets
from privtail.lost import EXPOSED, FILL, LABEL, lost_rows
from privtail.model.predicting import Link
from privtail.progress import progress_bar
from privtail.published.accelerated_descent import AcceleratedDescent
from privtail.published.names import named
from privtail.schema.encoding import Drop, Encoding, Missing
from privtail.schema.features import Feature
from privtail.statement import Statement, state
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan, Round, compose
from privtail.trusted.mechanisms.noise import LaplaceNoise
from privtail.trusted.problem import Problem
from privtail.trusted.tables import (
    require_categories,
)


@dataclass(eq=False, repr=False)
class PrivateLinearModel(FittedLinearModel):
    """Abstract: a linear model fitted by a private algorithm.

    Parameters
    ----------
    algorithm : str or object, default="auto"
        ``"auto"`` is privtail's own (`ScaledDescent`; without privacy `AcceleratedDescent`). A name
        of `privtail.published.NAMES` is the published algorithm on privately standardized features.
        An object such as `CatoniDescent(steps=..., step_size=..., scale=..., smoothing=...)` works
        in your units.
    fit_intercept : bool, default=True
        Add an intercept, which is never penalised.
    verbose : int, default=0
        1 shows a bar with the time left, as `privtail.progress_bar` does.
    categories : mapping of str to sequence, or None, default=None
        Column to its declared categories, for data frames and files. They are one-hot encoded
        inside the fit. A cell that was not declared is all zeros.
    count_invalid : float, default=0.0
        Fraction of epsilon, in [0, 1), for `n_invalid_`: a noisy count of the rows that counted as
        zero. 0 releases none.
    missing : {"drop", "indicator"}, default="drop"
        ``"drop"``: a row with a missing number counts for nothing. ``"indicator"``: a missing
        number counts as the centre of its column, and one more feature says that it was missing.
    drop : "first", mapping of str to label, or None, default=None
        Base level of declared categories and bins: the slopes of the others compare to it, and it
        has none itself. ``"first"``, or a label for each column that has a base level, such as
        ``{"region": "north"}``. A value that was not declared then counts as the base level.
    features : list, or None, default=None
        Functions of columns that `privtail.features` makes, such as ``bins("age", [20, 40])``,
        computed inside the fit and in predictions. A function of one column replaces this column,
        unless the list names it, too.

    Attributes
    ----------
    n_iter_ : int
        Number of steps.
    coef_noise_std_ : ndarray, shape of coef_
        Standard deviation of what the noise of the gradients adds to each slope, in the units of
        the slope: an upper bound for a convex loss. NaN where no theory gives it: algorithms by
        name or of your own, features that were not selected. Infinite for a feature that is not
        used, because hardly more than one value of it was detected. It does not include clipping,
        early stopping, sampling and the noise of released scales.
    coef_sampling_std_ : ndarray, shape of coef_
        Standard error of each slope from the sampling of the rows alone. NaN where it is not known.
        Infinite if noise hides whether a feature is nearly collinear with others, or if the feature
        is not used. ``conf_int()`` and ``summary()`` combine it with ``coef_noise_std_``.
    feature_range_ : ndarray of shape (n_features, 2)
        Ends to which predictions clip features, so that a slope does not extrapolate far: half to
        100 times as far from the centre as the released histogram shows (100 for labels, counts and
        amounts). [0, 1] for a declared category; infinite where nothing was released.
    encoding_ : Encoding
        The map from columns to features, as it was declared.
    fill_ : ndarray of shape (n_features,)
        What a missing number counts as; NaN where its row has no prediction.
    n_invalid_ : int
        With ``count_invalid``: the noisy count of rows that counted as zero.
    report_ : dict
        Released numbers by name, which explain the model: for example ``accepted``, whether the
        slopes are kept, and ``reasons``, why they are not. `Result.report` of `privtail.algorithms`
        lists all names. Empty if an algorithm reports nothing.
    warnings_ : tuple of str
        What the fit warned of (`privtail.errors.AccuracyWarning`), from released numbers: for
        example that all slopes are zero, or that most rows do not count.
    plan_ : FitPlan
        The releases, as planned and as made.

    Notes
    -----
    The promise covers ``fit`` on rows that were not computed from other rows. A scaler, an imputer,
    an encoder or a selector that was fitted on the same rows reads them without paying. So do
    ``score`` and the scores of a search: `privtail.check_pipeline` lists such steps. You need no
    scaler: features are scaled privately inside the fit.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPRidge
    >>> X = np.random.default_rng(0).normal(size=(2_000, 2))
    >>> model = DPRidge(epsilon=1.0).fit(X, X[:, 0])
    >>> model.coef_.shape, model.warnings_
    ((2,), ())
    """

    _: KW_ONLY
    algorithm: Any = "auto"
    fit_intercept: bool = True
    verbose: int = 0
    categories: Mapping[str, Sequence[Any]] | None = None
    count_invalid: float = 0.0
    missing: Missing = "drop"
    drop: Drop = None
    features: Sequence[Feature] | None = None

    kind: ClassVar[str]
    """Its name in written models and on the command line."""

    link: ClassVar[Link] = "identity"
    """What a prediction is: the score, its exponential, or a label."""

    # ---------------------------------------------------------------- planned

    def encoding(self) -> Encoding:
        """What is declared of the features beside categories.

        Returns
        -------
        Encoding

        Raises
        ------
        InvalidInput
            If ``missing``, ``drop`` or ``features`` cannot be understood.
        """
        return Encoding(self.missing, self.drop, () if self.features is None else self.features)

    def plan(self, n: int, d: int, indicators: int | Sequence[int] = 0) -> FitPlan:
        """What ``fit`` will release, and what it will cost; reads no data.

        Parameters
        ----------
        n : int
            Number of rows.
        d : int
            Number of features, after declared categories are encoded.
        indicators : int or sequence of int, default=0
            How many of the d features each category, or column with bins, has; and a 1 for each
            other feature in [0, 1] by declaration, such as those of a spline. A number alone is
            that of one category.

        Returns
        -------
        FitPlan
            With labels that are not declared, the plan has room for 64 classes.

        Raises
        ------
        InvalidInput
            If a number or a parameter of the estimator cannot be used.
        UnsupportedAccounting
            If no theorem gives the cost of these releases for these neighbours.

        Examples
        --------
        >>> from privtail.linear_model import DPRidge
        >>> plan = DPRidge(epsilon=1.0).plan(n=10_000, d=5)
        >>> plan.epsilon <= 1.0
        True
        """
        self._require_parameters()
        require_whole("n", n, 1)
        require_whole("d", d, 1)
        ends = [0]
        for size in indicators if isinstance(indicators, Iterable) else [indicators]:
            ends.append(ends[-1] + require_whole("indicators", size, 0))
        if ends[-1] > d:
            raise InvalidInput(
                f"indicators names {ends[-1]} of d = {d} features. Give as d the number of "
                "features after categories are encoded."
            )
        places = [tuple(range(*pair)) for pair in itertools.pairwise(ends)]
        return self.planned(
            Problem(
                n=n,
                d=d,
                intercept=self.fit_intercept,
                indicators=tuple(range(ends[-1])),
                categories=tuple(levels for levels in places if len(levels) > 1),
                max_rows=1 if self.max_rows is None else self.max_rows,
            )
        )

    @steady
    def planned(self, problem: Problem) -> FitPlan:
        """The calibrated plan of a fit; the same before and with the data.

        Parameters
        ----------
        problem : Problem
            Public sizes of the data; `plan` makes it from n and d.

        Returns
        -------
        FitPlan
        """
        self._require_parameters()  # a search plans its fits before its charge
        algorithm, budget = self._algorithm(), self._budget()
        require_loss(algorithm, self._loss(), problem)
        require_domain(algorithm, _beside_intercept(self._domain(problem.n), problem), problem)
        problem, make = self._releases(algorithm, problem)
        multiplier = calibrate(make, budget)
        return FitPlan(
            label=type(self).__name__,
            problem=problem,
            budget=budget,
            multiplier=multiplier,
            releases=make(multiplier),
            standardized=getattr(algorithm, "in_typical_rows", False),
            scaled="scaled" in algorithm.needs,
        )

    def _releases(
        self, algorithm: Algorithm, problem: Problem
    ) -> tuple[Problem, Callable[[float], Plan]]:
        """From a noise multiplier to the plan of a fit, and the problem that it is planned for."""
        return problem, lambda m: compose(self._counting(problem), algorithm.plan(m, problem))

    def _counting(self, problem: Problem) -> Plan:
        """The round that counts invalid rows, if it was asked for."""
        require_number("count_invalid", self.count_invalid, 0)
        if not self.count_invalid < 1:
            raise InvalidInput(
                f"count_invalid is a part of epsilon such as 0.02, got {self.count_invalid!r}."
            )
        if self.count_invalid == 0:
            return ()
        return (
            Round(
                stage="invalid rows", events=(self._counting_noise().event(problem.invalid_rows()),)
            ),
        )

    def _counting_noise(self) -> LaplaceNoise:
        return LaplaceNoise(1 / (self.count_invalid * self.epsilon))

    # ---------------------------------------------------------------- the parts of a model

    @abstractmethod
    def _loss(self) -> AnyLoss:
        """What is minimised; of labels without weights, and with room for undeclared ones."""

    @abstractmethod
    def _domain(self, n: int) -> Domain:
        """What is added to the mean loss of n rows."""

    @abstractmethod
    def _default(self) -> ScaledDescent:
        """The algorithm called ``"auto"``, with privacy."""

    _target_kind: ClassVar[Targets] = "real"
    """What the target holds; the scale of real numbers is released."""

    def _noiseless(self) -> Algorithm:
        """The algorithm called ``"auto"``, without privacy."""
        return AcceleratedDescent(targets=self._target_kind)

    def _most_features(self) -> int | None:
        """How many features the model may use; None for all."""
        return None

    def _most_outputs(self) -> int | None:
        """How many outputs a plan has room for if labels are undeclared; None otherwise."""
        return None

    def _curvature(self) -> float:
        """Curvature of the loss, for the step sizes of named algorithms."""
        return 1.0

    def _algorithm(self) -> Algorithm:
        """The algorithm that the user named or built."""
        asked = self.algorithm
        if isinstance(asked, str):
            if asked != "auto":
                return named(
                    asked, self._budget(), self._curvature(), targets=self._target_kind,
                    sparsity=self._most_features(), outputs=self._most_outputs(),
                )  # fmt: skip
            return self._default() if self._budget().private else self._noiseless()
        if isinstance(asked, type) or not (hasattr(asked, "plan") and hasattr(asked, "run")):
            raise InvalidInput(
                "algorithm needs plan(multiplier, problem) and run(...): give a name such as "
                '"auto", or an object such as ProximalGradient(steps=50, step_size=0.1, '
                "threshold=1.0)."
            )
        return asked  # type: ignore[no-any-return]

    # ---------------------------------------------------------------- fitted

    def _require_parameters(self) -> None:
        super()._require_parameters()
        if not isinstance(self.fit_intercept, bool | np.bool_):
            raise InvalidInput(
                f"fit_intercept must be True or False, got {told(self.fit_intercept)}."
            )
        require_categories(self.categories)
        self.encoding()
        self._domain(1)

    def _curate(
        self, X: Any, y: Any, groups: Any, unknown: Mapping[str, Any], *,
        outputs: int = 1, classes: Sequence[Any] | None = None, exposure: Any = None,
    ) -> Curator:  # fmt: skip
        """Check what is not the data, then hand over the records."""
        self._refuse(unknown)
        self._require_target(y)
        self.encoding_ = self.encoding()
        return self._entrusted(
            X, y, groups, self.categories or {}, encoding=self.encoding_,
            intercept=self.fit_intercept, outputs=outputs, classes=classes, exposure=exposure,
        )  # fmt: skip

    def _open(self, curator: Curator) -> FitPlan:
        """Calibrate once, warn, and charge; nothing has been read yet."""
        plan = self.planned(curator.problem)
        plan.warn()
        curator.open(plan.releases, self._loss())
        self.plan_ = plan
        return plan

    def _count(self, curator: Curator) -> None:
        """Release the number of rows that count as zero."""
        if self.count_invalid > 0:
            released = curator.everyone().invalid_rows().release(self._counting_noise())
            self.n_invalid_ = int(np.clip(np.round(released[0]), 0, curator.problem.n))

    def _watched(self) -> AbstractContextManager[None]:
        """Progress of what happens inside, if it was asked for."""
        return progress_bar(type(self).__name__) if self.verbose else nullcontext()

    def _run(
        self, curator: Curator, algorithm: Algorithm, loss: AnyLoss, domain: Domain,
        multiplier: float, notes: tuple[str, ...] = (),
    ) -> Result:  # fmt: skip
        """The algorithm's result; ``notes`` go into the statement beside its own."""
        domain = _beside_intercept(domain, curator.problem)
        result = algorithm.run(curator, loss, domain, multiplier)
        self.n_iter_ = result.steps
        self.report_ = dict(result.report or {})
        scales = np.ones(curator.problem.d) if result.scales is None else result.scales
        errors = SlopeErrors.of(result.slopes, curator.problem.d)
        self.coef_noise_std_ = (0.0 if multiplier == 0 else errors.noise) * result.unit / scales
        slopes = of_slopes(domain)
        free = isinstance(slopes, Unconstrained) or getattr(slopes, "alpha", None) == 0
        self.coef_sampling_std_ = (errors.sampling if free else np.nan) * result.unit / scales
        self.feature_range_ = result.feature_range(curator.problem)
        self.fill_ = result.fill(curator.problem)
        rest = f"{LABEL} {FILL}" if loss.targets in LABELS else FILL
        rest = f"{EXPOSED} {rest}" if curator.problem.exposure else rest
        missing, lost = lost_rows(*result.rows, curator.problem.n, rest, text=curator.from_text)
        silent = () if lost else silenced(of_slopes(domain), loss, result)
        if self.categories_:
            counted = {} if lost else result.report or {}
            silent += unmatched(errors.noise, counted, self._design())
        self.privacy_: Statement = state(curator, (*notes, *result.notes, *silent, *missing))
        useless = slopeless(result, curator.problem, multiplier)
        useless = useless or unsized(result) or narrowed(result)
        self.warnings_ = (*useless, *silent, *lost)
        return result


def require_number(name: str, value: Any, least: float, *, open_end: bool = False) -> None:
    """Raise InvalidInput unless ``value`` is a number of at least (``open_end``: above) least."""
    if isinstance(value, bool) or not isinstance(value, Real):
        raise InvalidInput(f"{name} must be a number such as 1.0, got {told(value)}.")
    number = float(value)
    if not (number > least if open_end else number >= least) or number == float("inf"):
        bound = "above" if open_end else "at least"
        raise InvalidInput(f"{name} must be {bound} {least:g} and finite, got {value!r}.")


def _beside_intercept(domain: Domain, problem: Problem) -> Domain:
    """The domain of a whole model whose slopes lie in this one."""
    return Slopes(domain=domain) if problem.intercept else domain
