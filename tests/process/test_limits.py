"""A limit that the caller sets (`ulimit`) is COMMAND's. sigwrap has none where the kernel lets it,
and says so where it doesn't."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import EXECS, IS_BINARY, REFUSED, Sigwrap
from tests.support.processes import Roles
from tests.support.waiting import PATIENCE_S, reader

NO_LIMIT = resource.RLIM_INFINITY
CPU, FSIZE, AS = resource.RLIMIT_CPU, resource.RLIMIT_FSIZE, resource.RLIMIT_AS
CAP_SYS_RESOURCE = 1 << 24

the_bootloader_dies_of_it = pytest.mark.skipif(
    IS_BINARY, reason="PyInstaller's bootloader dies of it while it unpacks"
)


def _with(*limits: tuple[int, int, int]) -> Callable[[], None]:
    def change() -> None:
        for number, soft, hard in limits:
            resource.setrlimit(number, (soft, hard))

    return change


def _run(
    subject: Sigwrap, limits: Callable[[], None], *words: str, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    return subject.run("--", *words, preexec_fn=limits, **options)


def _soft(pid: int, name: str) -> str:
    return Path(f"/proc/{pid}/limits").read_text().partition(name)[2].split()[0]


@pytest.fixture
def limited(as_user: Sigwrap) -> Sigwrap:
    """Nobody whom a hard limit doesn't hold."""
    capabilities = Path("/proc/self/status").read_text().partition("CapEff:\t")[2][:16]
    if as_user.user is None and int(capabilities, 16) & CAP_SYS_RESOURCE:
        pytest.skip("who may raise a hard limit is not held by one")
    return as_user


@pytest.mark.parametrize(
    "limits",
    [
        [
            *((CPU, 7, NO_LIMIT), (AS, 1 << 27, NO_LIMIT), (resource.RLIMIT_CORE, 0, 4096)),
            *((resource.RLIMIT_DATA, 1 << 25, NO_LIMIT), (resource.RLIMIT_STACK, 1 << 18, 1 << 23)),
            *((resource.RLIMIT_MEMLOCK, 0, 0), (resource.RLIMIT_MSGQUEUE, 0, 0), (10, 0, 0)),
        ],
        [
            *((CPU, 4000, 5000), (FSIZE, 1 << 29, 1 << 31), (AS, 1 << 28, 1 << 32)),
            *((resource.RLIMIT_NPROC, 400, 4000), (resource.RLIMIT_NOFILE, 20, 100), (11, 9, 99)),
        ],
    ],
    ids=["soft", "both"],
)
def test_the_callers_limits_are_commands_and_soft_ones_not_sigwraps(
    as_user: Sigwrap, limits: list[Any]
) -> None:
    change = _with(*limits)
    native = as_user.native("cat", "/proc/self/limits", preexec_fn=change)
    text = "cat /proc/self/limits; echo ready; read x; exit 5"
    process = as_user.start("--", "sh", "-c", text, preexec_fn=change)
    assert reader(process.stdout).until(rb"(?s).*(?=ready\n)") == native.stdout
    roles = Roles.of(process.pid)
    for pid in (roles.front, roles.supervisor):
        assert _soft(pid, "Max cpu time") in ("unlimited", "5000")
        assert _soft(pid, "Max address space") in ("unlimited", str(1 << 32))
    assert process.communicate(b"\n", PATIENCE_S)[1] == b""
    assert process.returncode == 5


def test_the_time_on_the_processor_ends_command_alone(as_user: Sigwrap) -> None:
    done = _run(as_user, _with((CPU, 1, NO_LIMIT)), "sh", "-c", "while :; do :; done")
    assert (done.returncode, done.stderr) == (128 + signal.SIGXCPU, b"")
    as_user.verify(ended=True)


@the_bootloader_dies_of_it
def test_a_file_size_limit_ends_command_and_not_the_log(as_user: Sigwrap) -> None:
    text = "/bin/true; echo said; echo x >file"
    native = as_user.native("sh", "-c", text, preexec_fn=_with((FSIZE, 0, NO_LIMIT)))
    done = _run(as_user, _with((FSIZE, 0, NO_LIMIT)), "sh", "-c", text)
    assert native.returncode == -signal.SIGXFSZ
    assert (done.returncode, done.stdout) == (128 + signal.SIGXFSZ, native.stdout)
    assert len(as_user.sealed_events(*EXECS)) == 2


@pytest.mark.fault(
    "missing resources",
    "file size limit (`ulimit -f`) reached",
    sees="two warnings; execs are denied, status 125",
    keeps="all that took effect",
)
@the_bootloader_dies_of_it
def test_where_the_hard_limit_ends_the_log_execs_are_denied_and_a_line_says_why(
    limited: Sigwrap,
) -> None:
    text = "for i in $(seq 1000); do /bin/true || break; done; echo $i"
    done = _run(limited, _with((FSIZE, 100 << 10, 100 << 10)), "sh", "-c", text)
    first, *others = done.stderr.decode().splitlines()
    assert first == (
        "sigwrap: ulimit -f 100 applies to sigwrap as well "
        "(a soft limit, ulimit -S, applies to the command only)"
    )
    # sigwrap waits 5 ms at most for its line, so the shell's may come before it.
    why = "raise the file size limit, ulimit -f 100); sigwrap denies every exec"
    assert sum(why in line for line in others) == 1
    assert done.returncode == REFUSED
    assert int(done.stdout) < 1000


@pytest.mark.fault(
    "missing resources",
    "too little memory to start (`ulimit -v`)",
    sees="status 125",
    keeps="nothing ran",
)
@pytest.mark.skipif(IS_BINARY, reason="PyInstaller's own start-up fails first")
@pytest.mark.parametrize("megabytes", [20, 33])
def test_too_little_memory_to_load_sigwrap_is_said(sigwrap: Sigwrap, megabytes: int) -> None:
    size = megabytes << 20
    done = _run(sigwrap, _with((AS, size, size)), "touch", "ran")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("sigwrap: ")
    assert "ulimit -v" in line or os.strerror(12) in line
    assert done.returncode == REFUSED
    assert not (sigwrap.folder / "ran").exists()


@pytest.mark.parametrize("megabytes", [4 if IS_BINARY else 6, 10])
def test_too_little_data_to_load_sigwrap_is_said(sigwrap: Sigwrap, megabytes: int) -> None:
    """Also a soft limit: Python starts under it."""
    done = _run(sigwrap, _with((resource.RLIMIT_DATA, megabytes << 20, NO_LIMIT)), "touch", "ran")
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith("sigwrap: can't load: ")
    assert line.endswith("(is the memory limited? ulimit -v 65536 and -d 32768 are enough)")
    assert done.returncode == REFUSED
    assert not (sigwrap.folder / "ran").exists()


@pytest.mark.fault(
    "missing resources",
    "no more processes (`ulimit -u`)",
    sees="status 125",
    keeps="nothing ran",
)
def test_where_no_process_can_be_made_a_line_says_so(limited: Sigwrap) -> None:
    if limited.user is None:
        pytest.skip("root may have any number of processes")
    none = ["prlimit", "--nproc=0:0"]
    words = map(str, limited.line("--", "touch", "ran"))
    process = limited.start_line([*limited.as_user(), *none, *words])
    _, err = process.communicate(b"", PATIENCE_S)
    (line,) = err.decode().splitlines()
    assert line.startswith("sigwrap: ")
    assert os.strerror(11) in line
    assert "ulimit -u" in line
    assert process.returncode == (1 if IS_BINARY else REFUSED)
    assert not (limited.folder / "ran").exists()
