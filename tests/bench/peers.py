"""Who else wraps a command: a line of words that goes before the command's.

Each is a function that says how the peer is started so that it does what comes nearest to sigwrap:
see every exec, signal and connection, and write it down. What isn't there is left out, and named.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
INSTALLED = Path(__file__).parents[2] / ".work" / "bench-peers"

EXECS_AND_SIGNALS = "execve,execveat,kill,tkill,tgkill"
_CALLS = "CALLS"

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Peer:
    name: str
    prefix: tuple[str, ...]
    logs_only_execs: bool = False

    def before(self, calls: str) -> tuple[str, ...]:
        """Return the words before a command whose `calls` the peer has to log."""
        return tuple(word.replace(_CALLS, calls) for word in self.prefix)


class NotThere(Exception):
    """Why it is left out."""


def strace(folder: Path) -> Peer:
    """It logs the calls that sigwrap logs, and nothing else. It decides nothing."""
    options = ("-f", "--seccomp-bpf", "-qq", "-e", "signal=none", "-e", f"trace={_CALLS}")
    return Peer("strace", (_program("strace"), *options, "-o", str(folder / "strace.log")))


def sudo(folder: Path) -> Peer:
    """Its `intercept` judges each exec by the sudoers file and logs it; it sees no signals. The
    file is put in the place of the system's in a mount namespace of its own."""
    if os.geteuid() != 0:
        raise NotThere("its setting is in a file that only root can put in place")
    sudo_s, settings = _program("sudo"), folder / "sudoers"
    settings.write_text(
        "Defaults intercept, intercept_type=trace, log_subcmds\n"
        "Defaults !env_reset, !use_pty, !syslog\n"
        f"Defaults logfile={folder / 'sudo.log'}\n"
        "root ALL=(ALL:ALL) NOPASSWD: ALL\n"
    )
    settings.chmod(0o440)
    put_in_place = f"mount --bind {shlex.quote(str(settings))} /etc/sudoers"
    script = f'{put_in_place} && exec {sudo_s} -n "$@"'
    peer = Peer("sudo", (_program("unshare"), "-m", "sh", "-c", script, "sh"), logs_only_execs=True)
    _try(peer)
    return peer


def sandlock(folder: Path, *, install: bool) -> Peer:
    """A core in Rust, and Python handlers that decide about each call and write it down."""
    python = INSTALLED / "bin" / "python"
    if install and not python.exists():
        subprocess.run([sys.executable, "-m", "venv", str(INSTALLED)], check=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, "sandlock"], check=True)
    if not python.exists():
        raise NotThere("it isn't installed; --peers installs it below .work")
    words = (str(python), str(PROGRAMS / "sandlock_logged.py"), str(folder / "sandlock.log"))
    peer = Peer("sandlock", words)
    _try(peer)
    return peer


def tini() -> Peer:
    return Peer("tini", (_program("tini"), "-s", "--"))


def dumb_init() -> Peer:
    return Peer("dumb-init", (_program("dumb-init"), "--"))


def given(argument: str) -> Peer:
    """NAME=WORDS, for any other one, such as agentsh, syd, or another version of sigwrap."""
    name, _, words = argument.partition("=")
    return Peer(name, tuple(shlex.split(words)))


def loggers(folder: Path, *, install: bool, others: Sequence[Peer], say: Say) -> list[Peer]:
    """Those that write down what is executed."""
    makers = {
        "strace": lambda: strace(folder),
        "sudo": lambda: sudo(folder),
        "sandlock": lambda: sandlock(folder, install=install),
    }
    return [*_there(makers, say), *others]


def inits(say: Say) -> list[Peer]:
    return list(_there({"tini": tini, "dumb-init": dumb_init}, say))


def _there(peers: dict[str, Callable[[], Peer]], say: Say) -> Iterator[Peer]:
    for name, make in peers.items():
        try:
            yield make()
        except NotThere as why:
            say(f"{name}: left out: {why}")


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise NotThere("it isn't installed")
    return found


def _try(peer: Peer) -> None:
    done = subprocess.run([*peer.prefix, "true"], capture_output=True, timeout=60)
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        raise NotThere(f"it doesn't run here: {lines[-1] if lines else done.returncode}")
