"""sigwrap policy check, show, explain, test, pin, generate. Parse, call, print."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import fields, is_dataclass
from enum import Enum
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.exceptions import TyperException

from sigwrap.cli.group import Group
from sigwrap.cli.options import JsonOption, StoreOption, store_folder
from sigwrap.cli.output import note, out
from sigwrap.cli.tool_files import pinned, with_shadows
from sigwrap.errors import PolicyError, UsageError
from sigwrap.escape import printable, shell_words
from sigwrap.linux import procfs
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import SignalRequest, TargetType, with_implied
from sigwrap.policy.judge.rules import Policy
from sigwrap.policy.judge.signals import signal_number
from sigwrap.policy.language.lint import lint
from sigwrap.policy.problems import InvalidPolicy, Place, Problem
from sigwrap.policy.tools.cases import command_request, run_cases
from sigwrap.policy.tools.explain import (
    environment_text,
    explain_command,
    explain_environment,
    explain_signal,
    explanation_text,
)
from sigwrap.policy.tools.generate import generate_policy
from sigwrap.policy.tools.pin import pin_rules
from sigwrap.policy.tools.show import policy_text
from sigwrap.run.settings import DEFAULT_POLICY
from sigwrap.start import onefile
from sigwrap.start.policy_files import SHIPPED, host_variables, load_policy
from sigwrap.status import REFUSED
from sigwrap.store.catalog import open_session

app = typer.Typer(
    cls=Group,
    help="Policies: check, show, explain, test, pin, generate.",
    rich_markup_mode=None,
)

_CASES_EXAMPLE = "such as tests: [{command: git push --force, decision: deny}]"
_EXPLAIN_EXAMPLE = "as in sigwrap policy explain -- git push --force"

RootOption = Annotated[
    Path | None,
    typer.Option(
        "--root",
        metavar="DIR",
        help="What ${PROJECT_ROOT} stands for; the current folder if left out.",
        show_default=False,
    ),
]
PolicyArgument = Annotated[
    str, typer.Argument(metavar="NAME|FILE", help=f"Shipped: {', '.join(SHIPPED)}.")
]


@app.command()
def check(
    files: Annotated[list[str], typer.Argument(metavar="NAME|FILE...")],
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say everything that is wrong or doubtful about policies."""
    findings: list[Problem] = []
    failures: list[str] = []
    for file in files:
        try:
            policy = _load(file, root)
            found = [*policy.warnings, *lint(policy)]
        except InvalidPolicy as error:
            failures.append(file)
            found = list(error.problems)
        except PolicyError as error:
            failures.append(file)
            found = []
            note(*error.lines)
        findings += found
        if not as_json:
            for problem in found:
                out(printable(str(problem)))
            if file not in failures:
                out(printable(f"{file}: {'loads, with warnings' if found else 'fine'}"))
                _note_what_is_shipped(policy)
    if as_json:
        out(json.dumps([_plain(each) for each in findings], indent=2))
    if failures:
        raise typer.Exit(REFUSED)


def _note_what_is_shipped(policy: Policy) -> None:
    keys = [each for each in policy.unenforced if each not in policy.unenforced_here]
    if keys:
        note(f"not enforced yet of what is shipped: {', '.join(keys)}")


