"""A real S3 store has exactly the events of the logs, whatever is killed, frozen or refused."""

from __future__ import annotations

import os
import signal
import socket
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from tests.fleet.conftest import Store
from tests.support.fleet import arrived, killed_at, make_sessions, recorded
from tests.support.harness import Running, Sigwrap

pytestmark = pytest.mark.fleet


class Proxy:
    """Passes bytes to the store and back, and kills a process at the nth piece of one direction."""

    def __init__(self, port: int) -> None:
        self._port, self._socket = port, socket.create_server(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.pieces = {"to": 0, "from": 0}
        self.kill_at: tuple[str, int, bool] = ("", 0, False)  # the third: once it was passed on
        self.victim: Running | None = None
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._socket.accept()
                try:
                    store = socket.create_connection(("127.0.0.1", self._port))
                except OSError:
                    client.close()
                    raise
                for which, source, target in (("to", client, store), ("from", store, client)):
                    work = (which, source, target)
                    threading.Thread(target=self._pass, args=work, daemon=True).start()

    def _pass(self, which: str, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError), target:
            while data := source.recv(1 << 16):
                self.pieces[which] += 1
                for is_passed in (False, True):
                    if is_passed:
                        target.sendall(data)
                    if self.kill_at == (which, self.pieces[which], is_passed) and self.victim:
                        self.victim.kill()
                        self.victim.wait()
            with suppress(OSError):
                target.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


@contextmanager
def proxy_to(store: Store) -> Iterator[Proxy]:
    proxy = Proxy(store.port)
    try:
        yield proxy
    finally:
        proxy.close()


def _url() -> tuple[str, str]:
    prefix = f"test/{uuid.uuid4().hex}/a=b+(c)~"
    return prefix, f"s3://fleet/{prefix}"


def test_a_bucket_has_exactly_the_rows_of_the_logs(as_user: Sigwrap, seaweed: Store) -> None:
    """With a credential that can only write, by the environment or by a descriptor."""
    make_sessions(as_user, 3)
    prefix, url = _url()
    done = as_user.run("ship", "--all", "--to", url, env=seaweed.env())
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"shipped 3 sessions, ")
    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)
    for cursor in as_user.store.glob("sessions/*.shipped"):
        assert cursor.stat().st_mode & 0o777 == 0o600
        cursor.unlink()
    again = as_user.run("ship", "--all", "--to", url, env=seaweed.env())
    assert again.returncode == 0
    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)


def test_a_kill_at_any_step_loses_and_doubles_nothing(as_user: Sigwrap, seaweed: Store) -> None:
    make_sessions(as_user, 2)
    kills = 0
    for call in ("fsync", "linkat", "rename,renameat", "sendto", "recvfrom", "connect"):
        for number in range(1, 30):
            prefix, url = _url()
            was_killed = killed_at(
                as_user, call, number, "ship", "--all", "--to", url, **seaweed.env()
            )
            kills += was_killed
            done = as_user.run("ship", "--all", "--to", url, env=seaweed.env())
            assert done.returncode == 0, done.stderr
            assert arrived(seaweed.objects(prefix)) == recorded(as_user.store), (call, number)
            if not was_killed:
                break
    assert kills >= 16


def test_a_kill_at_any_piece_of_a_request_loses_and_doubles_nothing(
    as_user: Sigwrap, seaweed: Store
) -> None:
    make_sessions(as_user, 2)
    kills = 0
    with proxy_to(seaweed) as proxy:
        for which in ("to", "from"):
            for number in range(1, 12):
                for is_passed in (False, True):
                    prefix, url = _url()
                    proxy.kill_at, proxy.pieces = ("", 0, False), {"to": 0, "from": 0}
                    words = ("ship", "--all", "--to", url)
                    proxy.victim = as_user.start(*words, env=seaweed.env(port=proxy.port))
                    proxy.kill_at = (which, number, is_passed)
                    proxy.victim.communicate(timeout=60)
                    kills += proxy.victim.returncode == -signal.SIGKILL
                    proxy.kill_at, was_seen = ("", 0, False), proxy.pieces[which] >= number
                    done = as_user.run(*words, env=seaweed.env(port=proxy.port))
                    assert done.returncode == 0, done.stderr
                    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)
                if not was_seen:
                    break
    assert kills >= 6  # the last two may come after its end


def test_a_frozen_store_is_given_up_in_time_and_the_next_call_goes_on(
    as_user: Sigwrap, seaweed: Store
) -> None:
    make_sessions(as_user, 2)
    prefix, url = _url()
    seaweed.process.send_signal(signal.SIGSTOP)
    try:
        done = as_user.run("ship", "--all", "--to", url, "--timeout", "1s", env=seaweed.env())
    finally:
        seaweed.process.send_signal(signal.SIGCONT)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert (
        b"can't send to s3://fleet/" in line
        and b"no answer in time" in line
        and b"2 sessions not shipped" in done.stdout
    )
    assert as_user.run("ship", "--all", "--to", url, env=seaweed.env()).returncode == 0
    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)


@pytest.mark.parametrize("wrong", ["AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_REGION"])
def test_a_wrong_credential_is_one_line_without_it(
    as_user: Sigwrap, seaweed: Store, wrong: str
) -> None:
    make_sessions(as_user)
    prefix, url = _url()
    env = {**seaweed.env(), wrong: "none-such"}
    done = as_user.run("ship", "--to", url, env=env)
    if wrong == "AWS_REGION":  # this store takes any
        assert done.returncode == 0
        return
    (line,) = done.stderr.splitlines()
    assert done.returncode == 1 and b"refuses the credential: 403" in line
    assert b"none-such" not in done.stdout + done.stderr
    assert arrived(seaweed.objects(prefix)) == []


def test_many_at_once_deliver_each_segment_once(as_user: Sigwrap, seaweed: Store) -> None:
    make_sessions(as_user, 2)
    prefix, url = _url()
    line = ("ship", "--all", "--to", url)
    ships = [as_user.start(*line, env=seaweed.env()) for _ in range(4)]
    for each in ships:
        _, said = each.communicate(timeout=60)
        assert (each.returncode, said) == (0, b"")
    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)


def test_a_writers_credential_comes_by_a_descriptor(as_user: Sigwrap, seaweed: Store) -> None:
    make_sessions(as_user)
    prefix, url = _url()
    env = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{seaweed.port}"}
    reading, writing = os.pipe()
    os.write(writing, b'{"Version":1,"AccessKeyId":"writer","SecretAccessKey":"only-writes"}')
    os.close(writing)
    line = ("ship", "--to", url, "--credential-fd", str(reading))
    done = as_user.run(*line, env=env, pass_fds=[reading])
    os.close(reading)
    assert (done.returncode, done.stderr) == (0, b"")
    assert arrived(seaweed.objects(prefix)) == recorded(as_user.store)
