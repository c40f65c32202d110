"""`policy check --ceiling`: a policy that it accepts allows nothing that the ceiling denies."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwrap.cli.policy.shared import load
from sigwrap.policy.judge.engine import Engine
from sigwrap.policy.judge.request import STRICTNESS
from sigwrap.policy.tools.cases import run_cases
from sigwrap.policy.tools.ceiling import widenings
from tests.support.harness import REFUSED, Sigwrap

CEILING = """
version: 1
name: fleet
vars: {PLACE: /data}
defaults: {command: approve, signal: allow, file: allow, network: deny}
limits: {max_execs: 100}
command_rules:
- {name: ls, commands: [ls], decision: allow}
- {name: rm, commands: [rm], paths: ["${PLACE}"], decision: deny}
signal_rules: [{name: init, signals: [SIGTERM], target: parent, decision: deny}]
file_rules: [{name: keys, paths: ["${PLACE}"], operations: [read], decision: deny}]
tests:
- {command: ls, decision: allow}
- {command: rm /data, decision: deny}
- {command: cat x, decision: approve}
- {file: /data/x, operation: read, decision: deny}
- {connect: "example.com:443", decision: deny}
"""
HEAD = "version: 1\nname: project\n"
EXTENDS = f"{HEAD}extends: fleet.yaml\n"


def rule(more: str, section: str = "command_rules") -> str:
    return f"{EXTENDS}{section}: [{{name: own, {more}}}]\n"


NARROWER = [
    EXTENDS,
    CEILING,
    rule("commands: [cat], decision: deny"),
    rule("commands: [ls], decision: approve"),
    rule("commands: [rm], decision: approve, overrides: []"),
    rule("destinations: ['*'], decision: deny", "network_rules"),
    rule("paths: [/], operations: [read], decision: allow", "file_rules"),  # `keys` holds it back
    f"{EXTENDS}defaults: {{command: deny, file: deny}}\napprovals: deny\n",
    f"{EXTENDS}limits: {{max_execs: 99, wall_time: 1h}}\n",
    f"{EXTENDS}sequence: 3\nexpires: 2027-01-31\n",
]
FIRST = "name: first, commands: [rm], decision: approve"
WIDER = [
    (f"{HEAD}extends: agent-default\n", "it does not extend fleet"),
    (f"{EXTENDS}vars: {{PLACE: /nowhere}}\n", "it does not extend fleet"),
    (
        CEILING.replace("[read], decision: deny}", "[read], decision: deny, layer: 1}"),
        "it does not extend fleet",
    ),
    (CEILING.replace("command_rules:", f"command_rules:\n- {{{FIRST}}}"), "rule first"),
    (rule("commands: [cat], decision: allow"), "rule own"),
    (rule("commands: [rm], decision: approve, overrides: [rm]"), "rule own"),
    (rule("commands: [ls], decision: redirect, redirect_to: {command: /bin/rm}"), "rule own"),
    (rule("signals: [SIGTERM], decision: deny, fallback: allow", "signal_rules"), "rule own"),
    (rule("signals: [SIGHUP], decision: allow, log: false", "signal_rules"), "rule own"),
    (
        rule("paths: [/x], operations: [read], decision: allow, make_missing: true", "file_rules"),
        "rule own",
    ),
    (rule("destinations: ['*'], decision: allow", "network_rules"), "rule own"),
    (f"{EXTENDS}defaults: {{command: audit}}\n", "the default for commands"),
    (f"{EXTENDS}network: allow\n", "the default for networks"),
    (f"{EXTENDS}limits: {{max_execs: 101}}\n", "limits"),
    (f"{EXTENDS}limits: {{at_log_size: deny}}\n", "limits"),
    (f"{EXTENDS}session: {{tracing: allow}}\n", "session"),
    (f"{EXTENDS}env_policy: {{keep: [TOKEN]}}\n", "env_policy"),
    (f"{EXTENDS}fallback: warn\n", "fallback"),
    (f"{EXTENDS}on: {{boundary: kill}}\n", "trust"),
]


@pytest.fixture(autouse=True)
def ceiling(tmp_path: Path) -> str:
    (tmp_path / "fleet.yaml").write_text(CEILING)
    return str(tmp_path / "fleet.yaml")


@pytest.mark.parametrize("text", NARROWER)
def test_a_narrower_policy_decides_no_test_of_the_ceiling_laxer(
    tmp_path: Path, ceiling: str, text: str
) -> None:
    (tmp_path / "project.yaml").write_text(text)
    above, policy = load(ceiling, None), load(str(tmp_path / "project.yaml"), None)
    assert list(widenings(policy, above)) == []
    for case in run_cases(Engine(policy._replace(cases=above.cases))):
        ranks = STRICTNESS[case.decision.action], STRICTNESS[case.case.decision]
        assert ranks[0] >= ranks[1], case


@pytest.mark.parametrize(("text", "said"), WIDER)
def test_what_may_be_wider_is_named(tmp_path: Path, ceiling: str, text: str, said: str) -> None:
    (tmp_path / "project.yaml").write_text(text)
    policy = load(str(tmp_path / "project.yaml"), None)
    found = [each.message for each in widenings(policy, load(ceiling, None))]
    assert found[0].startswith(said), found
    assert len(found) == 1


def test_the_command_refuses_it(sigwrap: Sigwrap) -> None:
    folder = sigwrap.folder
    (folder / "good.yaml").write_text(EXTENDS)
    (folder / "bad.yaml").write_text(f"{EXTENDS}fallback: warn\n")
    words = ("policy", "check", "--ceiling", "fleet.yaml", "good.yaml")
    done = sigwrap.run(*words, "fleet.yaml")
    assert (done.returncode, done.stdout.count(b": ok")) == (0, 2)
    done = sigwrap.run(*words, "bad.yaml")
    assert done.returncode == REFUSED
    assert b"bad.yaml:1:1: fallback may allow more than fleet\n" in done.stdout
    assert sigwrap.run("policy", "check", "--ceiling", "absent", "good.yaml").returncode == REFUSED
