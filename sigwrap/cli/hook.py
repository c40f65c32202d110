"""sigwrap hook: the options of the command (hook_call.py judges the call)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli.examples import examples
from sigwrap.cli.hook_call import HookLine, answer
from sigwrap.cli.options import StoreOption
from sigwrap.errors import UsageError
from sigwrap.hooks.formats import AGENTS, AgentProgram
from sigwrap.run.settings import DEFAULT_POLICY

HookPolicyOption = Annotated[
    str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="Policy that decides")
]


def register(app: typer.Typer) -> None:
    app.command(epilog=examples("hook"))(hook)


def hook(
    program: Annotated[
        AgentProgram, typer.Argument(metavar="AGENT", help=f"Agent that calls: {AGENTS}")
    ],
    policy: HookPolicyOption = DEFAULT_POLICY,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Project directory [default: the agent's project]",
            show_default=False,
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Judge an agent's tool call from standard input.

    The answer is in the agent's own format. It is empty if the policy allows the call: then the
    agent asks as usual. Otherwise it asks the user or denies the call, with a reason. The decision
    is logged. To set up the hook: sigwrap install.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        raise UsageError("no tool call on standard input", "to set up the hook: sigwrap install")
    return answer(HookLine(program, policy, str(root or ""), store))
