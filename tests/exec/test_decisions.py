"""What the policy says is what happens, however the program is named and whoever execs it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from sigwrap.events import Event
from tests.exec.calls import WAYS, by_way, calls
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, reader

RULES = """
  - {name: no-bad, commands: [bad], decision: deny, message: not this one}
"""


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    for name in ("good", "bad"):
        shutil.copy(compiled / "mark", as_user.folder / name)
        (as_user.folder / name).chmod(0o755)
    policy(as_user.folder, RULES)
    return as_user


def _run(placed: Sigwrap, *words: str, **options: object) -> tuple[int, str, str]:
    line = ("-p", str(placed.folder / "policy.yaml"), "--", *words)
    done = placed.run(*line, **options)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def _path(event: Event) -> str:
    """Links resolved."""
    programs = event.payload.get("programs")
    return str(programs[0]["path"] if programs else event.payload["path"])


def test_allowed_by_whichever_call(placed: Sigwrap, compiled: Path) -> None:
    good = str(placed.folder / "good")
    code, out, err = _run(placed, "sh", "-c", calls(compiled, WAYS, good, "w"))
    assert (code, err) == (0, "")
    said = by_way(out)
    assert {way: lines[-1] for way, lines in said.items()} == dict.fromkeys(WAYS, "0")
    assert all("good w" in lines for lines in said.values()), said
    assert "changed" not in out
    events = [event for event in placed.sealed_events("exec_allowed") if _path(event) == good]
    facts = [(event.payload["rule_name"], event.payload["verified"]) for event in events]
    assert facts == [("builtin:default", True)] * len(WAYS)
    by_descriptor = ("execveat", "dirfd", "i386at")
    assert [event.payload["syscall"] for event in events] == [
        "execveat" if way in by_descriptor else "execve" for way in WAYS
    ]


@pytest.mark.promise("exec rules")
def test_denied_by_whichever_call(placed: Sigwrap, compiled: Path) -> None:
    """Also a caller that has no descriptor left: deciding takes none of its own."""
    bad, ways = str(placed.folder / "bad"), [*WAYS, "fulltable"]
    code, out, err = _run(placed, "sh", "-c", calls(compiled, ways, bad))
    assert code == 0
    said = by_way(out)
    for way, lines in said.items():
        denied = [] if way == "vfork" else [f"errno {errno.EACCES}"]
        intact = ["memory intact"] if way == "vfork" else []
        assert lines == [*denied, *intact, "77"], way
    assert err.count("not this one") == len(ways)
    events = placed.sealed_events("exec_denied")
    found = [(event.payload["rule_name"], _path(event)) for event in events]
    assert found == [("no-bad", bad)] * len(ways)


@pytest.mark.promise("redirect")
def test_arguments_and_environment_of_a_replacement(as_user: Sigwrap) -> None:
    rules = """
  - {name: r, commands: [date], decision: redirect,
     redirect_to: {command: sh, args: ["-c", 'echo "$0 $1 $2 $ADDED $KEPT $CHANGED"', "zero"],
                   append_args: true, env: {ADDED: new, CHANGED: "yes"}}}
"""
    name = policy(as_user.folder, rules)
    env = {"KEPT": "old", "CHANGED": "no"}
    done = as_user.run("-p", name, "--", "sh", "-c", "date a 'b c'; true", env=env)
    assert (done.stdout, done.stderr) == (b"zero a b c new old yes\n", b"")


def test_secrets_are_not_written(as_user: Sigwrap) -> None:
    secret = "s3cr3tV4lueThatStays"
    words = ("true", f"--token={secret}", "--password", secret, f"https://a:{secret}@host/")
    script(as_user.folder, "run", "#!/bin/sh\nenv API_TOKEN=" + " ".join((secret, *words)))
    as_user.run("-p", policy(as_user.folder, " []\n"), "--", "./run")
    as_user.verify(ended=True)
    for path in as_user.store.rglob("*"):
        if path.is_file() and not path.is_symlink():
            found = path.read_bytes().count(secret.encode())
            assert found == 0, path


@pytest.mark.parametrize(("limit", "denied"), [("max_children: 3", 4), ("max_processes: 5", 3)])
def test_limits_on_how_many(as_user: Sigwrap, limit: str, denied: int) -> None:
    """Seven at once, beside the shell that starts them; what is over the limit is not executed."""
    name = policy(as_user.folder, " []\n", f"limits: {{{limit}}}")
    text = "for i in 1 2 3 4 5 6 7; do /bin/sh -c 'read line' <&3 & done 3<&0; wait"
    process = as_user.start("-p", name, "--", "sh", "-c", text)
    refused = reader(process.stderr)
    for _ in range(denied):
        refused.until(rb": max_\w+: \d \w+ exceed the limit of [35] \(rule limits\.max_\w+, policy")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert len(as_user.sealed_events("exec_denied")) == denied
