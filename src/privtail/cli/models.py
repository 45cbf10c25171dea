"""Which model is fitted, with which parameters: options that ``fit`` and ``plan`` share."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields
from typing import Annotated, Any, Literal

import typer

from privtail.errors import InvalidInput

Name = Literal[
    "linear",
    "ridge",
    "lasso",
    "elastic-net",
    "huber",
    "lad",
    "quantile",
    "poisson",
    "gamma",
    "tweedie",
    "logistic",
    "sparse",
    "sparse-logistic",
]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """A model and its parameters; None leaves a parameter at the model's default."""

    model: Annotated[
        Name | None,
        typer.Option(
            metavar="NAME",
            show_default="by the type of the target",
            help="linear, ridge, lasso, elastic-net: means; huber, lad, quantile: robust to "
            "extreme targets; poisson: counts; gamma: positive amounts; tweedie: amounts and "
            "zeros; logistic: labels; sparse, sparse-logistic: few features.",
        ),
    ] = None
    alpha: Annotated[
        float | None,
        typer.Option(
            show_default=False,
            help="Strength of the penalty, in the units of scikit-learn. Without it 1 for ridge, "
            "lasso, elastic-net, and 0 for others.",
        ),
    ] = None
    C: Annotated[
        float | None,
        typer.Option(
            "--C",
            show_default=False,
            help="For logistic: inverse strength of the penalty. Without it inf, no penalty.",
        ),
    ] = None
    l1_ratio: Annotated[
        float | None,
        typer.Option(show_default=False, help="For elastic-net: fraction of the l1 norm, 0 to 1."),
    ] = None
    quantile: Annotated[
        float | None, typer.Option(show_default=False, help="For quantile: which one, 0 to 1.")
    ] = None
    power: Annotated[
        float | None,
        typer.Option(
            show_default=False, help="For tweedie: power of the mean in the variance, 1 to 2."
        ),
    ] = None
    exposure: Annotated[
        str | None,
        typer.Option(
            metavar="COLUMN",
            show_default=False,
            help="For poisson, gamma, tweedie: a column with how long, or how much, each row was "
            "observed, such as years. The model is then of a rate per unit of it.",
        ),
    ] = None
    threshold: Annotated[
        float | None,
        typer.Option(
            show_default=False,
            help="For huber: errors beyond it count linearly. It is a multiple of a scale. Two "
            "scales are released privately: of the target, and of the residuals of a first fit. "
            "The smaller one is used. Without it 1.35.",
        ),
    ] = None
    sparsity: Annotated[
        int | None,
        typer.Option(show_default=False, help="For sparse models: how many features they may use."),
    ] = None
    class_weight: Annotated[
        str | None,
        typer.Option(
            metavar="A=2,B=1", show_default=False, help="For logistic: weights of the labels."
        ),
    ] = None
    heteroscedastic: Annotated[
        bool | None,
        typer.Option(
            "--heteroscedastic",
            show_default=False,
            help="For linear, huber: standard errors allow for residuals whose spread depends on "
            "the features. It takes about 2 % of ε.",
        ),
    ] = None
    fit_intercept: Annotated[
        bool, typer.Option("--intercept/--no-intercept", help="Add an intercept.")
    ] = True
    algorithm: Annotated[
        str,
        typer.Option(metavar="NAME", help="A published algorithm; privtail algorithms lists them."),
    ] = "auto"
    count_invalid: Annotated[
        float,
        typer.Option(
            metavar="SHARE",
            help="Fraction of ε, such as 0.02, for a noisy count of the rows that do not count.",
        ),
    ] = 0.0

    def estimator(self, name: Name, **others: Any) -> Any:
        """The estimator of this name with these parameters and ``others``.

        Raises
        ------
        InvalidInput
            If the model has no such parameter: the error names those that it has.
        """
        from privtail.linear_model import MODELS

        kind = MODELS[name]
        known = inspect.signature(kind).parameters
        given = {
            f.name: getattr(self, f.name)
            for f in fields(self)
            if f.name not in ("model", "exposure")
        }
        given = {key: value for key, value in given.items() if value is not None}
        for key in given:
            if key not in known:
                raise InvalidInput(
                    f"--model {name} has no {_option(key)}: leave it out. "
                    + _owned([f.name for f in fields(self) if f.default is None], known)
                )
        return kind(**{**given, **others})

    @property
    def weights(self) -> str | dict[str, float] | None:
        """``balanced``, or weights of labels as they were typed; raises InvalidInput."""
        if self.class_weight is None or self.class_weight == "balanced":
            return self.class_weight
        try:
            pairs = [part.rsplit("=", 1) for part in self.class_weight.split(",")]
            return {label.strip(): float(weight) for label, weight in pairs}
        except ValueError:
            raise InvalidInput(
                f"--class-weight {self.class_weight!r} is not understood. Type: --class-weight "
                "yes=2,no=1, or --class-weight balanced"
            ) from None


def _owned(parameters: list[str], known: Any) -> str:
    return f"It has {', '.join(_option(name) for name in parameters if name in known)}."


def _option(parameter: str) -> str:
    return "--" + parameter.replace("_", "-")
