"""Wherever and however sigwrap is started: as natively, or one line that says what to do."""

from __future__ import annotations

import os
import tempfile

import pytest

from sigwrap.errors import DOCTOR
from tests.support.harness import IS_BINARY, PYTHON, REFUSED, Sigwrap

# The shell's words that start what follows them.
STARTS = {
    "no standard output": "exec 1>&-; exec",
    "no standard error": "exec 2>&-; exec",
    "no folder": "mkdir gone && cd gone && rmdir ../gone; exec",
    "no environment": "exec env -i",
    "a session of its own": "exec setsid -w",
}
SAYS = "echo said; echo wrong >&2; for fd in /proc/$$/fd/*; do echo ${fd##*/}; done; exit 4"


@pytest.mark.parametrize("how", STARTS)
def test_it_is_as_natively(sigwrap: Sigwrap, how: str) -> None:
    start = ("bash", "-c", f'{STARTS[how]} "$@"', "bash")
    command = ("/bin/sh", "-c", SAYS)
    native = sigwrap.native(*start, *command)
    line = sigwrap.line("--store", str(sigwrap.store), "--", *command)
    done = sigwrap.native(*start, *line)
    assert done.returncode == native.returncode == 4
    assert (done.stdout, done.stderr) == (native.stdout, native.stderr)
    sigwrap.verify(ended=True)


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_user_whom_nobody_knows(sigwrap: Sigwrap) -> None:
    user = ["setpriv", "--reuid=54321", "--regid=54321", "--clear-groups"]
    line = [*user, "env", "-u", "HOME", "-u", "SIGWRAP_STORE", "TMPDIR=/tmp"]
    with tempfile.TemporaryDirectory() as store:
        os.chown(store, 54321, 54321)
        words = ["--store", store, "--", "id", "-u"]
        done = sigwrap.native(*line, *sigwrap.line(*words), cwd="/")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"54321\n", b"")


@pytest.mark.skipif(IS_BINARY, reason="the bootloader can't read what it has unpacked")
def test_a_umask_that_allows_nothing(as_user: Sigwrap) -> None:
    home = as_user.folder / "home"
    as_user.native("mkdir", "-m", "700", str(home))
    as_user.env["HOME"] = str(home)
    del as_user.env["SIGWRAP_STORE"]
    as_user.store = home / ".local/state/sigwrap"
    done = as_user.run("--", "sh", "-c", "umask; exit 4", preexec_fn=lambda: os.umask(0o777))
    assert (done.returncode, done.stdout, done.stderr) == (4, b"0777\n", b"")
    as_user.verify(ended=True)
    for folder in (".local", ".local/state", ".local/state/sigwrap/control"):
        assert (home / folder).stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
@pytest.mark.parametrize("words", [["--"], ["--as", "forward", "--"]], ids=["sigwrap", "forward"])
def test_without_proc(sigwrap: Sigwrap, words: list[str]) -> None:
    """Nor where Python would start anew."""
    for variable in ("LANG=C", "PYTHONPATH=/nowhere"):
        text = f'mount -t tmpfs none /proc; exec env {variable} "$@"'
        line = sigwrap.line(*words, "/bin/echo", "ran")
        done = sigwrap.native("unshare", "-m", "sh", "-c", text, "sh", *line)
        assert (done.returncode, done.stdout) == (REFUSED, b"")
        (said,) = done.stderr.decode().splitlines()
        assert said.endswith(
            ": /proc is missing, and sigwrap needs it "
            f"(mount it: mount -t proc proc /proc; {DOCTOR})"
        )


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_under_the_proc_of_another_pid_namespace(sigwrap: Sigwrap) -> None:
    """Root has one of its own in the run; where none can be had, a number would be somebody
    else's."""
    namespace = ["unshare", "-fp", "--kill-child"]
    line = sigwrap.line("--", "/bin/sh", "-c", "exit 7")
    done = sigwrap.native(*namespace, *line)
    assert (done.returncode, done.stderr) == (7, b"")
    (event,) = sigwrap.sealed_events("exec_allowed", "exec_audited")
    assert event.payload["argv"][:2] == ["/bin/sh", "-c"]
    no_mounts = [*PYTHON, "-c", _NO_MOUNTS]
    done = sigwrap.native(*namespace, *no_mounts, *line)
    (said,) = done.stderr.decode().splitlines()
    assert said == (
        "sigwrap: /proc belongs to another pid namespace "
        f"(mount it: mount -t proc proc /proc; {DOCTOR})"
    )
    assert done.returncode == REFUSED


# Without CAP_SYS_ADMIN.
_NO_MOUNTS = (
    "import ctypes, os, sys\n"
    "ctypes.CDLL(None).prctl(24, 21)\n"
    "os.execvp('setpriv', ['setpriv', '--bounding-set=-sys_admin', '--', *sys.argv[1:]])\n"
)
