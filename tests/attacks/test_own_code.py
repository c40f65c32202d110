"""Whoever can write the files that sigwrap runs from changes nothing in the sigwrap that runs. Here
nobody is kept from writing them: the test does it, at the moment at which COMMAND could."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, Running, Sigwrap
from tests.support.installation import CHANGES, Installation, overwrite
from tests.support.policies import policy
from tests.support.recording import RECORDED, prepared
from tests.support.waiting import PATIENCE_S, reader

WAITS = ("sh", "-c", "echo ready; read x; /bin/true; exit 7")
ASKS = """
  - {name: ask-first, commands: [uname], decision: approve}
"""


@pytest.fixture
def installation(as_user: Sigwrap) -> Installation:
    return Installation.copy_to(as_user)


def _started(subject: Sigwrap, line: list[str]) -> Running:
    process = subject.start_line(line)
    reader(process.stdout).until(rb"ready")
    return process


def _goes_on(subject: Sigwrap, process: Running) -> str:
    _, said = process.communicate(b"x\n", PATIENCE_S)
    assert process.returncode == 7, said
    execs = [each.payload["path"] for each in subject.sealed_events("exec_allowed")]
    assert "/bin/true" in execs
    return said.decode()


@pytest.mark.parametrize("change", CHANGES)
def test_a_library_whose_file_is_changed_runs_as_it_was(
    as_user: Sigwrap, installation: Installation, change: Callable[[Path], None]
) -> None:
    own = as_user.folder / "own.yaml"  # whose text is read: the shipped ones' need no YAML
    own.write_text("version: 1\nname: own\nextends: agent-default\n")
    process = _started(as_user, installation.line("-p", str(own), "--", *WAITS))
    assert installation.libraries
    for library in installation.libraries:
        change(library)
    said = _goes_on(as_user, process)
    (event,) = as_user.events("own_files_changed")
    assert set(map(str, installation.libraries)) <= set(event.payload["files"])
    assert "changed while the command ran, and belongs to sigwrap" in said


def test_where_code_must_be_a_files_the_start_says_so(
    as_user: Sigwrap, installation: Installation
) -> None:
    """What is written over it changes nothing there either."""
    with (installation.folder / "sigwrap" / "linux" / "unfiled.py").open("a") as module:
        module.write("_READ_EXECUTE = 1 << 20  # that the kernel refuses\n")
    process = _started(as_user, installation.line("--", *WAITS))
    for library in installation.libraries:
        overwrite(library)
    _goes_on(as_user, process)
    (event,) = as_user.events("session_started")
    (said,) = [each for each in event.payload["missing"] if each.startswith("sigwrap's own code: ")]
    assert said.endswith("can change during the run")


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
@pytest.mark.parametrize("change", CHANGES)
def test_an_unpacked_library_whose_file_is_changed_runs_as_it_was(
    as_user: Sigwrap, change: Callable[[Path], None]
) -> None:
    process = _started(as_user, [*as_user.as_user(), *map(str, as_user.line("--", *WAITS))])
    (unpacked,) = as_user.folder.glob("_MEI*")
    libraries = [path for path in unpacked.rglob("*") if ".so" in path.name]
    assert any("libpython" in path.name for path in libraries)
    for path in (*libraries, unpacked / "base_library.zip"):
        change(path)
    _goes_on(as_user, process)
    assert list(as_user.folder.glob("_MEI*")) == []


def test_a_module_that_is_changed_is_not_read_any_more(
    as_user: Sigwrap, installation: Installation
) -> None:
    """The terminal's prompt is the part that few runs need."""
    rules = policy(as_user.folder, ASKS)
    script = "echo ready; read x; uname; exit 7"
    terminal = as_user.terminal_for(installation.line("-p", rules, "--", "sh", "-c", script))
    terminal.output.until(rb"ready")
    marker = as_user.folder / "attacked"
    for module in installation.modules:
        module.write_text(f"open({str(marker)!r}, 'w')\n")
    for cache in installation.folder.rglob("__pycache__"):
        shutil.rmtree(cache)
    terminal.type("x\n")
    terminal.read_question()
    terminal.type("n\n")
    assert terminal.await_status() == 7
    assert not marker.exists()
    assert as_user.sealed_events("approval_denied")


