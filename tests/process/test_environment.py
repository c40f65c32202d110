"""What a policy removes from the environment is nowhere where the session could find it."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.harness import IS_BINARY, PYTHON, UNDER_TEST, Sigwrap
from tests.support.policies import policy

LANDLOCK_CREATE_RULESET, PROCESS_VM_WRITEV, SECCOMP = 444, 311, 317
NO_RULES = " []\n"
REMOVED = ("JWT_SECRET", "SIGWRAP_KEY")


@pytest.fixture
def subject(as_user: Sigwrap) -> Sigwrap:
    """Its caller has secrets."""
    own = {"JWT_SECRET": secret(as_user), "SIGWRAP_KEY": key(as_user)}
    as_user.env |= {**own, "OPENAI_API_KEY": "agents-own"}
    return as_user


def secret(subject: Sigwrap) -> str:
    """Of this test alone: root sees the processes of those that run beside it."""
    return f"s3rver-{subject.mark[::-1]}"


def key(subject: Sigwrap) -> str:
    return f"l0g-{subject.mark[::-1]}"


def under(subject: Sigwrap, env_policy: str, rules: str = NO_RULES) -> tuple[str, ...]:
    return ("-p", policy(subject.folder, rules, f"env_policy: {env_policy}"), "--")


def without(subject: Sigwrap, programs: Path, *numbers: int) -> list[str]:
    """What comes before the line of a sigwrap for which these calls fail."""
    confined = (*PYTHON, str(programs / "confined.py"))
    return [word for number in numbers for word in (*confined, f"{number}", "0", f"{errno.EPERM}")]


def looks_for(value: str, programs: Path) -> tuple[str, ...]:
    return (*PYTHON, str(programs / "looks_everywhere.py"), value[::-1])


def variables(text: bytes) -> dict[str, str]:
    return dict(line.split("=", 1) for line in text.decode().splitlines())


def started(subject: Sigwrap) -> dict[str, Any]:
    return subject.events("session_started")[0].payload


# COMMAND and what it starts


@pytest.mark.promise("environment")
def test_it_reaches_neither_command_nor_its_children_nor_the_log_and_all_else_does(
    subject: Sigwrap,
) -> None:
    line = under(subject, "{remove: ['*_SECRET', '*_KEY'], keep: ['OPENAI_*']}")
    inside = "sh -c '(env)'; tr '\\0' '\\n' </proc/$$/environ"
    done = subject.run(*line, "sh", "-c", f"env; {inside}")
    assert done.stderr == b""
    assert done.stdout.count(b"OPENAI_API_KEY=agents-own\n") == 3
    assert b"JWT_SECRET" not in done.stdout and b"SIGWRAP_KEY" not in done.stdout
    seen = variables(subject.run(*line, "env").stdout)
    session = {"SIGWRAP_SESSION": subject.events("session_started")[-1].payload["session_id"]}
    rest = {name: value for name, value in subject.env.items() if name not in REMOVED}
    assert seen == rest | session
    assert started(subject)["environment_removed"] == list(REMOVED)
    files = [path.read_bytes() for path in subject.store.rglob("*") if path.is_file()]
    assert files and not any(secret(subject).encode() in text for text in files)
    assert not any(key(subject).encode() in text for text in files)
    report = subject.run("report").stdout
    assert b"\nunset    JWT_SECRET, SIGWRAP_KEY\n" in report


def test_a_variable_that_is_there_twice_is_gone_twice(sigwrap: Sigwrap) -> None:
    """No shell makes that, but execve takes it."""
    line = sigwrap.line(*under(sigwrap, "{remove: [JWT_SECRET]}"), "env")
    twice = ["JWT_SECRET=1", f"JWT_SECRET={secret(sigwrap)}"]
    given = [*(f"{name}={value}" for name, value in sigwrap.env.items()), *twice]
    text = (
        "import ctypes, json, sys; line, given = map(json.loads, sys.argv[1:])\n"
        "strings = lambda words: (ctypes.c_char_p * (len(words) + 1))(*map(str.encode, words))\n"
        "ctypes.CDLL(None).execve(line[0].encode(), strings(line), strings(given))"
    )
    words = [json.dumps(list(map(os.fsdecode, line))), json.dumps(given)]
    done = sigwrap.native(*PYTHON, "-c", text, *words)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"SIGWRAP_SESSION=" in done.stdout and b"JWT_SECRET" not in done.stdout


def test_more_names_than_a_message_holds(sigwrap: Sigwrap, programs: Path) -> None:
    sigwrap.env |= {f"A_RATHER_LONG_NAME_{number}": secret(sigwrap) for number in range(1000)}
    line = under(sigwrap, "{remove: ['A_RATHER_*']}")
    found = json.loads(sigwrap.run(*line, *looks_for(secret(sigwrap), programs)).stdout)
    assert found["found"] == []
    assert len(started(sigwrap)["environment_removed"]) == 1000


# sigwrap's own processes


@pytest.mark.parametrize(
    ("value", "landlock"),
    [(secret, True), (key, True), (secret, False)],
    ids=["secret", "key", "secret without Landlock"],
)
def test_no_process_shows_it(
    subject: Sigwrap, programs: Path, value: Callable[[Sigwrap], str], landlock: bool
) -> None:
    looks = looks_for(value(subject), programs)
    line = subject.line(*under(subject, "{remove: [JWT_SECRET]}"), *looks)
    before = [] if landlock else without(subject, programs, LANDLOCK_CREATE_RULESET)
    done = subject.native(*before, *line)
    assert (done.returncode, done.stderr) == (0, b"")
    looked = json.loads(done.stdout)
    assert looked["found"] == []
    missing = "\n".join(started(subject)["missing"])
    assert ("landlock" not in missing) is landlock
    assert "environment" not in missing
    if os.getuid() == 0 and subject.user is None:  # else it would prove nothing
        assert "sigwrap-super" in looked["read"]


def test_the_commands_process_does_not_show_it_before_its_exec(subject: Sigwrap) -> None:
    rule = "\n  - {name: asks, commands: [sleep], decision: approve}\n"
    line = under(subject, "{remove: [JWT_SECRET]}", rule)
    running = subject.start("--approvals", "control", *line, "sleep", "0")
    subject.await_event("approval_requested")
    (asked,) = subject.events("approval_requested")
    shown = Path(f"/proc/{asked.pid}/environ").read_bytes()
    assert b"OPENAI_API_KEY=" in shown
    assert secret(subject).encode() not in shown and key(subject).encode() not in shown
    done = subject.native(UNDER_TEST, "approve", asked.payload["approval_id"])
    assert done.returncode == 0, done.stderr
    running.communicate()
    assert running.returncode == 0


@pytest.mark.skipif(not IS_BINARY, reason="has no outer process")
def test_where_the_outer_process_shows_it_the_log_says_so(subject: Sigwrap, programs: Path) -> None:
    """As where Yama keeps us from writing there, and there is no Landlock."""
    before = without(subject, programs, LANDLOCK_CREATE_RULESET, PROCESS_VM_WRITEV)
    line = subject.line(
        *under(subject, "{remove: [JWT_SECRET]}"), *looks_for(secret(subject), programs)
    )
    done = subject.native(*before, *line)
    ((pid, _),) = json.loads(done.stdout)["found"]
    said = f"environment: removed variables stay readable in /proc/{pid}/environ"
    assert said in started(subject)["missing"]


def test_without_interception_it_is_removed_as_well(subject: Sigwrap, programs: Path) -> None:
    line = ("--best-effort", *under(subject, "{remove: [JWT_SECRET]}"))
    before = without(subject, programs, SECCOMP)
    done = subject.native(*before, *subject.line(*line, *looks_for(secret(subject), programs)))
    assert b"without interception" in done.stderr
    assert json.loads(done.stdout)["found"] == []


def test_in_a_session_that_joined_another(sigwrap: Sigwrap) -> None:
    sigwrap.env |= {"JWT_SECRET": secret(sigwrap)}
    inner = sigwrap.line("--nested", "join", *under(sigwrap, "{remove: [JWT_SECRET]}"), "env")
    done = sigwrap.run("-p", "agent-observe", "--", *inner)
    assert b"SIGWRAP_SESSION=" in done.stdout and b"JWT_SECRET" not in done.stdout


# Replacements


def redirect(how: str) -> str:
    to = f"{{command: /usr/bin/env, {how}}}"
    return f"\n  - {{name: r, commands: [tool], decision: redirect, redirect_to: {to}}}\n"


@pytest.fixture
def tool(subject: Sigwrap) -> str:
    path = subject.folder / "tool"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return "./tool"


def test_what_was_removed_can_be_brokered_to_one_tool(
    subject: Sigwrap, tool: str, programs: Path
) -> None:
    given = 'via: stub, env: {TOKEN: "${SIGWRAP_HOST:JWT_SECRET}"}'
    line = under(subject, "{remove: [JWT_SECRET]}", redirect(given))
    everywhere = " ".join(looks_for(secret(subject), programs))
    done = subject.run(*line, "sh", "-c", f"{tool}; {everywhere}")
    seen, _, looked = done.stdout.rpartition(b"\n{")
    assert variables(seen)["TOKEN"] == secret(subject)
    assert "JWT_SECRET" not in variables(seen)
    assert json.loads(b"{" + looked)["found"] == []


def test_the_key_is_brokered_to_nobody(subject: Sigwrap, tool: str) -> None:
    given = 'via: stub, env: {TOKEN: "${SIGWRAP_HOST:SIGWRAP_KEY}"}'
    done = subject.run(*under(subject, "{keep: ['*']}", redirect(given)), "sh", "-c", tool)
    assert key(subject).encode() not in done.stdout
    (denied,) = subject.events("exec_denied")
    assert "sigwrap has no SIGWRAP_KEY" in denied.payload["reason"]


def test_a_name_can_be_anything(subject: Sigwrap) -> None:
    """A secret in the place of a name is masked, and no name reaches a terminal as it is."""
    names = ["ghp_0123456789abcdef0123", "\x1b[31mRED", "two\nlines", "\udcff"]
    subject.env |= dict.fromkeys(names, "x")
    done = subject.run(*under(subject, "{remove: ['*'], keep: []}"), "/usr/bin/env")
    assert (done.returncode, done.stderr) == (0, b"")
    assert list(variables(done.stdout)) == ["SIGWRAP_SESSION"]
    removed = started(subject)["environment_removed"]
    assert {"***", "\x1b[31mRED", "two\nlines"} < set(removed)
    text = subject.run("report").stdout
    assert b"\x1b[31m" not in text and b"two\\nlines" in text and b"ghp_" not in text


def test_an_environment_larger_than_a_socket_holds_reaches_the_command(sigwrap: Sigwrap) -> None:
    large = {f"LARGE_{number}": "x" * 100_000 for number in range(10)}
    done = sigwrap.run("--", "sh", "-c", "echo ${#LARGE_9}", env=large)
    assert (done.returncode, done.stdout) == (0, b"100000\n")


# Said before


def test_explain_says_what_goes_by_which_pattern(sigwrap: Sigwrap) -> None:
    sigwrap.env = {
        "PATH": os.environ["PATH"],
        "SIGWRAP_KEY": "v1",
        "\x1b[1mA_KEY": "v2",
        "B_KEY": "v3",
    }
    path = policy(sigwrap.folder, NO_RULES, "env_policy: {remove: ['*_KEY'], keep: ['B*']}")
    done = sigwrap.run("policy", "explain", "--env", "-p", path)
    assert done.stdout.decode().splitlines() == [
        "test removes these variables:",
        "  \\e[1mA_KEY  by *_KEY",
        "  SIGWRAP_KEY  always, under every policy",
        "test keeps these, although a pattern of remove matches:",
        "  B_KEY  kept by B*, matched by *_KEY",
        "1 other variable stays.",
    ]
    as_json = sigwrap.run("policy", "explain", "--env", "-p", path, "--json")
    shown = json.loads(as_json.stdout)
    assert [each["name"] for each in shown["removed"]] == ["\x1b[1mA_KEY", "SIGWRAP_KEY"]
    assert shown["others"] == 1
    sigwrap.env = {"PATH": os.environ["PATH"]}
    done = sigwrap.run("policy", "explain", "--env")
    assert done.stdout == (b"agent-default removes nothing from this environment.\n")
