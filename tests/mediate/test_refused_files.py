"""Which files the kernel has probably refused to a command that failed."""

from __future__ import annotations

import errno
import shlex

import pytest

from sigwrap.files.judge import MOST_EVENTS, MOST_LINES, Found, Inferred, Refusals
from sigwrap.policy.judge.request import Operation
from tests.mediate.transcript import engine

RULES = """
file_rules:
  - {name: public, paths: [/h/.ssh/*.pub], operations: [read], decision: allow}
  - {name: secrets, paths: [/h/.ssh], operations: [read], decision: deny}
  - {name: project, paths: [/h/p], operations: [write, create, delete], decision: allow}
  - {name: elsewhere, paths: ["/**"], operations: [write, create, delete], decision: deny}
"""
FOLDERS = {"/", "/h", "/h/.ssh", "/h/p", "/h/bare.git", "/h/.local", "/etc"}
FILES = {"/h/.ssh/k", "/h/.ssh/k.pub", "/h/.bashrc", "/h/p/a", "/h/p/link", "/etc/hosts"}
LINKS = {"/h/p/link": "/h/p/a", "/h/to_p": "/h/p/a"}
ALL = frozenset(Operation)


def look(path: str) -> Found | None:
    if path.startswith("/slow"):
        raise OSError(errno.EAGAIN, "not in the cache")
    path = LINKS.get(path, path)
    if path not in FOLDERS | FILES:
        return None
    may_write = not path.startswith("/etc")
    return Found(path, path in FOLDERS, ALL if may_write else frozenset({Operation.READ}))


def refusals() -> Refusals:
    return Refusals(engine(RULES).files, "/h")


def inferred(subject: Refusals, line: str, status: int = 1, folder: str = "/h/p") -> list[str]:
    suspicion = subject.suspects(shlex.split(line), folder)
    if suspicion is None:
        return []
    found = subject.inferred(suspicion, status, look)
    return [f"{' '.join(subject.shown(each))} {each.rule}" for each, _ in found]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("cat /h/.ssh/k", "read ~/.ssh/k secrets"),
        ("cat ../.ssh/k", "read ~/.ssh/k secrets"),
        ("ssh -i/h/.ssh/k host", "read ~/.ssh/k secrets"),
        ("tar cf x /h/.ssh", "read ~/.ssh secrets"),
        ("sh -c 'echo x >> ~/.bashrc'", "write ~/.bashrc elsewhere"),
        ("bash -lc 'cat < $HOME/.ssh/k'", "read ~/.ssh/k secrets"),
        ("tee /h/new", "create ~/new elsewhere"),
        ("mkdir /h/.local/bin", "create ~/.local/bin elsewhere"),
        ("rm /h/.bashrc", "delete ~/.bashrc elsewhere"),
        ("cp a /h", "write ~ elsewhere"),
        ("git push ../bare.git main", "write ~/bare.git elsewhere"),
        ("git-receive-pack ../bare.git", "write ~/bare.git elsewhere"),
    ],
)
def test_a_path_that_exists_and_is_denied(line: str, said: str) -> None:
    assert inferred(refusals(), line) == [said.replace("write ~ ", "write /h ")]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        ("cat /h/.ssh/k.pub", 1),
        ("cat /h/.ssh/none", 1),
        ("cat /h/.ssh", 1),  # natively an error as well
        ("test -e /h/.ssh/k", 1),
        ("ls /h/.ssh/none", 2),
        ("grep x /h/.ssh/k", 1),
        ("diff a /h/.ssh/k", 1),
        ("grep x /etc/hosts", 2),
        ("cat a", 1),
        ("cat /h/.ssh/k", 0),
        ("rm /etc/hosts", 1),  # its mode forbids that to this user
        ("tee /etc/new", 1),
        ("mkdir /h/.local", 1),
        ("tee /h/to_p", 1),  # a link into the project
        ("touch /none/x", 1),
        ("cat /slow/x", 1),
        ("tee /slow/x", 1),
        ("sh -c 'echo \">> ~/.bashrc\"; false'", 1),
        ("git log /h/.bashrc", 128),
        ("git -C /h/bare.git commit", 1),
    ],
)
def test_no_false_alarm(line: str, status: int) -> None:
    assert inferred(refusals(), line, status) == []


def test_a_folder_that_is_denied_makes_plain_names_suspect() -> None:
    assert inferred(refusals(), "cat k", folder="/h/.ssh") == ["read ~/.ssh/k secrets"]
    assert inferred(refusals(), "touch new", folder="/h") == ["create ~/new elsewhere"]
    assert inferred(refusals(), "cat k", folder="") == []
    assert refusals().suspects((), "/h") is None


def test_each_file_is_one_event_and_none_without_end() -> None:
    subject = refusals()
    events = 0
    for line in (
        "cat /h/.ssh/k",
        "head /h/.ssh/k",
        *(f"tee /h/new{n}" for n in range(2 * MOST_LINES)),
    ):
        suspicion = subject.suspects(shlex.split(line), "/h/p")
        found = () if suspicion is None else subject.inferred(suspicion, 1, look)
        events += sum(is_new for _, is_new in found)
    assert events == MOST_EVENTS
    again = [inferred(subject, "cat /h/.ssh/k") for _ in range(MOST_LINES)]
    assert sum(map(len, again)) == MOST_LINES - MOST_EVENTS - 1
    assert subject.suspects(("tee", "/h/other"), "/h") is None


def test_the_event_has_the_words_masked_and_cut() -> None:
    subject = refusals()
    argv = ("curl", "--token", "hunter2", "--key=/h/.ssh/k", *["x" * 1000] * 1000)
    suspicion = subject.suspects(argv, "/h/p")
    assert suspicion is not None
    assert suspicion.command[:4] == ["curl", "--token", "***", "--key=/h/.ssh/k"]
    assert len(str(suspicion.command)) < 8000
    ((found, is_new),) = subject.inferred(suspicion, 1, look)
    assert (found, is_new) == (Inferred(Operation.READ, "/h/.ssh/k", "secrets"), True)
