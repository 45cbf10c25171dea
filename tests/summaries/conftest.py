"""The watched run of the published algorithms, for the stages of the default."""

from tests.algorithms.conftest import watched

__all__ = ["watched"]
