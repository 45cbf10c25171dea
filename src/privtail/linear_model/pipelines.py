"""Which steps of a scikit-learn pipeline read rows without paying."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from html import escape
from typing import Any, Literal

import numpy as np
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.kernel_approximation import AdditiveChi2Sampler
from sklearn.pipeline import FeatureUnion, Pipeline
from sklearn.preprocessing import Binarizer, FunctionTransformer, Normalizer, PolynomialFeatures

from privtail.errors import InvalidInput
from privtail.linear_model.estimator import PrivateEstimator
from privtail.spelling import counted

Verdict = Literal["pays", "reads nothing", "reads rows"]

ROW_BY_ROW: frozenset[type] = frozenset(
    {
        AdditiveChi2Sampler,
        Binarizer,
        FeatureHasher,
        HashingVectorizer,
        Normalizer,
        PolynomialFeatures,
    }
)
"""Steps that keep nothing of the rows in ``fit`` and transform every row by itself.

Exactly these classes: a subclass may do anything, and the tag ``requires_fit=False`` says nothing
of ``transform``, which sees a whole table.
"""


@dataclass(frozen=True)
class Step:
    """One step: where it stands, what it is, and what it does.

    Attributes
    ----------
    name : str
        Path of the step, such as ``pipeline.scale``.
    kind : str
        Its class.
    verdict : {"pays", "reads nothing", "reads rows"}
        ``"reads nothing"`` is row by row, from public parameters; ``"reads rows"`` is without
        paying, outside every promise.
    why : str
        A sentence.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from privtail import check_pipeline
    >>> from privtail.linear_model import DPRidge
    >>> found = check_pipeline(make_pipeline(StandardScaler(), DPRidge()))
    >>> found.steps[0].verdict
    'reads rows'
    """

    name: str
    kind: str
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class PipelineCheck:
    """All steps of a pipeline; true if none reads rows without paying.

    Attributes
    ----------
    steps : tuple of Step
        Every step, in order.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from privtail import check_pipeline
    >>> from privtail.linear_model import DPRidge
    >>> found = check_pipeline(make_pipeline(StandardScaler(), DPRidge()))
    >>> len(found.steps)
    2
    """

    steps: tuple[Step, ...]

    @property
    def unpaid(self) -> tuple[Step, ...]:
        """The steps that read rows without paying."""
        return tuple(step for step in self.steps if step.verdict == "reads rows")

    def __bool__(self) -> bool:
        return not self.unpaid

    def to_text(self) -> str:
        """The steps as a readable page."""
        count = len(self.unpaid)
        head = (
            f"{counted(count, 'step reads', 'steps read')} rows without paying: the "
            "promise of this pipeline does not hold"
            if count
            else "every step that reads rows pays for it"
        )
        width = max((len(step.name) for step in self.steps), default=0)
        lines = [
            f"  {step.name:<{width}}  {step.verdict:<13}  {step.kind}: {step.why}"
            for step in self.steps
        ]
        return "\n".join([head, *lines])

    def __str__(self) -> str:
        return self.to_text()

    def __repr__(self) -> str:
        return f"<PipelineCheck: {counted(len(self.steps), 'step')}, {len(self.unpaid)} unpaid>"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(self.to_text())}</pre>"


def check_pipeline(pipeline: Any) -> PipelineCheck:
    """List the steps of a pipeline that read rows without paying; reads no data.

    It looks into `Pipeline`, `ColumnTransformer`, `FeatureUnion`, `TransformedTargetRegressor`,
    `GridSearchCV` and whatever else holds estimators as parameters. It assumes that an unknown step
    reads rows. It also assumes this of a `FunctionTransformer`, whose function sees the whole
    table, unless it is an elementwise function of NumPy such as ``numpy.log1p``.

    Parameters
    ----------
    pipeline : estimator
        An estimator or a pipeline of scikit-learn or privtail, fitted or not.

    Returns
    -------
    PipelineCheck
        ``steps`` are all steps, ``unpaid`` those that read rows without paying. It is true if
        there are none.

    Raises
    ------
    InvalidInput
        If it is no estimator.

    Examples
    --------
    >>> from privtail import check_pipeline
    >>> from privtail.linear_model import DPRidge
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> [step.name for step in check_pipeline(make_pipeline(StandardScaler(), DPRidge())).unpaid]
    ['standardscaler']
    """
    if not hasattr(pipeline, "fit"):
        raise InvalidInput(
            f"check_pipeline needs an estimator or a pipeline, got {type(pipeline).__name__}."
        )
    return PipelineCheck(tuple(_steps("", pipeline)))


def _steps(path: str, step: Any) -> Iterator[Step]:
    if step is None or isinstance(step, str):
        return
    name, kind = path or type(step).__name__, type(step).__name__
    if isinstance(step, PrivateEstimator):
        yield _paid(name, step)
        return
    if isinstance(step, Pipeline | FeatureUnion | ColumnTransformer):
        parts = getattr(step, "transformers", None) or getattr(step, "transformer_list", None)
        for part in parts or step.steps:
            yield from _steps(_below(path, part[0]), part[1])
        if isinstance(step, ColumnTransformer):
            yield from _steps(_below(path, "remainder"), step.remainder)
        return
    if isinstance(step, FunctionTransformer):
        exact = type(step) is FunctionTransformer and not (step.kw_args or step.inv_kw_args)
        checked = step.check_inverse and None not in (step.func, step.inverse_func)
        yield _function(name, kind, (step.func, step.inverse_func), exact and not checked)
        return
    if type(step) in ROW_BY_ROW:
        yield Step(name, kind, "reads nothing", "row by row, from public parameters")
        return
    if isinstance(step, TransformedTargetRegressor):
        yield from _target(path, step)
        yield from _steps(_below(path, "regressor"), step.regressor)
        return
    yield Step(name, kind, "reads rows", _why(step))
    for inner, part in _held(step):
        yield from _steps(_below(path, inner), part)


def _paid(name: str, step: PrivateEstimator) -> Step:
    kind = type(step).__name__
    if step.noise == "simulated" or step.epsilon == float("inf"):
        why = f"NOT PRIVATE: epsilon={step.epsilon!r}, noise={step.noise!r}"
        return Step(name, kind, "reads rows", why)
    return Step(name, kind, "pays", f"epsilon={step.epsilon!r}, delta={step.delta!r} a fit")


def _target(path: str, step: TransformedTargetRegressor) -> Iterator[Step]:
    if step.transformer is not None:
        yield from _steps(_below(path, "transformer"), step.transformer)
    elif step.func is not None:
        functions = step.func, step.inverse_func
        yield _function(_below(path, "func"), "function", functions, not step.check_inverse)


def _function(name: str, kind: str, functions: tuple[Any, Any], unchecked: bool) -> Step:
    """A step that calls functions with all rows; ``unchecked`` if that is all it does."""
    if unchecked and all(f is None or _elementwise(f) for f in functions):
        return Step(name, kind, "reads nothing", "elementwise, by NumPy")
    why = (
        "its function sees all rows at once, and nobody can check that it takes each by itself; "
        "elementwise NumPy functions such as numpy.log1p are known to, with check_inverse=False"
    )
    return Step(name, kind, "reads rows", why)


def _elementwise(function: Any) -> bool:
    """Whether this is a function of one number of NumPy, and none that was made of Python code."""
    return (
        type(function) is np.ufunc
        and (function.nin, function.nout, function.signature) == (1, 1, None)
        and getattr(np, function.__name__, None) is function
    )


def _why(step: Any) -> str:
    if hasattr(step, "scoring") and hasattr(step, "cv"):
        return "its scores and the choice by them are computed from rows; the fits pay"
    if hasattr(step, "transform"):
        return "what it learns from the rows changes with every row"
    return "it is fitted without noise"


def _held(step: Any) -> Iterator[tuple[str, Any]]:
    """Estimators among the parameters of a step."""
    for name, value in step.get_params(deep=False).items():
        if hasattr(value, "fit") and not isinstance(value, type):
            yield name, value
        elif isinstance(value, list):
            for part in value:
                if isinstance(part, tuple) and len(part) == 2 and hasattr(part[1], "fit"):
                    yield part


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else str(name)
