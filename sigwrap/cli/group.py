"""Commands under one name, and what is said where a line names none of them."""

from __future__ import annotations

from typing import Any, ClassVar

from typer.core import TyperGroup
from typer.exceptions import TyperException

from sigwrap.cli.run_options import behind_options, is_run_option
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
        behind = behind_options(args)
        options = args[: len(args) - len(behind)]
        command = self.get_command(ctx, behind[0]) if behind else None
        if command is not None:
            known = {name for each in command.params for name in each.opts}
            given = options[0].partition("=")[0]
            if is_run_option(given) and given not in known:
                raise UsageError(
                    f"{given} is an option of a run, and {behind[0]} has none of that name",
                    f"see sigwrap {behind[0]} --help; "
                    f"to run it: sigwrap {shell_words([*options, '--', *behind])}",
                )
            raise UsageError(
                f"options of {behind[0]} come behind it",
                f"sigwrap {shell_words([behind[0], *options, *behind[1:]])}",
            )
        if is_run_option(args[0]):
            meant = shell_words([*options, "--", *(behind or ["npm", "start"])])
            missing = "-- is missing before the command" if behind else "no command given"
            raise UsageError(missing, f"sigwrap {meant}")

    def other_meaning(self, args: list[str]) -> str:
        line = shell_words(args)
        shown = line if len(line) <= _LINE_SHOWN else f"{line[: _LINE_SHOWN - 1]}…"
        return f"to run it: sigwrap -- {shown}; "


def explained(problem: TyperException, path: str) -> UsageError:
    """In one line, which says where the help is."""
    context = getattr(problem, "ctx", None)
    where = path if context is None else context.command_path
    return UsageError(" ".join(problem.format_message().split()), f"see {where} --help")
