from __future__ import annotations

from sigwrap.events import Counts, texts


def test_what_repeats_an_action_or_answer_is_not_counted() -> None:
    counts = Counts()
    for type_name, payload in (
        ("exec_denied", {}),
        ("exec_denied", {"retry": True}),  # in the next directory of PATH
        ("exec_redirected", {}),
        ("exec_allowed", {"stub": True}),  # what the redirect was about
        ("exec_allowed", {"stub": True, "approval_id": "a1"}),
        ("exec_allowed", {"decision": "audit"}),
        ("signal_sent", {"count": 40}),
        ("connection_denied", {"count": 3}),
        ("approval_granted", {}),
        ("approval_granted", {"remembered": True}),  # by the answer before
        ("approval_expired", {}),
        ("process_exited", {"count": 9}),
    ):
        counts.add(type_name, payload)
    assert counts.execs == {"denied": 1, "redirected": 1, "approved": 1, "audited": 1}
    assert (counts.denied, counts.approved) == (4, 1)
    assert counts.answers == {"approved": 1, "expired": 1}
    assert counts.lines() == [
        "4 commands (1 denied, 1 redirected, 1 audited)",
        "40 signals",
        "3 connections (3 denied)",
    ]


def test_words_of_any_log_are_texts() -> None:
    assert texts(["git", "status"]) == ["git", "status"]
    assert texts(["git", 1, None, ["x"]]) == ["git", "1", "None", "['x']"]
    assert texts([]) == texts("git") == texts(None) == texts({"git": 1}) == []
