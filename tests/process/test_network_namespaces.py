"""Network rules hold in network namespaces that a session makes, and connections there go where
they go natively: a socket belongs to the namespace that it was made in, whoever connects it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.network import DATAGRAMS, STREAMS, Answering, Rules, under, was_looked_at
from tests.support.programs import needs

EVERYWHERE = Rules(
    (
        'name: all, destinations: ["*", "unix:*"], decision: allow',
        'name: servers, direction: bind, destinations: ["*", "unix:*"], decision: allow',
    ),
    "deny",
)


class Outside:
    """Servers that are in no namespace of the session's."""

    def __init__(self, subject: Sigwrap) -> None:
        self.file = subject.folder / "outside"
        self.name = f"sigwrap-test-{subject.mark}"
        self.all = [
            Answering(self.file, b"outside, by a file"),
            Answering(f"\0{self.name}", b"outside, by a name"),
            Answering(("127.0.0.1", 0), b"outside"),
        ]
        self.port = self.all[-1].port

    def line(self, programs: Path) -> list[str]:
        program = str(programs / "crosses_namespaces.py")
        return [*PYTHON, program, str(self.port), self.name, str(self.file)]

    def kept(self) -> Rules:
        places = f'10.9.0.1, "unix:@{self.name}-inside", "unix:{self.file}"'
        return Rules(
            (
                f"name: keep, destinations: [{places}], decision: deny",
                f"name: port, destinations: [loopback], ports: [{self.port}], decision: deny",
            )
        )

    @property
    def connections(self) -> int:
        return sum(each.connections for each in self.all)

    def close(self) -> None:
        for each in self.all:
            each.close()


@pytest.fixture
def outside(as_user: Sigwrap) -> Iterator[Outside]:
    made = Outside(as_user)
    yield made
    made.close()


@needs("ip")
@pytest.mark.parametrize("how", [(), ("as root of a user namespace",)])
def test_a_socket_belongs_to_its_namespace_and_rules_hold_in_there(
    as_user: Sigwrap, outside: Outside, programs: Path, how: tuple[str, ...]
) -> None:
    may = ["unshare", "-n" if as_user.user is None and os.getuid() == 0 else "-Urn", "true"]
    if as_user.native(*may).returncode != 0:
        pytest.skip("needs network namespaces")
    line = [*outside.line(programs), *how]
    natively = json.loads(as_user.native(*line).stdout)
    assert natively["by the port of somebody outside"] == "ECONNREFUSED"
    assert natively["with a socket of outside"] == "outside"
    assert natively["from another machine"][0] == "near"
    for rules in (STREAMS, DATAGRAMS, EVERYWHERE):
        done = as_user.run(*under(as_user, rules), *line)
        assert done.stdout, done.stderr
        assert json.loads(done.stdout) == natively
        assert done.stderr == b""
        was_looked_at(as_user)
    reached = outside.connections
    done = as_user.run(*under(as_user, outside.kept()), *line)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == natively | {
        "with a socket of outside": "ECONNREFUSED",
        "by a name": "EACCES",
        "by a file": "EACCES",
        "datagrams": ["sent", "sent"],
        "from another machine": ["ECONNREFUSED", "ECONNREFUSED", "EACCES", "EACCES"],
    }
    assert outside.connections == reached
    told = [each for each in done.stderr.splitlines() if each.startswith(b"sigwrap: ")]
    assert len(told) == 4
    rules_seen = {e.payload["rule_name"] for e in as_user.sealed_events("connection_denied")}
    assert rules_seen == {"keep", "port"}


@needs("ip")
@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_who_is_another_user_keeps_capabilities(sigwrap: Sigwrap) -> None:
    """The kernel asks for them of whoever sends it a request, and that is sigwrap."""
    user = "setpriv --reuid 9 --regid 9 --clear-groups"
    text = (
        f"{user} --inh-caps +net_admin --ambient-caps +net_admin -- ip link set lo up; echo $?;"
        f" {user} -- ip link set lo down; echo $?; ip -br link show lo | grep -o LOOPBACK,UP"
    )
    line = ("unshare", "-n", "sh", "-c", text)
    natively = sigwrap.native(*line)
    assert natively.stdout == b"0\n2\nLOOPBACK,UP\n"
    done = sigwrap.run(*under(sigwrap, DATAGRAMS), *line)
    assert (done.stdout, done.stderr) == (natively.stdout, natively.stderr)
    assert sigwrap.sealed_events("connection_denied", "mediation_failed") == []


def _line_in_namespaces(subject: Sigwrap, programs: Path) -> list[str]:
    unshare = ["unshare", "-mn" if subject.user is None and os.getuid() == 0 else "-Urmn"]
    if subject.native(*unshare, "true").returncode != 0:
        pytest.skip("needs network namespaces")
    return [*unshare, "--", *PYTHON, str(programs / "answers_names.py")]


@needs("ip")
def test_names_are_found(as_user: Sigwrap, programs: Path) -> None:
    """Both where sigwrap is in the namespaces, and where its session makes them."""
    line = [*PYTHON, str(programs / "finds_names.py")]
    start = _line_in_namespaces(as_user, programs)
    natively = as_user.native(*start, *line)
    assert b"127.0.0.2" in natively.stdout and b"127.0.1.100" in natively.stdout, natively
    for rules in (DATAGRAMS, EVERYWHERE):
        words = under(as_user, rules)
        within = as_user.native(*start, *map(str, as_user.line(*words, *line)))
        around = as_user.run(*words, *start, *line)
        for done in (within, around):
            assert (done.returncode, done.stdout, done.stderr) == (
                natively.returncode,
                natively.stdout,
                natively.stderr,
            )
        was_looked_at(as_user)


@needs("ip")
@needs("curl")
def test_a_host_by_its_name(as_user: Sigwrap, programs: Path) -> None:
    """Which sigwrap and the session find by the same server."""
    start = _line_in_namespaces(as_user, programs)
    rules = Rules(
        (
            "name: ask, destinations: [127.0.0.1], ports: [53], decision: allow",
            "name: named, destinations: [named.test, large.test], ports: [80], decision: allow",
        ),
        "deny",
    )
    urls = [f"http://{name}.test/" for name in ("named", "large", "other")]
    line = as_user.line(*under(as_user, rules), "curl", "-sS", *urls)
    done = as_user.native(*start, *map(str, line))
    assert (done.returncode, done.stdout) == (7, b"hi\nhi\n")
    ours, theirs = done.stderr.decode().splitlines()
    assert ours.startswith("sigwrap: connection to 127.0.0.3:80: denied by rule builtin:default")
    assert theirs.startswith("curl: (7)")
    allowed = {each.payload["destination"] for each in as_user.sealed_events("connection_allowed")}
    assert {"named.test:80", "large.test:80"} <= allowed
