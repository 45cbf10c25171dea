"""Fitted models as files of JSON: what is needed to predict, and what it cost."""

from privtail.model.fields import Column
from privtail.model.model import Model, load

__all__ = ["Column", "Model", "load"]
