"""Connections, datagrams and servers as transcripts: what is asked of a socket, and the answer."""

from __future__ import annotations

import errno

import pytest

from sigwrap.approve.requests import Answer, denial
from sigwrap.network.judge import (
    NetworkFacts,
    NetworkMediator,
    OutOfRules,
    SocketAim,
    runs_nothing,
)
from sigwrap.policy.judge.network import Direction, Endpoint, Protocol, endpoint_of
from sigwrap.session.effects import (
    Ask,
    Fail,
    Logged,
    MakeSocket,
    Outside,
    Reach,
    Reached,
    Succeed,
    Tell,
    Unrecorded,
    would_fail,
)
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, engine, play_from

RULES = """
network_rules:
  - {name: no, destinations: [192.0.2.1], decision: deny, message: not this one}
  - {name: marked, destinations: [192.0.2.2], decision: audit}
  - {name: asked, destinations: [192.0.2.3], decision: approve}
  - {name: file, destinations: ["unix:/run/x"], decision: deny}
"""
CURL = Process(pid=7, start_time=1, parent=None, ppid=1, depth=1, comm="curl")


def to(text: str, protocol: Protocol = Protocol.TCP) -> Endpoint:
    return endpoint_of(text, Direction.CONNECT, protocol)


class Subject:
    def __init__(self) -> None:
        self._mediator = NetworkMediator(engine(RULES).network, "x")

    def asks(self, aim: SocketAim, syscall: str = "connect") -> Transcript:
        return play_from(self._mediator, NetworkFacts(CURL, syscall, aim))


def recorded(
    transcript: Transcript,
    event: str,
    aim: Endpoint,
    rule: str,
    *,
    syscall: str = "connect",
    reply: Logged = Logged.WRITTEN,
) -> Transcript:
    key = (CURL, syscall, aim, rule)
    return transcript.counts(event, key, 1.0, reply=reply, rule_name=rule, destination=str(aim))


@pytest.mark.parametrize(
    ("host", "event", "rule"),
    [
        ("192.0.2.2", "connection_audited", "marked"),
        ("1.1.1.1", "connection_allowed", "builtin:default"),
    ],
)
def test_what_is_allowed_is_recorded_and_then_done(host: str, event: str, rule: str) -> None:
    aim = to(f"{host}:80")
    transcript = recorded(Subject().asks(aim), event, aim, rule)
    transcript.yields(Reach(), reply=Reached(0)).succeeds(None, 0)
    assert transcript.payload["address"] == host
    assert (transcript.payload["port"], transcript.payload["protocol"]) == (80, "tcp")


def test_what_the_kernel_answers_the_caller_gets() -> None:
    aim = to("1.1.1.1:53", Protocol.UDP)
    transcript = Subject().asks(aim, "sendto")
    recorded(transcript, "connection_allowed", aim, "builtin:default", syscall="sendto")
    transcript.yields(Reach(), reply=Reached(12)).succeeds(None, 12)
    aim = to("1.1.1.1:80")
    transcript = recorded(Subject().asks(aim), "connection_allowed", aim, "builtin:default")
    transcript.yields(Reach(), reply=Reached(0, errno.ENETUNREACH))
    transcript.fails(errno.ENETUNREACH)


@pytest.mark.parametrize(
    ("text", "protocol", "error"),
    [
        ("192.0.2.1:80", Protocol.TCP, errno.ECONNREFUSED),
        ("192.0.2.1:80", Protocol.UDP, errno.EACCES),
        ("unix:/run/x", Protocol.UNIX, errno.EACCES),
    ],
)
def test_a_denial_is_told_once(text: str, protocol: Protocol, error: int) -> None:
    subject, aim = Subject(), to(text, protocol)
    rule, why = ("no", "not this one") if protocol is not Protocol.UNIX else ("file", "")
    transcript = recorded(subject.asks(aim), "connection_denied", aim, rule)
    transcript.yields(Tell(denial(f"connection to {text}", rule, "x", why))).fails(error)
    again = recorded(subject.asks(aim), "connection_denied", aim, rule, reply=Logged.COUNTED)
    again.fails(error)


