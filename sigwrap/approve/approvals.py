"""Approval requests of a session: asked, listed and answered while everything else goes on.

An answer comes from the terminal's prompt, unless the session could type there, or through the
control socket from `sigwrap approve`, `sigwrap deny`, a screen or a page. The log has it before it
takes effect. A request or an approval that cannot be recorded is denied; one that no approver would
see is denied early, so that its caller does not wait in vain.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable

from sigwrap.approve.control_socket import ControlReply, ControlRequest, ControlSocket, refusal
from sigwrap.approve.requests import (
    US,
    Answer,
    ApprovalRequest,
    OpenRequest,
    RequestQueue,
    Settled,
    Verdict,
)
from sigwrap.approve.terminal_prompt import TerminalPrompt, ring
from sigwrap.approve.typists import Typists
from sigwrap.approve.wording import (
    LISTED_CHARACTERS,
    SessionHints,
    answered_payload,
    asked_payload,
    listed,
    notice_of,
    store_option,
    until,
)
from sigwrap.bare import TYPE_CHECKING
from sigwrap.errors import StoreError
from sigwrap.events import Payload, text
from sigwrap.front.terminal import is_drawn_on_by
from sigwrap.kernel import procfs, terminals
from sigwrap.kernel.peer import Peer
from sigwrap.session.settings import BELL
from sigwrap.session.settings import ApprovalMode as Mode
from sigwrap.text import beginning

if TYPE_CHECKING:
    from sigwrap.session.session import Session

__all__ = ["Answer", "ApprovalRequest", "Approvals", "OnAnswer"]

OnAnswer = Callable[[Answer], None]

_ON_TERMINAL = frozenset({Mode.AUTO, Mode.TTY})
_BY_CONTROL = frozenset({Mode.AUTO, Mode.CONTROL})
_HELP = "see sigwrap help approvals"
_LOOK_FOR_APPROVER_EVERY_S = 5.0
_LONGEST_PLACE = 200
_MOST_PID = 1 << 31  # the kernel takes no larger one
_MOST_OPEN = 64  # each holds descriptors of the supervisor, and takes time of the approver
_NOT_RECORDED = "it can't be recorded"
_DRAWS = "a program that draws on the terminal does not wait"
_ENDED = "its process has ended"
_EVENT_OF_REASON = {"granted": "approval_granted", "expired": "approval_expired"}


class Approvals:
    def __init__(self, session: Session) -> None:
        self._session = session
        settings, recorder = session.settings, session.recorder
        self._loop = session.loop
        self._recorder = recorder
        self._mode = settings.approvals
        self._timeout_s = settings.approval_timeout_s
        self._unattended_timeout_s = settings.unattended_timeout_s  # where no approver would see it
        self._notify_by = settings.notify
        if self._notify_by == BELL and terminals.controlling < 0:
            recorder.tell("--notify bell: there is no terminal")
            self._notify_by = ""
        self.store = os.path.dirname(os.path.dirname(os.path.abspath(recorder.log.path)))
        self.hints = SessionHints(session.policy.name, store_option(self.store, os.environ))
        self._queue = RequestQueue(self._timeout_s)
        self._waiting: dict[str, OnAnswer] = {}
        self._stopped = ""  # why no request is granted now
        self._has_timer = False
        self._told_of_no_socket = False
        self._prompt = TerminalPrompt(session, self)
        try:
            self._control: ControlSocket | None = ControlSocket(session, self)
        except StoreError:
            self._control = None  # each request says who can answer it
        self.typists = Typists(session, self._prompt)
        self._reports_each = bool(self._notify_by)  # to a user who need not watch
        self._has_answered = False
        self._listed_until_s = 0.0  # an approver that listed the requests counts as watching

    # Asking

    def ask(self, request: ApprovalRequest, on_answer: OnAnswer) -> str:
        """Ask for approval; return the request's id. Calls `on_answer` exactly once, maybe before
        this returns."""
        self.typists.search_again_if_due()
        now_s = time.monotonic()
        opened = self._queue.ask(self._new_id(), request, now_s)
        self._waiting[opened.id] = on_answer
        channels = self._channels()
        if not self._record_asked(opened, channels):
            self._refuse([opened.id], _NOT_RECORDED)
        elif (settled := self._queue.settle_from_memory(opened.id, now_s)) is not None:
            self._settle([settled])
        elif len(self._queue.open) > _MOST_OPEN:
            self._refuse([opened.id], f"{_MOST_OPEN} other requests are open already")
        elif not channels:
            self._refuse([opened.id], self._stopped or self._why_none())
        elif request.kind != "exec" and is_drawn_on_by(request.pid):
            why = self._keep_for_next_attempt(request, channels, now_s)
            self._refuse([opened.id], why, "at once")
        else:
            self._await_answer(opened)
            if self._on_terminal and self._prompt.is_there:
                self._prompt.show(opened)
            if not (self._notify_by or self._prompt.can_show) and self._on_terminal:
                ring()  # a program's screen shows no request
        return opened.id

    def would_wait(self, request: ApprovalRequest) -> bool:
        """Return whether `ask` would leave the request open."""
        has_room = len(self._queue.open) < _MOST_OPEN
        return has_room and not self._queue.is_remembered(request) and bool(self._channels())

    def _record_asked(self, opened: OpenRequest, channels: list[str]) -> bool:
        payload = asked_payload(opened, timeout_s=self._timeout_s, asked=channels)
        return self._recorder.record("approval_requested", opened.request.pid, payload)

    def _await_answer(self, opened: OpenRequest) -> None:
        self._expire_later()
        if self._notify_by == BELL:
            ring()
        elif self._notify_by:
            notice = notice_of(opened.id, opened.request, self.store)
            self._session.channel.send("notice", notice)

    def _keep_for_next_attempt(
        self, request: ApprovalRequest, channels: list[str], now_s: float
    ) -> str:
        """Open a request for the caller's next attempt, since its screen would freeze if it waited.
        Return why this attempt is denied."""
        kept = self._queue.kept_for_next(request)
        if kept is None:
            if not request.key or not self._queue.keeps_more():
                return _DRAWS
            kept = self._queue.ask(self._new_id(), request, now_s, for_next=True)
            if not self._record_asked(kept, channels):
                self._refuse([kept.id], _NOT_RECORDED)
                return _DRAWS
            self._await_answer(kept)
        return f"{_DRAWS}; {self.hints.command('approve', kept.id)} allows it next time"

    def _new_id(self) -> str:
        while self._queue.is_known(approval_id := os.urandom(3).hex()):
            pass
        return approval_id

    @property
    def has_control(self) -> bool:
        """Whether `sigwrap approve` can answer."""
        return self._mode in _BY_CONTROL and self._control is not None

    def how_to_answer(self, approval_id: str) -> str:
        """Return how the user answers an open request."""
        opened = next(each for each in self._queue.open if each.id == approval_id)
        now_s = time.monotonic()
        end = until(self._deadline_s(opened, now_s), now_s)
        if not self.has_control:
            return f"answer on the terminal until {end}"
        approve, watch = self.hints.command("approve", opened.id), self.hints.command("watch")
        return f"until {end}: {approve}, or {watch}"

    def process_ended(self, pid: int) -> None:
        self._refuse(self._queue.kept_of(pid), _ENDED, "withdrawn")

    def withdraw(self, approval_id: str, why: str = _ENDED) -> None:
        self._refuse([approval_id], why, "withdrawn")

    def stop_asking(self, why: str) -> None:
        """Deny the open requests, and all others from now on. A caller that waits for an answer
        cannot end by a signal that it blocks, so it would hold up an interrupt."""
        self._stopped = why
        self._refuse([each.id for each in self._queue.open], why)

    def ask_again(self) -> None:
        self._stopped = ""

    def look(self) -> None:
        """Put the control socket back if another process has removed or replaced it."""
        control = self._control
        what = "" if control is None else control.objection()
        if control is None or not what:
            return
        try:
            control.restore()
        except StoreError as failure:
            if not self._told_of_no_socket:
                self._told_of_no_socket = True
                unreachable = "sigwrap approve cannot reach this session until then"
                self._recorder.tell(f"{failure}; {unreachable}")
        else:
            self._recorder.tampered("control socket", control.path, what, "sigwrap made it again")

    def close(self) -> None:
        """Withdraw the open requests, and let go of the terminal and the socket."""
        self._stopped = "the session ended"
        self._refuse([each.id for each in self._queue.open], self._stopped, "withdrawn")
        self._prompt.close()
        if self._control is not None:
            self._control.close()

    @property
    def open(self) -> tuple[OpenRequest, ...]:
        return self._queue.open

    @property
    def holds_terminal(self) -> bool:
        """Whether a process that stops because it reads from the terminal is continued after the
        answer, and so is no stopped job."""
        return self._prompt.holds_terminal

    # Approvers

    def _channels(self) -> list[str]:
        """Return where an answer can come from."""
        if self._stopped:
            return []
        has_terminal = self._on_terminal and self._prompt.is_there
        found = ["terminal"] if has_terminal and not self._why_not_here() else []
        # `--approvals control` says that an approver answers.
        if self.has_control and (has_terminal or self._mode is Mode.CONTROL or self._is_watched):
            found.append("control")
        return found

    def _why_none(self) -> str:
        if self._mode is Mode.DENY:
            return "this session runs with --approvals deny"
        if self._mode is Mode.CONTROL:
            return "there is no control socket to answer through"
        if self._session.is_unattended:
            return f"$CI is set ({_HELP})"
        if not self._prompt.is_there:
            return f"there is no terminal ({_HELP})"
        return f"processes in the session could type the answer: {self._why_not_here()}"

    def _why_not_here(self) -> str:
        typist = self.typists.found()
        return self._prompt.not_here if typist is None else typist.why

    @property
    def _on_terminal(self) -> bool:
        return self._mode in _ON_TERMINAL and not self._session.is_unattended

    @property
    def can_show(self) -> bool:
        """Whether requests appear on the terminal."""
        return self._on_terminal and self._prompt.can_show

    @property
    def _is_watched(self) -> bool:
        """Whether a screen or a page is open, or --notify reports each request."""
        return self._reports_each or (self._control is not None and self._control.is_attended)

    def _is_seen(self, approval_id: str, now_s: float) -> bool:
        return (
            self._prompt.has_shown(approval_id)
            or self._has_answered
            or now_s < self._listed_until_s
            or self._is_watched
        )

    def notify_failed(self) -> None:
        self._reports_each = False

    # Time

    def _deadline_s(self, opened: OpenRequest, now_s: float) -> float:
        if self.can_show or self._is_seen(opened.id, now_s):
            return opened.deadline_s
        return min(opened.deadline_s, opened.asked_at_s + self._unattended_timeout_s)

    def _expire_later(self, look_again_s: float = 0.0) -> None:
        """Set the one timer for all requests: a later one is due later."""
        if self._has_timer or not self._queue.open:
            return
        self._has_timer = True
        first = self._queue.open[0]
        unseen_s = max(first.asked_at_s + self._unattended_timeout_s, look_again_s)
        self._loop.call_at(min(first.deadline_s, unseen_s), self._expire)

    def _expire(self) -> None:
        """Let requests expire: in time, or early if no approver sees them. An approver may leave,
        so look again."""
        self._has_timer = False
        now_s = time.monotonic()
        self._settle(self._queue.expire(now_s))
        why = f"no answer within {self._unattended_timeout_s:g} s, and no approver was watching"
        unseen = [
            each.id
            for each in self._queue.open
            if each.asked_at_s + self._unattended_timeout_s <= now_s
            and not self._is_seen(each.id, now_s)
        ]
        self._refuse(unseen, why, "expired")
        self._expire_later(now_s + min(self._unattended_timeout_s, _LOOK_FOR_APPROVER_EVERY_S))

    # Answers

    def on_terminal_answer(self, approval_id: str, verdict: Verdict) -> None:
        if verdict is not Verdict.NO and self.typists.search_again() is not None:
            opened = self._queue.find(approval_id)
            if opened is not None:
                self._prompt.show(opened)
            return
        self._has_answered = True
        self._answer(approval_id, verdict, by="the terminal", message="")

    def _answer(
        self, approval_id: str, verdict: Verdict, *, by: str, message: str
    ) -> tuple[Settled, ...]:
        """Return what was settled; an approval that cannot be recorded is a denial."""
        now_s = time.monotonic()
        found = self._queue.answer(approval_id, verdict, by=by, message=message, now_s=now_s)
        return self._settle(found)

    def _refuse(self, ids: list[str], why: str, reason: str = "nobody") -> None:
        """Deny requests without an approver."""
        now_s = time.monotonic()
        refused = (self._queue.refuse(each, why, now_s, reason) for each in ids)
        self._settle(settled for found in refused for settled in found)

    def _settle(self, all_settled: Iterable[Settled]) -> tuple[Settled, ...]:
        done = tuple(self._recorded(settled) for settled in all_settled)
        for settled in done:
            self._prompt.withdraw(settled.id)
        for settled in done:
            if (on_answer := self._waiting.pop(settled.id, None)) is not None:
                on_answer(settled.answer)
        return done

    def _recorded(self, settled: Settled) -> Settled:
        event = _EVENT_OF_REASON.get(settled.answer.reason, "approval_denied")
        is_written = self._recorder.record(event, settled.request.pid, answered_payload(settled))
        if is_written or not settled.answer.granted:
            return settled
        self._queue.forget_always(settled.request)
        why = f"granted, but {_NOT_RECORDED}"
        denied = Answer(granted=False, by=US, message=why, reason="denied")
        return settled._replace(answer=denied, always=False, remembered=False)

    # The control socket

    def refused(self, peer: Peer) -> None:
        payload: Payload = {
            "reason": peer.objection,
            "peer_pid": peer.pid,
            "peer_uid": peer.uid,
            "peer_cmd": peer.command,
            "inside_session": peer.inside_session,
        }
        self._recorder.record("control_refused", peer.pid, payload)

    def on_request(self, request: ControlRequest, peer: Peer) -> ControlReply:
        ours = self._recorder.log.session_id
        if request.get("session_id", ours) != ours:  # the socket may have been renamed
            return refusal("another", f"this is session {ours}")
        match request:
            case {"do": "list"}:
                return self._list(peer, is_a_look=request.get("look") is not False)
            case {"do": "show", "id": str(approval_id)}:
                return self._show(approval_id)
            case {"do": "refused", "pid": int(pid)}:
                return self._refused_elsewhere(pid, text(request.get("where")))
            case {"do": "approve", "id": str(approval_id)}:
                verdict = Verdict.ALWAYS if request.get("always") is True else Verdict.ONCE
                return self._answer_by_control(approval_id, verdict, peer, "")
            case {"do": "deny", "id": str(approval_id)}:
                message = text(request.get("message"))
                return self._answer_by_control(approval_id, Verdict.NO, peer, message)
            case {"do": "signal" | "signal-outcome"}:
                return self._session.agent_signals.on_request(request, peer)
            case _:
                return refusal(
                    "bad-request", "unknown request: use list, show, approve, deny or signal"
                )

    def _list(self, peer: Peer, *, is_a_look: bool) -> ControlReply:
        now_s = time.monotonic()
        if is_a_look:
            self._listed_until_s = now_s + self._timeout_s
        return {
            "ok": True,
            "session_id": self._recorder.log.session_id,
            "requests": [self._listed(each, now_s) for each in self._queue.open],
            "typed": bool(self._queue.open) and self.typists.type_for(peer),
            **self._session.how_it_stands(),
        }

    def _refused_elsewhere(self, pid: int, where: str) -> ControlReply:
        """Record that a process of this session connected to a page of the user."""
        is_ours = 0 < pid < _MOST_PID and self._session.is_inside(pid)
        if is_ours:
            why = f"it is in a supervised session, and connected to {where[:_LONGEST_PLACE]}"
            self.refused(Peer(pid, os.geteuid(), procfs.command_line(pid), why, True))
        return {"ok": True, "recorded": is_ours}

    def _show(self, approval_id: str) -> ControlReply:
        """Return one request, uncut."""
        now_s = time.monotonic()
        if (found := self._queue.find(approval_id)) is None:
            return self._no_such(approval_id)
        self._listed_until_s = now_s + self._timeout_s
        request = self._listed(found, now_s, full=True)
        return {"ok": True, "request": request, **self._session.how_it_stands()}

    def _listed(self, opened: OpenRequest, now_s: float, *, full: bool = False) -> Payload:
        deadline_s = self._deadline_s(opened, now_s)
        return listed(opened, self.hints.policy, now_s, deadline_s, full=full)

    def _no_such(self, approval_id: str) -> ControlReply:
        ids = [opened.id for opened in self._queue.open]
        return refusal("unknown-id", f"there is no request {approval_id}", open=ids)

    def is_typed(self, peer: Peer) -> bool:
        """Return whether the session may have typed it, and record that as an attempt."""
        self.typists.search_again()
        is_typed = self.typists.type_for(peer)
        if is_typed:
            why = "the session may have typed this itself"
            self.refused(peer._replace(objection=why))
        return is_typed

    def _answer_by_control(
        self, approval_id: str, verdict: Verdict, peer: Peer, message: str
    ) -> ControlReply:
        if self._mode not in _BY_CONTROL:
            return refusal(
                "not-taken",
                f"this session runs with --approvals {self._mode.value}: it accepts no answer here",
            )
        if verdict is not Verdict.NO and self.is_typed(peer):
            why = "the session may have typed this itself: approve it on another terminal"
            return refusal("typed", why)
        self._has_answered = True
        by = f"uid {peer.uid}, pid {peer.pid}"
        found = self._answer(approval_id, verdict, by=by, message=message)
        if not found:
            how = self._queue.how_settled(approval_id)
            late = refusal("late", f"too late: {approval_id} was {how}")
            return late if how else self._no_such(approval_id)
        first = found[0]
        return {
            "ok": True,
            "granted": first.answer.granted,
            "always": first.always,
            "message": first.answer.message,
            "what": beginning(first.request.what, LISTED_CHARACTERS),
            "settled": [settled.id for settled in found],
        }
