"""TRACEPARENT: the session records it, and hands its own root span to the command."""

from __future__ import annotations

import json

import pytest

from sigwrap.log import trace_context
from tests.support.harness import Sigwrap
from tests.support.policies import policy

PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ECHO = ("sh", "-c", "echo $TRACEPARENT; sh -c 'exit 3'")


def test_an_instrumented_command_is_a_child_of_the_session_in_the_caller_s_trace(
    as_user: Sigwrap,
) -> None:
    done = as_user.run("-p", "ci", "--", *ECHO, env={"TRACEPARENT": PARENT})
    started = as_user.events("session_started")[0].payload
    assert started["traceparent"] == PARENT
    parent = trace_context.parse(done.stdout.decode().strip())
    assert parent is not None and (parent.trace_id, parent.flags) == (PARENT[3:35], "01")
    assert parent.span_id == trace_context.span_id(started["session_id"])
    exported = [
        as_user.run("export", "--format", "otlp", "--signal", "traces").stdout for _ in range(2)
    ]
    assert exported[0] == exported[1]
    (scope,) = json.loads(exported[0])["resourceSpans"][0]["scopeSpans"]
    child, sh, root = scope["spans"]
    assert (root["spanId"], root["parentSpanId"]) == (parent.span_id, PARENT[36:52])
    assert (sh["parentSpanId"], child["parentSpanId"]) == (root["spanId"], sh["spanId"])
    assert child["status"]["message"] == "exit status 3"
    logs = as_user.run("export", "--format", "otlp").stdout.decode()
    (records,) = json.loads(logs)["resourceLogs"][0]["scopeLogs"]
    assert len(records["logRecords"]) == len(as_user.events())


@pytest.mark.parametrize("given", ["", PARENT.upper(), PARENT + "-x", "00-\xff"])
def test_without_a_valid_one_the_environment_stays_as_it_is(sigwrap: Sigwrap, given: str) -> None:
    done = sigwrap.run("-p", "ci", "--", *ECHO, env={"TRACEPARENT": given} if given else {})
    assert done.stdout.decode().strip() == given
    assert "traceparent" not in sigwrap.events("session_started")[0].payload


def test_a_policy_may_remove_it(sigwrap: Sigwrap) -> None:
    removing = policy(sigwrap.folder, " []\n", "env_policy: {remove: ['TRACE*']}")
    done = sigwrap.run("-p", removing, "--", *ECHO, env={"TRACEPARENT": PARENT})
    assert done.stdout == b"\n"
    assert sigwrap.events("session_started")[0].payload["traceparent"] == PARENT


def test_a_command_that_joins_keeps_the_one_of_its_caller(sigwrap: Sigwrap) -> None:
    joined = ("--join-name", "agent", "--join-idle", "1", "-p", "agent-observe", "--")
    done = sigwrap.run(*joined, *ECHO, env={"TRACEPARENT": PARENT})
    assert done.stdout.decode().strip() == PARENT
    assert "traceparent" not in sigwrap.events("session_started")[0].payload
