"""Run sigwrap's commands in forks of one process that has imported everything: a fork costs a
fraction of a start. It is meant for commands that read, write or ask, and then end. A fork keeps
the server's /proc/PID/environ, so a test can't find what it leaves behind by its environment.

Run as a script, this file is that process. A request is four bytes with the length of its JSON, the
three standard streams, and the JSON; the replies are the pid and the status.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Words that begin a line of these commands. `watch` and `serve` stay until a user leaves.
COMMANDS = frozenset(
    "approvals approve complete completion deny export hook install killswitch man policy query "
    "replay report sessions ship signal uninstall verify why --help --version".split()
)
LOCALE = {"LANG": "C.UTF-8"}
# Python reads these when it starts.
_AT_START = ("PYTHON", "LC_", "LANG", "LD_")


def is_command(words: Sequence[str | bytes], options: Iterable[str]) -> bool:
    if not words or os.fsdecode(words[0]) not in COMMANDS:
        return False
    # `policy explain --env` reads the environment that its process was started with.
    return "--env" not in words and {"input", "cwd", "env", "within_s"}.issuperset(options)


def can_run(env: dict[str, str]) -> bool:
    if os.environ.get("SIGWRAP_TEST_STARTS"):  # make test-all
        return False
    return all(LOCALE.get(name) == env[name] for name in env if name.startswith(_AT_START))


@dataclass(slots=True)
class CommandServer:
    """One for each process that runs tests; it ends when that process does."""

    _process: subprocess.Popen[bytes]
    _socket: socket.socket

    @classmethod
    def start(cls) -> CommandServer:
        ours, theirs = socket.socketpair()
        with theirs:
            line = [sys.executable, "-I", __file__, str(theirs.fileno())]
            process = subprocess.Popen(
                line,
                env={"PATH": os.environ["PATH"], **LOCALE},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return cls(process, ours)

    def run(
        self,
        line: list[str | bytes],
        *,
        user: int | None,
        env: dict[str, str],
        cwd: Path,
        stdin: bytes,
        within_s: float,
    ) -> subprocess.CompletedProcess[bytes]:
        request = {
            "line": [os.fsdecode(word) for word in line],
            "user": user,
            "env": env,
            "cwd": os.fspath(cwd),
        }
        data = json.dumps(request).encode("utf-8", "surrogatepass")
        streams = [os.memfd_create(name) for name in ("stdin", "stdout", "stderr")]
        os.pwrite(streams[0], stdin, 0)
        pid = 0
        self._socket.settimeout(within_s)
        try:
            socket.send_fds(self._socket, [len(data).to_bytes(4, "little")], streams)
            self._socket.sendall(data)
            pid = self._number()
            status = self._number()
        except TimeoutError:
            if not pid:
                raise RuntimeError("the command server does not answer") from None
            os.kill(pid, signal.SIGKILL)  # the server waits for it: no other has this pid
            self._socket.settimeout(None)
            self._number()
            raise
        finally:
            self._socket.settimeout(None)
            _, out, err = map(_read_and_close, streams)
        return subprocess.CompletedProcess(line, status, out, err)

    def _number(self) -> int:
        data = self._socket.recv(4, socket.MSG_WAITALL)
        if len(data) < 4:
            raise RuntimeError("the command server has ended")
        return int.from_bytes(data, "little", signed=True)


def _read_and_close(fd: int) -> bytes:
    with open(fd, "rb") as file:
        file.seek(0)
        return file.read()


# The process itself


def _serve(connection: socket.socket) -> None:
    import gc
    import pkgutil

    import sigwrap.early
    import sigwrap.imports
    from sigwrap.__main__ import main
    from sigwrap.cli.app import ROOT

    for module in pkgutil.walk_packages(sigwrap.__path__, "sigwrap."):
        if not module.name.endswith("__main__"):
            __import__(module.name)
    for group in (ROOT, *(ROOT.get_command(None, name) for name in ("policy", "sessions"))):
        group.commands  # noqa: B018  (made once, not in each fork)
    gc.collect()
    gc.freeze()
    while True:
        header, streams, _, _ = socket.recv_fds(connection, 4, 3)
        if not header:
            return
        data = connection.recv(int.from_bytes(header, "little"), socket.MSG_WAITALL)
        pid = os.fork()
        if pid == 0:
            connection.close()
            _become(json.loads(data.decode("utf-8", "surrogatepass")), streams)
            main()
        for fd in streams:
            os.close(fd)
        connection.sendall(pid.to_bytes(4, "little"))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        connection.sendall(code.to_bytes(4, "little", signed=True))


def _become(request: dict[str, Any], streams: list[int]) -> None:
    os.setsid()
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(request["cwd"])
    if request["user"] is not None:
        import ctypes

        os.setgroups([])
        os.setresgid(*[request["user"]] * 3)
        os.setresuid(*[request["user"]] * 3)
        ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)  # PR_SET_DUMPABLE, as after an exec
    os.environ.clear()
    os.environ.update(request["env"])
    time.tzset()
    sys.argv = request["line"]
    sys.orig_argv = [sys.executable, *sys.argv]  # a session that is to be joined starts another


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
