"""Under a service manager: COMMAND tells it how it is as without sigwrap, and each KillMode= ends
all of it, with a whole log."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sigwrap.kernel import procfs
from tests.support.harness import PYTHON, Sigwrap
from tests.support.processes import tree
from tests.support.service_manager import Service
from tests.support.waiting import PATIENCE_S, Watch

# What systemd says in these variables is the pid of the process that it starts.
STARTED = 'export LISTEN_PID=$$ WATCHDOG_PID=$$ SYSTEMD_EXEC_PID=$$; exec "$@"'

Start = Callable[..., Service]


@pytest.fixture
def start(as_user: Sigwrap, programs: Path) -> Iterator[Start]:
    services: list[Service] = []

    def start(line: list[str], *words: str) -> Service:
        command = [*PYTHON, str(programs / "service.py"), *words]
        user = as_user.as_user()
        service = Service(as_user, [*user, "sh", "-c", STARTED, "sh", *line, "--", *command])
        services.append(service)
        return service

    yield start
    for service in services:
        service.close()


def _ours(subject: Sigwrap, *words: str) -> list[str]:
    return [str(word) for word in subject.line("--die-by-signal", *words)]


def _is_ready(text: str) -> bool:
    return text.startswith("READY=1")


@pytest.mark.parametrize(
    "mode",
    ["control-group", pytest.param("mixed", marks=pytest.mark.promise("service")), "process"],
)
def test_it_stops_by_each_kill_mode(as_user: Sigwrap, start: Start, mode: str) -> None:
    service = start(_ours(as_user))
    pid, ready = service.await_told(_is_ready)
    command = as_user.command_pid()
    assert ready == f"READY=1\nMAINPID={command}"
    # NotifyAccess=all takes it: who tells is of the service, COMMAND or sigwrap in its place.
    assert pid in tree(service.process.pid)
    assert procfs.stat(command) is not None
    service.await_told(lambda text: text == "WATCHDOG=1")
    with Watch(as_user.alive()) as watch:
        service.stop(mode)
        service.await_told(lambda text: text == "STOPPING=1")
        assert service.process.wait(PATIENCE_S) == -signal.SIGTERM  # a clean stop, for systemd
        watch.await_ends()
    first, *others = as_user.interrupts()
    assert first == "received"
    # Who stops them all tells COMMAND himself; it may have ended before it is told again.
    assert others == ["forwarded"] or (mode == "control-group" and not others)


def test_one_that_does_not_stop_is_killed_with_all_it_has(as_user: Sigwrap, start: Start) -> None:
    service = start(_ours(as_user), "stubborn")
    service.await_told(_is_ready)
    with Watch(as_user.alive()) as watch:
        service.stop("mixed")
        service.await_told(lambda text: text == "STOPPING=1")
        service.kill("mixed")
        assert service.process.wait(PATIENCE_S) == -signal.SIGKILL
        watch.await_ends()
    as_user.verify(ended=False)


def test_sigwrap_forward_hands_it_all_on(as_user: Sigwrap, start: Start, forward: str) -> None:
    service = start([forward])
    service.await_told(_is_ready)
    service.await_told(lambda text: text == "WATCHDOG=1")
    with Watch(as_user.alive()) as watch:
        service.stop("mixed")
        service.await_told(lambda text: text == "STOPPING=1")
        assert service.process.wait(PATIENCE_S) == 0
        watch.await_ends()
