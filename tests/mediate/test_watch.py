"""Which events are attempts on sigwrap."""

from __future__ import annotations

from sigwrap.control.watchers import attempt_on_boundary
from sigwrap.events import EVENT_TYPES, Payload

ON_SIGWRAP: Payload = {
    "rule_name": "builtin:sigwrap",
    "source_pid": 7,
    "source_cmd": "sh",
    "target_pid": 5,
    "signal_name": "SIGKILL",
    "syscall": "kill",
}


def test_an_attempt_on_sigwrap() -> None:
    for event, payload, what in (
        ("signal_blocked", ON_SIGWRAP, "sh (7) tried to send SIGKILL by kill to sigwrap (5)"),
        ("store_tampered", {"what": "the journal was removed", "path": "/s"}, "the journal was"),
        (
            "own_files_changed",
            {"files": ["/a"], "count": 3},
            "sigwrap's file /a was changed and 2 more",
        ),
        ("killswitch_invented", {"path": "/s/k"}, "sigwrap killswitch on did not announce /s/k"),
        (
            "control_refused",
            {"inside_session": True, "peer_pid": 9, "peer_cmd": "curl --token abc"},
            "process 9 connected to the control socket: curl --token abc",
        ),
    ):
        assert attempt_on_boundary(event, payload).startswith(what)


def test_not_an_attempt() -> None:
    for event, payload in (
        ("exec_allowed", {"path": "/bin/ls"}),
        ("exec_allowed", {"path": "./ls", "shadows": "/bin/ls"}),
        ("exec_denied", {"path": "./ls", "shadows": "/bin/ls"}),
        ("signal_blocked", ON_SIGWRAP | {"rule_name": "no-kill"}),
        ("signal_blocked", ON_SIGWRAP | {"target_pid": None}),  # PTRACE_TRACEME
        ("signal_blocked", ON_SIGWRAP | {"correlation": "3"}),  # kill 0, where sigwrap is as well
        ("control_refused", {"inside_session": False, "peer_pid": 9}),
        *((name, {}) for name in ("process_exited", "agent_signal", "limit_near", "session_ended")),
    ):
        assert event in EVENT_TYPES
        assert attempt_on_boundary(event, payload) == ""
