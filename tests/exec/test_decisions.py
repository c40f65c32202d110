"""What the policy says is what happens, however the program is named and whoever execs it."""

from __future__ import annotations

import errno
import shutil
from pathlib import Path

import pytest

from sigwrap.events import Event
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, reader

WAYS = ["execve", "thread", "readonly", "spawn", "vfork", "execveat", "dirfd", "procfd", "devfd"]
WAYS += ["i386", "i386at"]
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


@pytest.mark.parametrize("way", WAYS)
def test_allowed(placed: Sigwrap, compiled: Path, way: str) -> None:
    code, out, err = _run(placed, str(compiled / "call"), way, str(placed.folder / "good"), "w")
    assert (code, err) == (0, "")
    assert "good w\n" in out and "changed" not in out
    event = placed.sealed_events("exec_allowed")[-1]
    assert _path(event) == str(placed.folder / "good")
    assert event.payload["rule_name"] == "builtin:default"
    assert event.payload["verified"] is True
    by_descriptor = way in ("execveat", "dirfd", "i386at")
    assert event.payload["syscall"] == ("execveat" if by_descriptor else "execve")


@pytest.mark.parametrize("way", [*WAYS, "fulltable"])
def test_denied(placed: Sigwrap, compiled: Path, way: str) -> None:
    """Also a caller that has no descriptor left: deciding takes none of its own."""
    code, out, err = _run(placed, str(compiled / "call"), way, str(placed.folder / "bad"))
    assert code == 77
    assert "not this one" in err
    assert "bad" not in out and "changed" not in out
    if way != "vfork":
        assert f"errno {errno.EACCES}" in out
    (event,) = placed.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no-bad"
    assert _path(event) == str(placed.folder / "bad")


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


def test_a_replacement_that_is_missing(as_user: Sigwrap) -> None:
    rules = "\n  - {name: r, commands: [date], decision: redirect, redirect_to: {command: /nope}}\n"
    done = as_user.run("-p", policy(as_user.folder, rules), "--", "sh", "-c", "date; echo $?")
    assert done.stdout == b"126\n"
    assert b"its replacement can't be run" in done.stderr
    assert as_user.sealed_events("exec_denied")


def test_what_is_not_there_is_no_event(as_user: Sigwrap) -> None:
    text = "/nope/x; echo $?; ./nope; echo $?; /etc/passwd; echo $?; /etc; echo $?; /bin/sh/x"
    done = as_user.run("-p", policy(as_user.folder, " []\n"), "--", "dash", "-c", text)
    assert done.stdout == b"127\n127\n126\n126\n"
    assert len(as_user.sealed_events("exec_allowed")) == 1


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
        refused.until(rb"by rule limits\.max_\w+ of \S+: max_\w+: \d \w+ are over [35] \(")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert len(as_user.sealed_events("exec_denied")) == denied
