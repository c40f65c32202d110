"""A whole run, started as this process was, with a store that is removed again."""

from __future__ import annotations

import os

from sigwrap import status as statuses
from sigwrap.bare.contextlib import suppress
from sigwrap.doctor.aside import aside
from sigwrap.doctor.items import RUN, Finding, untold
from sigwrap.doctor.temporary import candidates
from sigwrap.errors import SigwrapError
from sigwrap.linux import limits, proc_files, procfs
from sigwrap.linux import process as linux_process
from sigwrap.linux.limits import Limit
from sigwrap.linux.removal import empty_folder
from sigwrap.start import onefile
from sigwrap.store.catalog import open_session
from sigwrap.tuples import NamedTuple

_WITHIN_S = 60.0
_MOST_SAID = 4096


class Rehearsal(NamedTuple):
    """`own_words`: of this process's line, how many are sigwrap's arguments. `callers_limits`: as
    they were before they were lifted. `store`: where a run's would lie, if that is known."""

    own_words: int
    store: str
    callers_limits: tuple[Limit, ...]

    def run(self) -> Finding:
        store = self._new_folder()
        if not store:
            return untold(RUN, "no directory for its log")
        found = os.lstat(store)
        try:
            return self._run(store)
        finally:
            empty_folder(store, (found.st_dev, found.st_ino))
            with suppress(OSError):
                os.rmdir(store)

    def _run(self, store: str) -> Finding:
        status, said = aside(
            lambda: self._status_and_words(store), within_s=_WITHIN_S, to_its_end=True
        )
        if status == statuses.NOT_FOUND:
            return untold(RUN, "the command true is missing")
        if status != 0:
            lines = said.splitlines()
            return Finding(RUN, f"exited with status {status}", "refused", " / ".join(lines))
        try:
            first = open_session(store, "").first()
        except SigwrapError as failure:
            return Finding(RUN, str(failure), "refused")
        missing = [] if first is None else first.payload["missing"]
        if missing:
            return Finding(RUN, f"true ran; missing: {'; '.join(missing)}", "less")
        return Finding(RUN, "true ran; nothing is missing")

    def _status_and_words(self, store: str) -> tuple[int, str]:
        said = os.open(os.path.join(store, "said"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        line = self._line(store)
        environment = onefile.original_environment(procfs.environment())
        pid = linux_process.fork()
        if pid == 0:
            try:
                nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
                for fd, stream in ((nowhere, 0), (nowhere, 1), (said, 2)):
                    os.dup2(fd, stream)
                limits.give_back(self.callers_limits)
                os.execve(proc_files.link("/proc/self/exe"), line, environment)
            finally:
                os._exit(statuses.REFUSED)
        _, status = os.waitpid(pid, 0)
        words = os.pread(said, _MOST_SAID, 0).decode("utf-8", "replace")
        code = os.waitstatus_to_exitcode(status)
        return code if code >= 0 else statuses.from_signal(-code), words

    def _line(self, store: str) -> list[bytes]:
        ours = proc_files.all_contents("/proc/self/cmdline").split(b"\0")[:-1]
        start = ours[: len(ours) - self.own_words]
        return [*start, b"--no-report", b"--store", os.fsencode(store), b"--", b"true"]

    def _new_folder(self) -> str:
        """A temporary one; or, where only the store may be written, beside that."""
        for folder in (*candidates(), _nearest(self.store)):
            path = os.path.join(folder, f"sigwrap-doctor-{os.urandom(6).hex()}")
            with suppress(OSError):
                os.mkdir(path, 0o700)
                return path
        return ""


def _nearest(path: str) -> str:
    """Of it and the folders above it, the first that is there."""
    while path and not os.path.isdir(path):
        path = os.path.dirname(path) if path != "/" else ""
    return path
