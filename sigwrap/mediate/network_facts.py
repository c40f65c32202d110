"""What a call asks of a socket."""

from __future__ import annotations

from sigwrap.mediate.facts import WouldFail
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.network import Endpoint
from sigwrap.tuples import NamedTuple


class NoAddress(NamedTuple):
    """It undoes a connection, or leaves the choice to the kernel."""


class NewSocket(NamedTuple):
    """The caller has its registers say that it wants one, and its memory which."""


class NoMatter(NamedTuple):
    """Whatever it is: no rule keeps anybody from that."""


class OutOfRules(NamedTuple):
    """No rule can be about it, and it would reach others all the same."""

    what: str
    why: str = "network_rules cannot cover it, so sigwrap denies it"


class Outside(NamedTuple):
    """Who listens at the other end of a connection, where that is nobody of the session's, and the
    same user."""

    pid: int  # 0: in another container
    start_time: int = 0
    comm: str = ""  # empty where it has ended
    argv: tuple[str, ...] = ()


Aim = Endpoint | NoAddress | NoMatter | NewSocket | OutOfRules | WouldFail


class NetworkFacts(NamedTuple):
    process: Process
    syscall: str
    aim: Aim
