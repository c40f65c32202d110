"""Under docker's default seccomp profile, as its root and as an ordinary user: what works as
elsewhere, and what sigwrap says of the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.support import containers
from tests.support.harness import EXECS, PYTHON, REFUSED, Sigwrap
from tests.support.policies import policy
from tests.support.recording import prepared

TOLD = "sigwrap: the network_rules of ci need pidfd_getfd, which is not permitted here"
SAID_OF_THE_TOOL = (
    "sigwrap: denied: real-tool: its input and output can't be recorded: Operation not permitted "
    "(rule recorder, policy test). Do not work around this; tell the user."
)
STUB_SAYS = "sigwrap-stub: real-tool: Permission denied"
NO_DOCKER = 'network_rules: [{name: engines, destinations: ["unix:docker"], decision: deny}]'

Line = Callable[..., list[str]]


@pytest.fixture(scope="session")
def filters() -> Iterator[Path]:
    with TemporaryDirectory(prefix="sigwrap-filters-") as folder:
        Path(folder).chmod(0o755)
        containers.write_dockers_filter(Path(folder) / "default")
        containers.write_dockers_filter(Path(folder) / "tracing", may_trace=True)
        yield Path(folder)


@pytest.fixture
def contained(as_user: Sigwrap, filters: Path, programs: Path) -> Line:
    """A line as a container's first process: root with docker's capabilities, or its user."""

    def line(*words: str, may_trace: bool = False) -> list[str]:
        user = as_user.as_user() or containers.as_dockers_root(may_trace=may_trace)
        under = [*PYTHON, str(programs / "under_filter.py")]
        return [*user, *under, str(filters / ("tracing" if may_trace else "default")), *words]

    return line


def _run(subject: Sigwrap, line: list[str]) -> tuple[int, str, list[str]]:
    process = subject.start_line(line)
    said, errors = process.communicate(timeout=60)
    return process.returncode, said.decode(), errors.decode().splitlines()


def _ours(subject: Sigwrap, *words: str) -> list[str]:
    return [str(word) for word in subject.line(*words)]


def test_a_run_does_all_but_hold_network_rules(
    as_user: Sigwrap, contained: Line, programs: Path
) -> None:
    does_all = " ".join([*PYTHON, str(programs / "in_a_container.py")])
    text = f"{does_all}; (exec sh -c 'kill -KILL $$'); echo $?; git push --force; exit 7"
    ended = _run(as_user, contained(*_ours(as_user, "-p", "ci", "--", "sh", "-c", text)))
    code, said, (told, *errors) = ended
    assert (code, said.split("\n")) == (7, ["pidfd -15", "gone", "talked", "137", ""])
    assert told == TOLD
    assert any("(rule force-push, policy ci)" in line for line in errors)
    started = as_user.sealed_events("session_started")[0].payload
    assert TOLD.removeprefix("sigwrap: ") in started["missing"]
    assert "recording: it needs pidfd_getfd, which is not permitted here" in started["missing"]
    assert not {"network", "recording"} & set(started["capabilities"])
    assert {"interception", "verification", "waits_through_signals"} <= set(started["capabilities"])
    assert all(event.payload["verified"] for event in as_user.events(*EXECS))
    assert as_user.events("connection_allowed") == []
    # The kernel's own walls stand there as well.
    assert {"signal_wall", "cgroup_wall"} & set(started["capabilities"])


def test_with_the_right_to_trace_network_rules_are_held(
    as_user: Sigwrap, contained: Line, programs: Path
) -> None:
    command = [*PYTHON, str(programs / "in_a_container.py")]
    ours = _ours(as_user, "-p", "ci", "--", *command)
    code, said, errors = _run(as_user, contained(*ours, may_trace=True))
    assert (code, said.splitlines()[-1], errors) == (0, "talked", [])
    assert "network" in as_user.sealed_events("session_started")[0].payload["capabilities"]
    assert as_user.events("connection_allowed")


def test_a_policy_that_insists_on_its_network_rules_runs_nothing(
    as_user: Sigwrap, contained: Line
) -> None:
    strict = ("-p", policy(as_user.folder, " []", NO_DOCKER), "--")
    code, said, errors = _run(as_user, contained(*_ours(as_user, *strict, "echo", "ran")))
    assert (code, said, errors) == (
        REFUSED,
        "",
        [
            f"{TOLD.replace(' ci ', ' test ')} (in a container, add --cap-add SYS_PTRACE; "
            "--best-effort runs without it)"
        ],
    )
    ours = _ours(as_user, "--best-effort", *strict, "echo", "ran")
    code, said, errors = _run(as_user, contained(*ours))
    assert (code, said, errors) == (0, "ran\n", [TOLD.replace(" ci ", " test ")])


def test_what_is_to_be_recorded_is_denied(as_user: Sigwrap, contained: Line) -> None:
    options = prepared(as_user, "#!/bin/sh\n: > ran\n")
    code, _, errors = _run(as_user, contained(*_ours(as_user, *options, "./tool")))
    assert (code, errors) == (126, [SAID_OF_THE_TOOL, STUB_SAYS])
    assert not (as_user.folder / "ran").exists()
    (denied,) = as_user.sealed_events("exec_denied")
    assert "can't be recorded: Operation not permitted" in denied.payload["reason"]


@pytest.mark.promise("forwarder")
def test_sigwrap_forward_is_none_the_worse(as_user: Sigwrap, contained: Line, forward: str) -> None:
    text = "(sh -c 'exit 1' &); kill -TERM $$"
    assert _run(as_user, contained(forward, "--", "sh", "-c", text)) == (143, "", [])
