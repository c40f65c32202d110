"""Commands under one name, and what is said where a line names none of them."""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperGroup
from typer.exceptions import TyperException

from sigwrap.cli.run_options import leading_options
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.policy.problems import nearest_word

_LINE_SHOWN = 60


class Group(TyperGroup):
    # What other programs have as a command, and is an option here.
    options_meant: ClassVar[dict[str, str]] = {"help": "--help"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shows_help = not args and not self.invoke_without_command
        return super().parse_args(ctx, ["--help"] if shows_help else args)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if self.get_command(ctx, word) is None:
            path = ctx.command_path
            near = self.options_meant.get(word) or nearest_word(word, self.list_commands(ctx))
            meant = f"did you mean {path} {near}? " if near else ""
            raise UsageError(
                f"{shell_words([word])} is no command of {path}'s",
                f"{meant}{self.other_meaning(args)}all commands: {path} --help",
            )
        return super().resolve_command(ctx, args)

    def other_meaning(self, args: list[str]) -> str:
        return ""

    def invoke(self, ctx: Any) -> Any:
        """Of what a command says about its options, not all names the command."""
        try:
            return super().invoke(ctx)
        except TyperException as problem:
            raise explained(problem, f"{ctx.command_path} {ctx.invoked_subcommand}") from problem


class Root(Group):
    """`sigwrap` itself, whose options are those of a run."""

    options_meant: ClassVar[dict[str, str]] = {"help": "--help", "version": "--version"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args[:1] and args[0].startswith("-") and args[0] not in ("-h", "--help", "--version"):
            if "--" in args:
                return super().parse_args(ctx, ["run", *args])
            self._complain(ctx, args)
        return super().parse_args(ctx, args)

    def _complain(self, ctx: Any, args: list[str]) -> None:
        given, behind = leading_options(args)
        of_a_run = [word for each in given if each.name for word in each.words]
        path, command = self._named(ctx, behind)
        if command is not None:
            shown = shell_words(path)
            known = {name for each in command.params for name in each.opts}
            foreign = next(
                (each.name for each in given if each.name and each.name not in known), ""
            )
            if foreign:
                raise UsageError(
                    f"{foreign} is an option of a run, and {shown} has none of that name",
                    f"see sigwrap {shown} --help; "
                    f"to run it: sigwrap {shell_words([*of_a_run, '--', *behind])}",
                )
            options = [word for each in given for word in each.words]
            raise UsageError(
                f"options of {shown} come behind it",
                f"sigwrap {shell_words([*path, *options, *behind[len(path) :]])}",
            )
        if given[0].name:
            meant = shell_words([*of_a_run, "--", *(behind or ["npm", "start"])])
            missing = "-- is missing before the command" if behind else "no command given"
            raise UsageError(missing, f"sigwrap {meant}")

    def _named(self, ctx: Any, words: list[str]) -> tuple[list[str], Any]:
        """The command that the first words name, a group's own too; None where they name none."""
        path: list[str] = []
        command: Any = self
        while words[len(path) :] and isinstance(command, TyperGroup):
            inner = command.get_command(ctx, words[len(path)])
            if inner is None:
                break
            path.append(words[len(path)])
            command = inner
        return path, command if path else None

    def other_meaning(self, args: list[str]) -> str:
        line = shell_words(args)
        shown = line if len(line) <= _LINE_SHOWN else f"{line[: _LINE_SHOWN - 1]}…"
        return f"to run it: sigwrap -- {shown}; "


def explained(problem: TyperException, path: str) -> UsageError:
    """In one line, which says where the help is."""
    context = getattr(problem, "ctx", None)
    where = path if context is None else context.command_path
    return UsageError(" ".join(problem.format_message().split()), f"see {where} --help")
