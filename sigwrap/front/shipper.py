"""The process that ships a session while it runs, as the front process sees it: a child outside the
session, in a process group that no key of the terminal reaches."""

from __future__ import annotations

from sigwrap.bare import TYPE_CHECKING, socket, suppress

if TYPE_CHECKING:
    from sigwrap.session.settings import RunSettings

READY, FAILED, SHIPPED, LEFT = b"r", b"f", b"s", b"l"  # how its messages begin
_LONGEST = 1 << 12
_DIED = "the process that ships was killed"


class Shipper:
    def __init__(self, settings: RunSettings, pid: int, end: socket.socket) -> None:
        self.pid = pid
        self.timeout_s = settings.ship_timeout_s
        self.is_required = settings.ship_required
        self.fd = end.fileno()
        self.is_over = False
        self.has_shipped = False  # all of it
        self._end = end

    def await_ready(self) -> str:
        """Wait until it can ship. Return why it can't, or an empty text."""
        said = self._end.recv(_LONGEST)
        return "" if said == READY else said[1:].decode() or _DIED

    def tell_end(self, log_head: str) -> None:
        """Tell it that the run is over. `log_head`: empty if the supervisor was killed."""
        with suppress(OSError):  # it has ended
            if log_head:
                self._end.send(log_head.encode())
            self._end.shutdown(socket.SHUT_WR)

    def problem(self) -> str:
        """Return what it could not do since the last call, or an empty text."""
        found = ""
        while not self.is_over:
            try:
                said = self._end.recv(_LONGEST, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            kind = said[:1]
            self.is_over, self.has_shipped = kind != FAILED, kind == SHIPPED
            if not self.has_shipped:
                found = said[1:].decode() or _DIED
        return found
