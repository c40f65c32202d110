"""Tells which approver can answer a request now.

That is the user on the terminal, unless the session could type there, or an approver through the
control socket. A request that no approver would see is denied early, so that its caller does not
wait in vain.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from sigwrap.hints import TYPE_CHECKING
from sigwrap.linux import procfs
from sigwrap.linux.peer import Peer
from sigwrap.linux.terminal_typists import Found, Typist, find_typist, types_for
from sigwrap.run.asking.control_socket import ControlSocket
from sigwrap.run.asking.terminal_prompt import TerminalPrompt
from sigwrap.run.settings import ApprovalMode as Mode

if TYPE_CHECKING:
    from sigwrap.run.session import Session

_ON_TERMINAL = frozenset({Mode.AUTO, Mode.TTY})
_BY_CONTROL = frozenset({Mode.AUTO, Mode.CONTROL})
_LOOK_AGAIN_EVERY_S = 1.0
_HELP = "see sigwrap help approvals"


class Approvers:
    def __init__(
        self,
        session: Session,
        prompt: TerminalPrompt,
        control: ControlSocket | None,
        *,
        has_notify: bool,
    ) -> None:
        self._session = session
        self._mode = session.settings.approvals
        self._unattended = session.is_unattended
        self._has_notify = has_notify
        # How long an approver that listed the requests counts as watching.
        self._look_lasts_s = session.settings.approval_timeout_s
        self._prompt = prompt
        self._control = control
        self._walled = session.facts.walls.domain
        self._found: Found | None = None  # None before the first search
        self._search_again_s = 0.0
        self._looked_until_s = 0.0
        self._has_answered = False

    # Where an answer can come from

    def channels(self) -> list[str]:
        if not self._is_attended:
            return []
        found = []
        if self.on_terminal and self._prompt.is_there and not self._why_not_here():
            found.append("terminal")
        if self.by_control and self._control is not None:
            found.append("control")
        return found

    def why_none(self) -> str:
        if self._mode is Mode.DENY:
            return "this session runs with --approvals deny"
        if self._mode is Mode.CONTROL:
            return "there is no control socket to answer through"
        if self._unattended:
            return f"$CI is set ({_HELP})"
        if not self._prompt.is_there:
            return f"there is no terminal ({_HELP})"
        return f"processes in the session could type the answer: {self._why_not_here()}"

    @property
    def on_terminal(self) -> bool:
        return self._mode in _ON_TERMINAL and not self._unattended

    @property
    def by_control(self) -> bool:
        return self._mode in _BY_CONTROL

    @property
    def can_show(self) -> bool:
        """Whether requests appear on the terminal."""
        return self.on_terminal and self._prompt.can_show

    @property
    def _is_attended(self) -> bool:
        """`--approvals control` says that an approver answers."""
        if self._mode is Mode.AUTO and self._is_watched:
            return True
        return self._mode not in _ON_TERMINAL or (not self._unattended and self._prompt.is_there)

    # Whether a request is seen

    @property
    def _is_watched(self) -> bool:
        """Whether a screen or a page is open, or --notify reports each request."""
        return self._has_notify or (self._control is not None and self._control.is_attended)

    def is_seen(self, approval_id: str, now_s: float) -> bool:
        return (
            self._prompt.has_shown(approval_id)
            or self._has_answered
            or now_s < self._looked_until_s
            or self._is_watched
        )

    def will_be_seen(self, approval_id: str, now_s: float) -> bool:
        """Whether it is seen, or about to be written on the terminal."""
        return self.can_show or self.is_seen(approval_id, now_s)

    def note_answer(self) -> None:
        self._has_answered = True

    def note_look(self, now_s: float) -> None:
        self._looked_until_s = now_s + self._look_lasts_s

    def notify_failed(self) -> None:
        self._has_notify = False

    # Whether the session could type the answer

    def typist(self) -> Typist | None:
        """Return the program that could type an answer for the session, if there is one."""
        if self._found is None:
            self._found = find_typist(walled=self._walled, keeps=self._keeps_from)
            if self._found.typist is not None:
                self._prompt.ask_elsewhere(self._found.typist.why)
        return self._found.typist

    def search_again(self) -> Typist | None:
        """Search once more if there is a multiplexer: its clients come and go."""
        before = self._found
        if before is not None and before.multiplexers:
            self._found = None
            if self.typist() is None and before.typist is not None:
                self._prompt.ask_here_again(before.typist.why)
        return self.typist()

    def search_again_if_due(self) -> None:
        """Search at most for a twentieth of the time: a search reads all of /proc."""
        now_s = time.monotonic()
        if self._found is not None and now_s >= self._search_again_s:
            self.search_again()
            ended_s = time.monotonic()
            self._search_again_s = now_s + max(_LOOK_AGAIN_EVERY_S, 20 * (ended_s - now_s))

    def session_connected_to(self, pid: int) -> None:
        """Stop asking on the terminal if `pid` is the multiplexer that drives it."""
        if self._found is not None and pid in self._found.multiplexers:
            why = f"the session has connected to {procfs.comm(pid)} and may type here"
            self._found = Found(Typist(pid, why))
            self._prompt.ask_elsewhere(why)

    def types_for(self, peer: Peer) -> bool:
        """Return whether the session could type on the terminal of `peer`."""
        typist = self.typist()
        return typist is not None and typist.pid != 0 and types_for(peer.pid, typist.pid)

    def _why_not_here(self) -> str:
        typist = self.typist()
        return self._prompt.not_here if typist is None else typist.why

    def _keeps_from(self, sockets: Sequence[str]) -> bool:
        """Return whether the policy keeps the session from all of the sockets, and there is one."""
        return bool(sockets) and all(map(self._session.keeps_from, sockets))
