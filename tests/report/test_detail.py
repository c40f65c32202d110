from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event, io_payload
from sigwrap.report.detail import detail


def event(type_name: str, payload: dict[str, Any]) -> Event:
    return Event(seq=1, time_ns=1, type=type_name, pid=7, payload=payload, hash="")


SIGNAL = {
    "decision": "deny",
    "signal_name": "SIGTERM",
    "source_cmd": "node",
    "target_pid": 8,
    "target_cmd": "npm\n",
    "target_type": "parent",
}


@pytest.mark.parametrize(
    ("type_name", "payload", "words"),
    [
        ("exec_denied", {"decision": "deny", "argv": ["rm", "a b"]}, "deny  rm 'a b'"),
        ("exec_denied", {"decision": "deny", "path": "/bin/rm"}, "deny  /bin/rm"),
        ("exec_denied", {"argv": []}, "?  '?'"),
        ("signal_blocked", SIGNAL, "deny  SIGTERM  node -> 8 npm\\n (parent)"),
        ("signal_blocked", {}, "?  ?  ? -> ? ? (?)"),
        ("io_recorded", io_payload("stdout", 0, b"a\x1b[1m\n"), "stdout  6 B  a\\e[1m\\n"),
        ("io_recorded", io_payload("stdin", 5, b"\0\xff"), "stdin  2 B  (binary)"),
        ("io_recorded", {}, "?  ? B  (binary)"),
        (
            "limit_exceeded",
            {"limit": "max_execs", "count": 0, "comm": ""},
            "limit=max_execs  count=0",
        ),
        ("limit_exceeded", {"comm": "x" * 395}, "comm=" + "x" * 395),
        ("limit_exceeded", {"comm": "x" * 396}, "comm=" + "x" * 395 + "..."),
    ],
)
def test_an_event_in_a_few_words(type_name: str, payload: dict[str, Any], words: str) -> None:
    assert detail(event(type_name, payload)) == words
