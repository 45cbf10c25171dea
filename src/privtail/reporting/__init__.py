"""One page for a person who was not there: what was released, what it protects, how to check it."""

from privtail.reporting.contents import read_content
from privtail.reporting.pages import report

__all__ = ["read_content", "report"]
