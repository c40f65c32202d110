"""Answers at each path of the page. A change goes to the sessions as `sigwrap approve` sends it, so
the page can do nothing that its user could not."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from sigwrap.bare import re
from sigwrap.errors import SigwrapError
from sigwrap.report.forms.page import part as shared
from sigwrap.text import printable
from sigwrap.watch.board import KillAll, Order
from sigwrap.watch.page.connection import Connection, Streams
from sigwrap.watch.page.gate import Entered, Gate, Refused
from sigwrap.watch.page.messages import (
    Answer,
    BadRequest,
    Request,
    is_id,
    outcome,
    plain,
    read_order,
    redirect,
)

_SCRIPTS = ("base.js", "questions.js", "sessions.js", "events.js", "page.js")
_MOST_ORDERS = 8  # at a time; the kill switch is never refused
_TOKEN = "{token}"
_REPORT_WITHIN_S = 60.0
_REPORT_BYTES = 32 << 20
_HEAD_BYTES = 4_096
_POLICY = re.compile(rb'<meta http-equiv="Content-Security-Policy" content="([^"]*)">')
_QUOTED = "&#39;"
# In an origin of its own, so that its script can do nothing to the page.
_APART = "sandbox allow-scripts; frame-ancestors 'none'"


class Site:
    def __init__(
        self,
        gate: Gate,
        carry_out: Callable[[Order], str],
        streams: Streams,
        report_line: Sequence[str],
    ) -> None:
        """`carry_out` returns what came of an order, or raises SigwrapError or OSError.
        `report_line` writes a report to its standard output; the session is its last word."""
        self._gate = gate
        self._carry_out = carry_out
        self._streams = streams
        self._report_line = report_line
        self._reporting = threading.Lock()
        self._orders = 0
        self._is_closing = False
        self._changed = threading.Condition()
        script = "\n".join(
            ("(() => {", '"use strict";', shared("elements.js"), *map(_part, _SCRIPTS), "})();")
        )
        page = _part("page.html").replace(_TOKEN, gate.token)
        style = shared("colours.css") + _part("page.css")
        self._files = {
            "/": Answer(200, "text/html; charset=utf-8", page.encode()),
            "/page.js": Answer(200, "text/javascript; charset=utf-8", script.encode()),
            "/page.css": Answer(200, "text/css; charset=utf-8", style.encode()),
        }

    def finish(self) -> None:
        """Wait until every order is done, and take no more: half an order is worse than none."""
        with self._changed:
            self._is_closing = True
            self._changed.wait_for(lambda: not self._orders)

    def serve(self, connection: Connection) -> None:
        """Read a request and answer it; OSError if the client leaves."""
        try:
            request = connection.request()
        except BadRequest as bad:
            connection.answer(plain(bad.status, f"bad request: {bad.why}"))
            return
        match self._gate.pass_(request):
            case Refused(status, why):
                connection.answer(plain(status, why))
            case Entered(cookie):
                connection.answer(redirect(cookie))
            case None:
                connection.is_let_in = True
                (self._get if request.method == "GET" else self._post)(connection, request)

    def _get(self, connection: Connection, request: Request) -> None:
        folder, _, name = request.path.rpartition("/")
        stream_of = request.query.removeprefix("session=")
        if request.path in self._files:
            connection.answer(self._files[request.path])
        elif request.path == "/stream" and (not stream_of or is_id(stream_of)):
            self._streams.serve(connection, stream_of)
        elif folder == "/report" and is_id(name):
            connection.answer(self._report(name))
        else:
            connection.answer(plain(404, "no such page"))

    def _report(self, session_id: str) -> Answer:
        """Have another process make the report, one at a time."""
        if not self._reporting.acquire(blocking=False):
            return plain(503, "another report is being generated: reload in a moment")
        try:
            report = _output_of([*self._report_line, session_id])
        except OSError:
            report = b""
        finally:
            self._reporting.release()
        found = _POLICY.search(report[:_HEAD_BYTES])
        if found is None:
            return plain(502, f"no report of {session_id}: run sigwrap report {session_id}")
        policy = found.group(1).decode("ascii", "replace").replace(_QUOTED, "'")
        return Answer(200, "text/html; charset=utf-8", report, policy=f"{policy}; {_APART}")

    def _post(self, connection: Connection, request: Request) -> None:
        try:
            order = read_order(request.path, request.body)
        except BadRequest as bad:
            connection.answer(outcome(bad.status, bad.why))
            return
        with self._changed:
            has_room = self._orders < _MOST_ORDERS or isinstance(order, KillAll)
            may_act = has_room and not self._is_closing
            self._orders += may_act
        try:
            connection.answer(
                self._outcome(order) if may_act else outcome(503, "too many actions: try again")
            )
        finally:
            with self._changed:
                self._orders -= may_act
                self._changed.notify_all()

    def _outcome(self, order: Order) -> Answer:
        try:
            return outcome(200, printable(self._carry_out(order)))
        except SigwrapError as failure:
            return outcome(409, printable(str(failure)))
        except OSError as error:
            return outcome(409, printable(error.strerror or "a system call failed"))


def _part(name: str) -> str:
    """Read a part through this module's loader: in a zipapp there is no file."""
    loader: Any = __spec__.loader
    data: bytes = loader.get_data(os.path.join(os.path.dirname(__file__), "parts", name))
    return data.decode()


def _output_of(line: Sequence[str]) -> bytes:
    """Return the output, or nothing if the command fails, takes too long or writes too much."""
    null = subprocess.DEVNULL
    process = subprocess.Popen(
        line, stdin=null, stdout=subprocess.PIPE, stderr=null, start_new_session=True
    )

    def kill() -> None:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    timer = threading.Timer(_REPORT_WITHIN_S, kill)
    timer.start()
    with process:
        assert process.stdout is not None
        output = process.stdout.read(_REPORT_BYTES + 1)
        if len(output) > _REPORT_BYTES:
            kill()
    timer.cancel()
    return output if process.returncode == 0 else b""
