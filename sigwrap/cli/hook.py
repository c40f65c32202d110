"""sigwrap hook: the commands of an agent's hook (hook_call.py judges a call)."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from sigwrap.cli import install
from sigwrap.cli.group import App, Group
from sigwrap.cli.hook_call import HookLine, answer
from sigwrap.cli.options import StoreOption
from sigwrap.errors import UsageError
from sigwrap.hooks.formats import AGENTS, AgentProgram
from sigwrap.session.settings import DEFAULT_POLICY

PolicyOption = Annotated[
    str, typer.Option("--policy", "-p", metavar="NAME|FILE", help="Policy that decides")
]

app = App(name="hook", cls=Group, help="Judge an agent's tool calls before they run.")
app.add_typer(install.app)


@app.command()
def run(
    program: Annotated[
        AgentProgram, typer.Argument(metavar="AGENT", help=f"Agent that calls: {AGENTS}")
    ],
    policy: PolicyOption = DEFAULT_POLICY,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            metavar="DIR",
            help="Project directory [default: the agent's project]",
        ),
    ] = None,
    store: StoreOption = None,
) -> int:
    """Judge an agent's tool call from standard input.

    The answer is in the agent's own format. It is empty if the policy allows the call: then the
    agent asks as usual. Otherwise it asks the user or denies the call, with a reason. The decision
    is logged. To set up the hook: sigwrap hook install.
    """
    if sys.stdin is not None and sys.stdin.isatty():
        hint = "to set up the hook: sigwrap hook install"
        raise UsageError("no tool call on standard input", hint)
    return answer(HookLine(program, policy, str(root or ""), store))
