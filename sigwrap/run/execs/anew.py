"""What an exec would run, looked at anew: what is in its files while somebody is asked, and after
the answer what the caller asks for by then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sigwrap.linux.execs.look import Seen, look
from sigwrap.linux.paths import MayWait, OurView
from sigwrap.mediate.effects import ReadAgain, ReadContent
from sigwrap.mediate.exec import ExecFacts, Unseen, stalled
from sigwrap.mediate.facts import WouldFail
from sigwrap.run.aside import Aside, Done, Late, Outcome, Raised
from sigwrap.run.perform import PAUSED, Performer, Scope

FactsOf = Callable[[Scope, Seen], ExecFacts]


class Anew:
    def __init__(
        self, performer: Performer, aside: Aside, ours: OurView, facts_of: FactsOf
    ) -> None:
        """`facts_of` gets what was seen, to be held in place of what was seen before."""
        self._performer = performer
        self._aside = aside
        self._ours = ours
        self._facts_of = facts_of
        performer.offer({ReadContent: self._read_content, ReadAgain: self._read_again})

    def _read_content(self, scope: Scope, _effect: ReadContent) -> object:
        executable = scope.holdings.executable
        if not executable.compare_content():
            return executable.read_content()

        def then(outcome: Outcome) -> None:
            match outcome:
                case Done(value=content):
                    self._performer.resume(scope, content)
                case Raised(error=error):
                    self._performer.broke(scope, error)
                case Late(why=why):
                    self._performer.resume(scope, _too_slow(scope, why))

        self._aside.do(executable.read_content, then)
        return PAUSED

    def _read_again(self, scope: Scope, _effect: ReadAgain) -> object:
        self._performer.check(scope)
        try:
            return self._now(scope, self._look(scope, may_wait=False))
        except MayWait:
            self._aside.do(
                lambda: self._look(scope, may_wait=True),
                lambda outcome: self._on_look(scope, outcome),
                _close,
            )
        return PAUSED

    def _look(self, scope: Scope, *, may_wait: bool) -> Seen | Unseen | WouldFail:
        held = scope.holdings
        return look(held.notification, scope.process, held.syscall, self._ours, may_wait=may_wait)

    def _on_look(self, scope: Scope, outcome: Outcome) -> None:
        match outcome:
            case Done(value=seen) if scope.is_over:
                _close(seen)
            case Done(value=seen):
                self._performer.resume(scope, self._now(scope, seen))
            case Raised(error=MayWait() as too_much):
                self._performer.resume(scope, _too_slow(scope, str(too_much)))
            case Raised(error=error):
                self._performer.broke(scope, error)
            case Late(why=why):
                self._performer.resume(scope, _too_slow(scope, why))

    def _now(self, scope: Scope, seen: Seen | Unseen | WouldFail) -> ExecFacts | Unseen | WouldFail:
        scope.is_checked = False  # it is recorded only where the caller still waits
        return self._facts_of(scope, seen) if isinstance(seen, Seen) else seen


def _too_slow(scope: Scope, why: str) -> Unseen:
    return stalled(scope.process, scope.holdings.syscall, f"after it was asked about: {why}")


def _close(seen: Any) -> None:
    if isinstance(seen, Seen):
        seen.executable.close()
