"""Every command of `sigwrap policy`."""

from __future__ import annotations

from sigwrap.cli.group import App, Group
from sigwrap.cli.policy import checking, explaining, learning, reading, writing

_HELP = """Write, check and explain policies.

Start with list and init, then use check and explain. With learn, you get rules for actions that a
session denied, or a whole policy from its actions; with try, the decisions that a policy would have
made in a session.
"""

app = App(cls=Group, help=_HELP, rich_markup_mode=None)
reading.register(app)
checking.register(app)
explaining.register(app)
writing.register(app)
learning.register(app)
