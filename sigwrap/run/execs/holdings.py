"""The state and resources of one exec until it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sigwrap.linux.execs.asked import Asked
from sigwrap.linux.execs.environment import Variables
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.look import Seen
from sigwrap.linux.seccomp import Notification
from sigwrap.mediate.exec_facts import ExecFacts, Unseen
from sigwrap.mediate.facts import WouldFail
from sigwrap.run.execs.gate import Gate
from sigwrap.run.execs.tracer import Tracee, Tracer
from sigwrap.run.recording.recording import Recording
from sigwrap.run.recording.recordings import Expected

Looked = Seen | Unseen | WouldFail | Exception  # the result of a look
Found = tuple[bytes, Executable]  # a replacement's path, and the file


class ExecHoldings:
    """The state and resources of one exec."""

    __slots__ = (
        "asked",
        "at_exec_stop",
        "descriptor",
        "executable",
        "expected",
        "facts",
        "found_aside",
        "gate",
        "goes_on",
        "holds_secret",
        "let_tracer_go",
        "name",
        "notification",
        "path",
        "recording",
        "replacement",
        "replacement_argv",
        "seen_again",
        "sets_environment",
        "syscall",
        "tracee",
        "tracer",
        "variables",
    )

    def __init__(
        self, notification: Notification, syscall: str, tracer: Tracer, gate: Gate
    ) -> None:
        self.notification = notification
        self.syscall = syscall
        self.tracer = tracer
        self.gate = gate
        self.asked: Asked | None = None
        self.executable: Executable | None = None
        self.facts: ExecFacts | None = None  # that it is judged by
        self.seen_again: Looked | None = None
        self.tracee: Tracee | None = None
        self.let_tracer_go: Callable[[], None] | None = None  # if sigwrap holds the caller's
        self.goes_on = False
        # For a replacement
        self.replacement: Executable | None = None
        self.found_aside: dict[str, Found | None] = {}
        self.name = ""
        self.path = b""
        self.descriptor = -1  # the caller's own, of the program that waits
        self.replacement_argv: Sequence[bytes] = ()
        self.sets_environment = False  # as a whole, at the exec stop
        self.variables: Variables = ()
        self.holds_secret = False
        self.at_exec_stop: Callable[[int], str] | None = None
        # For a stub's command
        self.expected: Expected | None = None
        self.recording: Recording | None = None

    def failed(self) -> None:
        if self.tracee is not None:
            self.tracer.refused(self.tracee)

    def close(self) -> None:
        found_aside = (found[1] for found in self.found_aside.values() if found is not None)
        for each in (self.executable, self.replacement, *found_aside):
            if each is not None:
                each.close()
        if self.let_tracer_go is not None:
            self.let_tracer_go()
        # A tracee and its scope refer to each other, and both to this object.
        self.asked = self.facts = self.executable = self.replacement = None
        self.replacement_argv = ()
        self.let_tracer_go = None
        if self.recording is not None and not self.goes_on:
            self.recording.drop("the command was refused")
        self.gate.is_over(self)
