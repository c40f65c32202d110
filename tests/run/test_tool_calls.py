"""What a process in the session may have recorded as a hook's decision."""

from __future__ import annotations

import pytest

from sigwrap.control.agent_signals import _decoded

DEEP = "[" * 64 + "]" * 64


@pytest.mark.parametrize(
    "text",
    [
        "",
        "7",
        "[]",
        '{"answer": "allow"}',
        '{"answer": 7}',
        "[" * 100_000,
    ],
)
def test_what_is_no_decision_is_dropped(text: str) -> None:
    assert _decoded(text.encode()) is None


@pytest.mark.parametrize(
    "field",
    [
        '"pid": true',
        '"pid": -1',
        '"pid": 1e999',
        f'"pid": {1 << 70}',
        '"what": NaN',
        '"what": {"a": 1}',
        '"evaluation_us": Infinity',
        '"evaluation_us": false',
        f'"findings": {DEEP}',
        f'"findings": [{{"what": {DEEP}}}]',
        '"findings": {"what": "x"}',
        '"of_my_own": "x"',
    ],
)
def test_only_text_and_numbers_in_their_places_are_recorded(field: str) -> None:
    found = _decoded(b'{"answer": "deny", "tool": "Bash", %b}' % field.encode())
    assert found is not None
    pid, payload = found
    findings: list[dict[str, str]] = [{}] if "[{" in field else []
    assert pid == 0
    assert payload == {"answer": "deny", "tool": "Bash", "findings": findings, "evaluation_us": 0}
    assert type(payload["evaluation_us"]) is int


def test_a_hooks_decision() -> None:
    text = b'{"pid": 7, "answer": "ask", "findings": [{"why": "x", "a": 1}], "evaluation_us": 9}'
    findings = [{"why": "x"}]
    assert _decoded(text) == (7, {"answer": "ask", "findings": findings, "evaluation_us": 9})
