"""The GitHub action, and the script that it shares with other services, on a machine that has no
Python: what is not what it should be is not run, the job's status stays, its report is in the
summary, its log can be read elsewhere, and a cancelled job leaves a whole log and no process."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import pytest

from sigwrap.kernel import procfs
from sigwrap.log.catalog import open_session
from sigwrap.report.check.verify import Outcome, verify_session
from tests.binary.conftest import Run
from tests.support.bare_machine import BareMachine
from tests.support.fleet import arrived, recorded
from tests.support.github_runner import ACTION, TEMP, Runner, load_action
from tests.support.network import Files
from tests.support.processes import tree
from tests.support.waiting import Watch, await_that, reader

pytestmark = [
    pytest.mark.binary,
    pytest.mark.skipif(os.getuid() != 0, reason="a root folder takes root"),
]

ROOT = Path(__file__).parents[2]
FOLDER = f"{TEMP}/sigwrap"
IN_FOLDER = {"SIGWRAP_CI_FOLDER": FOLDER}
ROLES = ("sigwrap-forward", "sigwrap-stub", "sigwrap-shell")
REFUSED, INTERRUPTED = 125, 130
HANDLES = 'trap "echo cleaned; exit 3" INT TERM; sleep 1000 & echo ready; wait'
STUBBORN = "trap '' TERM; trap 'echo asked' INT; echo ready; while :; do sleep 1000; done"


@pytest.fixture(scope="module")
def action() -> Any:
    return load_action((ROOT / "action.yml").read_text())


@pytest.fixture(scope="module")
def digest(binary: Path) -> str:
    return hashlib.sha256(binary.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def machine(binary: Path, tmp_path_factory: pytest.TempPathFactory) -> BareMachine:
    machine = BareMachine.make(tmp_path_factory.mktemp("machine"), binary)
    shutil.copy(binary, machine.place("/work/sigwrap"))
    shutil.copytree(ROOT / "ci", machine.place(ACTION) / "ci")
    return machine


@pytest.fixture
def runner(machine: BareMachine) -> Iterator[Runner]:
    yield Runner(machine)
    for pid in _processes_of(machine):
        os.kill(pid, signal.SIGKILL)
    shutil.rmtree(machine.place(TEMP))


@pytest.fixture
def installed(runner: Runner) -> Runner:
    """As the action leaves it."""
    folder = runner.machine.place(f"{FOLDER}/bin")
    folder.mkdir(parents=True)
    os.link(runner.machine.place("/work/sigwrap"), folder / "sigwrap")
    return runner


def _processes_of(machine: BareMachine) -> list[int]:
    def is_there(pid: int) -> bool:
        try:
            return Path(f"/proc/{pid}/root").readlink() == machine.root
        except OSError:
            return False

    return [pid for pid in procfs.all_pids() if is_there(pid)]


def _artifact(runner: Runner) -> Path:
    return runner.machine.place(f"{FOLDER}/artifact")


def _step(command: str = "run", **env: str) -> dict[str, Any]:
    run = f'exec sh "$GITHUB_ACTION_PATH/ci/sigwrap-ci.sh" {command}'
    return {"shell": "bash", "run": run, "env": {**IN_FOLDER, **env}}


# What may run


@pytest.mark.parametrize("known", ["0" * 64, "", "abc", "g" * 64])
def test_another_digest_or_none_runs_nothing(runner: Runner, action: Any, known: str) -> None:
    before = runner.machine.place(f"{FOLDER}/bin/sigwrap")
    before.parent.mkdir(parents=True)
    before.write_text("#!/bin/sh\ntouch /work/ran\n")
    before.chmod(0o755)
    given = {"source": "sigwrap", "sha256": known, "run": "touch ran", "check-policy": "ci"}
    assert not runner.use(action, given)
    (install,) = runner.steps
    assert (install.name, install.status, install.stdout) == ("Install sigwrap", REFUSED, "")
    (line,) = install.stderr.splitlines()
    assert line.startswith("sigwrap-ci: ") and ("sha256" in line or "SHA256" in line)
    assert not runner.machine.place("/work/ran").exists()
    assert os.listdir(before.parent) == []
    assert runner.kept == []


def test_it_comes_from_an_address_too(runner: Runner, action: Any, digest: str, dist: str) -> None:
    assert runner.use(action, {"source": f"{dist}/sigwrap", "sha256": digest})
    assert runner.path == [f"{FOLDER}/bin"]
    assert runner.env == {"SIGWRAP_CI_FOLDER": FOLDER, "SIGWRAP_STORE": f"{FOLDER}/store"}
    links = [runner.machine.place(f"{FOLDER}/bin/{name}") for name in ROLES]
    assert [link.readlink() for link in links] == [Path("sigwrap")] * len(ROLES)
    assert not runner.use(action, {"source": f"{dist}/nowhere", "sha256": digest})
    assert runner.steps[-1].stderr.endswith("/nowhere can't be had\n")


@pytest.fixture
def dist(binary: Path) -> Iterator[str]:
    with closing(Files(binary.parent)) as server:
        yield server.url


def test_no_input_is_read_as_shell(runner: Runner, action: Any, digest: str) -> None:
    evil = '"; touch /work/injected; $(touch /work/injected) `touch /work/injected`\n: "'
    assert not runner.use(action, {"source": evil, "sha256": digest})
    assert not runner.use(action, {"source": "sigwrap", "sha256": evil})
    given = {"source": "sigwrap", "sha256": digest, "run": "exit 0"}
    assert not runner.use(action, {**given, "policy": evil, "artifact": evil})
    assert runner.steps[-2].stderr.startswith("sigwrap: ")
    assert not runner.machine.place("/work/injected").exists()


# The job


def test_a_job_keeps_its_status_and_its_log_can_be_read_elsewhere(
    runner: Runner, action: Any, digest: str, run: Run, binary: Path
) -> None:
    text = "command -v python3 python && exit 9; false | sh -c 'exit 5'; echo never"
    given = {"source": "sigwrap", "sha256": digest, "run": text, "artifact": "log"}
    assert not runner.use(action, {**given, "check-policy": "agent-strict"})
    install, job, report, check = runner.steps
    assert (install.status, job.status, job.stdout) == (0, 5, "")
    assert (report.status, check.status) == (0, 1)
    assert "hash chain intact" in report.stdout
    assert "everything-else" in check.stdout
    assert f"## sigwrap: `{text}`" in runner.summary
    assert "**Failed, exit 5, " in runner.summary
    assert runner.kept == [("log", f"{FOLDER}/artifact")]
    (log,) = _artifact(runner).glob("*.db")
    names = {path.name for path in _artifact(runner).iterdir()}
    assert names == {log.name, "report.md", "verify.txt"}
    shown, verified = run(binary, "report", log), run(binary, "verify", log)
    assert (shown.returncode, verified.returncode) == (0, 0), shown.stderr + verified.stderr
    assert shown.stdout.startswith("Failed, exit 5, ")


def test_what_is_missing_is_said(installed: Runner) -> None:
    for command, why in {
        "": "'' is none of install, run, report, check and ship",
        "run": "no command given: sigwrap-ci.sh run COMMAND, or SIGWRAP_CI_RUN",
        "check": "SIGWRAP_CI_CHECK_POLICY is not set: the policy to decide anew by",
        "report": "nothing has run: there is no log in ",
        "ship": "SIGWRAP_CI_SHIP_TO is not set: s3://BUCKET/PREFIX or file:///DIR",
    }.items():
        step = _step(command=command)
        assert installed.finish(step, installed.start(step, {}), {}) == REFUSED
        assert installed.steps[-1].stderr.splitlines()[-1].startswith(f"sigwrap-ci: {why}")


def test_the_logs_are_shipped_by_a_step_that_alone_has_the_credential(
    runner: Runner, action: Any, digest: str
) -> None:
    lake = runner.machine.place("/work/lake")
    given = {"source": "sigwrap", "sha256": digest, "run": "env", "ship-to": "file:///work/lake"}
    hidden = {"ship-access-key-id": "hidden", "ship-secret-access-key": "hidden"}
    assert runner.use(action, {**given, **hidden})
    assert [step.name for step in runner.steps][-1] == "Ship the logs"
    assert not any("hidden" in step.stdout + step.stderr for step in runner.steps)
    *others, last = action["runs"]["steps"]
    assert "inputs.ship" not in str([each.get("env") for each in others])
    assert str(last["env"]).count("inputs.ship") == 6
    assert arrived(lake) == recorded(runner.machine.place(f"{FOLDER}/store"))
    shutil.rmtree(lake)
    lake.write_text("")
    assert runner.use(action, {**given, "run": "exit 0"}), "the job keeps its status"
    assert "::warning title=sigwrap::not all logs were shipped" in runner.steps[-1].stdout
    lake.unlink()


def test_a_program_that_the_job_changed_gets_no_credential(
    runner: Runner, action: Any, digest: str
) -> None:
    program = f"{FOLDER}/bin/sigwrap"
    other = "'#!/bin/sh\\ntouch /work/stolen.$1\\n'"
    change = f"rm {program}; printf {other} >{program}; chmod 755 {program}"
    given = {"source": "sigwrap", "sha256": digest, "run": change, "ship-to": "file:///work/lake"}
    assert not runner.use(action, given)
    assert "sigwrap was changed: its sha256 digest is " in runner.steps[-1].stderr
    assert not runner.machine.place("/work/stolen.ship").exists()
    assert not runner.machine.place("/work/lake").exists()


# Cancelled: SIGINT to the step's process, SIGTERM 7.5 s later, and then SIGKILL to all of it


def test_cancelled_by_sigint(installed: Runner) -> None:
    step = _step(SIGWRAP_CI_RUN=f"exec sh -c '{HANDLES}'")
    process = _ready(installed, step)
    process.send_signal(signal.SIGINT)
    assert installed.finish(step, process, {}) == INTERRUPTED
    assert installed.steps[-1].stdout == "cleaned\n"
    _is_over(installed, "interrupted by SIGINT", ended=True)


def test_cancelled_below_a_shell_that_keeps_both_to_itself(installed: Runner) -> None:
    """bash waits for what runs in its foreground at SIGINT, and dies of SIGTERM."""
    command = 'sh "$GITHUB_ACTION_PATH/ci/sigwrap-ci.sh" run sh -c "$JOB"; echo after'
    for job in (HANDLES, STUBBORN):
        step = {"shell": "bash", "run": command, "env": {**IN_FOLDER, "JOB": job}}
        process = _ready(installed, step)
        with Watch(tree(process.pid)) as watch:
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
            assert installed.finish(step, process, {}) == -signal.SIGTERM
            watch.await_ends()
        assert "after" not in installed.steps[-1].stdout
        said = "interrupted by SIGTERM when its caller ended"
        _is_over(installed, said if job is HANDLES else "its caller ended", ended=True)


def test_killed_with_all_that_is_below_it(installed: Runner) -> None:
    step = _step(SIGWRAP_CI_RUN=STUBBORN, SIGWRAP_CI_GRACE="1h")
    process = _ready(installed, step)
    await_that(lambda: "sleep" in map(procfs.comm, tree(process.pid)))  # all are there
    everybody = tree(process.pid)
    with Watch(everybody) as watch:
        # Stopped first: none sees another's end, and ends by itself.
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in everybody:
                with suppress(ProcessLookupError):  # the end of one is that of those below it
                    os.kill(pid, number)
        watch.await_ends()
    assert installed.finish(step, process, {}) == -signal.SIGKILL
    _is_over(installed, "sigwrap was killed", ended=False)


def _ready(runner: Runner, step: dict[str, Any]) -> subprocess.Popen[str]:
    process = runner.start(step, {})
    assert process.stdout is not None
    reader(process.stdout).until(rb"ready\n")
    return process


def _is_over(runner: Runner, said: str, *, ended: bool) -> None:
    """Nobody is left, the log is whole, and the step that always runs says what happened."""
    assert _processes_of(runner.machine) == []
    step = _step(command="report")
    assert runner.finish(step, runner.start(step, {}), {}) == 0
    session = open_session(str(runner.machine.place(f"{FOLDER}/store")), "")
    found = verify_session(session, None)
    assert (found.outcome, found.ended) == (Outcome.INTACT, ended)
    assert said in runner.summary
    assert list(_artifact(runner).glob(f"{session.id}.db"))
