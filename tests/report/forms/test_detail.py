from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event, io_payload
from sigwrap.report.forms.detail import detail

TO_NPM = {"target_pid": 8, "target_cmd": "npm\n", "target_type": "parent"}
SIGNAL = {"decision": "deny", "signal_name": "SIGTERM", "source_cmd": "node", **TO_NPM}
SIGNAL |= {"rule_name": "upward", "message": "not  that"}
DENIED_SIGNAL = "SIGTERM to npm\\n (8, parent)  from node  (rule upward: not that)"
EXEC = {"argv": ["rm", "a b"], "path": "/bin/rm"}


@pytest.mark.parametrize(
    ("type_name", "payload", "words"),
    [
        ("exec_allowed", EXEC, "rm 'a b'"),
        ("exec_denied", {**EXEC, "rule_name": "no-rm"}, "rm 'a b'  (rule no-rm)"),
        ("exec_denied", {"path": "/bin/rm"}, "/bin/rm  (rule ?)"),
        ("exec_allowed", {"argv": []}, "'?'"),
        ("exec_audited", {**EXEC, "shadows": "/bin/x"}, "rm 'a b'  shadows /bin/x  (rule ?)"),
        ("signal_blocked", SIGNAL, DENIED_SIGNAL),
        ("signal_sent", {"count": 30}, " to ?  from ?  30 times"),
        ("process_exited", {"comm": "n\x1b", "exit_code": 3}, "n\\e  exit 3"),
        ("process_exited", {"comm": "n", "signal_name": "SIGHUP"}, "n  died of SIGHUP"),
        (
            "session_started",
            {"command": ["npm", "a b"], "cwd": "/w", "policy": "p", "policy_sources": ["x" * 999]},
            "npm 'a b'  in /w  under p",
        ),
        (
            "session_ended",
            {"exit_status": 3, "reason": "the command ended"},
            "exit status 3: the command ended",
        ),
        ("approval_requested", {"what": "rm x", "rule_name": "ask"}, "rm x  (rule ask)"),
        ("approval_denied", {"what": "rm x", "by": "ann", "reason": "no"}, "rm x  by ann: no"),
        ("io_recorded", io_payload("stdout", 0, b"a\x1b[1m\n"), "stdout  6 B  a\\e[1m\\n"),
        ("io_recorded", io_payload("stdin", 5, b"\0\xff"), "stdin  2 B  (binary)"),
        ("io_recorded", {}, "?  ? B  (binary)"),
        (
            "limit_exceeded",
            {"limit": "max_execs", "effect": "terminated", "reason": "9 are over 8"},
            "the limit max_execs ended the run: 9 are over 8",
        ),
        (
            "file_audited",
            {"operation": "rename", "path": "/a", "to": "/b", "comm": "mv", "count": 2},
            "rename /a -> /b  by mv  2 times",
        ),
        (
            "file_refused_likely",
            {"operation": "read", "path": "/a\x1b", "comm": "cat", "rule_name": "secrets"},
            "read /a\\e  by cat  (rule secrets)",
        ),
        ("servers_gone", {"some": 0, "none": "", "list": ["a b"]}, "some 0, list 'a b'"),
        (
            "diagnostic",
            {"counts": {"exec_audited": 2, "evil\n": "\x1b"}, "missing": [], "name": None, "n": 0},
            "n 0",
        ),
        (
            "tool_call_judged",
            {"tool": "Read", "what": "read /a\nread /b", "answer": "deny"},
            "Read: read /a; read /b  deny",
        ),
        ("other", {"comm": "x" * 395}, "comm " + "x" * 395),
        ("other", {"comm": "x" * 396}, "comm " + "x" * 395 + "..."),
    ],
)
def test_an_event_in_a_few_words(type_name: str, payload: dict[str, Any], words: str) -> None:
    assert detail(Event(1, 1, type_name, 7, payload, "")) == words
