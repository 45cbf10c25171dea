"""What an evaluation found: how it is shown, written and drawn."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from privtail.cli.console import say, show_released
from privtail.cli.options import Confidence, Output, file_option
from privtail.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class Findings:
    """How often intervals hold, and files for what an evaluation found."""

    confidence: Confidence = 0.95
    out: Annotated[
        Path | None,
        file_option("Write the numbers, curves and statements, as JSON."),
    ] = None
    plot: Annotated[
        Path | None,
        file_option("Draw the curves of a model of two labels: a .png, .svg or .pdf."),
    ] = None

    def require_free(self, output: Output, *used: Path | str | None) -> None:
        """Refuse files that cannot be written, or that the command uses."""
        for file, other in ((self.out, self.plot), (self.plot, self.out)):
            output.require_free(file, *used, other)

    def require_drawable(self, labels: Sequence[Any]) -> None:
        """Refuse, before anything is spent, a picture that could not be drawn."""
        if self.plot is None:
            return
        if len(labels) != 2:
            raise InvalidInput("Curves are drawn only for a model of two labels. Leave --plot out.")
        if self.plot.suffix not in (".png", ".svg", ".pdf"):
            raise InvalidInput(f"{self.plot} needs a name that ends with .png, .svg or .pdf.")
        if importlib.util.find_spec("matplotlib") is None:
            raise InvalidInput("Pictures need Matplotlib: pip install 'privtail[plot]'.")

    def show(self, found: Any, output: Output) -> None:
        """Print what was found, write it and draw it."""
        from privtail.written import written_whole

        texts = [str(found), *(str(statement) for statement in found.statements)]
        show_released("\n\n".join(texts), "evaluation")
        if self.out is not None:
            content = {"format": "privtail-evaluation", "version": 1, **found.to_dict()}
            text = json.dumps(content, indent=1, ensure_ascii=False, default=str)
            with written_whole(self.out, overwrite=output.force) as file:
                file.write(text.encode() + b"\n")
            say(f"\nwrote {self.out}")
        if self.plot is not None:
            with written_whole(self.plot, overwrite=output.force) as file:
                found.plot().savefig(file, format=self.plot.suffix.lstrip("."), dpi=150)
            say(f"\nwrote {self.plot}")
