"""Privacy theorems as curves: what epsilon a delta buys, and the other way round."""

from privtail.trusted.accounting.curves import (
    ApproximateDP,
    Basic,
    ButFor,
    Curve,
    GaussianDP,
    NoPrivacy,
    ZeroConcentratedDP,
)
from privtail.trusted.accounting.loss import BoundedLoss, PrivacyLoss, Renyi, SampledGaussian

__all__ = [
    "ApproximateDP",
    "Basic",
    "BoundedLoss",
    "ButFor",
    "Curve",
    "GaussianDP",
    "NoPrivacy",
    "PrivacyLoss",
    "Renyi",
    "SampledGaussian",
    "ZeroConcentratedDP",
]
