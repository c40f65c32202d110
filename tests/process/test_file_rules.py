"""Rules on files, as the shipped policies have them, in a home folder like a user's."""

from __future__ import annotations

import errno
import os
import pwd
import subprocess
from pathlib import Path

import pytest

from sigwrap.errors import DOCTOR
from sigwrap.kernel import landlock
from tests.support.desk import Desk
from tests.support.harness import PYTHON, REFUSED
from tests.support.waiting import PATIENCE_S

CREATE_RULESET = 444
NEEDS_WALLS = pytest.mark.skipif(not landlock.holds_files(), reason=f"needs {landlock.FILES_NEED}")
pytestmark = NEEDS_WALLS


@pytest.mark.promise("file rules")
def test_secrets_are_not_read_and_what_is_beside_them_is(desk: Desk) -> None:
    done = desk.shell("cat ~/.ssh/id_ed25519; cat ~/.ssh/id_ed25519.pub ~/.bashrc; ls ~/.ssh")
    assert b"the secret" not in done.stdout
    assert b"id_ed25519: Permission denied" in done.stderr
    assert done.stdout == b"ssh-ed25519 AAAA\n# mine\nid_ed25519\nid_ed25519.pub\n"


@pytest.mark.promise("file rules")
@pytest.mark.parametrize(
    ("overrides", "read"), [("", b""), (", overrides: [secrets]", b"the secret\n")]
)
def test_a_rule_of_ones_own_opens_secrets_only_where_it_says_so(
    desk: Desk, overrides: str, read: bytes
) -> None:
    rule = f"{{name: all, paths: [/**], operations: [read], decision: allow{overrides}}}"
    policy = desk.project / "own.yaml"
    policy.write_text(f"version: 1\nname: own\nextends: agent-default\nfile_rules: [{rule}]\n")
    assert desk.shell("cat ~/.ssh/id_ed25519", "-p", str(policy)).stdout == read


def test_the_project_and_temporary_folders_are_written_and_nothing_else(desk: Desk) -> None:
    script = (
        "echo x >a && mkdir -p b/c && mv a b/c/a && ln b/c/a d && rm d && echo y >>b/c/a && "
        'echo t >"$TMPDIR/t" && f=$(mktemp) && echo z >$f && rm $f && mkfifo p && ln -s b l && '
        "cat b/c/a; echo e >>~/.bashrc; echo n >~/.profile; rm ~/.bashrc; mkdir ~/.local/bin"
    )
    done = desk.shell(script)
    assert done.stdout == b"x\ny\n"
    assert done.stderr.count(b"ermission denied") == 4
    assert (desk.home / ".bashrc").read_text() == "# mine\n"


def test_its_own_log_is_never_written_inside(desk: Desk) -> None:
    store = desk.subject.store
    done = desk.shell(f"echo x >{store}/killswitch; rm -f {store}/*; echo x >>{store}/x.db; :")
    assert b"ermission denied" in done.stderr
    assert not (store / "killswitch").exists()
    desk.subject.sealed_events("session_started")


def test_what_command_was_given_it_may_open_again(desk: Desk) -> None:
    """Output into a file outside: `echo >/dev/stderr` opens it anew."""
    out, err = desk.home / "out", desk.home / "err"
    for each in (out, err):
        each.touch()
        if desk.subject.user is not None:
            os.chown(each, desk.subject.user, -1)
    script = 'exec "$@" >~/out 2>>~/err'
    inside = "echo one >>/dev/stdout; echo two >>/dev/stderr; echo no >>~/.bashrc"
    line = desk.subject.line("--", "sh", "-c", inside)
    done = desk.subject.native("sh", "-c", script, "sh", *line)
    assert done.returncode == 2
    assert out.read_text() == "one\n"
    assert err.read_text().splitlines()[0] == "two"


def test_it_may_be_given_files_in_memory(desk: Desk) -> None:
    """As some programs that start others hand out: no rule of Landlock can name them."""
    given, out = os.memfd_create("in"), os.memfd_create("out")
    os.pwrite(given, b"given\n", 0)
    line = desk.subject.line("--no-report", "--", "sh", "-c", "cat; echo one >>/dev/stdout")
    process = desk.subject.start_line([*desk.subject.as_user(), *line], stdin=given, stdout=out)
    assert (process.wait(PATIENCE_S), process.stderr.read()) == (0, b"")
    assert os.pread(out, 100, 0) == b"given\none\n"
    os.close(given)
    os.close(out)


