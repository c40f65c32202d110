"""Files that are written, made, deleted and renamed, as transcripts: which rule audits them."""

from __future__ import annotations

import errno

from sigwrap.files.handler import _FileCall, _touched
from sigwrap.files.judge import FileAim, FileFacts, FileMediator, Touched, Unseen
from sigwrap.policy.judge.request import Operation
from sigwrap.session.effects import Continue, Logged, Unrecorded, would_fail
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, engine, play_from

CREATE, DELETE, WRITE = Operation.CREATE, Operation.DELETE, Operation.WRITE
RULES = """
file_rules:
  - {name: quiet, paths: [/w/quiet], operations: [write, create, delete], decision: allow}
  - {name: walled, paths: [/w/walled], operations: [write, create, delete], decision: deny}
  - {name: written, paths: [/w/*.log], operations: [write], decision: audit}
  - {name: made, paths: [/w], operations: [create], decision: audit}
  - {name: deleted, paths: [/w], operations: [delete], decision: audit}
"""
TAR = Process(pid=7, start_time=1, parent=None, ppid=1, depth=1, comm="tar")


def asks(aim: FileAim, syscall: str = "openat") -> Transcript:
    return play_from(FileMediator(engine(RULES).files), FileFacts(TAR, syscall, aim))


def written(path: str) -> Touched:
    return Touched("write", ((WRITE, path),), path)


def made(path: str, to: str = "", *, is_written: bool = False) -> Touched:
    asks = ((CREATE, to or path), (WRITE, path))
    return Touched("create", asks if is_written else asks[:1], path, to)


def deleted(path: str) -> Touched:
    return Touched("delete", ((DELETE, path),), path)


def renamed(path: str, to: str) -> Touched:
    return Touched("rename", ((DELETE, path), (CREATE, to)), path, to)


def test_the_first_rule_that_names_what_is_done_decides() -> None:
    for aim, rule in (
        (written("/w/a.log"), "written"),
        (made("/w/a"), "made"),
        (made("/w/a.log", is_written=True), "made"),
        (made("/elsewhere/x", "/w/b"), "made"),
        (deleted("/w/d/e"), "deleted"),
        (renamed("/w/a", "/elsewhere/b"), "deleted"),
        (renamed("/elsewhere/a", "/w/b"), "made"),
        (renamed("/elsewhere/a", "/w/quiet/b"), None),
        (written("/w/a"), None),
        (written("/w/quiet/a.log"), None),
        (made("/w/a", "/elsewhere/b"), None),
        (made("/w/walled/a"), None),
        (deleted("/elsewhere"), None),
    ):
        transcript = asks(aim)
        if rule is None:
            transcript.goes_on(Unrecorded.NO_RULE)
            continue
        key = (TAR, aim.operation, aim.path, aim.to, rule)
        transcript.counts("file_audited", key, 1.0, rule_name=rule, path=aim.path, verified=False)
        assert transcript.payload.get("to", "") == aim.to
        assert transcript.payload["operation"] == aim.operation
        transcript.goes_on()


def test_an_exchange_deletes_and_makes_both_files() -> None:
    call = _FileCall("renameat2", ())
    (asks,) = {
        _touched(call, (0, 0, 0, 0, flags), [("/a", True), ("/b", True)]).asks for flags in (2, 3)
    }
    assert asks == ((DELETE, "/a"), (CREATE, "/b"), (DELETE, "/b"), (CREATE, "/a"))
    assert _touched(call, (0,) * 5, [("/a", True), ("/b", True)]).asks == asks[:2]


def test_what_can_not_be_recorded_is_not_done() -> None:
    transcript = asks(deleted("/w/a"))
    key = (TAR, "delete", "/w/a", "", "deleted")
    transcript.counts("file_audited", key, 1.0, reply=Logged.FAILED)
    transcript.fails(errno.EPERM)


def test_what_can_not_be_seen_is_recorded_as_such() -> None:
    transcript = asks(Unseen("why"), "io_uring_setup")
    key = (TAR, "unseen", "", "", "builtin:unseen")
    transcript.counts("file_audited", key, 1.0, operation="unseen", path="", reason="why")
    transcript.goes_on()


def test_what_only_looks_goes_on_and_what_would_fail_fails() -> None:
    asks(Continue(Unrecorded.NO_RULE)).goes_on(Unrecorded.NO_RULE)
    asks(would_fail(errno.EFAULT)).fails(errno.EFAULT, Unrecorded.NOTHING_HAPPENS)
