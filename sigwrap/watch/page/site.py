"""What is at which path. What changes anything is asked of the sessions, as `sigwrap approve` asks
it: this page may do nothing that its user couldn't."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from sigwrap.errors import SigwrapError
from sigwrap.escape import printable
from sigwrap.report.forms.page import part as shared
from sigwrap.watch.orders import KillAll, Order
from sigwrap.watch.page.answers import Answer, led_on, plain, said
from sigwrap.watch.page.connection import Connection
from sigwrap.watch.page.gate import Asked, Entered, Gate, Refused
from sigwrap.watch.page.helpers import Helpers
from sigwrap.watch.page.orders import NotAsked, is_id, order
from sigwrap.watch.page.reports import Reports
from sigwrap.watch.page.streams import Streams

_SCRIPTS = ("base.js", "questions.js", "sessions.js", "events.js", "page.js")
_MOST_ORDERS = 8  # at a time, but for the red button, which is never too much
_TOKEN = "{token}"


class Site:
    def __init__(
        self,
        gate: Gate,
        carry_out: Callable[[Order], str],
        helpers: Helpers,
        streams: Streams,
        reports: Reports,
    ) -> None:
        """`carry_out`: says what came of it, or raises SigwrapError or OSError."""
        self._gate = gate
        self._act_on = carry_out
        self._helpers = helpers
        self._streams = streams
        self._reports = reports
        self._orders = 0
        script = "\n".join(
            ("(() => {", '"use strict";', shared("elements.js"), *map(_part, _SCRIPTS), "})();")
        )
        self._files = {
            "/": Answer(
                200,
                "text/html; charset=utf-8",
                _part("page.html").replace(_TOKEN, gate.token).encode(),
            ),
            "/page.js": Answer(200, "text/javascript; charset=utf-8", script.encode()),
            "/page.css": Answer(
                200, "text/css; charset=utf-8", (shared("colours.css") + _part("page.css")).encode()
            ),
        }

    @property
    def is_acting(self) -> bool:
        """Something that was asked for is being done."""
        return self._orders > 0

    def serve(self, connection: Connection, asked: Asked) -> None:
        match self._gate.pass_(asked):
            case Refused(status, why):
                connection.answer(plain(status, why))
            case Entered(cookie):
                connection.answer(led_on(cookie))
            case None:
                connection.is_let_in = True
                (self._get if asked.method == "GET" else self._post)(connection, asked)

    def _get(self, connection: Connection, asked: Asked) -> None:
        if asked.path in self._files:
            connection.answer(self._files[asked.path])
        elif asked.path == "/stream":
            self._stream(connection, asked.query.removeprefix("session="))
        elif asked.path.startswith("/report/") and is_id(asked.path.removeprefix("/report/")):
            self._reports.make(asked.path.removeprefix("/report/"), connection.answer)
        else:
            connection.answer(plain(404, "no such page"))

    def _stream(self, connection: Connection, session_id: str) -> None:
        if session_id and not is_id(session_id):
            connection.answer(plain(404, "no such session"))
        elif not self._streams.add(connection, session_id):
            connection.answer(plain(503, "too many tabs are open: close some"))

    def _post(self, connection: Connection, asked: Asked) -> None:
        try:
            wanted = order(asked.path, asked.body)
        except NotAsked as error:
            connection.answer(said(400, str(error)))
            return
        if wanted is None:
            connection.answer(said(404, "no such action"))
        elif self._orders >= _MOST_ORDERS and not isinstance(wanted, KillAll):
            connection.answer(said(503, "too many actions at once: try again"))
        else:
            self._carry_out(connection, wanted)

    def _carry_out(self, connection: Connection, wanted: Order) -> None:
        self._orders += 1

        def done(came_of_it: str | Exception) -> None:
            self._orders -= 1
            if isinstance(came_of_it, str):
                connection.answer(said(200, printable(came_of_it)))
            else:
                connection.answer(said(409, printable(str(came_of_it))))

        self._helpers.run(lambda: self._act(wanted), done)

    def _act(self, wanted: Order) -> str:
        """On a helper's thread."""
        try:
            return self._act_on(wanted)
        except OSError as error:
            raise SigwrapError(error.strerror or "a system call failed") from error


def _part(name: str) -> str:
    """Through this module's loader: in a zipapp there is no file."""
    loader: Any = __spec__.loader
    data: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "parts", name))
    return data.decode()
