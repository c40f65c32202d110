"""Freeze the whole process tree and let no exec start: from SIGSTOP to SIGCONT or the end."""

from __future__ import annotations

import time

from sigwrap.bare import TYPE_CHECKING
from sigwrap.escape import printable
from sigwrap.linux.frozen import Frozen
from sigwrap.linux.procfs import Stat

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_FREEZES_WITHIN_S = 0.05  # then the loop runs, and reaps, before the next attempt
_PAUSE_S = 0.01
_FREEZES_AGAIN_EVERY_S = 0.5
_LOGGED_AGAIN_AFTER_S = 10.0
_REPORTED_AT = 4  # times in a row


class Freezing:
    def __init__(self, session: Session) -> None:
        self._turns = session.turns
        self._recorder = session.recorder
        self._loop = session.loop
        self._job_control = session.job_control
        self._command_pid = session.command_pid
        self._frozen = Frozen()
        self.is_frozen = False
        self._is_being_frozen = False
        self.went_on = self.released = 0  # processes and execs at the last thaw
        self.ends = False  # the tree must run in order to end
        self._log_again_s = 0.0
        self._repeats: dict[int, int] = {}

    @property
    def stands_still(self) -> bool:
        return self.is_frozen and not self._is_being_frozen

    def count(self) -> int:
        return self._frozen.count()

    def freeze(self) -> None:
        if self.ends:
            return  # a frozen tree could not end within its grace period
        self._turns.close()
        self.is_frozen = True
        self._job_control.forget_stop_key()
        self._freeze_rest()

    def freeze_continued(self) -> None:
        """Stop processes again that SIGCONT from outside the session continued."""
        if not self.stands_still:
            return
        again, now_s = self._frozen.stop_again(), time.monotonic()
        if again and now_s >= self._log_again_s:
            self._log_again_s = now_s + _LOGGED_AGAIN_AFTER_S
            payload = {"processes": len(again), "held": self._turns.held, "again": True}
            self._recorder.record("tree_frozen", self._command_pid, payload)
        self._report_repeated(again)

    def thaw(self) -> None:
        if self.is_frozen:
            self.is_frozen = False
            self.went_on, self.released = self._frozen.go_on(), self._turns.held
            payload = {"processes": self.went_on, "released": self.released}
            self._recorder.record("tree_thawed", self._command_pid, payload)
        self._turns.open()

    def let_run(self) -> None:
        """Thaw the tree so that it can end."""
        self.ends = True
        self.thaw()

    def cancel_end(self, *, is_stopped: bool) -> None:
        """Undo let_run: the run goes on."""
        self.ends = False
        if is_stopped:
            self.freeze()

    def _freeze_rest(self) -> None:
        if not self.is_frozen:
            return
        self._is_being_frozen = not self._frozen.stop_all(within_s=_FREEZES_WITHIN_S)
        if self._is_being_frozen:
            self._loop.call_at(time.monotonic() + _PAUSE_S, self._freeze_rest)
            return
        payload = {"processes": self._frozen.count(), "held": self._turns.held}
        self._recorder.record("tree_frozen", self._command_pid, payload)
        self._loop.call_at(time.monotonic() + _FREEZES_AGAIN_EVERY_S, self._freeze_regularly)

    def _freeze_regularly(self) -> None:
        if self.is_frozen:
            self.freeze_continued()
            self._job_control.stop_front_at_key()
            self._loop.call_at(time.monotonic() + _FREEZES_AGAIN_EVERY_S, self._freeze_regularly)

    def _report_repeated(self, again: list[Stat]) -> None:
        """Name a process that another one keeps continuing: only its end helps."""
        counts = {each.pid: self._repeats.get(each.pid, 0) + 1 for each in again}
        self._repeats = counts
        for each in again:
            if counts[each.pid] == _REPORTED_AT:
                shown = printable(f"process {each.pid} ({each.comm})")
                self._recorder.tell(
                    f"{shown} does not stay stopped: another process keeps continuing it"
                )