def test_a_stub_does_not_run_from_files_that_were_changed(
    as_user: Sigwrap, installation: Installation
) -> None:
    prepared(as_user, "#!/bin/sh\necho recorded\n")
    rules = policy(as_user.folder, RECORDED % {"folder": as_user.folder})
    script = "./tool; echo ready; read x; ./tool; exit 7"
    process = as_user.start_line(installation.line("-p", rules, "--", "sh", "-c", script))
    said = reader(process.stdout)
    assert said.line() == b"recorded"
    assert said.line() == b"ready"
    marker = as_user.folder / "attacked"
    changed = installation.folder / "sigwrap" / "stub" / "stand_in.py"
    with changed.open("a") as file:
        file.write(f"open({str(marker)!r}, 'w')\n")
    out, _ = process.communicate(b"x\n", PATIENCE_S)
    assert (process.returncode, out) == (7, b"")
    assert not marker.exists()
    (denied,) = as_user.sealed_events("exec_denied")
    assert str(changed) in denied.payload["reason"]


def test_a_folder_that_is_new_is_not_looked_into(
    as_user: Sigwrap, installation: Installation
) -> None:
    """It may hold files by the million, and each stub would wait for a look at all of them."""
    prepared(as_user, "#!/bin/sh\necho recorded\n")
    rules = policy(as_user.folder, RECORDED % {"folder": as_user.folder})
    words = ("-p", rules, "--", "sh", "-c", "echo ready; read x; ./tool; exit 7")
    if IS_BINARY:
        process = _started(as_user, [*as_user.as_user(), *map(str, as_user.line(*words))])
        (within,) = as_user.folder.glob("_MEI*")
    else:
        process = _started(as_user, installation.line(*words))
        within = installation.folder / "sigwrap" / "stub"
    more = within / "more"
    more.mkdir()
    (more / "file").touch()
    process.communicate(b"x\n", PATIENCE_S)
    assert process.returncode == 7
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["reason"].endswith(f"has changed: {more}")


def test_a_folder_put_in_the_place_of_ours_is_noticed(
    as_user: Sigwrap, installation: Installation
) -> None:
    """Its files are as old as can be."""
    other = as_user.folder / "other"
    shutil.copytree(installation.folder / "sigwrap", other)
    process = _started(as_user, installation.line("--", *WAITS))
    (installation.folder / "sigwrap").rename(as_user.folder / "away")
    other.rename(installation.folder / "sigwrap")
    _goes_on(as_user, process)
    (event,) = as_user.events("own_files_changed")
    assert str(installation.folder / "sigwrap") in event.payload["files"]


def test_what_only_another_start_reads_is_noticed(
    as_user: Sigwrap, installation: Installation
) -> None:
    process = _started(as_user, installation.line("--", *WAITS))
    planted = installation.folder / "planted.pth"
    planted.write_text("import antigravity\n")
    module = installation.folder / "sigwrap" / "cli" / "reading.py"
    with module.open("a") as file:
        file.write("# more\n")
    bytecode = module.parent / "__pycache__" / "reading.other.pyc"
    bytecode.parent.mkdir(exist_ok=True)
    bytecode.write_bytes(b"")
    said = _goes_on(as_user, process)
    (event,) = as_user.events("own_files_changed")
    assert set(event.payload["files"]) == {str(planted), str(module), str(bytecode)}
    assert event.payload["count"] == 3
    assert " and 2 more changed while the command ran" in said


def test_of_a_quiet_run_nothing_is_said(as_user: Sigwrap, installation: Installation) -> None:
    process = _started(as_user, installation.line("--", *WAITS))
    assert _goes_on(as_user, process) == ""
    assert as_user.events("own_files_changed") == []
