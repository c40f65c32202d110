"""sigwrap policy explain."""

from __future__ import annotations

import json
import os
import shlex
from typing import Annotated, Any

import typer
from typer._types import TyperChoice
from typer.exceptions import TyperException

from sigwrap.bare import NamedTuple
from sigwrap.cli.group import App, unknown_option
from sigwrap.cli.group import Command as AppCommand
from sigwrap.cli.hook_facts import ThisMachine, real_path
from sigwrap.cli.options import Format, FormatOption
from sigwrap.cli.output import note, out
from sigwrap.cli.policy.shared import RootOption, load, plain
from sigwrap.cli.tool_files import not_found
from sigwrap.errors import UsageError
from sigwrap.hooks.judged_line import judged, words_in
from sigwrap.hooks.shell_line import Command, Line
from sigwrap.hooks.shell_reader import read_words
from sigwrap.hooks.verdict import Answer, combined
from sigwrap.hooks.words import Word
from sigwrap.kernel import procfs
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.network import (
    BadDestination,
    Direction,
    Endpoint,
    Protocol,
    endpoint_of,
)
from sigwrap.policy.judge.request import Operation, SignalRequest, TargetType, with_implied
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.signals import signal_number
from sigwrap.policy.tools.explain import (
    Explanation,
    environment_text,
    explain_command,
    explain_environment,
    explain_file,
    explain_network,
    explain_signal,
    explanation_text,
)
from sigwrap.session.sandbox import held_file_rules
from sigwrap.session.settings import DEFAULT_POLICY
from sigwrap.start import onefile
from sigwrap.start.policy_files import SHIPPED
from sigwrap.text import printable, shell_words

_EXAMPLE = "the command goes after --, as in sigwrap policy explain -p ci -- git push --force"
_TO_A_HOOK = {
    Answer.NO_OPINION: "leaves the decision to the agent",
    Answer.ASK: "asks the user",
    Answer.DENY: "denies the line",
}


app = App()


