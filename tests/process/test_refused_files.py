"""Files that the kernel refuses: standard error, the log, the report and `why` say so."""

from __future__ import annotations

import ctypes
import os
import subprocess
import time
from pathlib import Path

import pytest

from sigwrap.events import Payload
from sigwrap.kernel import landlock
from tests.support.desk import Desk
from tests.support.harness import PYTHON
from tests.support.waiting import PATIENCE_S

ADVICE = ". Do not work around this; tell the user."
LIKELY = "file_refused_likely"
MNT_DETACH = 2
pytestmark = pytest.mark.skipif(not landlock.holds_files(), reason=f"needs {landlock.FILES_NEED}")


def line(what: str, rule: str) -> str:
    return f"sigwrap: probably refused: {what} (rule {rule}, policy agent-default){ADVICE}"


def likely(desk: Desk) -> list[Payload]:
    return [each.payload for each in desk.subject.events(LIKELY)]


def words_of(desk: Desk) -> list[str]:
    home = str(desk.home)
    found = ((each["operation"], each["path"], each["rule_name"]) for each in likely(desk))
    return [" ".join(each).replace(home, "~") for each in found]


def own_lines(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    return [each for each in done.stderr.decode().splitlines() if each.startswith("sigwrap: ")]


@pytest.mark.promise("file rules")
def test_a_secret_that_is_read(desk: Desk) -> None:
    done = desk.subject.run("--", "cat", str(desk.home / ".ssh/id_ed25519"))
    said, end = own_lines(done)
    assert said == line("read ~/.ssh/id_ed25519", "secrets")
    assert end.startswith("sigwrap: 1 file probably refused (sigwrap report ")
    (payload,) = likely(desk)
    assert payload["command"] == ["cat", str(desk.home / ".ssh/id_ed25519")]
    assert (payload["comm"], payload["exit_code"], payload["operation"]) == ("cat", 1, "read")
    assert desk.subject.sealed_events(LIKELY)
    report = desk.subject.run("report").stdout.decode()
    attention = report[report.index("Needs attention") :].splitlines()
    what = f"read {desk.home}/.ssh/id_ed25519  (rule secrets: its command ended with 1)"
    assert attention[1].startswith(f"  probably refused  {what}, event ")
    why = desk.subject.run("why").stdout.decode()
    read = f"read {desk.home}/.ssh/id_ed25519"
    assert f"it ended by itself, probably after the kernel refused it: {read} (rule secrets)" in why
    for form in ("md", "html", "json"):
        shown = desk.subject.run("report", "--format", form).stdout.decode()
        assert "probably refused" in shown and "id_ed25519" in shown


@pytest.mark.parametrize("shell", ["sh", "bash", "zsh"])
def test_a_shells_own_redirection(desk: Desk, shell: str) -> None:
    inner = f"{shell} -c 'echo x >> ~/.bashrc'"
    done = desk.shell(f"{inner}; cd ~ && {shell} -c 'echo x > new'; true")
    assert words_of(desk) == ["write ~/.bashrc elsewhere", "create ~/new elsewhere"]
    assert own_lines(done)[:2] == [
        line("write ~/.bashrc", "elsewhere"),
        line("create ~/new", "elsewhere"),
    ]


@pytest.mark.parametrize("remote", ["../bare.git", "origin"])
def test_a_push_to_a_repository_beside_the_project(desk: Desk, remote: str) -> None:
    made = (
        "git init -q --bare ~/bare.git && git init -q && git remote add origin ../bare.git && "
        "git -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
    )
    assert desk.subject.native("sh", "-c", made).returncode == 0
    done = desk.subject.run("--", "git", "push", remote, "HEAD:main")
    assert done.returncode == 1
    assert words_of(desk) == ["write ~/bare.git elsewhere"]
    assert own_lines(done)[0] == line("write ~/bare.git", "elsewhere")


def test_no_false_alarm(desk: Desk) -> None:
    script = """
        grep nothing /etc/passwd; grep -q x ~/.bashrc; test -e ~/.ssh/id_ed25519 -a -d /none
        ls none
        ls ~/.ssh/none; diff /etc/passwd ~/.bashrc >d; cat ~/.ssh/none; cat none; cat ~/.ssh
        grep x ~/.ssh/id_ed25519.pub; sh -c 'echo x >/dev/null; exit 3'; mkdir tmp; rm none
        sh -c 'echo " >> ~/.bashrc"; exit 1'; git log; false ~/.ssh/id_ed25519.pub; mkdir -p ~/.ssh
        cat a >b; [ -w ~/.bashrc ] && false; stat ~/.ssh/id_ed25519 none; false
    """
    done = desk.shell(script)
    assert done.returncode == 1
    assert (likely(desk), own_lines(done)) == ([], [])


def test_what_its_mode_forbids_is_not_sigwraps_doing(desk: Desk) -> None:
    desk.shell("touch /usr/sigwrap-test; false")
    assert len(likely(desk)) == (1 if desk.subject.user is None else 0)


def test_each_attempt_is_told_and_each_file_is_one_event(desk: Desk) -> None:
    done = desk.shell("for n in 1 2 3; do cat ~/.ssh/id_ed25519; done; head ~/.ssh/id_ed25519")
    assert len(own_lines(done)) == 5
    assert len(likely(desk)) == 1


def test_a_command_that_has_run_often_with_other_words(desk: Desk) -> None:
    """Such an exec goes on by a shorter way, with the same decision."""
    often = "for i in 1 2 3 4 5 6; do /bin/cat /dev/null; done"
    desk.shell(f"{often}; /bin/cat ~/.ssh/id_ed25519; {often}")
    assert words_of(desk) == ["read ~/.ssh/id_ed25519 secrets"]


def test_a_reader_of_its_standard_error_gets_the_line_before_the_end(desk: Desk) -> None:
    """As the tool of an agent reads it, which is its only writer's only reader."""
    agent = (
        "import subprocess, sys; "
        "done = subprocess.run(sys.argv[1:], stderr=subprocess.PIPE); "
        "sys.exit(0 if b'probably refused' in done.stderr else 3)"
    )
    secret = str(desk.home / ".ssh/id_ed25519")
    for _ in range(5):
        done = desk.subject.run("--", *PYTHON, "-c", agent, "cat", secret)
        assert done.returncode == 0, done.stderr


def test_a_reader_does_not_wait_for_a_process_that_has_closed_it(desk: Desk) -> None:
    """Its standard error is not kept for as long as it lives."""
    script = "exec 2>&-; exec 1>&-; read line <held; echo >>~/.bashrc"
    agent = (
        "import os, subprocess, sys; os.mkfifo('held'); "
        "child = subprocess.Popen(sys.argv[1:], stderr=subprocess.PIPE); "
        "child.stderr.read(); open('held', 'w').write('go\\n'); child.wait()"
    )
    done = desk.subject.run("--", *PYTHON, "-c", agent, "sh", "-c", script)
    assert done.returncode == 0
    assert words_of(desk) == ["write ~/.bashrc elsewhere"]


def test_the_line_at_the_end_comes_where_no_person_reads(desk: Desk) -> None:
    desk.subject.policy = "agent-default"
    desk.subject.env["PATH"] = "/usr/sbin:/usr/bin"  # each directory once
    denied = "shutdown now; shutdown now; cat ~/.ssh/id_ed25519; true"
    last = own_lines(desk.shell(denied))[-1]
    assert last.startswith("sigwrap: 2 actions denied, 1 file probably refused (sigwrap report ")
    assert "denied" not in own_lines(desk.shell(denied, "--no-report"))[-1]
    *_, with_report = own_lines(desk.shell(denied, "--report"))
    assert "2 actions denied, 1 file probably refused (sigwrap report " in with_report
    assert own_lines(desk.shell("true")) == []


def test_a_liar_causes_a_bounded_number_of_inferences_about_itself(desk: Desk) -> None:
    """It has looked at the files, so that the kernel knows of them."""
    lie = (
        "import os, sys\n"
        "for n in range(40):\n"
        "    if not os.fork():\n"
        "        words = [f'{sys.argv[1]}/{n}-{each}\\x1b[2J\\n' for each in range(9)]\n"
        "        any(map(os.path.exists, words))\n"
        "        os.execv('/bin/false', ['tee', *words])\n"
        "    os.wait()\n"
        "sys.exit(0)\n"
    )
    done = desk.subject.run("--", *PYTHON, "-c", lie, str(desk.home))
    assert done.returncode == 0
    assert len(likely(desk)) == 100
    assert b"\x1b" not in done.stderr
    assert {each["comm"] for each in likely(desk)} == {"tee"}
    assert b"\x1b" not in desk.subject.run("report").stdout


@pytest.mark.skipif(os.getuid() != 0, reason="needs root")
def test_a_file_system_that_does_not_answer_keeps_nobody_waiting(desk: Desk) -> None:
    folder = desk.home / ".aws"
    folder.mkdir()
    (folder / "credentials").write_text("the secret\n")
    program = "import sys; sys.stdin.read(1); sys.exit(1)"
    word = str(folder / "credentials")
    process = desk.subject.start("--", *PYTHON, "-c", program, word)
    desk.subject.await_event("exec_allowed")
    with Unanswered(folder):
        started_s = time.monotonic()
        _, stderr = process.communicate(b"x", PATIENCE_S)
        took_s = time.monotonic() - started_s
    assert (process.returncode, stderr) == (1, b"")
    assert likely(desk) == []
    assert took_s < PATIENCE_S / 2


class Unanswered:
    """A FUSE mount whose server answers nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = os.fsencode(folder)
        self._libc = ctypes.CDLL(None, use_errno=True)
        try:
            self._fd = os.open("/dev/fuse", os.O_RDWR)
        except OSError:
            pytest.skip("needs FUSE")

    def __enter__(self) -> None:
        options = b"fd=%d,rootmode=40000,user_id=0,group_id=0,allow_other" % self._fd
        if self._libc.mount(b"test", self._folder, b"fuse", 0, options) < 0:
            pytest.skip("needs FUSE")

    def __exit__(self, *_: object) -> None:
        self._libc.umount2(self._folder, MNT_DETACH)
        os.close(self._fd)
