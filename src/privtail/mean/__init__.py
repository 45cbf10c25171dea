"""Private means of one column or many, without bounds on the data."""

from privtail.mean.estimate import MeanEstimate, interval
from privtail.mean.private import METHODS, Method, mean_of, private_mean

__all__ = ["METHODS", "MeanEstimate", "Method", "interval", "mean_of", "private_mean"]
