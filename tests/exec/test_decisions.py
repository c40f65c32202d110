"""What the policy says is what happens, however the program is named and whoever execs it."""

from __future__ import annotations

import errno
import hashlib
import shutil
from pathlib import Path

import pytest

from sigwrap.events import Event
from tests.support.harness import Sigwrap
from tests.support.policies import policy
from tests.support.programs import script
from tests.support.waiting import PATIENCE_S, reader

WAYS = ["execve", "thread", "readonly", "spawn", "vfork", "execveat", "dirfd", "procfd", "devfd"]
RULES = """
  - {name: no-bad, commands: [bad], decision: deny, message: not this one}
  - {name: instead, commands: [was], decision: redirect,
     redirect_to: {command: %(folder)s/good, args: [replaced]}}
  - {name: mark, commands: [marked], decision: audit}
"""


@pytest.fixture
def placed(as_user: Sigwrap, compiled: Path) -> Sigwrap:
    for name in ("good", "bad", "was", "marked"):
        shutil.copy(compiled / "mark", as_user.folder / name)
        (as_user.folder / name).chmod(0o755)
    policy(as_user.folder, RULES % {"folder": as_user.folder})
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


@pytest.mark.parametrize("way", WAYS)
def test_denied(placed: Sigwrap, compiled: Path, way: str) -> None:
    code, out, err = _run(placed, str(compiled / "call"), way, str(placed.folder / "bad"))
    assert code == 77
    assert "not this one" in err
    assert "bad" not in out and "changed" not in out
    if way != "vfork":
        assert f"errno {errno.EACCES}" in out
    (event,) = placed.sealed_events("exec_denied")
    assert event.payload["rule_name"] == "no-bad"
    assert _path(event) == str(placed.folder / "bad")


@pytest.mark.parametrize("way", WAYS)
def test_redirected_in_place(placed: Sigwrap, compiled: Path, way: str) -> None:
    """The replacement runs, whatever the caller's memory is like; never the original."""
    code, out, err = _run(placed, str(compiled / "call"), way, str(placed.folder / "was"), "w")
    assert (code, err) == (0, "")
    assert "good replaced\n" in out and "was" not in out and "changed" not in out
    (event,) = placed.sealed_events("exec_redirected")
    assert _path(event) == str(placed.folder / "was")
    assert event.payload["replacement"] == str(placed.folder / "good")
    assert event.payload["replacement_argv"] == ["good", "replaced"]


def test_audited(placed: Sigwrap) -> None:
    assert _run(placed, str(placed.folder / "marked"))[0] == 0
    (event,) = placed.sealed_events("exec_audited")
    assert event.payload["decision"] == "audit"


def test_a_call_by_the_i386_table(placed: Sigwrap, compiled: Path) -> None:
    call = str(compiled / "call")
    assert _run(placed, call, "i386", str(placed.folder / "good"), "w")[:2] == (0, "good w\n")
    code, out, _ = _run(placed, call, "i386", str(placed.folder / "bad"))
    assert (code, out) == (77, f"errno {errno.EACCES}\n")
    assert _run(placed, call, "i386", str(placed.folder / "was"))[:2] == (0, "good replaced\n")


def test_a_full_descriptor_table(placed: Sigwrap, compiled: Path) -> None:
    """Deciding and redirecting take no descriptor of the caller's."""
    static = placed.folder / "static.sh"
    static.write_text("#!/bin/sh\n")
    call = str(compiled / "call")
    _code, out, _err = _run(placed, call, "fulltable", str(placed.folder / "bad"))
    assert f"errno {errno.EACCES}" in out
    _run(placed, call, "fulltable", str(placed.folder / "was"))
    (event,) = placed.sealed_events("exec_redirected")
    assert event.payload["verified"] is True


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