def test_a_session_before_can_not_widen_what_the_next_one_may(desk: Desk) -> None:
    """It puts links where the rules of the next one lead."""
    other = desk.home / "other"
    prepared = f"git init -q {other} && mkdir {desk.home}/tmp && mkdir {desk.project}/below"
    assert desk.subject.native("sh", "-c", prepared).returncode == 0
    tmp = f"/tmp/sigwrap-test-{os.getpid()}-{desk.subject.user}"
    desk.subject.env["TMPDIR"] = tmp
    planted = f"ln -s {other}/.git .git && ln -s {desk.home} {tmp} && ls -l .git {tmp}"
    assert desk.shell(planted).returncode == 0
    try:
        script = f"echo x >>{other}/.git/config; echo x >{other}/.git/hooks/x; echo x >>~/.bashrc"
        for folder in (desk.project, desk.project / "below"):
            done = desk.subject.run("--", "sh", "-c", script, cwd=folder)
            assert done.stderr.count(b"ermission denied") == 3, done.stderr
    finally:
        os.unlink(tmp)


@pytest.mark.parametrize("home", [None, "relative"])
def test_secrets_are_kept_whatever_HOME_is(desk: Desk, home: str | None) -> None:  # noqa: N802
    """As the system says where the home folder is, it is somebody else's here."""
    line = ["env", *(["-u", "HOME"] if home is None else [f"HOME={home}"]), *desk.subject.line()]
    done = desk.subject.native(*line, "--", "true")
    assert (done.returncode, done.stderr) == (0, b"")
    done = desk.subject.native(*line, "policy", "show", "agent-default")
    assert done.returncode == 0
    expected = pwd.getpwuid(desk.subject.user or os.getuid()).pw_dir
    assert f"{expected.rstrip('/')}/.aws" in done.stdout.decode()


@pytest.mark.parametrize("place", ["/", "{home}/../", "relative"])
def test_a_home_folder_is_no_temporary_one(desk: Desk, place: str) -> None:
    desk.subject.env["TMPDIR"] = place.format(home=desk.home, project=desk.project)
    done = desk.shell("echo x >>~/.bashrc; echo x >/tmp/sigwrap-test-x && rm /tmp/sigwrap-test-x")
    assert b"ermission denied" in done.stderr
    assert done.returncode == 0


def test_root_changes_the_kernel_by_no_file(desk: Desk) -> None:
    writes = "exec 3>>/proc/sys/kernel/core_pattern"
    done = desk.shell(f"({writes}) || echo no; echo x >/proc/self/comm && echo named")
    assert done.stdout == (b"no\n" if desk.subject.user is None else b"no\nnamed\n")


def test_a_kernel_that_cannot_hold_them_runs_nothing_unasked_unless_the_policy_goes_without(
    desk: Desk, programs: Path
) -> None:
    confined = (*PYTHON, str(programs / "confined.py"), str(CREATE_RULESET), "0", f"{errno.ENOSYS}")

    def run(*words: str) -> subprocess.CompletedProcess[bytes]:
        return desk.subject.native(*confined, *desk.subject.line(*words))

    needs = f"the file_rules of agent-strict need {landlock.FILES_NEED}"
    done = run("-p", "agent-strict", "--", "ls")
    assert (done.returncode, done.stdout) == (REFUSED, b"")
    way_out = f"--best-effort runs without them; {DOCTOR}"
    assert done.stderr.decode() == f"sigwrap: {needs} ({way_out})\n"
    done = run("-p", "agent-strict", "--best-effort", "--", "ls")
    assert (done.returncode, done.stderr.decode()) == (0, f"sigwrap: {needs}\n")
    (started,) = desk.subject.sealed_events("session_started")
    assert needs in started.payload["missing"]
    assert "file_wall" not in started.payload["capabilities"]
    done = run("--", "sh", "-c", "cat ~/.ssh/id_ed25519")
    needs = f"sigwrap: the file_rules of agent-default need {landlock.FILES_NEED}\n"
    assert (done.stdout, done.stderr.decode()) == (b"the secret\n", needs)