@app.command()
def show(policy: PolicyArgument, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Print a policy as it takes effect: bases merged, variables filled in."""
    loaded = _load(policy, root)
    out(json.dumps(_plain(loaded), indent=2) if as_json else policy_text(loaded))


class _Explain(TyperCommand):
    """A word before `--` would be taken for the command's first, and `--` for an option's value."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        before, behind = _around_dashes(args)
        if before[-1:] and before[-1] in self._with_value():
            raise UsageError(f"{before[-1]} needs a value", _EXPLAIN_EXAMPLE)
        try:
            rest = super().parse_args(ctx, list(args))
        except TyperException as problem:
            why = problem.format_message().rstrip(".")
            if behind is not None or not why.startswith("No such option"):
                raise
            raise UsageError(why, f"the command comes behind --, {_EXPLAIN_EXAMPLE}") from problem
        command = list(ctx.params.get("command") or ())
        if command and behind is None and _must_be_a_policy(command[0]):
            raise _misplaced(command[0], command[1:])
        if behind is not None and len(command) > len(behind):
            raise _misplaced(command[0], behind)
        return rest

    def _with_value(self) -> set[str]:
        options = (each for each in self.params if not getattr(each, "is_flag", True))
        return {word for option in options for word in option.opts}


def _around_dashes(args: list[str]) -> tuple[list[str], list[str] | None]:
    if "--" not in args:
        return [], None
    at = args.index("--")
    return args[:at], args[at + 1 :]


def _must_be_a_policy(word: str) -> bool:
    return word in SHIPPED or (word.endswith((".yaml", ".yml")) and os.path.isfile(word))


def _misplaced(word: str, command: list[str]) -> UsageError:
    shown = shell_words(command) if command else "COMMAND"
    if word in SHIPPED or os.path.isfile(word):
        right = f"sigwrap policy explain -p {shell_words([word])} -- {shown}"
        return UsageError(f"{shell_words([word])} is a policy, not a command", right)
    line = f"sigwrap policy explain -- {shown}"
    return UsageError(f"{shell_words([word])} is neither an option nor behind --", line)


@app.command(cls=_Explain)
def explain(
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- COMMAND...", help="The command line to be judged."),
    ] = None,
    policy: Annotated[str, typer.Option("--policy", "-p", metavar="NAME|FILE")] = DEFAULT_POLICY,
    signal: Annotated[
        str | None, typer.Option("--signal", metavar="SIGNAL", help="Instead of a command.")
    ] = None,
    target: Annotated[
        list[TargetType] | None,
        typer.Option("--target", help="Who the signal is for; several if it is several."),
    ] = None,
    target_command: Annotated[str, typer.Option("--target-command", metavar="NAME")] = "",
    target_pid: Annotated[int, typer.Option("--target-pid", metavar="PID")] = 0,
    handled: Annotated[
        bool, typer.Option("--handled", help="The target catches or ignores the signal.")
    ] = False,
    depth: Annotated[int, typer.Option("--depth", help="How far below COMMAND it runs.")] = 1,
    environment: Annotated[
        bool,
        typer.Option("--env", help="Which variables of this environment COMMAND would not get."),
    ] = False,
    root: RootOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say which rule decides, why, and which ones were passed; or what the environment loses."""
    loaded = _load(policy, root)
    if bool(command) + (signal is not None) + environment != 1:
        raise UsageError("explain what? give one of -- COMMAND..., --signal SIGNAL and --env")
    if environment:
        _explain_environment(loaded, as_json=as_json)
        return
    engine = Engine(loaded)
    if command:
        words = _command_words(command)
        request = with_shadows(command_request(words, folder=os.getcwd(), depth=depth))
        explanation = explain_command(engine, request)
    else:
        number = signal_number(signal or "")
        if number is None:
            raise UsageError(f"unknown signal: {signal}")
        signal_request = SignalRequest(
            signal=number,
            target_types=with_implied(target or [TargetType.EXTERNAL]),
            target_command=target_command,
            target_pid=target_pid,
            handled=handled,
        )
        explanation = explain_signal(engine, signal_request)
    out(json.dumps(_plain(explanation), indent=2) if as_json else explanation_text(explanation))


def _explain_environment(policy: Policy, *, as_json: bool) -> None:
    own = onefile.original_environment(procfs.environment())
    explained = explain_environment(policy, [os.fsdecode(name) for name in own])
    out(
        json.dumps(_plain(explained), indent=2)
        if as_json
        else environment_text(explained, printable)
    )


@app.command()
def test(policy: PolicyArgument, root: RootOption = None, as_json: JsonOption = False) -> None:
    """Run the cases that a policy keeps under `tests:`."""
    results = list(run_cases(Engine(_load(policy, root))))
    if not results:
        raise UsageError(f"{policy} has no cases to run", _CASES_EXAMPLE)
    failed = [each for each in results if not each.passed]
    if as_json:
        out(json.dumps([{**_plain(each), "passed": each.passed} for each in results], indent=2))
    else:
        for each in failed:
            out(printable(str(each)))
        passed = f"{len(results) - len(failed)} of {len(results)} cases pass"
        out(printable(f"{policy}: {passed}"))
    if failed:
        raise typer.Exit(1)


@app.command()
def pin(
    tools: Annotated[
        list[str],
        typer.Argument(
            metavar="TOOL...", help="A name, found along PATH as a run would, or a path."
        ),
    ],
) -> None:
    """Print rules that deny these tools once their files are others than now."""
    out(pin_rules(list(map(pinned, tools))))


@app.command()
def generate(
    sessions: Annotated[
        list[str], typer.Argument(metavar="SESSION...", help="An id, a unique prefix, or a --name.")
    ],
    name: Annotated[str, typer.Option("--name", help="The policy's name.")] = "generated",
    store: StoreOption = None,
) -> None:
    """Print a policy that allows what these sessions did, and nothing else."""
    if not name or not name.isprintable():
        raise UsageError(f"--name {shell_words([name])}: a policy can't be called that")
    folder = store_folder(store)
    events = chain.from_iterable(open_session(folder, each).events() for each in sessions)
    out(generate_policy(events, name=name).rstrip())


def _load(selector: str, root: Path | None) -> Policy:
    return load_policy(selector, variables=host_variables(str(root or Path.cwd())))


def _command_words(command: list[str]) -> list[str]:
    """One argument with spaces is a command line in quotes."""
    if len(command) == 1 and " " in command[0]:
        try:
            command = shlex.split(command[0])
        except ValueError as error:
            raise UsageError(f"not a command line: {error}") from error
    return command


def _plain(value: Any) -> Any:
    """A result as JSON has it."""
    if isinstance(value, Place):
        return {"file": value.file, "line": value.line, "column": value.column}
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if hasattr(value, "_asdict"):
        return {name: _plain(each) for name, each in value._asdict().items()}
    if isinstance(value, frozenset):
        return sorted(map(_plain, value))
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    return value
