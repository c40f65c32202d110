"""Commands under one name, and what is said where a line names none of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException
from typer.models import CommandFunctionType

from sigwrap.cli.run_options import Given, leading_options
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words, shortened
from sigwrap.policy.problems import nearest_word
from sigwrap.run.settings import AGENTS

_LINE_SHOWN = 60
_TO_RUN = "To run a program of that name: "
_HELP = frozenset({"-h", "--help"})
# What typer says, and what we say.
_TYPERS = (
    (r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", r"unexpected argument: \1"),
    (r"Missing (argument|option) '(.*?)'\.?", r"missing \1 \2."),
    (r"Option '(.*?)' requires an argument\.?", r"\1 needs a value"),
    (r"Invalid value for '(.*?)': ", r"\1: "),
)


class Command(TyperCommand):
    """A command whose usage line has no braces around required arguments."""

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return [piece.strip("{}") for piece in super().collect_usage_pieces(ctx)]


class App(typer.Typer):
    def command(
        self, name: str | None = None, **options: Any
    ) -> Callable[[CommandFunctionType], CommandFunctionType]:
        return super().command(name, **{"cls": Command, **options})


class Group(TyperGroup):
    # What other programs have as a command, and is an option here.
    options_meant: ClassVar[dict[str, str]] = {"help": "--help"}
    # Of the list of its commands; the rest comes last.
    headings: ClassVar[dict[str, str]] = {}
    other_heading = "Commands"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        shows_help = not args and not self.invoke_without_command
        return super().parse_args(ctx, ["--help"] if shows_help else args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        shown = {name: each for name, each in self.commands.items() if not each.hidden}
        width = max(map(len, shown))
        sections = {title: names.split() for title, names in self.headings.items()}
        placed = {name for names in sections.values() for name in names}
        sections[self.other_heading] = [name for name in shown if name not in placed]
        for title, names in sections.items():
            with formatter.section(title):
                summaries = [shown[each].get_short_help_str(99).rstrip(".") for each in names]
                padded = [each.ljust(width) for each in names]
                formatter.write_dl(list(zip(padded, summaries, strict=True)))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        word = args[0]
        if self.get_command(ctx, word) is None:
            other = self.other_meaning(args)
            all_commands = f"All commands: {ctx.command_path} --help{'.' if other else ''}"
            raise _unknown(_path(ctx, word), self._meant(ctx, args) or all_commands, other)
        return super().resolve_command(ctx, args)

    def _meant(self, ctx: Any, args: list[str]) -> str:
        word, *rest = args
        near = self.options_meant.get(word)
        if near is None and (below := self._below(ctx, word)):
            return _did_you_mean(_path(ctx, below, *args))
        if near is None:
            near = nearest_word(word, self.list_commands(ctx))
            command = self.get_command(ctx, near) if near else None
            if command is None:
                return ""
            if _accepts(command, near, rest, ctx):
                return _did_you_mean(_path(ctx, near, *rest))
        return _did_you_mean(_path(ctx, near))

    def _below(self, ctx: Any, word: str) -> str:
        """The first of its commands that has one of that name."""
        for name in self.list_commands(ctx):
            command = self.get_command(ctx, name)
            if isinstance(command, Group) and command.get_command(ctx, word) is not None:
                return name
        return ""

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

    options_meant: ClassVar[dict[str, str]] = {"version": "--version"}
    headings: ClassVar[dict[str, str]] = {
        "Run": "run",
        "Look at sessions": "sessions report replay why query export verify",
        "Approve and stop": "approvals approve deny watch serve signal killswitch",
        "Policies": "policy",
        "Agents": "hook",
    }
    other_heading = "Set-up"

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        own = {name for each in self.get_params(ctx) for name in each.opts}
        if args[:1] and args[0].startswith("-") and args[0] not in own:
            if "--" in args:
                return super().parse_args(ctx, ["run", *args])
            self._complain(ctx, args)
        return super().parse_args(ctx, args)

    def _complain(self, ctx: Any, args: list[str]) -> None:
        given, behind = leading_options(args)
        path, command = self._named(ctx, behind)
        if command is None and given and not given[-1].is_of_a_run:  # its value is behind[0], then
            path, command = self._named(ctx, behind[1:])
            if command is not None and given[-1].name in _options_of(command):
                given[-1] = given[-1]._replace(words=(*given[-1].words, behind.pop(0)))
            else:
                command = None
        if command is not None:
            self._complain_of_place(ctx, given, behind, path, command)
        words = [word for each in given for word in each.words]
        near = ""
        if behind[:1] and behind[0] not in AGENTS:  # else an option is wrong
            near = self._near(ctx, behind, words) or _near_agent(behind, words)
        if near and not all(each.is_of_a_run for each in given):
            raise _unknown(shell_words(behind[:1]), near, "")
        self._check_for_run(ctx, args)
        meant = f"sigwrap {shell_words([*words, '--', *(behind or ['npm', 'start'])])}"
        if near:
            raise _unknown(shell_words(behind[:1]), near, f"{_TO_RUN}{meant}")
        missing = "-- is missing before the command" if behind else "no command given"
        raise UsageError(missing, meant)

    def _near(self, ctx: Any, behind: list[str], options: list[str]) -> str:
        """A command whose name is nearly the first word, and which takes this line."""
        near = nearest_word(behind[0], self.list_commands(ctx)) if behind else ""
        words = [*options, *behind[1:]]
        if not near or not _accepts(self.get_command(ctx, near), near, words, ctx):
            return ""
        return _did_you_mean(shell_words([near, *words]))

    def _complain_of_place(
        self, ctx: Any, given: list[Given], behind: list[str], path: list[str], command: Any
    ) -> None:
        shown = shell_words(path)
        known = _options_of(command)
        foreign = next((each for each in given if each.name not in known), None)
        words = [word for each in given for word in each.words]
        if foreign is not None and not foreign.is_of_a_run:
            raise UsageError(f"unknown option {foreign.name}", f"see sigwrap {shown} --help")
        if foreign is not None:
            of_a_run = [word for each in given if each.is_of_a_run for word in each.words]
            line = [*of_a_run, "--", *behind]
            self._check_for_run(ctx, line)
            raise UsageError(
                f"{foreign.name} is an option of sigwrap run, not of {shown}",
                f"see sigwrap {shown} --help; {_TO_RUN.lower()}sigwrap {shell_words(line)}",
            )
        rest = behind[len(path) :]
        if _has_options_of_its_own(command, rest):
            rest = ["--", *rest]
        _check(command, shown, [*words, *rest], ctx)
        raise UsageError(
            f"options of {shown} go after it", f"sigwrap {shell_words([*path, *words, *rest])}"
        )

    def _check_for_run(self, ctx: Any, args: list[str]) -> None:
        _check(self.commands["run"], "run", args, ctx)

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
        line = shortened(shell_words(args), _LINE_SHOWN)
        return f"{_TO_RUN}sigwrap -- {line}"

    def _meant(self, ctx: Any, args: list[str]) -> str:
        return super()._meant(ctx, args) or _near_agent(args)


def _near_agent(line: list[str], options: Sequence[str] = ()) -> str:
    near = nearest_word(line[0], AGENTS) if line else ""
    meant = shell_words([*options, near, *line[1:]])
    return _did_you_mean(meant) if near else ""


def _path(ctx: Any, *words: str) -> str:
    return shell_words([*ctx.command_path.split()[1:], *words])


def _did_you_mean(line: str) -> str:
    return f'Did you mean "{line}"?'


def _unknown(name: str, meant: str, other: str) -> UsageError:
    return UsageError(f'unknown command "{name}". {meant} {other}'.rstrip())


def unknown_option(problem: TyperException) -> str:
    """Return the option that does not exist; empty where something else is wrong."""
    return str(getattr(problem, "option_name", "")) if hasattr(problem, "possibilities") else ""


def explained(problem: TyperException, path: str) -> UsageError:
    """In one line, which says where the help is."""
    context = getattr(problem, "ctx", None)
    where = path if context is None else context.command_path
    hint = f"see {where} --help"
    if unknown := unknown_option(problem):
        own = ("--version",) if where == "sigwrap run" else ()
        near = nearest_word(unknown, (*(getattr(problem, "possibilities", None) or ()), *own))
        meant = f'did you mean "{near}"? ' if near else ""
        return UsageError(f"unknown option {shell_words([unknown])}", f"{meant}{hint}")
    text = " ".join(problem.format_message().split())
    for theirs, ours in _TYPERS:
        text = re.sub(theirs, ours, text)
    return UsageError(text.rstrip("."), hint)


def _check(command: Any, path: str, words: list[str], parent: Any) -> None:
    """Says which word is wrong, if it isn't the place alone; and what --help asks for."""
    try:
        command.make_context(path, list(words), parent=parent)
    except TyperException as problem:
        raise explained(problem, f"{parent.command_path} {path}") from problem


def _accepts(command: Any, path: str, words: list[str], parent: Any) -> bool:
    if _HELP & set(words):
        return False
    try:
        _check(command, path, words, parent)
    except UsageError:
        return False
    return True


def _options_of(command: Any) -> set[str]:
    return {name for each in command.params for name in (*each.opts, *each.secondary_opts)}


def _has_options_of_its_own(command: Any, words: list[str]) -> bool:
    """The line that `command` takes, and that `words` begin with."""
    takes_a_line = any(each.nargs == -1 for each in command.params)
    begins_with_it = words != [] and not words[0].startswith("-")
    return takes_a_line and begins_with_it and any(word.startswith("-") for word in words)
