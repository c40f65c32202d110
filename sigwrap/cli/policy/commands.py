"""Every command of `sigwrap policy`."""

from __future__ import annotations

import typer

from sigwrap.cli.group import Group
from sigwrap.cli.policy import judging, reading, writing

_HELP = """Policies: what may run, who may signal whom, and what may be reached.

Begin with list, then init; check and test what you have written, and ask explain why. suggest makes
rules of what a session was denied, generate a policy of what it did.
"""

app = typer.Typer(cls=Group, help=_HELP, rich_markup_mode=None)
reading.register(app)
judging.register(app)
writing.register(app)
