"""Network rules hold in network namespaces that a session makes, and connections there go where
they go natively: a socket belongs to the namespace that it was made in, whoever connects it."""

from __future__ import annotations

import contextlib
import json
import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.network import DATAGRAMS, STREAMS, Answering, Rules, under, was_looked_at
from tests.support.programs import needs


@needs("ip")
@pytest.mark.parametrize("how", [(), ("as root of a user namespace",)])
def test_a_socket_belongs_to_its_namespace_and_rules_hold_in_there(
    as_user: Sigwrap, programs: Path, how: tuple[str, ...]
) -> None:
    """Outside there are servers at a port, a name and a file."""
    may = ["unshare", "-n" if as_user.user is None and os.getuid() == 0 else "-Urn", "true"]
    if as_user.native(*may).returncode != 0:
        pytest.skip("needs network namespaces")
    file, name = as_user.folder / "outside", f"sigwrap-test-{as_user.mark}"
    with ExitStack() as closing:
        outside = [
            closing.enter_context(contextlib.closing(Answering(at, b"outside")))
            for at in (("127.0.0.1", 0), f"\0{name}", file)
        ]
        port = outside[0].port
        program = str(programs / "crosses_namespaces.py")
        line = [*PYTHON, program, str(port), name, str(file), *how]
        natively = json.loads(as_user.native(*line).stdout)
        assert natively["by the port of somebody outside"] == "ECONNREFUSED"
        assert natively["with a socket of outside"] == "outside"
        done = as_user.run(*under(as_user, STREAMS), *line)
        assert done.stdout, done.stderr
        assert json.loads(done.stdout) == natively
        assert done.stderr == b""
        was_looked_at(as_user)
        reached = [each.connections for each in outside]
        places = f'"unix:@{name}-inside", "unix:{file}"'
        kept = Rules(
            (
                f"name: keep, destinations: [{places}], decision: deny",
                f"name: port, destinations: [loopback], ports: [{port}], decision: deny",
            )
        )
        done = as_user.run(*under(as_user, kept), *line)
        assert done.stdout, done.stderr
        assert json.loads(done.stdout) == natively | {
            "with a socket of outside": "ECONNREFUSED",
            "by a name": "EACCES",
            "by a file": "EACCES",
        }
        assert [each.connections for each in outside] == reached
    told = [each for each in done.stderr.splitlines() if each.startswith(b"sigwrap: ")]
    *denials, end = told
    assert len(denials) == 3 and all(each.startswith(b"sigwrap: denied: ") for each in denials)
    assert end.startswith(b"sigwrap: 4 actions denied (sigwrap report ")
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
