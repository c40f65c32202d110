"""The edge of the file mediator: what a call would change is looked at here. The call itself is the
kernel's."""

from __future__ import annotations

from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux.file_tree import as_they_lie
from sigwrap.linux.files.look import look
from sigwrap.linux.paths import our_view
from sigwrap.linux.seccomp import Notification
from sigwrap.linux.signals.targets import refresh_comm
from sigwrap.mediate.file_facts import FileAim, FileFacts, Unseen
from sigwrap.mediate.files import FileMediator
from sigwrap.mediate.lineage import Process
from sigwrap.policy.judge.files import FileRules
from sigwrap.policy.judge.rules import default_of
from sigwrap.run.perform import Scope

if TYPE_CHECKING:
    from sigwrap.run.mediation import Mediation
    from sigwrap.run.session import Session

_NOT_IN_TIME = "the file could not be identified in time"


class Files:
    def __init__(self, session: Session, mediation: Mediation) -> None:
        policy = session.policy
        default = default_of(policy, "file", policy.default_file)
        rules = FileRules(as_they_lie(policy.file_rules, session.engine.files), default)
        self._performer = mediation.performer
        self._mediator = FileMediator(rules)
        self._view = our_view()

    def begin(self, notification: Notification, process: Process, syscall: str) -> None:
        steps = self._mediator.mediate()
        self._performer.begin(Scope(notification, process, syscall, steps, family=self))

    def look(self, scope: Scope, *, may_wait: bool) -> FileAim:
        return look(scope.notification, scope.process, scope.syscall, self._view, may_wait=may_wait)

    def facts(self, scope: Scope, aim: FileAim) -> FileFacts:
        refresh_comm(scope.process)
        return FileFacts(scope.process, scope.syscall, aim)

    def stalled(self, scope: Scope, _why: str) -> FileFacts:
        return self.facts(scope, Unseen(_NOT_IN_TIME))

    def drop(self, aim: FileAim) -> None:
        pass
