"""The whole tree stands still, and no exec starts: what SIGSTOP does, until SIGCONT or the end."""

from __future__ import annotations

import time

from sigwrap.escape import printable
from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux.frozen import Frozen
from sigwrap.linux.procfs import Stat

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_FREEZES_WITHIN_S = 0.05  # then the loop has its turns in between, and reaps
_PAUSE_S = 0.01
_FREEZES_AGAIN_EVERY_S = 0.5
_RECORDED_AGAIN_AFTER_S = 10.0
_TOLD_AT = 4  # looks in a row


class Freezing:
    def __init__(self, session: Session) -> None:
        self._gate = session.turns
        self._recorder = session.recorder
        self._loop = session.loop
        self._job_control = session.job_control
        self._command_pid = session.command_pid
        self._frozen = Frozen()
        self.is_frozen = False
        self._is_being_frozen = False
        self.went_on = self.released = 0  # the last time
        self.ends = False  # what was frozen was let run, so that it can end
        self._recorded_again_s = 0.0
        self._again_in_a_row: dict[int, int] = {}

    @property
    def stands_still(self) -> bool:
        return self.is_frozen and not self._is_being_frozen

    def count(self) -> int:
        return self._frozen.count()

    def freeze(self) -> None:
        if self.ends:
            return  # else it would be killed for taking so long
        self._gate.close()
        self.is_frozen = True
        self._job_control.forget_stop_key()
        self._go_on_freezing()

    def freeze_who_goes_on(self) -> None:
        """Somebody from outside can continue them."""
        if not self.stands_still:
            return
        again, now_s = self._frozen.stop_again(), time.monotonic()
        if again and now_s >= self._recorded_again_s:
            self._recorded_again_s = now_s + _RECORDED_AGAIN_AFTER_S
            payload = {"processes": len(again), "held": self._gate.held, "again": True}
            self._recorder.record("tree_frozen", self._command_pid, payload)
        self._tell_who_goes_on_itself(again)

    def thaw(self) -> None:
        if self.is_frozen:
            self.is_frozen = False
            self.went_on, self.released = self._frozen.go_on(), self._gate.held
            payload = {"processes": self.went_on, "released": self.released}
            self._recorder.record("tree_thawed", self._command_pid, payload)
        self._gate.open()

    def let_run(self) -> None:
        """So that it can end."""
        self.ends = True
        self.thaw()

    def goes_on_after_all(self, *, is_stopped: bool) -> None:
        """It doesn't end."""
        self.ends = False
        if is_stopped:
            self.freeze()

    def _go_on_freezing(self) -> None:
        if not self.is_frozen:
            return
        self._is_being_frozen = not self._frozen.stop_all(within_s=_FREEZES_WITHIN_S)
        if self._is_being_frozen:
            self._loop.call_at(time.monotonic() + _PAUSE_S, self._go_on_freezing)
            return
        payload = {"processes": self._frozen.count(), "held": self._gate.held}
        self._recorder.record("tree_frozen", self._command_pid, payload)
        self._loop.call_at(time.monotonic() + _FREEZES_AGAIN_EVERY_S, self._freeze_regularly)

    def _freeze_regularly(self) -> None:
        if self.is_frozen:
            self.freeze_who_goes_on()
            self._job_control.stop_front_at_key()
            self._loop.call_at(time.monotonic() + _FREEZES_AGAIN_EVERY_S, self._freeze_regularly)

    def _tell_who_goes_on_itself(self, again: list[Stat]) -> None:
        """By timers that send SIGCONT: it runs in between, and only its end helps."""
        counts = {each.pid: self._again_in_a_row.get(each.pid, 0) + 1 for each in again}
        self._again_in_a_row = counts
        for each in again:
            if counts[each.pid] == _TOLD_AT:
                who = printable(f"process {each.pid} ({each.comm})")
                self._recorder.tell(
                    f"{who} does not stay stopped: another process keeps continuing it"
                )
