"""What is to be learned, from which columns of which table."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from privtail.cli.models import Choice, Name
from privtail.cli.options import Persons, Written
from privtail.cli.schema import Declared, Label
from privtail.errors import InvalidInput
from privtail.schema.encoding import sizes_of
from privtail.spelling import counted

if TYPE_CHECKING:
    from privtail.model import Column
    from privtail.schema.encoding import Encoding
    from privtail.trusted.files import TableFile


@dataclass(frozen=True, kw_only=True)
class Task:
    """A model of one column by others. It holds public facts alone.

    Attributes
    ----------
    table : the file, whose rows are read by the core.
    target : the column to predict.
    model : name of the model.
    columns : the features, in order.
    classes : declared labels of the target; None for numbers and for undeclared labels.
    encoding : what is declared of the features beside categories.
    """

    table: TableFile
    target: str
    model: Name
    columns: tuple[Column, ...]
    classes: tuple[Label, ...] | None
    encoding: Encoding

    @classmethod
    def of(
        cls,
        data: str,
        declared: Declared,
        written: Written,
        choice: Choice,
        persons: Persons,
        scratch: Path | None = None,
        copies: int = 1,
    ) -> Task:
        """Read names and types of the file, and hold the declarations against them.

        Raises
        ------
        InvalidInput
            Names the file, the column and the option that mends it.
        """
        from privtail.model import Column
        from privtail.model.predicting import LINKS
        from privtail.schema.encoding import Encoding
        from privtail.schema.features import parsed
        from privtail.trusted.files import TableFile

        facts = declared.facts()
        if facts.target is None:
            raise InvalidInput("Say what to predict: --target COLUMN.")
        if facts.target in facts.categories:
            raise InvalidInput(
                f"Column {facts.target!r} is the target: declare its labels by --classes a,b."
            )
        if facts.target in facts.drop:
            raise InvalidInput(f"Column {facts.target!r} is the target: leave out its --drop.")
        table = TableFile(
            data,
            categories=facts.categories,
            numeric=facts.numeric,
            drop=facts.drop,
            dialect=written.dialect(facts.written),
        )
        if persons.groups is not None:
            table = table.without(persons.groups)
        table.require([facts.target], "the target")
        model = choice.model or _by_type(table, facts.target, facts.classes)
        if choice.exposure is not None:
            if LINKS[model] != "log":
                raise InvalidInput(
                    f"--model {model} takes no exposure. Leave --exposure out, or choose poisson, "
                    "gamma or tweedie."
                )
            table = table.exposed(choice.exposure)
        table = _decoded_once(table, scratch, copies)
        features = table.features(facts.target)
        facts.require_complete(str(table.path), features)
        numbers = LINKS[model] != "logit"
        if numbers and facts.classes is not None:
            raise InvalidInput(
                f"A {model} model predicts numbers, not classes: use --model logistic, or leave "
                "out --classes."
            )
        if numbers:
            table.require_numeric(facts.target, cli="For labels: --model logistic.")
        return cls(
            table=table,
            target=facts.target,
            model=model,
            columns=tuple(Column(name, table.categories.get(name)) for name in features),
            classes=None if facts.classes is None else table.typed(facts.target, facts.classes),
            encoding=Encoding(
                facts.missing,
                facts.base_levels,
                tuple(map(parsed, facts.features)),
            ),
        )

    def estimator(self, choice: Choice, **others: Any) -> Any:
        """The estimator for it."""
        from privtail.model.predicting import LINKS

        declared: dict[str, Any] = {} if self.classes is None else {"classes": self.classes}
        weights = choice.weights
        if isinstance(weights, dict) and LINKS[self.model] == "logit":
            labels = self.table.typed(self.target, list(weights))
            declared["class_weight"] = dict(zip(labels, weights.values(), strict=True))
            unknown = [label for label in labels if self.classes and label not in self.classes]
            if unknown:
                raise InvalidInput(
                    f"--class-weight names the label {unknown[0]!r}, which --classes does not: "
                    "name it in both."
                )
        categories = dict(self.table.categories) or None
        encoding = self.encoding
        return choice.estimator(
            self.model, categories=categories, missing=encoding.missing, drop=encoding.drop,
            features=encoding.features or None, **declared, **others,
        )  # fmt: skip

    @property
    def sizes(self) -> tuple[Any, ...]:
        """Features as the model sees them, and those in [0, 1] by declaration, by category.

        And True, if there is an exposure: what a plan needs besides the rows.
        """
        design = self.encoding.design([c.name for c in self.columns], self.table.categories)
        exposed = () if self.table.exposure is None else (True,)
        return len(design.names), sizes_of(design.categories, design.bounded), *exposed

    def reading(self, plan: Any) -> str:
        """How often a fit of this plan decodes the file."""
        from privtail.table_files import passes

        if self.table.scratch is not None:
            return f"decoding     once, into a file without a name in {self.table.scratch}"
        times = passes(self.table, plan)
        mend = "" if times == 1 else "; fit --scratch DIR decodes it once"
        return f"decoding     {counted(times, 'pass', 'passes')} over the file{mend}"

    def __str__(self) -> str:
        columns, features = counted(len(self.columns), "column"), counted(self.sizes[0], "feature")
        rows = counted(self.table.n, "row")
        known = {self.target, *(column.name for column in self.columns)}
        left_out = [repr(name) for name in self.table.index if name not in known]
        if left_out:
            columns += f" (not {', '.join(left_out)}, an index of pandas)"
        return f"{self.table.path}: {rows}, {columns}, {features}; {self.model} of {self.target!r}"


def _decoded_once(table: TableFile, folder: Path | None, copies: int) -> TableFile:
    """The table with copies of its decoded rows, where asked or where half of the room is enough.

    A fit reads the rows dozens of times, and a copy is read faster than any file is decoded.
    """
    if folder is None:
        folder = Path(tempfile.gettempdir())
        need = 8 * table.n * len(table.kept()) * copies
        return table.copied_to(folder) if 2 * need <= shutil.disk_usage(folder).free else table
    return table if str(folder) == "none" else table.copied_to(folder)


def _by_type(table: TableFile, target: str, classes: object) -> Name:
    """The model that the target's declared type asks for; never its cells."""
    kind = "label" if classes is not None else table.schema.kind(target)
    if kind == "label":
        return "logistic"
    if kind == "number":
        return "linear"
    raise InvalidInput(
        f"Is {target!r} of {table.path} a number or a label? Its type does not say. Type: "
        "--model linear, or --model logistic."
    )
