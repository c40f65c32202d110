"""What a real session has decided, `sigwrap verify` decides again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from sigwrap.report.check.decisions import BUILT_IN, TOO_LONG
from tests.support.harness import Sigwrap
from tests.support.policies import policy

RULES = """
  - {name: replaced, commands: [cat], decision: redirect,
     redirect_to: {command: "true", append_args: true}}
  - {name: stubbed, commands: [uname], decision: redirect,
     redirect_to: {command: echo, args: [x], via: stub, record: true}}
  - {name: asked, commands: [date], decision: approve}
  - {name: loads, commands: [id], loads_code: true, decision: deny}
  - {name: systems, commands: [sleep], system_file: true, decision: audit}
  - {name: pinned, commands: [tool], not_sha256: [DIGEST], decision: deny}
  - {name: long, commands: [rm], truncated: true, decision: deny}
  - {name: shallow, commands: [setsid], depth: {max: 1}, decision: deny}
  - {name: all, commands: ["*"], decision: allow}
""".replace("DIGEST", "0" * 64)
MORE = """
signal_rules:
  - {name: handled, signals: [CONT], target: session, handled: true, decision: deny}
  - {name: inside, signals: ["@all"], target: session, decision: allow}
limits: {max_children: 50, max_depth: 6, max_execs: 500}
"""


@pytest.mark.promise("verify")
def test_all_of_it_comes_out_the_same(sigwrap: Sigwrap, programs: Path) -> None:
    chosen = policy(sigwrap.folder, RULES, MORE)
    script = str(programs / "many_ways.sh")
    sigwrap.run("-p", chosen, "--", "bash", script, str(sigwrap.folder), within_s=60)
    done = sigwrap.run("verify", "--json")
    document = json.loads(done.stdout)
    assert (done.returncode, document["problem"]) == (0, "")
    decisions = document["decisions"]
    not_judged = decisions["not_judged"]
    # One command has 10,000 arguments.
    assert set(not_judged) <= {BUILT_IN, TOO_LONG} and not_judged.get(TOO_LONG, 0) <= 1
    assert decisions["reproduced"] + sum(not_judged.values()) == decisions["count"]
    assert decisions["count"] > 30


@pytest.mark.promise("replay")
def test_another_policy_is_tried_without_running_anything(sigwrap: Sigwrap) -> None:
    chosen = policy(sigwrap.folder, RULES, MORE)
    sigwrap.run("-p", chosen, "--", "sh", "-c", "ls /dev/null; ls /dev/null; id; true")
    same = sigwrap.run("replay", "--policy", chosen)
    assert (same.returncode, same.stderr.count(b"\n")) == (0, 1)
    assert re.match(rb"Under \S+, nothing would differ: \d+ decisions\n", same.stdout)
    rules = "\n  - {name: no-lists, commands: [ls], decision: deny}\n" + RULES
    (sigwrap.folder / "other").mkdir()
    other = policy(sigwrap.folder / "other", rules, MORE)
    differs = sigwrap.run("replay", "--policy", other)
    assert differs.returncode == 1
    assert b"2 execs of ls by rule no-lists (was allowed by all; first at " in differs.stdout
    assert sigwrap.run("replay", "-p", other, "--exit-zero").returncode == 0
    assert len(sigwrap.events("session_started")) == 1
