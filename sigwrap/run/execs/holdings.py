"""The state and resources of one exec until it is over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sigwrap.bare import TYPE_CHECKING
from sigwrap.linux.execs.asked import Asked
from sigwrap.linux.execs.environment import Variables
from sigwrap.linux.execs.executable import Executable
from sigwrap.linux.execs.look import Seen
from sigwrap.mediate.exec_facts import ExecFacts, Unseen
from sigwrap.mediate.facts import WouldFail
from sigwrap.run.execs.tracer import Tracee
from sigwrap.run.recording.recording import Recording
from sigwrap.run.recording.recordings import Expected

if TYPE_CHECKING:
    from sigwrap.run.execs.execs import Execs

Looked = Seen | Unseen | WouldFail  # the result of a look
Found = tuple[bytes, Executable]  # the path of a replacement, and its executable


class ExecHoldings:
    """The state and resources of one exec."""

    __slots__ = (
        "asked",
        "at_exec_stop",
        "descriptor",
        "execs",
        "executable",
        "expected",
        "facts",
        "found",
        "goes_on",
        "holds_secret",
        "let_tracer_go",
        "name",
        "path",
        "recording",
        "replacement",
        "replacement_argv",
        "sets_environment",
        "tracee",
        "variables",
    )

    def __init__(self, execs: Execs) -> None:
        self.execs = execs
        self.asked: Asked | None = None
        self.executable: Executable | None = None
        self.facts: ExecFacts | None = None  # which the mediator judges
        self.tracee: Tracee | None = None
        self.let_tracer_go: Callable[[], None] | None = None  # if sigwrap stopped the caller's
        self.goes_on = False
        # For a replacement
        self.replacement: Executable | None = None
        self.found: dict[str, Found | None] = {}  # by a worker, for each command
        self.name = ""
        self.path = b""
        self.descriptor = -1  # of the waiting program, in the caller's table
        self.replacement_argv: Sequence[bytes] = ()
        self.sets_environment = False  # the whole of it, at the exec stop
        self.variables: Variables = ()
        self.holds_secret = False
        self.at_exec_stop: Callable[[int], str] | None = None
        # For a stub's command
        self.expected: Expected | None = None
        self.recording: Recording | None = None

    def free_tracer(self) -> None:
        """Let the caller's tracer go on, if sigwrap stopped it."""
        if self.let_tracer_go is not None:
            let_go, self.let_tracer_go = self.let_tracer_go, None
            let_go()

    def failed(self) -> None:
        if self.tracee is not None:
            self.execs.tracer.refused(self.tracee)

    def close(self) -> None:
        found = (each[1] for each in self.found.values() if each is not None)
        for each in (self.executable, self.replacement, *found):
            if each is not None:
                each.close()
        self.free_tracer()
        # A tracee and its scope refer to each other, and both to this object.
        self.asked = self.facts = self.executable = self.replacement = None
        self.replacement_argv = ()
        if self.recording is not None and not self.goes_on:
            self.recording.drop("the command was refused")
        self.execs.turns.ended(self)
