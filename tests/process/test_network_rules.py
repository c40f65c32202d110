"""Rules on connections, datagrams and servers: what they allow goes on as natively, what they deny
gets a clear answer, and all of it is in the log."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, Sigwrap
from tests.support.network import Answering, network_policy
from tests.support.programs import needs

ANSWER = b"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nhi\n"


@pytest.fixture
def server() -> Iterator[Answering]:
    made = Answering(("127.0.0.1", 0), ANSWER)
    yield made
    made.close()


def test_what_is_allowed_goes_on_as_natively(as_user: Sigwrap, programs: Path) -> None:
    line = [*PYTHON, str(programs / "uses_sockets.py")]
    natively = json.loads(as_user.native(*line).stdout)
    rule = 'name: servers, direction: bind, destinations: ["*", "unix:*"], decision: audit'
    done = as_user.run("-p", network_policy(as_user, rule, default="audit"), "--", *line)
    assert done.stdout, done.stderr
    assert json.loads(done.stdout) == natively
    assert done.stderr == b""
    types = {each.type for each in as_user.sealed_events()}
    assert "connection_audited" in types
    assert not types & {"connection_denied", "mediation_failed", "call_refused"}


@needs("curl")
def test_a_host_by_its_name_is_allowed_and_another_is_denied_in_one_clear_line(
    as_user: Sigwrap, server: Answering
) -> None:
    rules = (
        "name: named, destinations: [localhost], decision: allow",
        f"name: keep, destinations: [loopback], ports: [{server.port}], decision: deny",
    )
    urls = [f"http://{host}:{server.port}/" for host in ("localhost", "127.0.0.2", "127.0.0.2")]
    text = 'for url; do curl -sS "$url"; done; :'
    done = as_user.run("-p", network_policy(as_user, *rules), "--", "sh", "-c", text, "sh", *urls)
    assert done.stdout == b"hi\n"
    ours, *theirs, end = done.stderr.decode().splitlines()
    assert ours.startswith(
        f"sigwrap: denied: connection to 127.0.0.2:{server.port} (rule keep, policy test)"
    )
    assert end.startswith("sigwrap: 2 actions denied (sigwrap report ")
    assert len(theirs) == 2 and all(each.startswith("curl: (7)") for each in theirs)
    assert server.connections == 1
    (allowed,) = {each.payload["destination"] for each in as_user.events("connection_allowed")}
    assert allowed == f"localhost:{server.port}"
    denied = as_user.sealed_events("connection_denied")
    assert len(denied) == 2
    payload = denied[0].payload
    assert payload["destination"] == f"127.0.0.2:{server.port}"
    assert (payload["syscall"], payload["comm"], payload["rule_name"]) == (
        "connect",
        "curl",
        "keep",
    )


@pytest.mark.promise("network rules")
def test_a_server_listens_only_where_it_may(as_user: Sigwrap) -> None:
    rules = (
        "name: local, direction: bind, destinations: [loopback], decision: allow",
        'name: world, direction: bind, destinations: ["*"], decision: deny',
    )
    script = (
        "import socket\n"
        "def listen(*at):\n"
        "    made = socket.socket()\n"
        "    if at: made.bind(at)\n"
        "    try: made.listen()\n"
        "    except OSError as refusal: print(refusal.strerror)\n"
        "    else: print('listens')\n"
        "listen('127.0.0.1', 0); listen('0.0.0.0', 0); listen()\n"
    )
    done = as_user.run("-p", network_policy(as_user, *rules), "--", *PYTHON, "-c", script)
    assert done.stdout.decode().splitlines() == ["listens", *["Permission denied"] * 2]
    denied = as_user.sealed_events("connection_denied")
    assert [each.payload["syscall"] for each in denied] == ["listen"] * 2


@pytest.mark.promise("network rules")
def test_a_socket_of_the_machine_by_its_place(as_user: Sigwrap) -> None:
    at = as_user.folder / "daemon.sock"
    server = Answering(at, ANSWER)
    rule = f'name: keep, destinations: ["unix:{as_user.folder}/daemon*"], decision: deny'
    script = (
        "import os, socket, sys\n"
        "os.symlink(sys.argv[1], 'link')\n"
        "for name in (sys.argv[1], 'daemon.sock', 'link', '../' + os.path.relpath('.', '..') + "
        "'/daemon.sock'):\n"
        "    made = socket.socket(socket.AF_UNIX)\n"
        "    print(made.connect_ex(name))\n"
    )
    done = as_user.run("-p", network_policy(as_user, rule), "--", *PYTHON, "-c", script, str(at))
    assert done.stdout.split() == [b"13"] * 4
    assert server.connections == 0
    assert done.stderr.count(b"(rule keep, policy") == 1
    server.close()


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_who_is_another_user_connects_as_that_and_is_lent_no_rights(
    sigwrap: Sigwrap, compiled: Path
) -> None:
    """Where sigwrap runs as root, which may search folders, mark what is sent and own sockets."""
    script = (
        "import os, socket, struct, subprocess, sys\n"
        "folder, makes_socket = sys.argv[1:]\n"
        "os.makedirs(f'{folder}/closed', 0o700, exist_ok=True)\n"
        "os.chdir(f'{folder}/closed')\n"
        "server = socket.socket(socket.AF_UNIX); server.bind('there'); server.listen()\n"
        "os.chmod('there', 0o777)\n"
        "os.symlink(os.path.abspath('there'), '../link')\n"
        "other, servers = os.getpid(), []\n"
        "for name, mode in (('shut', 0o755), ('open', 0o777)):\n"
        "    servers.append(socket.socket(socket.AF_UNIX)); servers[-1].bind('../' + name)\n"
        "    servers[-1].listen(); os.chmod('../' + name, mode)\n"
        "if os.fork() == 0:\n"
        "    os.chdir(folder); os.setgroups([]); os.setresgid(8, 8, 8); os.setresuid(9, 9, 9)\n"
        "    def reach(name): return socket.socket(socket.AF_UNIX).connect_ex(name)\n"
        "    for name in ('closed/there', 'link', f'/proc/{other}/cwd/there', 'closed/none',"
        " 'shut'):\n"
        "        print(reach(name), flush=True)\n"
        "    kept = socket.socket(socket.AF_UNIX); print(kept.connect_ex('open'), flush=True)\n"
        "    one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
        "    mark = [(socket.SOL_SOCKET, 36, struct.pack('I', 7))]\n"
        "    try: print(one.sendmsg([b'x'], mark, 0, ('127.0.0.1', 9)))\n"
        "    except PermissionError as refusal: print(refusal.errno)\n"
        "    sys.stdout.flush()\n"
        "    os.execv(makes_socket, [makes_socket])\n"
        "os.wait()\n"
        "who = servers[1].accept()[0].getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)\n"
        "print(*struct.unpack('iII', who)[1:])\n"
    )
    line = [*PYTHON, "-c", script, str(sigwrap.folder), str(compiled / "owns_a_socket")]
    for each in (sigwrap.folder, *sigwrap.folder.parents[:2]):
        each.chmod(0o755)
    natively = sigwrap.native(*line)
    for name in ("closed/there", "link", "shut", "open"):
        (sigwrap.folder / name).unlink()
    rule = 'name: servers, direction: bind, destinations: ["unix:*"], decision: allow'
    done = sigwrap.run("-p", network_policy(sigwrap, rule, default="audit"), "--", *line)
    expected = [b"13"] * 5 + [b"0", b"1", b"9", b"9", b"8"]
    assert natively.stdout.split() == expected, natively.stderr
    assert done.stdout.split() == expected, done.stderr


def test_who_lets_nobody_look_into_it_is_refused_what_we_would_have_to_do(as_user: Sigwrap) -> None:
    """Where sigwrap isn't root. It may be a server, of which no rule is."""
    script = (
        "import ctypes, socket\n"
        "server = socket.socket(); server.bind(('127.0.0.1', 0))\n"
        "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)\n"
        "server.listen()\n"
        "print(socket.socket().connect_ex(server.getsockname()))\n"
    )
    rule = 'name: no, destinations: ["unix:docker"], decision: deny'
    done = as_user.run("-p", network_policy(as_user, rule), "--", *PYTHON, "-c", script)
    denied = [each.payload for each in as_user.sealed_events("connection_denied")]
    if as_user.native("id", "-u").stdout == b"0\n":
        assert (done.stdout, denied) == (b"0\n", [])
        return
    assert done.stdout == b"1\n", done.stderr
    (payload,) = denied
    assert payload["rule_name"] == "builtin:network"
    assert payload["destination"] == "connect by a process whose memory sigwrap cannot read"
