"""How good a model is, on private rows that it was not fitted to."""

from privtail.evaluation.comparing import Comparison, compare
from privtail.evaluation.evaluating import evaluate
from privtail.evaluation.result import Curves, Estimate, Evaluation

__all__ = ["Comparison", "Curves", "Estimate", "Evaluation", "compare", "evaluate"]
