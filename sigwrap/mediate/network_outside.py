"""Work that is handed to somebody outside: what a connection to a server of the same user comes to,
which runs what it is asked to where nothing is judged.

It is a record beside the decision, which was made by the socket's name before: who listens there,
the kernel says only of a connection that is made.
"""

from __future__ import annotations

from sigwrap.events import Payload
from sigwrap.mediate.effects import Judgement, RecordRepeated
from sigwrap.mediate.masking import masked
from sigwrap.mediate.network_facts import NetworkFacts, Outside
from sigwrap.policy.judge.globs import Glob
from sigwrap.policy.judge.network import SOCKETS, Endpoint

_COUNTED_FOR_S = 60.0
_WORDS_KEPT, _CHARACTERS_KEPT = 20, 200
# Rules speak of these by their names, and a `git push` or a window would be told of at each start.
_HAVE_RULES = ("dbus", "x11", "wayland", "ssh-agent", "gpg-agent")
_RUN_NOTHING = (
    "/dev/log",
    "/run/avahi-daemon/*",
    "/run/cups/*",
    "/run/nscd/*",
    "/run/pcscd/*",
    "/run/systemd/journal/*",
    "/run/systemd/notify",
    "/run/systemd/resolve/*",
    "/run/systemd/userdb/*",
    "/run/user/*/pipewire-*",
    "/run/user/*/pulse/*",
    "/var/lib/sss/pipes/**",
)
_names: list[Glob] = []


def tell_of(outside: Outside, facts: NetworkFacts, endpoint: Endpoint) -> Judgement:
    """Whether to go on: not where it could not be recorded."""
    if runs_nothing(endpoint.socket):
        return True
    payload: Payload = {
        "syscall": facts.syscall,
        "comm": facts.process.comm,
        "socket": str(endpoint),
        "peer_pid": outside.pid,
        "peer_cmd": outside.comm,
        "peer_argv": _shown(outside.argv),
    }
    key = (outside.pid, outside.start_time), endpoint.socket
    return bool((yield RecordRepeated("work_handed_outside", payload, key, _COUNTED_FOR_S)))


def runs_nothing(socket: str) -> bool:
    """Or is marked already."""
    if not _names:  # most runs never ask
        globs = (*_RUN_NOTHING, *(each for word in _HAVE_RULES for each in SOCKETS[word]))
        _names.extend(map(Glob, globs))
    return any(each.matches(socket) for each in _names)


def _shown(argv: tuple[str, ...]) -> list[str]:
    words = [word[:_CHARACTERS_KEPT] for word in masked(argv[:_WORDS_KEPT])]
    return [*words, "..."] if len(argv) > _WORDS_KEPT else words
