"""Every command of `sigwrap policy`."""

from __future__ import annotations

from sigwrap.cli.group import App, Group
from sigwrap.cli.policy import judging, reading, writing

_HELP = """Write, check and explain policies.

Start with list and init, then use check, test and explain. With suggest, you get rules for actions
that a session denied; with generate, a policy from the actions of a session.
"""

app = App(cls=Group, help=_HELP, rich_markup_mode=None)
reading.register(app)
judging.register(app)
writing.register(app)
