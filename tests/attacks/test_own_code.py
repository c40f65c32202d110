"""A change of the files that sigwrap was loaded from has no effect on the sigwrap that runs. The
test changes them itself, at the moment at which the command could."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.harness import IS_BINARY, Running, Sigwrap
from tests.support.installation import CHANGES, Installation
from tests.support.policies import policy
from tests.support.recording import RECORDED, prepared
from tests.support.waiting import PATIENCE_S, reader

WAITS = ("sh", "-c", "echo ready; read x; /bin/true; exit 7")
LIBRARIES = {"_re2", "_repeated", "_yaml"}
OWN = """
version: 1
name: own
extends: agent-default
command_rules:
  - {name: by-pattern, commands: ["true"], args_patterns: [^x], decision: deny}
"""
KEPT = """
version: 1
name: kept
extends: agent-observe
file_rules:
  - {name: installation, paths: [%s], operations: [write, create, delete], decision: deny}
"""
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
    own.write_text(OWN)
    process = _started(as_user, installation.line("-p", str(own), "--", *WAITS))
    assert {library.name.partition(".")[0] for library in installation.libraries} == LIBRARIES
    for library in installation.libraries:
        change(library)
    said = _goes_on(as_user, process)
    (start,) = as_user.events("session_started")
    assert _own_code(start.payload["missing"]) == []
    (event,) = as_user.events("own_files_changed")
    assert set(map(str, installation.libraries)) <= set(event.payload["files"])
    assert "a part of sigwrap changed while the command ran (" in said


def _own_code(missing: list[str]) -> list[str]:
    return [each for each in missing if each.startswith("sigwrap's own code: ")]


@pytest.mark.parametrize("is_kept", [False, True])
def test_a_library_that_the_session_can_change_is_missing_in_the_log(
    as_user: Sigwrap, is_kept: bool
) -> None:
    """The interpreter's own are mapped files: only file rules keep a session from them."""
    installation = Installation.copy_to(as_user, "_sqlite3")
    (library,) = installation.folder.glob("_sqlite3.*")
    rules = as_user.folder / "kept.yaml"
    rules.write_text(KEPT % (installation.folder if is_kept else as_user.folder / "elsewhere"))
    words = ("-p", str(rules), "--", "sh", "-c", f": >>{library}")
    process = as_user.start_line(installation.line(*words))
    process.communicate(b"", PATIENCE_S)
    assert (process.returncode == 0) is not is_kept
    (start,) = as_user.events("session_started")
    says = f"sigwrap's own code: the session can change {library}"
    assert _own_code(start.payload["missing"]) == ([] if is_kept else [says])


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
def test_the_unpacked_libraries_are_gone(as_user: Sigwrap) -> None:
    process = _started(as_user, [*as_user.as_user(), *map(str, as_user.line("--", *WAITS))])
    (unpacked,) = as_user.folder.glob("_MEI*")
    left = [path for path in unpacked.rglob("*") if not path.is_dir()]
    assert left == [unpacked / "base_library.zip"]
    left[0].write_bytes(b"")
    _goes_on(as_user, process)
    assert list(as_user.folder.glob("_MEI*")) == []
    (start,) = as_user.events("session_started")
    assert _own_code(start.payload["missing"]) == []


@pytest.mark.skipif(not IS_BINARY, reason="needs the one-file binary")
@pytest.mark.parametrize("change", CHANGES)
def test_the_unpacked_libraries_that_stubs_need_are_copies(
    as_user: Sigwrap, change: Callable[[Path], None]
) -> None:
    """A change of one has no effect on the supervisor, and no stub is started from it."""
    prepared(as_user, "#!/bin/sh\necho recorded\n")
    rules = policy(as_user.folder, RECORDED % {"folder": as_user.folder})
    words = ("-p", rules, "--", "sh", "-c", "./tool; echo ready; read x; ./tool; exit 7")
    process = as_user.start_line([*as_user.as_user(), *map(str, as_user.line(*words))])
    said = reader(process.stdout)
    assert [said.line(), said.line()] == [b"recorded", b"ready"]
    (unpacked,) = as_user.folder.glob("_MEI*")
    libraries = [path for path in unpacked.rglob("*") if ".so" in path.name]
    assert any("libpython" in path.name for path in libraries)
    for library in libraries:
        change(library)
    out, _ = process.communicate(b"x\n", PATIENCE_S)
    assert (process.returncode, out) == (7, b"")
    (denied,) = as_user.sealed_events("exec_denied")
    assert "sigwrap's own file has changed" in denied.payload["reason"]


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
    changed = installation.folder / "sigwrap" / "record" / "stand_in.py"
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
    """It may hold millions of files, and each stub would wait until all are checked."""
    prepared(as_user, "#!/bin/sh\necho recorded\n")
    rules = policy(as_user.folder, RECORDED % {"folder": as_user.folder})
    words = ("-p", rules, "--", "sh", "-c", "echo ready; read x; ./tool; exit 7")
    if IS_BINARY:
        process = _started(as_user, [*as_user.as_user(), *map(str, as_user.line(*words))])
        (within,) = as_user.folder.glob("_MEI*")
    else:
        process = _started(as_user, installation.line(*words))
        within = installation.folder / "sigwrap" / "record"
    more = within / "more"
    more.mkdir()
    (more / "file").touch()
    process.communicate(b"x\n", PATIENCE_S)
    assert process.returncode == 7
    (denied,) = as_user.sealed_events("exec_denied")
    assert denied.payload["reason"].endswith(f"has changed: {more}")


@pytest.mark.parametrize("name", ["sigwrap", "sigwrap/record"])
def test_a_folder_put_in_the_place_of_ours_is_noticed(
    as_user: Sigwrap, installation: Installation, name: str
) -> None:
    """Its files are as old as can be."""
    other = as_user.folder / "other"
    shutil.copytree(installation.folder / name, other)
    process = _started(as_user, installation.line("--", *WAITS))
    (installation.folder / name).rename(as_user.folder / "away")
    other.rename(installation.folder / name)
    _goes_on(as_user, process)
    (event,) = as_user.events("own_files_changed")
    assert str(installation.folder / name) in event.payload["files"]


def test_a_missing_file_is_noticed_by_its_folder(
    as_user: Sigwrap, installation: Installation
) -> None:
    process = _started(as_user, installation.line("--", *WAITS))
    folder = installation.folder / "sigwrap" / "report"
    (folder / "query.py").unlink()
    _goes_on(as_user, process)
    (event,) = as_user.events("own_files_changed")
    assert event.payload["files"] == [str(folder)]


def test_a_folder_that_can_not_be_read_any_more_is_noticed(
    as_user: Sigwrap, installation: Installation
) -> None:
    """The log is sealed all the same."""
    process = _started(as_user, installation.line("--", *WAITS))
    folder = installation.folder / "sigwrap" / "record"
    folder.chmod(0o111)
    _goes_on(as_user, process)
    folder.chmod(0o755)
    files = [event.payload["files"] for event in as_user.sealed_events("own_files_changed")]
    assert files == [[str(folder)]]


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
    assert " and 2 more): reinstall sigwrap" in said


def test_a_quiet_run_prints_nothing(as_user: Sigwrap, installation: Installation) -> None:
    process = _started(as_user, installation.line("--", *WAITS))
    assert _goes_on(as_user, process) == ""
    assert as_user.events("own_files_changed") == []
