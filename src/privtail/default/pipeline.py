"""The default, ``algorithm="auto"``: the stages of a fit, and the budget fraction of each.

Begin with `ScaledDescent.choose_stages`. It chooses the stages from public numbers: n, d, the kind
of the target and the noise multiplier. `plan` lists their releases, and `run` makes them. Then read
the lists of stages in `ModelStages`, for numbers, amounts and labels. Each entry is a stage with
its budget weight (`Tuning`). ``report_["reasons"]`` says why a fit returned a constant
(`finish._reasons`): most often `Accept` or `AcceptLabels` found no gain. All releases and the cost
of each stage are in ``model.plan(n, d)``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from numpy.typing import ArrayLike

from privtail.algorithms.result import Result, require_no_start
from privtail.default.allocation import BudgetFraction
from privtail.default.columns import SummarizeColumns
from privtail.default.finish import result_of
from privtail.default.fit import Fit, planned
from privtail.default.labels import CountLabels
from privtail.default.model_stages import ModelStages, Stages, build_stages
from privtail.default.steps import Descend
from privtail.domains import Domain, require
from privtail.errors import IncompatibleParts, InvalidInput
from privtail.losses import AMOUNTS, LABELS, AmountLoss, AnyLoss, Loss, Targets, require_margin
from privtail.trusted.budget import Neighbours
from privtail.trusted.curator import Curator
from privtail.trusted.events import Plan
from privtail.trusted.problem import Problem

Regime = Literal["all features", "few features", "intercept only"]


@dataclass(frozen=True, kw_only=True)
class ScaledDescent(ModelStages):
    """A private linear model that needs no bounds on the data. From no paper.

    Estimators set its parameters for ``algorithm="auto"``. An object of your own needs them all:
    ``squares=True`` for least squares, and ``targets`` and ``labels`` for labels. A descent with
    clipped, preconditioned gradients of standardized features begins at the intercept-only model.
    An acceptance test then keeps its slopes or sets them to zero.

    There are three regimes. "few features": features are selected first, as ``sparsity`` asks, or
    because a gradient over many features has a large relative noise (not for counts and amounts).
    "intercept only": no slopes are fitted, because noise would hide the scale of a numeric target
    or the counts of labels. It needs an intercept. "all features": otherwise.

    Parameters
    ----------
    targets : what the target holds: ``Loss.targets``.
    squares : whether the loss is the squared one.
    quantile : whether the loss is that of a quantile, such as the median.
    sparsity : the largest number of features to use; None for all.
    selects : whether features may be selected where the noise over all of them is large.
    labels : the number of declared labels; 2 if none are declared.
    weighted : whether the losses of labels have weights. `MatchFrequencies` is then left out.
    heteroscedastic : whether standard errors of numbers allow for residuals whose spread depends on
        the features: a release more, unless features are selected.
    neighbours : the neighbour relation of the budget.
    tuning : all tuned numbers.

    **Privacy.** Gaussian releases, whose composition is exact (Gaussian DP). A selection is one
    noisy top-k, composed by its bounded range. The l2 sensitivities for one replaced row are those
    below. For persons, all are times `Problem.max_rows`.

    - Histograms: sqrt(2 d) (features; sqrt 2 where each record counts for one of them), sqrt 2
      (target, labels, residuals), 2 (amounts with exposures).
    - Counts of a category: sqrt 2; of k other indicators: sqrt(2 k).
    - Second moments of rows of length R: sqrt 2 R^2 / n. Gradients: 2 threshold R / n.
    - Means of derivatives or gains clipped at t: 2 t / n; of probabilities, at most t, of K labels:
      sqrt(K) t / n.

    **Utility.** None proved; measured in ``benchmarks/accuracy.py``.
    """

    neighbours: Neighbours = "replace_one"

    needs: ClassVar[tuple[str, ...]] = ("prox", "scaled")
    in_typical_rows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.targets not in (kinds := get_args(Targets)):
            raise InvalidInput(f"targets={self.targets!r}: give one of {', '.join(kinds)}.")

    def plan(self, multiplier: float, problem: Problem) -> Plan:
        """All releases, from public numbers. `BudgetFraction` defines ``multiplier``."""
        _, stages = self.choose_stages(multiplier, problem)
        return planned(stages, problem)

    def takes(self, loss: AnyLoss, problem: Problem) -> Loss:
        """The ``loss``, if it is one of a margin; for counts and amounts, Poisson or Tweedie.

        Raises
        ------
        IncompatibleParts
            For another loss, or one of other ``targets``.
        """
        if self.targets in AMOUNTS and not isinstance(loss, AmountLoss):
            raise IncompatibleParts(
                "ScaledDescent fits counts and amounts by PoissonLoss and TweedieLoss alone."
            )
        if any((self.targets in kinds) != (loss.targets in kinds) for kinds in (LABELS, AMOUNTS)):
            mend = f"Pass targets={loss.targets!r}, and labels=K if there are K labels."
            raise IncompatibleParts(f"targets={self.targets!r} are not those of the loss. {mend}")
        return require_margin(loss, needed_by="ScaledDescent")

    def run(
        self, curator: Curator, loss: AnyLoss, domain: Domain, multiplier: float,
        start: ArrayLike | None = None,
    ) -> Result:  # fmt: skip
        """Run all stages. The model of the result has the units of the raw features.

        Raises
        ------
        InvalidInput
            If ``start`` is given: the fit begins at the intercept-only model.
        """
        require(domain, *self.needs, needed_by="ScaledDescent")
        require_no_start(start)
        problem = curator.problem
        fit = Fit(curator, self.takes(loss, problem), domain, self.tuning)
        regime, stages = self.choose_stages(multiplier, problem)
        for stage in stages:
            stage.run(fit)
        return result_of(fit, regime, multiplier)

    def choose_stages(self, multiplier: float, problem: Problem) -> tuple[Regime, Stages]:
        """The regime of a fit and its stages in order, chosen by public numbers alone."""
        budget = BudgetFraction(multiplier, neighbours=self.neighbours)
        regime: Regime = "all features"
        stages = build_stages(self.slope_stages(problem, few=False), budget)
        if self._selects_features(stages, problem):
            regime = "few features"
            stages = build_stages(self.slope_stages(problem, few=True), budget)
        counting = (s for s in stages if isinstance(s, SummarizeColumns | CountLabels))
        if problem.intercept and not all(stage.finds_target(problem) for stage in counting):
            regime, stages = "intercept only", build_stages(self.intercept_only_stages(), budget)
        return regime, stages

    def _selects_features(self, stages: Stages, problem: Problem) -> bool:
        """Whether a stage selects features, if noise does not hide the target."""
        if self.sparsity is not None:
            return self.sparsity < problem.d
        tuning = self.tuning
        if not self.selects or self.targets in AMOUNTS or problem.d < tuning.many_features:
            return False
        most = tuning.max_relative_noise * math.sqrt(self.labels / 2)
        return any(
            stage.relative_noise(problem) > most for stage in stages if isinstance(stage, Descend)
        )
