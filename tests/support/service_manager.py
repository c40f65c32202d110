"""A service manager as systemd is one: a session of the service's own, a socket for what it tells,
one that it inherits, a watchdog; and its three ways to stop all that belongs to it."""

from __future__ import annotations

import os
import signal
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from tests.support.harness import Running, Sigwrap

_CREDENTIALS = struct.Struct("iii")
_TELLS_S = 30.0


class Service:
    def __init__(self, subject: Sigwrap, line: list[str]) -> None:
        self.subject = subject
        self.told: list[tuple[int, str]] = []  # by whom, and what
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        self._socket.settimeout(_TELLS_S)
        address = str(subject.folder / "notify")
        self._socket.bind(address)
        Path(address).chmod(0o777)
        self._server = socket.create_server(("127.0.0.1", 0))
        self.process: Running = subject.start_line(
            line,
            env={"NOTIFY_SOCKET": address, "WATCHDOG_USEC": "1000000", "LISTEN_FDS": "1"},
            preexec_fn=self._in_child,
            pass_fds=[3],
        )
        self._server.close()

    def _in_child(self) -> None:
        os.dup2(self._server.fileno(), 3)

    def await_told(self, is_it: Callable[[str], bool]) -> tuple[int, str]:
        while True:
            data, control, _, _ = self._socket.recvmsg(4096, socket.CMSG_SPACE(_CREDENTIALS.size))
            pid, _, _ = _CREDENTIALS.unpack(control[0][2])
            self.told.append((pid, data.decode()))
            if is_it(data.decode()):
                return self.told[-1]

    def stop(self, mode: str) -> None:
        """What comes before TimeoutStopSec= is over."""
        everybody = self.subject.alive() if mode == "control-group" else [self.process.pid]
        _send(everybody, signal.SIGTERM)

    def kill(self, mode: str) -> None:
        """What comes then; mixed does it as soon as the main process has ended, too."""
        pids = [self.process.pid] if mode == "process" else self.subject.alive()
        _send(pids, signal.SIGSTOP)  # none sees another one end, however busy the machine is
        _send(pids, signal.SIGKILL)

    def close(self) -> None:
        self._socket.close()


def _send(pids: list[int], number: int) -> None:
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue  # it has ended by another's
