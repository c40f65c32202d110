"""sigwrap policy: the group of its commands.

reading     list, show, diff, schema, check, try
explaining  explain
writing     init, pin, learn
shared      arguments of several commands, loading a policy (also of a session), results as JSON
"""

from __future__ import annotations

from sigwrap.cli.group import App, LazyGroup
from sigwrap.cli.table import POLICY

_HELP = """Write, check and explain policies.

Start with list and init, then use check and explain. With learn, you get rules for actions that a
session denied, or a whole policy from its actions; with try, the decisions that a policy would have
made in a session.
"""


class _Policy(LazyGroup):
    table = POLICY
    prefix = "policy "


app = App(name="policy", cls=_Policy, help=_HELP)
