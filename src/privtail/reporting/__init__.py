"""One page for a person who was not there: what was released, what it protects, how to check it."""

from privtail.reporting.contents import content_of, read_content
from privtail.reporting.pages import page, report

__all__ = ["content_of", "page", "read_content", "report"]
