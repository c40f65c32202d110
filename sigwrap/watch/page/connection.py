"""One connection: one request, one answer. Browsers open another one for the next; so nothing of a
request can be taken for the beginning of another, and each is looked at anew.

Nothing here waits: what can't be read or sent at once is left to the loop, and every step has a
time by which it has to be over.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Protocol

import h11

from sigwrap.linux.taken import let_go
from sigwrap.run.loop import Loop
from sigwrap.watch.page.answers import Answer, Headers, plain
from sigwrap.watch.page.bounds import HEAD_BYTES, Bounds
from sigwrap.watch.page.gate import Asked
from sigwrap.watch.page.heads import Bad, end_of, objection_to_beginning, objection_to_head

_PIECE = 1 << 16
_READ_WHILE_LEAVING = 1 << 18
_NEVER = float("inf")


class Owner(Protocol):
    """What a connection needs of the server."""

    loop: Loop
    bounds: Bounds

    def asked(self, connection: Connection, asked: Asked) -> None: ...

    def gone(self, connection: Connection) -> None: ...


class Connection:
    def __init__(self, owner: Owner, end: socket.socket) -> None:
        self._owner = owner
        self._end = end
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=HEAD_BYTES)
        self._head = bytearray()
        self._request: h11.Request | None = None
        self._body = bytearray()
        self._to_send = bytearray()
        self._watched = 0
        self._is_read = True  # of it, a request is expected
        self._leaves_then = False
        self._left_to_read = _READ_WHILE_LEAVING
        self.is_stream = False
        self.is_known = False
        self.is_let_in = False  # by its cookie
        self.heard_s = time.monotonic()
        self._ends_s = self._soon(owner.bounds.looked_for_s)

    def wait(self) -> None:
        """Until it is known who that is. OSError where nothing more can be watched."""
        self._owner.loop.watch(self._end.fileno(), self._on_event, 0)
        self._check_time()

    def begin(self) -> None:
        """Whoever it is may ask."""
        if not self.is_closed:
            self.is_known = True
            self._ends_s = self._soon(self._owner.bounds.request_s)
            self._watch(select.EPOLLIN)

    @property
    def is_closed(self) -> bool:
        return self._end.fileno() < 0

    def close(self) -> None:
        if not self.is_closed:
            self._owner.loop.unwatch(self._end.fileno())
            let_go(self._end.detach())  # by a unix socket, others that linger may have come
            self._owner.gone(self)

    # What it is answered

    def answer(self, answer: Answer) -> None:
        if self.is_closed:
            return
        self._start(answer.status, answer.headers)
        self._send_event(h11.Data(data=answer.body))
        self._send_event(h11.EndOfMessage())
        self._leaves_then = True
        self._push()

    def refuse(self, bad: Bad) -> None:
        self.answer(plain(bad.status, f"bad request: {bad.why}"))

    def start_stream(self, headers: Headers) -> None:
        self.is_stream = True
        self._start(200, headers)
        self._watch(select.EPOLLIN)
        self._push()

    def tell(self, text: str) -> None:
        """To a stream. Whoever doesn't take it is closed, and gets everything when it is back."""
        if self.is_closed:
            return
        self._send_event(h11.Data(data=text.encode()))
        if len(self._to_send) > self._owner.bounds.stream_bytes:
            self.close()
        else:
            self._push()

    def _start(self, status: int, headers: Headers) -> None:
        self._is_read = False
        self._ends_s = _NEVER if self.is_stream else self._soon(self._owner.bounds.sending_s)
        self._send_event(h11.Response(status_code=status, headers=headers))

    def _send_event(self, event: h11.Event) -> None:
        self._to_send += self._http.send(event) or b""

    # What it asks

    def _on_event(self, happened: int) -> None:
        try:
            if happened & select.EPOLLOUT:
                self._push()
            elif happened & (select.EPOLLERR | select.EPOLLHUP) and not self.is_known:
                self.close()
            elif happened:
                self._read()
        except OSError:
            self.close()

    def _read(self) -> None:
        try:
            data = self._end.recv(_PIECE if not self._is_read else HEAD_BYTES)
        except BlockingIOError:
            return
        self.heard_s = time.monotonic()
        if not self._is_read:
            self._read_on(data)
        elif not data:
            self.close()
        elif self._request is None:
            self._take_head(data)
        else:
            self._take_body(data)

    def _read_on(self, data: bytes) -> None:
        """Behind a request; what is sent there is nobody's."""
        self._left_to_read -= len(data)
        if not data or self._left_to_read < 0:
            self.close()

    def _take_head(self, data: bytes) -> None:
        self._head += data
        bad = objection_to_beginning(self._head)
        at = end_of(self._head)
        if bad is None and not at:
            return
        head, rest = bytes(self._head[:at]), bytes(self._head[at:])
        bad = bad or objection_to_head(head)
        if bad is not None:
            self.refuse(bad)
            return
        try:
            self._http.receive_data(head)
            event = self._http.next_event()
        except h11.RemoteProtocolError as error:
            self.refuse(Bad(400, str(error)[:100]))
            return
        if not isinstance(event, h11.Request):
            self.refuse(Bad(400, "no request head"))
            return
        self._request = event
        self._take_body(rest)

    def _take_body(self, data: bytes) -> None:
        """h11 knows how long it is; what comes behind it is not looked at."""
        try:
            if data:
                self._http.receive_data(data)
            while isinstance(event := self._http.next_event(), h11.Data):
                self._body += event.data
        except h11.RemoteProtocolError as error:
            self.refuse(Bad(400, str(error)[:100]))
            return
        if isinstance(event, h11.EndOfMessage):
            self._is_read = False
            self._watch(0)
            self._ends_s = _NEVER  # whoever answers has a time of its own
            self._owner.asked(self, self._asked())

    def _asked(self) -> Asked:
        request = self._request
        assert request is not None
        path, _, query = request.target.decode("latin-1").partition("?")
        fields = {str(name, "latin-1"): str(value, "latin-1") for name, value in request.headers}
        return Asked(request.method.decode("latin-1"), path, query, fields, bytes(self._body))

    # What is sent

    def _push(self) -> None:
        try:
            while self._to_send:
                sent = self._end.send(memoryview(self._to_send)[:_PIECE], socket.MSG_NOSIGNAL)
                del self._to_send[:sent]
                if not self.is_stream:
                    self._ends_s = self._soon(self._owner.bounds.sending_s)
        except BlockingIOError:
            self._watch(select.EPOLLOUT | (select.EPOLLIN if self.is_stream else 0))
            return
        except OSError:
            self.close()
            return
        if self._leaves_then:
            self._leave()
        else:
            self._watch(select.EPOLLIN)

    def _leave(self) -> None:
        """Once the other end has read it all: to close at once would take back what it hasn't."""
        self._leaves_then = False
        try:
            self._end.shutdown(socket.SHUT_WR)
        except OSError:  # it has gone already
            self.close()
            return
        self._ends_s = self._soon(self._owner.bounds.leaving_s)
        self._watch(select.EPOLLIN)

    # Its time

    def _soon(self, seconds: float) -> float:
        return time.monotonic() + seconds

    def _check_time(self) -> None:
        if self.is_closed:
            return
        now_s = time.monotonic()
        if now_s >= self._ends_s:
            self.close()
        else:
            # One that has no end now may get one.
            self._owner.loop.call_at(min(self._ends_s, now_s + 1.0), self._check_time)

    def _watch(self, events: int) -> None:
        if events != self._watched:
            self._owner.loop.change(self._end.fileno(), events)
            self._watched = events
