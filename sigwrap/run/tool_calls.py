"""Record tool calls that an agent's hook judged inside the session, as the hook reports them."""

from __future__ import annotations

import os
import time

from sigwrap.bare import TYPE_CHECKING, json, socket
from sigwrap.events import Payload, number
from sigwrap.linux.foreign_fds import refuse_descriptors
from sigwrap.protocols.control import (
    CALLS_SUFFIX,
    MOST_CALL_BYTES,
    control_folder,
    socket_path,
)
from sigwrap.store.folder import private_folder

if TYPE_CHECKING:
    from sigwrap.run.session import Session

EVENT = "tool_call_judged"

_ANSWERS = ("no opinion", "ask", "deny")
_TEXTS = (
    *("agent", "conversation", "call_id", "tool", "what", "cwd", "answer", "rule_name", "reason"),
)
_OF_A_FINDING = ("what", "answer", "why", "rule_name")
_MOST_FINDINGS = 20
_AT_ONCE = 8
_PAUSE_S = 0.05  # after so many, so that a flood cannot starve the loop


class ToolCalls:
    def __init__(self, session: Session) -> None:
        """Open the socket. If that fails, hooks are not recorded; the kernel's events still are."""
        self._loop, self._recorder = session.loop, session.recorder
        self._name = self._recorder.log.session_id + CALLS_SUFFIX
        self._folder_path = control_folder(session.plan.store)
        self._end: socket.socket | None = None
        try:
            folder = private_folder(self._folder_path)
        except OSError:
            return
        end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            refuse_descriptors(end)
            end.bind(socket_path(folder.fd, self._name))
            self._loop.watch(end.fileno(), self._on_datagrams)
            self._end = end
        except OSError:
            end.close()
        finally:
            folder.close()

    def close(self) -> None:
        if self._end is None:
            return
        self._loop.unwatch(self._end.fileno())
        self._end.close()
        self._end = None
        try:
            os.unlink(os.path.join(self._folder_path, self._name))
        except OSError:
            pass  # another process removed it

    def _on_datagrams(self, _happened: int) -> None:
        if self._end is None:
            return
        for _ in range(_AT_ONCE):
            try:
                found = _decoded(self._end.recv(MOST_CALL_BYTES))
            except OSError:  # no more
                return
            if found is not None:
                self._recorder.record(EVENT, *found)
        self._loop.unwatch(self._end.fileno())
        self._loop.call_at(time.monotonic() + _PAUSE_S, self._go_on)

    def _go_on(self) -> None:
        if self._end is not None:
            self._loop.watch(self._end.fileno(), self._on_datagrams)


def _decoded(text: bytes) -> tuple[int, Payload] | None:
    """Return the pid that the hook names, and the event; None for anything else.

    Any process in the session may send this: only text and numbers of the expected places get into
    the log.
    """
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("answer") not in _ANSWERS:
        return None
    payload = _texts(found, _TEXTS)
    payload["findings"] = [
        _texts(each, _OF_A_FINDING)
        for each in _list(found.get("findings"))[:_MOST_FINDINGS]
        if isinstance(each, dict)
    ]
    payload["evaluation_us"] = _number(found.get("evaluation_us"))
    return _number(found.get("pid")), payload


def _texts(found: Payload, names: tuple[str, ...]) -> Payload:
    return {name: found[name] for name in names if isinstance(found.get(name), str)}


def _list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def _number(value: object) -> int:
    return number(value) if type(value) is int and value >= 0 else 0
