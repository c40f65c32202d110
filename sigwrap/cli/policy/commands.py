"""Every command of `sigwrap policy`."""

from __future__ import annotations

import typer

from sigwrap.cli.group import Group
from sigwrap.cli.policy import judging, reading, writing

_HELP = """Write, check and explain policies.

Start with list and init, then use check, test and explain. With suggest, you get rules for actions
that a session denied; with generate, a policy from the actions of a session.
"""

app = typer.Typer(cls=Group, help=_HELP, rich_markup_mode=None)
reading.register(app)
judging.register(app)
writing.register(app)
