"""Commands that nobody would allow by their name alone: what they do is in their arguments.

Known by the policies themselves: a rule of the recorded one, or of agent-default, that asks about
such a command or denies it for some arguments. What runs anything else, or sends data anywhere, no
such rule can name.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

from sigwrap.policy.judge.engine import Engine, Facts
from sigwrap.policy.judge.match import NameGlob
from sigwrap.policy.judge.request import Action, CommandRequest, Program
from sigwrap.policy.language.beforehand import parts
from sigwrap.policy.language.document import form_of_shipped
from sigwrap.policy.language.fill import Filler
from sigwrap.policy.language.variables import BUILT_IN, Room

_LENIENT = frozenset({Action.ALLOW.value, Action.AUDIT.value})
_BASE = "agent-default"
_ANY_COMMAND = "*"

# By name they could run anything.
_RUN_ANYTHING = frozenset(
    "ash bash busybox chroot csh dash deno doas env eval expect fish gdb ksh lua make mksh nice "
    "node nodejs nohup nsenter osascript parallel perl php python ruby runuser setsid sh ssh "
    "strace su sudo systemd-run tcsh tclsh time timeout unshare watch xargs zsh".split()
)
_SEND_DATA = frozenset(
    "curl ftp http httpie lftp nc ncat netcat openssl rclone rsync scp sendmail sftp socat ssh "
    "telnet tftp wget".split()
)
_OVERWRITE = frozenset("awk gawk mawk cp ln mv tar unzip".split())


def runs_anything(called: str) -> bool:
    return called.rstrip("0123456789.") in _RUN_ANYTHING


def says_too_little(
    called: str, program: Program, request: CommandRequest, engine: Engine | None
) -> bool:
    return (
        runs_anything(called)
        or called in _SEND_DATA
        or called in _OVERWRITE
        or any(each.matches(called) for each in _named_by_the_base())
        or (engine is not None and _is_named_by(engine, program, request))
    )


def _is_named_by(engine: Engine, program: Program, request: CommandRequest) -> bool:
    """By a rule about some of its arguments."""
    facts = Facts(program, request, engine.home)
    return any(
        each.rule.decision.value not in _LENIENT and each.names(facts)
        for each in engine.command_rules
        if _ANY_COMMAND not in each.rule.commands and each.rule.loads_code is None
    )


@cache
def _named_by_the_base() -> tuple[NameGlob, ...]:
    return tuple(NameGlob(each) for each in sorted(set(_words_of_the_base())))


def _words_of_the_base() -> Iterator[str]:
    form = form_of_shipped(_BASE)
    filler = Filler(dict.fromkeys(BUILT_IN, "/"), Room(), shipped=True)
    for rule in parts(form, _BASE, filler).command_rules:
        is_about_more = rule.loads_code is not None or _ANY_COMMAND in rule.commands
        if rule.decision.value not in _LENIENT and not is_about_more:
            yield from rule.commands
