"""Where the helpers run short, whoever of the tree serves a file system ends.

Once somebody inside has mounted something, helpers (run/aside.py) read everybody's arguments, and
whoever serves what is mapped there decides how long a helper is stuck. Callers can be any number of
processes, so no share for each would hold; but a helper is free again when the server of its file
has ended. Should that not help, the supervisor beats no more, and the front process ends the tree.
"""

from __future__ import annotations

import os

from sigwrap.bare import signal
from sigwrap.escape import printable
from sigwrap.linux import process as linux_process
from sigwrap.linux import procfs
from sigwrap.linux.fuse import serves
from sigwrap.linux.memory import may_be_served
from sigwrap.run.aside import Aside, Done, Outcome
from sigwrap.run.recorder import Recorder

_SHOWN = 20


class Relief:
    def __init__(self, aside: Aside, recorder: Recorder) -> None:
        self._aside = aside
        self._recorder = recorder
        self._is_looking = False
        aside.on_short = self._look

    def _look(self) -> None:
        if self._is_looking or not may_be_served():
            return
        try:
            self._aside.do_anyway(_servers, self._end)
        except (OSError, RuntimeError):
            return  # whoever finds no helper next tries again
        self._is_looking = True

    def _end(self, outcome: Outcome) -> None:
        self._is_looking = False
        if not isinstance(outcome, Done) or not outcome.value:
            return
        servers: list[procfs.Stat] = outcome.value
        shown = [f"{each.pid} {each.comm}" for each in servers[:_SHOWN]]
        payload = {"processes": shown, "count": len(servers)}
        self._recorder.record("servers_killed", os.getpid(), payload)
        self._recorder.tell(
            "a file system of this session does not respond and blocks requests: sigwrap kills the "
            f"process that serves it ({printable(shown[0])})"
        )
        for each in servers:
            found = procfs.stat(each.pid)
            if found is not None and found.start_time == each.start_time:
                linux_process.send(each.pid, signal.SIGKILL)


def _servers() -> list[procfs.Stat]:
    """Those that don't let themselves be looked into, where there is none that does."""
    seen: list[procfs.Stat] = []
    hidden: list[procfs.Stat] = []
    for pid in linux_process.descendants(os.getpid()):
        found = procfs.stat(pid)
        if found is None:
            continue
        try:
            if serves(pid):
                seen.append(found)
        except PermissionError:
            now = procfs.stat(pid)  # who ends is as closed to others
            if now is not None and not now.is_exiting:
                hidden.append(found)
    return seen or hidden
