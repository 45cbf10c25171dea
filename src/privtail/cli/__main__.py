"""``python -m privtail.cli`` is ``privtail``."""

from privtail.cli import main

main()
