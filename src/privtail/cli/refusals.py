"""What Typer refuses, in the words of this command line: one line that says what to type."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from privtail.cli.console import say
from privtail.spelling import meant

_UsageError: Any = typer.BadParameter.__bases__[0]
"""The root of what Typer refuses; releases of Typer keep it in different modules."""

_KINDS = (
    (r"valid (integer|int\b)", "a whole number"),
    (r"valid (number|float)", "a number such as 0.5"),
    (r"valid boolean", "true or false"),
)  # fmt: skip
"""How Typer and its parts name a kind of value, and what it is."""

_OTHERWISE = {
    "ledger": "budget", "describe": "summarize", "show": "report", "coef": "report",
    "median": "quantile", "average": "mean", "score": "evaluate", "train": "fit",
}  # fmt: skip
"""What a verb may be called by those who do not know its name."""
_OTHER_OPTIONS = {
    "--categories": ["--by"], "--drop": ["--column"], "--cv": ["--folds"], "--k": ["--folds"],
    "--quantile": ["--level"], "--quantiles": ["--level"], "--q": ["--level"],
}  # fmt: skip
"""Options of one verb, and those of others that serve the same purpose."""


class Command(TyperCommand):
    """A verb whose refused arguments are said in whole sentences."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Read the arguments."""
        with _said(" ".join(filter(None, (parent and parent.command_path, info_name)))):
            return super().make_context(info_name, args, parent, **extra)


class Group(TyperGroup):
    """All verbs; an unknown one is refused in a whole sentence."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Read the options before the verb."""
        with _said(info_name or ""):
            return super().make_context(info_name, args, parent, **extra)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The verb of this name."""
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            near = meant(args[0], [*self.commands, *_OTHERWISE])
            near = _OTHERWISE.get(near or "", near)
            hint = "" if near is None else f" Is {near!r} meant?"
            _refuse(f"There is no command {args[0]!r}.{hint}", ctx.command_path)
        with _said(ctx.command_path):
            return super().resolve_command(ctx, args)


@contextmanager
def _said(path: str) -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # the page of help, and no refusal
            raise
        _refuse(sentence(error, path), path)


def _refuse(text: str, path: str) -> NoReturn:
    say(f"Error. {text} To see what there is: {path} --help")
    raise typer.Exit(2) from None


def sentence(error: Any, path: str) -> str:
    """What is wrong with the arguments of the command ``path``."""
    kind, message = type(error).__name__, str(error.message).removeprefix("Value error, ")
    if kind == "NoSuchOption":
        known = [name for option in error.ctx.command.params for name in option.opts]
        begun = [name for name in known if name.startswith(error.option_name)]
        near = begun[0] if len(begun) == 1 else _like(error.option_name, known)
        near = next((x for x in _OTHER_OPTIONS.get(error.option_name, ()) if x in known), near)
        hint = "" if near is None else f" Is {near} meant?"
        return f"{path} has no option {error.option_name}.{hint}"
    if kind == "BadOptionUsage":
        needs = "takes no value" if "not take" in message else "needs a value after it"
        return f"The option {error.option_name} {needs}."
    extra = re.fullmatch(r".*unexpected extra arguments?(?:\(s\))? \((.*)\)", message)
    if extra is not None:
        hint = "Put a pattern, or a name with spaces, in quotes."
        if all(one.name != "data" for one in error.ctx.command.params):
            hint = "Run the command once for each, and put a name with spaces in quotes."
        return f"{path} has no place for {extra[1]!r}. {hint}"
    parameter = getattr(error, "param", None)
    if parameter is None:
        return f"{message.rstrip('.')}."
    name = max(parameter.opts, key=len)
    if not name.startswith("-"):
        name = parameter.metavar or name.upper()
    if kind == "MissingParameter":
        return f"{path} needs {name}."
    hint = " Repeat the option for each of several." if parameter.multiple else ""
    return f"{name} {_wanted(message)}{hint}"


def _like(option: str, known: list[str]) -> str | None:
    """The option most like this one, whose dashes say nothing; None if none is."""
    near = meant(option.lstrip("-"), [name.lstrip("-") for name in known if name[:2] == "--"])
    return None if near is None else f"--{near}"


def _wanted(message: str) -> str:
    """The end of a sentence about a parameter whose value cannot be used."""
    choice = re.fullmatch(r"'(.*)' is not one of (.*?)\.?", message)
    if choice is not None:
        known = re.findall(r"'([^']*)'", choice[2])
        near = meant(choice[1], known)
        hint = "" if near is None else f" Is {near} meant?"
        return f"must be one of {', '.join(known)}; got {choice[1]!r}.{hint}"
    least = re.search(r"greater than or equal to (\d+)", message)
    if least is not None:
        return f"must be {least[1]} or more."
    found = [what for pattern, what in _KINDS if re.search(pattern, message)]
    return f"must be {found[0]}." if found else f"cannot be used: {message.rstrip('.')}."
