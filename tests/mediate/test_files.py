"""Files that are written, made, deleted and renamed, as transcripts: which rule audits them."""

from __future__ import annotations

import errno

from sigwrap.files.judge import Change, FileAim, FileFacts, FileMediator, Touched, Unseen
from sigwrap.session.effects import Continue, Logged, Unrecorded, would_fail
from sigwrap.session.lineage import Process
from tests.mediate.transcript import Transcript, engine, play_from

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
    return Touched(Change.WRITE, path)


def made(path: str, to: str = "", *, is_written: bool = False) -> Touched:
    return Touched(Change.CREATE, path, to, is_written=is_written)


def deleted(path: str) -> Touched:
    return Touched(Change.DELETE, path)


def renamed(path: str, to: str, *, is_exchange: bool = False) -> Touched:
    return Touched(Change.RENAME, path, to, is_exchange=is_exchange)


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
        (renamed("/elsewhere/a", "/w/b", is_exchange=True), "made"),
        (renamed("/w/quiet/a", "/elsewhere/b", is_exchange=True), None),
        (written("/w/a"), None),
        (written("/w/quiet/a.log"), None),
        (made("/w/a", "/elsewhere/b"), None),
        (made("/w/walled/a"), None),
        (deleted("/elsewhere"), None),
    ):
        transcript = asks(aim)
        if rule is None:
            transcript.goes_on(Unrecorded.FILE_IS_FREE)
            continue
        key = (TAR, aim.change.value, aim.path, aim.to, rule)
        transcript.counts("file_audited", key, 1.0, rule_name=rule, path=aim.path, verified=False)
        assert transcript.payload.get("to", "") == aim.to
        assert transcript.payload["operation"] == aim.change.value
        transcript.goes_on()


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
    asks(Continue(Unrecorded.FILE_IS_FREE)).goes_on(Unrecorded.FILE_IS_FREE)
    asks(would_fail(errno.EFAULT)).fails(errno.EFAULT, Unrecorded.NOTHING_HAPPENS)
