"""Commands under one name, and the errors for a line that names none of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.models import CommandFunctionType

from sigwrap.cli.examples import EXAMPLES, examples
from sigwrap.cli.options import with_json
from sigwrap.cli.table import HIDDEN, Rows
from sigwrap.errors import UsageError
from sigwrap.text import did_you_mean, nearest_word, shell_words

# How our messages differ from typer's.
_REWORDINGS = (
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"unexpected argument: \1"),
    (r"Missing (argument|option) '(.*?)'\.?", r"missing \1 \2."),
    (r"Option '(.*?)' requires an argument\.?", r"\1 needs a value"),
    (r"Invalid value for '(.*?)': ", r"\1: "),
    (r"is not a valid int( range)?", "is not a whole number"),
    (r"is not a valid float", "is not a number"),
    (r"is not in the range x>=(\d+)", r"is less than \1"),
)

Sections = dict[str, dict[str, str]]


class Command(TyperCommand):
    """A command whose usage line has no braces around required arguments."""

    def make_parser(self, ctx: Any) -> Any:
        return with_json(super().make_parser(ctx))

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class App(typer.Typer):
    """The commands of a module. With a name, they are a group of that name."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(rich_markup_mode=None, **settings)

    def command(
        self, name: str | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, **{"cls": Command, **options})


class Group(TyperGroup):
    def make_parser(self, ctx: Any) -> Any:
        return with_json(super().make_parser(ctx))

    def sections(self) -> Sections:
        """Return the names of its commands with a line of help each, by heading."""
        shown = (each for each in self.commands.items() if not each[1].hidden)
        return {"Commands": {name: each.get_short_help_str(99).rstrip(".") for name, each in shown}}

    def words(self) -> dict[str, str]:
        """Return every word that may follow its name, with a line of help each."""
        return {name: line for rows in self.sections().values() for name, line in rows.items()}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shows_help = not args and not self.invoke_without_command
        return super().parse_args(ctx, ["--help"] if shows_help else args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        sections = self.sections()
        width = max(len(name) for rows in sections.values() for name in rows)
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in rows.items()])

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            raise self._unknown(ctx, args)
        return super().resolve_command(ctx, args)

    def _unknown(self, ctx: Any, args: list[str]) -> UsageError:
        path = ctx.command_path.split()[1:]
        options = (name for each in self.get_params(ctx) for name in each.opts)
        if near := nearest_word(args[0], [*self.words(), *options]):
            hint = f'Did you mean "{shell_words([*path, near])}"?'
        else:
            hint = f"All commands: {ctx.command_path} --help"
        name = shell_words([*path, args[0]])
        other = self.other_meaning(args)
        end = "" if near or not other else "."
        return UsageError(f'unknown command "{name}". {hint}{end} {other}'.rstrip())

    def other_meaning(self, args: list[str]) -> str:
        """Return a sentence for a user who did not mean a command."""
        return ""

    def invoke(self, ctx: Any) -> Any:
        """Name the command in its errors: some of typer's don't."""
        try:
            return super().invoke(ctx)
        except TyperException as problem:
            raise explained(problem, f"{ctx.command_path} {ctx.invoked_subcommand}") from problem

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        from typer._click.shell_completion import CompletionItem

        found = TyperCommand.shell_complete(self, ctx, incomplete)
        words = self.words().items()
        return found + [CompletionItem(name, help=line) for name, line in words]


class LazyGroup(Group):
    """Commands of a table: the module of a command is imported when the command is needed."""

    table: ClassVar[dict[str, Rows]] = {}
    prefix: ClassVar[str] = ""  # of the names in EXAMPLES

    def __init__(self, **settings: Any) -> None:
        self._made: dict[str, Any] = {}
        super().__init__(**settings)

    @property
    def commands(self) -> dict[str, Any]:
        """Return all commands; this imports every module."""
        return {name: self.get_command(None, name) for name in self._modules()}

    @commands.setter
    def commands(self, _given: object) -> None:
        """Ignore what typer sets: the table has the commands."""

    def sections(self) -> Sections:
        return {
            title: {name: line for name, (_module, line) in rows.items()}
            for title, rows in self.table.items()
            if title != HIDDEN
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return list(self._modules())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self._made and (module := self._modules().get(cmd_name)):
            self._made |= _commands_of(module, self.prefix)
        return self._made.get(cmd_name)

    def _modules(self) -> dict[str, str]:
        return {
            name: module for rows in self.table.values() for name, (module, _line) in rows.items()
        }


def _commands_of(module: str, prefix: str) -> dict[str, Any]:
    """Import a module of this package and return its commands."""
    app = App()
    app.add_typer(import_module(f"sigwrap.cli.{module}").app)
    made = dict(typer.main.get_group(app).commands)
    for name, command in made.items():
        _add_examples(command, prefix + name)
    return made


def _add_examples(command: Any, path: str) -> None:
    """Add examples to the help of a command and its subcommands."""
    if path in EXAMPLES:
        command.epilog = f"{examples(path)}\n\n{command.epilog or ''}"
    if isinstance(command, TyperGroup) and not isinstance(command, LazyGroup):
        for name, each in command.commands.items():
            _add_examples(each, f"{path} {name}")


def unknown_option(problem: TyperException) -> str:
    """Return the option that does not exist; empty if something else is wrong."""
    return str(getattr(problem, "option_name", "")) if hasattr(problem, "possibilities") else ""


def explained(problem: TyperException, path: str) -> UsageError:
    """Put an error of typer into one line that says where the help is."""
    context = getattr(problem, "ctx", None)
    hint = f"see {path if context is None else context.command_path} --help"
    if unknown := unknown_option(problem):
        meant = did_you_mean(unknown, getattr(problem, "possibilities", None) or ())
        return UsageError(f"unknown option {shell_words([unknown])}", f"{meant}{hint}")
    text = " ".join(problem.format_message().split())
    for theirs, ours in _REWORDINGS:
        text = re.sub(theirs, ours, text)
    return UsageError(text.rstrip("."), hint)