def test_where_it_can_t_be_recorded_it_is_not_done() -> None:
    aim = to("1.1.1.1:80")
    transcript = Subject().asks(aim)
    recorded(transcript, "connection_allowed", aim, "builtin:default", reply=Logged.FAILED)
    transcript.fails(errno.EPERM)


@pytest.mark.parametrize("logged", [Logged.WRITTEN, Logged.COUNTED, Logged.FAILED])
def test_who_listens_outside_is_told_of_once_it_is_known(logged: Logged) -> None:
    outside = Outside(9, 100, "codex", ("/opt/codex", "app-server", "--token=ghp_" + 36 * "a"))
    aim = to("unix:/tmp/x.sock", Protocol.UNIX)
    transcript = recorded(Subject().asks(aim), "connection_allowed", aim, "builtin:default")
    transcript.yields(Reach(), reply=Reached(0, outside=outside))
    key = (9, 100), "/tmp/x.sock"
    transcript.counts(
        "work_handed_outside",
        key,
        60.0,
        reply=logged,
        socket="unix:/tmp/x.sock",
        comm="curl",
        peer_pid=9,
        peer_cmd="codex",
        peer_argv=["/opt/codex", "app-server", "--token=***"],
    )
    transcript.yields(Succeed(None, 0) if logged else Fail(errno.EPERM)).ends()


def test_what_runs_nothing_is_not_told_of() -> None:
    for socket, is_told in (
        ("/run/nscd/socket", False),
        ("/run/systemd/journal/stdout", False),
        ("/run/user/1000/bus", False),
        ("@/tmp/.X11-unix/X0", False),
        ("/home/ann/.gnupg/S.gpg-agent", False),
        ("/run/user/1000/systemd/private", True),
        ("/tmp/tmux-1000/default", True),
        ("/home/ann/.codex/app-server.sock", True),
        ("", True),
    ):
        assert runs_nothing(socket) is not is_told


def test_somebody_is_asked() -> None:
    aim = to("192.0.2.3:443")
    for granted, event in ((True, "connection_approved"), (False, "connection_denied")):
        transcript = Subject().asks(aim)
        asked = transcript.next(Answer(granted=granted, reason="said so", by="tester", message=""))
        assert isinstance(asked, Ask)
        assert asked.request.what == "connection to 192.0.2.3:443"
        assert asked.request.kind == "connection"
        recorded(transcript, event, aim, "asked")
        if granted:
            transcript.yields(Reach(), reply=Reached(0)).succeeds(None, 0)
        else:
            transcript.tells("192.0.2.3:443").fails(errno.ECONNREFUSED)


def test_what_reaches_nobody_or_would_fail_needs_no_event() -> None:
    reach = Reach(Unrecorded.REACHES_NO_PROCESS)
    done = Subject().asks(reach).yields(reach, reply=Reached(3))
    done.succeeds(Unrecorded.REACHES_NO_PROCESS, 3)
    failed = Subject().asks(reach).yields(reach, reply=Reached(0, errno.EINVAL))
    failed.fails(errno.EINVAL, Unrecorded.NOTHING_HAPPENS)
    made = Subject().asks(MakeSocket(Unrecorded.REACHES_NO_PROCESS), "socketcall")
    made.yields(MakeSocket(Unrecorded.REACHES_NO_PROCESS), reply=0).ends()
    transcript = Subject().asks(would_fail(errno.EBADF))
    transcript.fails(errno.EBADF, Unrecorded.NOTHING_HAPPENS)


def test_what_no_rule_can_be_about_is_refused() -> None:
    subject = Subject()
    transcript = subject.asks(OutOfRules("io_uring"), "io_uring_setup")
    transcript.records("connection_denied", destination="io_uring", rule_name="builtin:network")
    transcript.tells("io_uring").fails(errno.EPERM)
    again = subject.asks(OutOfRules("io_uring"), "io_uring_setup")
    again.records("connection_denied").fails(errno.EPERM)
