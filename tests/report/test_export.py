from __future__ import annotations

import json
from typing import Any

from sigwrap.cli.export import jsonl_line
from sigwrap.events import Event
from sigwrap.report.folds.metrics import MetricsFold

SEED_KEYS = (
    "timestamp session_id event_type signal signal_name source_pid source_cmd target_pid "
    "target_cmd target_type decision rule_name fallback original_signal platform syscall"
).split()


def event(type_name: str, **payload: Any) -> Event:
    return Event(5, 1_768_127_400_000_000_005, type_name, 7, payload, "abc")


def signal(type_name: str = "signal_blocked", **different: Any) -> Event:
    sent = {"signal": 9, "signal_name": "SIGKILL", "source_pid": 1234, "source_cmd": "python3"}
    to = {"target_pid": 1, "target_cmd": "systemd", "target_type": "system"}
    judged = {"decision": "deny", "rule_name": "block", "fallback": False, "original_signal": 9}
    how = {"platform": "linux", "syscall": "kill", "evaluation_us": 200}
    return event(type_name, **{**sent, **to, **judged, **how, **different})


def test_a_signal_has_exactly_the_keys_that_other_tools_know_and_ours_behind() -> None:
    line = json.loads(jsonl_line(signal(), "s1"))
    assert list(line) == [*SEED_KEYS, "evaluation_us", "seq", "pid", "hash"]
    assert line["timestamp"] == "2026-01-11T10:30:00.000000005Z"
    assert (line["session_id"], line["event_type"]) == ("s1", "signal_blocked")
    lacking = json.loads(jsonl_line(event("signal_sent"), "s1"))
    assert list(lacking)[: len(SEED_KEYS)] == SEED_KEYS and lacking["signal"] is None


def test_another_event_has_its_payload_but_can_not_fake_the_frame() -> None:
    told = event("process_exited", comm="a\nb\udcff", session_id="x", event_type="y", seq=99)
    text = jsonl_line(told, "s1")
    line = json.loads(text)
    assert "\n" not in text and text.isascii()
    frame = (line["session_id"], line["event_type"], line["seq"], line["pid"])
    assert frame == ("s1", "process_exited", 5, 7)
    assert line["comm"] == "a\nb\udcff"


def metrics(*events: Event) -> list[str]:
    fold = MetricsFold()
    for each in events:
        fold.add(each)
    return list(fold.lines())


def test_counters_and_a_cumulative_histogram() -> None:
    lines = metrics(
        signal(),
        signal(evaluation_us=100),
        signal(evaluation_us=20_000, decision="allow"),
        event("exec_denied", argv=["rm"], decision="deny", rule_name="no-rm", evaluation_us=700),
        event("exec_denied", argv=["rm"], decision="deny", rule_name="no-rm"),
    )
    assert lines[:2] == [
        "# HELP sigwrap_signals_total Signals decided.",
        "# TYPE sigwrap_signals_total counter",
    ]
    assert [line for line in lines if not line.startswith("#")] == [
        'sigwrap_signals_total{signal="SIGKILL",target_type="system",decision="allow",'
        'platform="linux"} 1',
        'sigwrap_signals_total{signal="SIGKILL",target_type="system",decision="deny",'
        'platform="linux"} 2',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="0.0001"} 1',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="0.0005"} 2',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="0.001"} 2',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="0.005"} 2',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="0.01"} 2',
        'sigwrap_signal_evaluation_seconds_bucket{platform="linux",le="+Inf"} 3',
        'sigwrap_signal_evaluation_seconds_sum{platform="linux"} 0.020300',
        'sigwrap_signal_evaluation_seconds_count{platform="linux"} 3',
        'sigwrap_execs_total{rule="no-rm",decision="deny",platform="linux"} 2',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="0.0001"} 0',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="0.0005"} 0',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="0.001"} 1',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="0.005"} 1',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="0.01"} 1',
        'sigwrap_exec_evaluation_seconds_bucket{platform="linux",le="+Inf"} 1',
        'sigwrap_exec_evaluation_seconds_sum{platform="linux"} 0.000700',
        'sigwrap_exec_evaluation_seconds_count{platform="linux"} 1',
    ]


def test_labels_are_escaped() -> None:
    lines = metrics(signal(signal_name='a"b\\c\nd\udcff'))
    assert 'signal="a\\"b\\\\c\\nd\\\\xff"' in "\n".join(lines)