class _Explain(AppCommand):
    """Refuse words of the command, or a policy, before `--`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        given = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except TyperException as problem:
            unknown = unknown_option(problem)
            if "--" in given or not unknown:
                raise
            raise UsageError(f"unknown option {shell_words([unknown])}", _EXAMPLE) from problem
        words = list(ctx.params.get("command") or ())
        if "--" in given:
            words = words[: len(words) - len(given[given.index("--") + 1 :])]
        elif words and not (words[0] in SHIPPED or words[0].endswith((".yaml", ".yml"))):
            return rest
        if words:
            raise UsageError(f"{shell_words(words[:1])} is not a part of the command", _EXAMPLE)
        return rest


@app.command(cls=_Explain)
def explain(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND...", help="Command line to explain"),
    ] = None,
    policy: Annotated[
        str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="Policy to explain")
    ] = DEFAULT_POLICY,
    signal: Annotated[
        str | None, typer.Option("--signal", metavar="SIGNAL", help="Explain a signal")
    ] = None,
    target: Annotated[
        list[str] | None,
        typer.Option(
            "--target",
            click_type=TyperChoice([each.value for each in TargetType]),
            help="Type of the signal's target (repeat for several types)",
        ),
    ] = None,
    target_command: Annotated[
        str, typer.Option("--target-command", metavar="NAME", help="Name of the target")
    ] = "",
    target_pid: Annotated[
        int,
        typer.Option("--target-pid", metavar="PID", help="Pid of the target", show_default=False),
    ] = 0,
    handled: Annotated[
        bool, typer.Option("--handled", help="The target catches or ignores the signal")
    ] = False,
    depth: Annotated[
        int, typer.Option("--depth", metavar="N", help="Depth in the process tree")
    ] = 1,
    file: Annotated[
        str | None,
        typer.Option("--file", metavar="PATH", help="Explain access to a file"),
    ] = None,
    read: Annotated[bool, typer.Option("--read", help="Read it [default for --file]")] = False,
    write: Annotated[bool, typer.Option("--write", help="Change it")] = False,
    create: Annotated[bool, typer.Option("--create", help="Create it, or move it there")] = False,
    delete: Annotated[bool, typer.Option("--delete", help="Delete it, or move it away")] = False,
    execute: Annotated[bool, typer.Option("--execute", help="Execute it")] = False,
    connect: Annotated[
        str | None,
        typer.Option(
            "--connect",
            metavar="HOST:PORT|unix:PATH",
            help="Explain a connection",
        ),
    ] = None,
    listen: Annotated[
        str | None,
        typer.Option("--listen", metavar="ADDRESS:PORT", help="Explain a server"),
    ] = None,
    udp: Annotated[bool, typer.Option("--udp", help="Use UDP for --connect")] = False,
    environment: Annotated[
        bool,
        typer.Option("--env", help="Explain which environment variables the policy removes"),
    ] = False,
    root: RootOption = None,
    form: FormatOption = Format.TEXT,
) -> None:
    """Explain which rule decides, and why.

    It also shows the earlier rules that do not match, and the files and addresses that the command
    names. For a shell line (bash -c '…'), it explains each command in that line.
    """
    given = [each for each in (signal, file, connect, listen) if each is not None]
    if bool(command) + len(given) + environment != 1:
        raise UsageError(
            "give one of -- COMMAND..., --signal SIGNAL, --file PATH, --connect HOST:PORT, "
            "--listen ADDRESS:PORT and --env"
        )
    flags = zip(Operation, (read, write, create, delete, execute), strict=True)
    operations = [operation for operation, is_wanted in flags if is_wanted]
    if operations and file is None:
        raise UsageError(f"--{operations[0].value} needs --file PATH")
    if udp and connect is None:
        raise UsageError("--udp needs --connect HOST:PORT")
    engine = Engine(load(policy, root))
    if environment:
        _explain_environment(engine.policy, form)
    elif command:
        _explain_command(engine, _command_words(command), depth, form)
    elif file is not None:
        found = [_explained_file(engine, file, each) for each in operations or [Operation.READ]]
        _print(form, *found)
    elif signal is not None:
        types = (TargetType(each) for each in target or [TargetType.EXTERNAL.value])
        request = SignalRequest(
            signal=_signal_number(signal),
            target_types=with_implied(types),
            target_command=target_command,
            target_pid=target_pid,
            handled=handled,
        )
        _print(form, explain_signal(engine, request))
    else:
        protocol = Protocol.UDP if udp else Protocol.TCP
        direction = Direction.BIND if connect is None else Direction.CONNECT
        endpoint = _endpoint(connect or listen or "", direction, protocol)
        _print(form, explain_network(engine, endpoint))


def _print(form: Format, *explanations: Explanation) -> None:
    if form is Format.JSON:
        plainly = [plain(each) for each in explanations]
        out(json.dumps(plainly[0] if len(plainly) == 1 else plainly, indent=2))
    else:
        out("\n\n".join(map(explanation_text, explanations)))


def _explain_command(engine: Engine, words: list[str], depth: int, form: Format) -> None:
    machine = ThisMachine(engine)
    request = machine.by_name(words, os.getcwd(), depth)
    explanation = explain_command(engine, request)
    for name in not_found(request):
        note(f"{shell_words([name])} is not in PATH; explained as if in /usr/bin")
    line = _explained_line(engine, machine, words, depth)
    if line is None:
        _print(form, explanation)
    elif form is Format.JSON:
        out(json.dumps({**plain(explanation), "line": plain(line)}, indent=2))
    else:
        parts = [explanation_text(explanation)]
        if line.commands:
            parts += ["In the shell line:", *map(explanation_text, line.commands)]
        if line.others:
            parts.append("\n".join(printable(f"{each.what}: {each.why}") for each in line.others))
        out("\n\n".join([*parts, f"As an agent hook, sigwrap {_TO_A_HOOK[line.hook]}."]))


class _Other(NamedTuple):
    """A file or an address, or a command that the line does not show."""

    what: str
    answer: Answer
    why: str


class _Line(NamedTuple):
    """The contents of a shell line, as a run and a hook judge them."""

    commands: tuple[Explanation, ...]
    others: tuple[_Other, ...]
    hook: Answer  # to the whole line


def _explained_line(
    engine: Engine, machine: ThisMachine, words: list[str], depth: int
) -> _Line | None:
    """Explain the line of `SHELL -c LINE`, or the files and addresses that another command names.

    Return None if it names none.
    """
    folder, home = os.getcwd(), os.environ.get("HOME", "")
    commands: tuple[Explanation, ...] = ()
    line = read_words(words, folder=folder, home=home, depth=depth)
    if line is None:
        shown = shell_words(words)
        itself = Command(tuple(map(Word, words)), shown, (folder,), depth)
        line = Line((itself,), (), (), frozenset(), text=shown, folder=folder)
    else:
        requests = (
            machine.request(words_in(each, where, machine), where, each.depth, line.variables)
            for each in line.commands
            for where in each.folders
        )
        commands = tuple(dict.fromkeys(explain_command(engine, each) for each in requests))
    verdict = combined(judged(line, engine, machine, inside=False))
    others = tuple(
        _Other(each.what, each.answer, each.why)
        for each in verdict.findings
        if each.decision is None or not each.is_command
    )
    return _Line(commands, others, verdict.answer) if commands or others else None


def _signal_number(name: str) -> int:
    number = signal_number(name)
    if number is None:
        raise UsageError(f"unknown signal: {name}")
    return number


def _endpoint(text: str, direction: Direction, protocol: Protocol) -> Endpoint:
    try:
        found = endpoint_of(text, direction, protocol)
    except BadDestination as problem:
        raise UsageError(f"{shell_words([text])}: {problem}") from problem
    if not found.socket.startswith("/"):
        return found
    # A run knows an existing socket by its real path, and by the names that the policy gives it.
    return found._replace(socket=os.path.realpath(found.socket), names=frozenset({found.socket}))


def _explained_file(engine: Engine, file: str, operation: Operation) -> Explanation:
    given = os.path.abspath(os.path.expanduser(file))
    path = real_path(operation, given)
    held, exists = held_file_rules(engine), os.path.lexists(path)
    return explain_file(engine, held, operation, path, given, exists=exists)


def _explain_environment(policy: Policy, form: Format) -> None:
    own = onefile.original_environment(procfs.environment())
    explained = explain_environment(policy, [os.fsdecode(name) for name in own])
    is_text = form is Format.TEXT
    out(environment_text(explained) if is_text else json.dumps(plain(explained), indent=2))


def _command_words(command: list[str]) -> list[str]:
    """Split a single argument with spaces: it is a whole command line in quotes."""
    if len(command) == 1 and " " in command[0]:
        try:
            command = shlex.split(command[0])
        except ValueError as error:
            raise UsageError(f"not a valid command line: {error}") from error
    return command