def test_a_denied_interpreter_stays_denied(as_user: Sigwrap, compiled: Path) -> None:
    """Through a script, a script's script, ld.so, env, a wrapper, and its content."""
    folder = as_user.folder
    bad = folder / "bad"
    shutil.copy(compiled / "mark", bad)
    digest = hashlib.sha256(bad.read_bytes()).hexdigest()
    rules = f"""
  - {{name: no-bad, commands: [bad], decision: deny}}
  - {{name: no-copy, commands: ["*"], sha256: ["{digest}"], decision: deny}}
"""
    (folder / "script").write_text(f"#!{bad}\n")
    (folder / "outer").write_text(f"#!{folder}/script x\n")
    (folder / "by-env").write_text("#!/usr/bin/env bad\n")
    for name in ("script", "outer", "by-env", "bad"):
        (folder / name).chmod(0o755)
    (folder / "link").symlink_to(bad)
    shutil.copy(bad, folder / "copy")
    loader = next(Path("/lib64").glob("ld-linux-x86-64.so*"))
    call = compiled / "call"
    lines = [
        "./bad",
        "./link",
        "./script",
        "./outer",
        "./by-env",
        f"{loader} ./bad",
        "env ./bad",
        "nice -n 5 ./bad",
        "env -i nohup ./bad",
        f"{call} memfd {bad}",
        f"{call} procfd {bad}",
        "./copy",
    ]
    text = "".join(f"{line} 2>&1 >/dev/null; echo $?\n" for line in lines)
    env = {"PATH": f"{folder}:/usr/bin:/bin", "MARK": str(folder / "marks")}
    done = as_user.run("-p", policy(folder, rules), "--", "sh", "-c", text, env=env)
    codes = [line for line in done.stdout.decode().splitlines() if line.isdigit()]
    assert codes == ["126"] * 9 + ["77", "77", "126"]
    assert not (folder / "marks").exists()
    assert len(as_user.sealed_events("exec_denied")) >= len(lines)


def test_an_approval_that_nobody_can_give(as_user: Sigwrap) -> None:
    rules = "\n  - {name: ask, commands: [date], decision: approve}\n"
    line = ("-p", policy(as_user.folder, rules), "--approvals", "deny", "--")
    done = as_user.run(*line, "sh", "-c", "date; echo $?")
    assert done.stdout == b"126\n"
    assert done.stderr.count(b"nobody can be asked") == 1
    event = as_user.sealed_events("exec_denied")[0]
    assert event.payload["rule_name"] == "ask"


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


def test_limits(as_user: Sigwrap) -> None:
    """Deeper than max_depth nothing is executed."""
    name = policy(as_user.folder, " []\n", "limits: {max_depth: 2}")
    script(as_user.folder, "down", "#!/bin/sh\necho $1\n./down $(($1 + 1)); true\n")
    done = as_user.run("-p", name, "--", "./down", "0")
    assert done.stdout == b"0\n1\n2\n"
    assert b"max_depth" in done.stderr
    (event,) = as_user.sealed_events("exec_denied")
    assert (event.payload["rule_name"], event.payload["depth"]) == ("limits.max_depth", 3)


@pytest.mark.parametrize(("limit", "denied"), [("max_children: 3", 4), ("max_processes: 5", 3)])
def test_limits_on_how_many(as_user: Sigwrap, limit: str, denied: int) -> None:
    """Seven at once, beside the shell that starts them; what is over the limit is not executed."""
    name = policy(as_user.folder, " []\n", f"limits: {{{limit}}}")
    text = "for i in 1 2 3 4 5 6 7; do /bin/sh -c 'read line' <&3 & done 3<&0; wait"
    process = as_user.start("-p", name, "--", "sh", "-c", text)
    refused = reader(process.stderr)
    for _ in range(denied):
        refused.until(rb"sigwrap: sh: max_\w+: \d processes are over 5|children are over 3")
    process.stdin.close()
    assert process.wait(PATIENCE_S) == 0
    assert len(as_user.sealed_events("exec_denied")) == denied
