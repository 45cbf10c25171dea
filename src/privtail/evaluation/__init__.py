"""How good a model is, on private rows that it was not fitted to."""

from privtail.evaluation.comparing import Comparison, compare
from privtail.evaluation.cross_validating import cross_validate
from privtail.evaluation.evaluating import evaluate
from privtail.evaluation.result import Curves, Estimate, Evaluation

__all__ = [
    "Comparison",
    "Curves",
    "Estimate",
    "Evaluation",
    "compare",
    "cross_validate",
    "evaluate",
]
