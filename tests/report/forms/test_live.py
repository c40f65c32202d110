from __future__ import annotations

from typing import Any

import pytest

from sigwrap.events import Event
from sigwrap.report.forms.detail import live_line

EXEC = {"path": "/a/pip", "argv": ["pip", "list"], "rule_name": "dev-tools"}


@pytest.mark.parametrize(
    ("type_name", "payload", "words"),
    [
        ("exec_audited", EXEC, "audited  pip list  (rule dev-tools)"),
        ("exec_denied", EXEC | {"message": "no"}, "denied  pip list  (rule dev-tools: no)"),
        ("exec_allowed", EXEC | {"approval_id": "a1"}, "approved  pip list  (rule dev-tools)"),
        ("exec_allowed", EXEC, ""),
        (
            "signal_sent",
            {"signal_name": "SIGHUP", "target_cmd": "sh", "decision": "audit", "count": 3},
            "audited  SIGHUP to sh  from ?  3 times  (rule ?)",
        ),
        (
            "own_files_changed",
            {"files": ["/a", "/b"], "count": 2},
            "files that sigwrap runs from were changed: /a /b",
        ),
        (
            "interrupt_received",
            {"signal_name": "SIGINT", "origin": "terminal"},
            "received SIGINT from the terminal (Ctrl+C)",
        ),
        ("process_exited", {"comm": "sh", "signal_name": "SIGKILL"}, "sh  died of SIGKILL"),
        ("process_exited", {"comm": "sh", "exit_code": 1}, ""),
    ],
)
def test_what_needs_attention_is_a_line_as_it_comes(
    type_name: str, payload: dict[str, Any], words: str
) -> None:
    line = live_line(Event(3, 2_500_000_000, type_name, 7, payload, ""), 1_000_000_000)
    assert line == (words and f"    +1.500 s  {words}")
