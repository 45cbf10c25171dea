"""Private models that use few features: the support is selected and paid for, then its values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from privtail.algorithms.protocol import Algorithm
from privtail.algorithms.result import Result
from privtail.default import ScaledDescent
from privtail.errors import InvalidInput, require_whole
from privtail.linear_model.classification import PrivateClassifier
from privtail.linear_model.fitting import PrivateLinearModel
from privtail.linear_model.regressor import PrivateRegressor
from privtail.losses import AnyLoss, SquaredLoss
from privtail.summaries.summary import UNUSED
from privtail.trusted.curator import Curator


@dataclass(eq=False, repr=False)
class PrivateSparseModel(PrivateLinearModel):
    """Abstract: at most ``sparsity`` slopes of every output are not zero.

    By default the features are chosen by noisy top-ks of robust scores, which are charged, and the
    slopes of the chosen ones by a descent, which is charged too (`ScaledDescent`). Under much noise
    fewer features are chosen than ``sparsity`` allows. Whatever else ``algorithm`` names, its
    largest slopes (times the scale of the feature) are kept.

    Parameters
    ----------
    sparsity : int, default=10
        How many features each output may use. A public guess: more of them cost accuracy, since
        each is found and measured with noise.
    """

    sparsity: int = 10

    def _default(self) -> ScaledDescent:
        every = super()._default()  # type: ignore[safe-super]
        return replace(every, sparsity=self.sparsity)

    def _algorithm(self) -> Algorithm:
        require_whole("sparsity", self.sparsity, 1)
        return super()._algorithm()

    def _noiseless(self) -> Algorithm:
        return self._default()

    def _most_features(self) -> int | None:
        return self.sparsity

    def conf_int(
        self, confidence: float = 0.95, *, kind: Literal["population", "noise"] = "population"
    ) -> NDArray[np.float64]:
        """Refused: intervals know nothing of how the features were selected.

        Parameters
        ----------
        confidence : float, default=0.95
            Ignored.
        kind : {"population", "noise"}, default="population"
            Ignored.

        Returns
        -------
        ndarray
            Never.

        Raises
        ------
        InvalidInput
            Always.
        """
        raise InvalidInput(
            "Which slopes are not zero was decided by noisy scores, and no theory is known to us "
            "for intervals after such a selection. Use coef_noise_std_, the noise of the descent."
        )

    def _run(self, curator: Curator, *fit: Any) -> Result:
        return thinned(super()._run(curator, *fit), self.sparsity, curator.problem.d)


def thinned(result: Result, sparsity: int, d: int) -> Result:
    """The same with the ``sparsity`` largest slopes of every output, each times its scale."""
    scales = np.ones(d) if result.scales is None else result.scales
    sizes = np.abs(result.w[:d]) * np.where(scales < UNUSED, scales, 0.0)[:, None]
    smallest = np.argsort(-sizes, axis=0, kind="stable")[sparsity:]
    w = result.w.copy()
    np.put_along_axis(w[:d], smallest, 0.0, axis=0)
    w[:d][sizes == 0] = 0.0
    return replace(result, w=w)


@dataclass(eq=False, repr=False)
class DPSparseRegressor(PrivateSparseModel, PrivateRegressor):
    """Private least squares on few features, found privately: for more features than noise allows.

    Minimises |y - Xw - b|^2 over w with at most ``sparsity`` entries that are not zero. Each
    feature is chosen by its own relation to the target, not jointly with others.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPSparseRegressor
    >>> X = np.random.default_rng(0).standard_t(3, size=(5_000, 200))
    >>> y = 2 * X[:, 17] - X[:, 90]
    >>> model = DPSparseRegressor(2, epsilon=1.0, noise="simulated", random_state=0).fit(X, y)
    >>> np.flatnonzero(model.coef_)
    array([17, 90])
    """

    kind: ClassVar[str] = "sparse"

    def _loss(self) -> AnyLoss:
        return SquaredLoss()


@dataclass(eq=False, repr=False)
class DPSparseClassifier(PrivateSparseModel, PrivateClassifier):
    """Private logistic regression on few features, found privately; there is no ridge penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from privtail.linear_model import DPSparseClassifier
    >>> X = np.random.default_rng(0).standard_t(3, size=(20_000, 100))
    >>> y = (X[:, 17] > 0).astype(int)
    >>> model = DPSparseClassifier(1, classes=[0, 1], noise="simulated", random_state=0).fit(X, y)
    >>> np.flatnonzero(model.coef_[0])
    array([17])
    """

    kind: ClassVar[str] = "sparse-logistic"
