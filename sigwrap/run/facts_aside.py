"""Facts of a request are found at once, or by a helper where that may take its time: the request is
put off then, and comes again when they are there."""

from __future__ import annotations

from collections.abc import Callable

from sigwrap.hints import Any
from sigwrap.linux.memory import may_be_served
from sigwrap.linux.paths import MayWait
from sigwrap.linux.seccomp import Notification
from sigwrap.run.aside import Aside, Done, Outcome


class FactsAside:
    def __init__(
        self,
        aside: Aside,
        answer_now: Callable[[Notification], None],
        drop: Callable[[Any], None] | None = None,
    ) -> None:
        """`answer_now`: a request that was put off, if its caller still waits. `drop`: what was
        found for nobody."""
        self._aside = aside
        self._answer_now = answer_now
        self._drop = drop
        self._found: dict[int, Outcome] = {}  # by the id of a request that was put off

    def find(self, notification: Notification, look: Callable[[bool], Any]) -> Outcome | None:
        """`look` is told whether it may wait. None: the request is put off."""
        found = self._found.pop(notification.id, None)
        if found is not None:
            return found
        if not may_be_served():
            try:
                return Done(look(False))
            except MayWait:
                pass

        def come_again(found: Outcome) -> None:
            self._found[notification.id] = found
            self._answer_now(notification)
            left = self._found.pop(notification.id, None)  # its caller is gone
            if self._drop is not None and isinstance(left, Done):
                self._drop(left.value)

        self._aside.do(lambda: look(True), come_again, self._drop)
        return None
