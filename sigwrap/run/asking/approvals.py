"""Requests that wait for a person, while everything else goes on.

The one door between mediators and whoever answers: the terminal's prompt, or `sigwrap approve` and
`sigwrap deny` through the control socket. An answer is in the log before it has an effect; what
can't be recorded is denied.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterable, Sequence

from sigwrap.errors import StoreError
from sigwrap.escape import beginning
from sigwrap.events import Payload, text
from sigwrap.linux import procfs
from sigwrap.linux.peer import Peer
from sigwrap.linux.terminal_typists import Found, Typist, find_typist, types_for
from sigwrap.mediate.questions import (
    US,
    Answer,
    Open,
    Question,
    QuestionQueue,
    Settled,
    TooLate,
    Unknown,
    Verdict,
)
from sigwrap.protocols.control import ControlReply, ControlRequest, refusal
from sigwrap.protocols.front import Notice
from sigwrap.run.asking.attendance import Attendance
from sigwrap.run.asking.control_socket import ControlSocket
from sigwrap.run.asking.listing import LISTED, LISTED_CHARACTERS, listed
from sigwrap.run.asking.payloads import answered_payload, asked_payload
from sigwrap.run.asking.terminal_modes import is_drawn_on_by
from sigwrap.run.asking.terminal_prompt import TerminalPrompt, ring
from sigwrap.run.asking.wording import Session, notice_of, store_option, until
from sigwrap.run.loop import Loop
from sigwrap.run.recorder import Recorder
from sigwrap.run.settings import ApprovalMode as Mode

__all__ = ["Answer", "Approvals", "OnAnswer", "Question"]

OnAnswer = Callable[[Answer], None]
# Gets the request, who sent it, and a look whether the session may have typed it itself.
OnSignal = Callable[[ControlRequest, Peer, Callable[[], bool]], ControlReply]

_AT_THE_TERMINAL = frozenset({Mode.AUTO, Mode.TTY})
_BY_CONTROL = frozenset({Mode.AUTO, Mode.CONTROL})
_LOOKS_FOR_SOMEBODY_EVERY_S = 5.0
_LONGEST_PLACE = 200
_LOOKS_AGAIN_EVERY_S = 1.0
_MOST_PID = 1 << 31  # more than the kernel can be asked about
_HELP = "see sigwrap help approvals"
_MOST_OPEN = 64  # each holds descriptors of ours, and a person's patience
_EVENT_OF_REASON = {"granted": "approval_granted", "expired": "approval_expired"}


class Approvals:
    def __init__(
        self,
        *,
        loop: Loop,
        recorder: Recorder,
        mode: Mode,
        timeout_s: float,
        unattended_timeout_s: float = math.inf,
        policy: str,
        unattended: bool = False,
        notify: Callable[[Notice], None] | None = None,
        how_it_stands: Callable[[], Payload] = dict,
        is_inside: Callable[[int], bool] = lambda pid: False,
        walled: bool = True,
        is_kept: Callable[[str], bool] = lambda socket: False,
        on_stop_key: Callable[[], None] = lambda: None,
        on_signal: OnSignal = lambda *_words: refusal(
            "bad-request", "this session takes no signals"
        ),
    ) -> None:
        """Answers come from within `loop`'s turns. `unattended_timeout_s`: after that it is no
        where nobody would see the question. `unattended`: nobody looks at a terminal. `notify`:
        somebody wants to be told of each question. `how_it_stands`: of the session, for who
        watches. `walled`: a Landlock domain is around COMMAND. `is_kept`: the policy keeps
        the session from connecting to a unix socket. `on_stop_key`: the user pressed Ctrl+Z at a
        request."""
        self._loop = loop
        self._recorder = recorder
        self._mode = mode
        self._timeout_s = timeout_s
        self._unattended_timeout_s = unattended_timeout_s
        self._unattended = unattended
        self._notify = notify
        self._how_it_stands = how_it_stands
        self._is_inside = is_inside
        self._store = os.path.dirname(os.path.dirname(os.path.abspath(recorder.log.path)))
        self._session = Session(policy, store_option(self._store, os.environ))
        self._queue = QuestionQueue(timeout_s=timeout_s, new_id=lambda: os.urandom(3).hex())
        self._waiting: dict[str, OnAnswer] = {}
        self._stopped = ""
        self._expires = False
        self._looks_for_somebody = False
        self._prompt: TerminalPrompt | None = None
        self._walled = walled
        self._is_kept = is_kept
        self._on_stop_key = on_stop_key
        self._on_signal = on_signal
        self._found: Found | None = None  # None before the first look
        self._looks_again_s = 0.0
        self._control = self._open_control()
        self._told_of_no_socket = False
        self._attendance = Attendance(
            is_watched=lambda: self._control is not None and self._control.is_attended,
            is_told=notify is not None,
            look_lasts_s=timeout_s,
        )

    def ask(self, question: Question, on_answer: OnAnswer) -> str:
        """The request's id. `on_answer` is called exactly once, maybe before this returns."""
        now_s = time.monotonic()
        if self._found is not None and now_s >= self._looks_again_s:  # a look takes its time
            self._look_again_for_typist()
            took_s = time.monotonic() - now_s
            self._looks_again_s = now_s + max(_LOOKS_AGAIN_EVERY_S, 20 * took_s)
        request = self._queue.ask(question, now_s)
        self._waiting[request.id] = on_answer
        asked = self._who_can_answer()
        payload = asked_payload(request, timeout_s=self._timeout_s, asked=asked)
        if not self._recorder.record("approval_requested", question.pid, payload):
            self._settle([self._queue.settle_unasked(request.id, "it can't be recorded", now_s)])
        elif (settled := self._queue.settle_from_memory(request.id, now_s)) is not None:
            self._settle([settled])
        elif len(self._queue.open) > _MOST_OPEN:
            why = f"{_MOST_OPEN} other requests are open already"
            self._settle([self._queue.settle_unasked(request.id, why, now_s)])
        elif not asked:
            why = self._why_nobody()
            self._settle([self._queue.settle_unasked(request.id, why, now_s)])
        elif question.kind != "exec" and is_drawn_on_by(question.pid):
            why = self._keep_for_next_attempt(question, asked, now_s)
            self._settle([self._queue.settle_unasked(request.id, why, now_s, "at once")])
        else:
            self._expire_later(request.deadline_s)
            if self._is_at_the_terminal and self._terminal().is_there:
                self._terminal().show(request, or_by_command="control" in asked)
            if self._notify is not None:
                self._notify(notice_of(request, self._store))
            elif self._is_at_the_terminal and not self._terminal().can_show:
                ring(notice_of(request, self._store))  # a program's screen shows no request
            self._look_for_somebody_later(request.asked_at_s + self._unattended_timeout_s)
        return request.id

    def would_wait(self, question: Question) -> bool:
        """Whether `ask` would leave it open."""
        has_room = len(self._queue.open) < _MOST_OPEN
        return has_room and not self._queue.is_remembered(question) and bool(self._who_can_answer())

    def _keep_for_next_attempt(self, question: Question, asked: list[str], now_s: float) -> str:
        """A program that draws on the terminal would freeze while it waits. Returns why it does not
        wait."""
        kept = self._queue.kept_for_next(question)
        if kept is None and not (question.key and self._queue.keeps_more()):
            return "a program that draws on the terminal does not wait"
        if kept is None:
            kept = self._queue.ask(question, now_s, for_next=True)
            self._waiting[kept.id] = lambda _answer: None
            payload = asked_payload(kept, timeout_s=self._timeout_s, asked=asked)
            if not self._recorder.record("approval_requested", question.pid, payload):
                self._settle([self._queue.settle_unasked(kept.id, "it can't be recorded", now_s)])
            self._expire_later(kept.deadline_s)
            self._look_for_somebody_later(kept.asked_at_s + self._unattended_timeout_s)
            if self._notify is not None:
                self._notify(notice_of(kept, self._store))
        approve = self._session.command("approve", kept.id)
        return f"a program that draws on the terminal does not wait; {approve} allows it next time"

    @property
    def are_on_terminal(self) -> bool:
        """Requests appear there."""
        return self._is_at_the_terminal and self._terminal().can_show

    def how_to_answer(self, approval_id: str) -> str:
        """A request that is open."""
        request = next(each for each in self._queue.open if each.id == approval_id)
        now_s = time.monotonic()
        end = until(self._deadline_s(request, now_s), now_s)
        if "control" not in self._who_can_answer():
            return f"answer on the terminal until {end}"
        approve, watch = (
            self._session.command(*each) for each in (("approve", request.id), ("watch",))
        )
        return f"until {end}: {approve}, or {watch}"

    def nobody_is_told(self) -> None:
        """--notify has failed."""
        self._attendance.nobody_is_told()

    def process_ended(self, pid: int) -> None:
        for approval_id in self._queue.kept_of(pid):
            self._withdraw(approval_id, "its process has ended")

    def withdraw(self, approval_id: str) -> None:
        """The asker died: its answer is "withdrawn"."""
        self._withdraw(approval_id, "its process has ended")

    def stop_asking(self, why: str) -> None:
        """From now on it is no. Who waits for an answer can't end by a signal that it blocks, so an
        interrupt would otherwise wait as well."""
        self._stopped = why
        now_s = time.monotonic()
        self._settle(self._queue.settle_unasked(each.id, why, now_s) for each in self._queue.open)

    def ask_again(self) -> None:
        self._stopped = ""

    def look(self) -> None:
        """Whether the control socket is still there; if not, there is another one."""
        control = self._control
        what = "" if control is None else control.objection()
        if control is None or not what:
            return
        try:
            control.restore()
        except StoreError as failure:
            if not self._told_of_no_socket:
                self._told_of_no_socket = True
                self._recorder.tell(
                    f"{failure}; sigwrap approve cannot reach this session until then"
                )
        else:
            self._recorder.tampered("control socket", control.path, what, "sigwrap made it again")

    def close(self) -> None:
        """Whatever is still open is withdrawn; the terminal and the socket are let go."""
        self._stopped = "the session ended"
        for request in self._queue.open:
            self._withdraw(request.id, self._stopped)
        if self._prompt is not None:
            self._prompt.close()
        if self._control is not None:
            self._control.close()

    @property
    def open(self) -> tuple[Open, ...]:
        return self._queue.open

    @property
    def holds_terminal(self) -> bool:
        """A process that stops now because it reads from the terminal isn't a stopped job: it will
        be continued when the prompt has its answer."""
        return self._prompt is not None and self._prompt.holds_terminal

    # Who is asked

    def _who_can_answer(self) -> list[str]:
        if self._stopped or self._nobody_is_there:
            return []
        asked = []
        if self._is_at_the_terminal and self._terminal().may_ask:
            asked.append("terminal")
        if self._mode in _BY_CONTROL and self._control is not None:
            asked.append("control")
        return asked

    @property
    def _is_at_the_terminal(self) -> bool:
        return self._mode in _AT_THE_TERMINAL and not self._unattended

    @property
    def _nobody_is_there(self) -> bool:
        """`--approvals control` says that somebody answers all the same."""
        if self._mode is Mode.AUTO and self._attendance.is_at_a_place:
            return False
        return self._mode in _AT_THE_TERMINAL and (
            self._unattended or not self._terminal().is_there
        )

    def _is_seen(self, request: Open, now_s: float) -> bool:
        """Somebody has it in view, or would look."""
        is_shown = self._prompt is not None and self._prompt.has_shown(request.id)
        return is_shown or self._attendance.is_there(now_s)

    def _will_be_seen(self, request: Open, now_s: float) -> bool:
        """It is in view, or is about to be written on the terminal."""
        is_to_be_shown = self._is_at_the_terminal and self._terminal().can_show
        return is_to_be_shown or self._is_seen(request, now_s)

    def _deadline_s(self, request: Open, now_s: float) -> float:
        if self._will_be_seen(request, now_s):
            return request.deadline_s
        return min(request.deadline_s, request.asked_at_s + self._unattended_timeout_s)

    def _terminal(self) -> TerminalPrompt:
        if self._prompt is None:
            not_here = "" if self._typist is None else self._typist.why
            self._prompt = TerminalPrompt(
                self._loop, self._on_terminal_answer, self._on_stop_key, self._session, not_here
            )
        return self._prompt

    @property
    def _typist(self) -> Typist | None:
        """Who could type an answer for the session: it is not asked on a terminal of theirs, and
        takes none from there."""
        if self._found is None:
            self._found = find_typist(walled=self._walled, keeps=self._keeps_from)
        return self._found.typist

    def _look_again_for_typist(self) -> Typist | None:
        """The clients of a multiplexer come and go."""
        if self._found is not None and self._found.multiplexers:
            self._found = None
            if (typist := self._typist) is not None:
                self._is_typed_by(typist)
        return self._typist

    def _is_typed_by(self, typist: Typist) -> None:
        self._found = Found(typist)
        if self._prompt is not None:
            self._prompt.ask_elsewhere(typist.why)

    def _keeps_from(self, sockets: Sequence[str]) -> bool:
        """All of them, and there is one."""
        return bool(sockets) and all(map(self._is_kept, sockets))

    def has_connected(self, pid: int) -> None:
        """A process in the session has connected to `pid`, which is outside."""
        if self._found is not None and pid in self._found.multiplexers:
            why = f"the session has connected to {procfs.comm(pid)} and may type here"
            self._is_typed_by(Typist(pid, why))

    def _why_nobody(self) -> str:
        if self._stopped:
            return self._stopped
        if self._mode is Mode.DENY:
            return "this session runs with --approvals deny"
        if self._mode is Mode.CONTROL:
            return "there is no control socket to answer through"
        if self._unattended:
            return f"$CI is set ({_HELP})"
        if not self._terminal().is_there:
            return f"there is no terminal ({_HELP})"
        return f"processes in the session could type the answer: {self._terminal().not_here}"

    # Answers

    def _on_terminal_answer(self, approval_id: str, verdict: Verdict) -> None:
        if verdict is not Verdict.NO and self._look_again_for_typist() is not None:
            request = self._queue.find(approval_id)
            if request is not None and self._prompt is not None:
                self._prompt.show(request, or_by_command=self._mode in _BY_CONTROL)
            return
        self._attendance.note_answer()
        self._answer(approval_id, verdict, by="the terminal", message="")

    def _answer(
        self, approval_id: str, verdict: Verdict, *, by: str, message: str
    ) -> tuple[Settled, ...] | TooLate | Unknown:
        """What came of it: less than was said, where it can't be recorded."""
        now_s = time.monotonic()
        found = self._queue.answer(approval_id, verdict, by=by, message=message, now_s=now_s)
        return found if isinstance(found, TooLate | Unknown) else self._settle(found)

    def _expire_later(self, deadline_s: float) -> None:
        """One timer for all: a request that comes later expires later."""
        if not self._expires:
            self._expires = True
            self._loop.call_at(deadline_s, self._expire)

    def _expire(self) -> None:
        self._expires = False
        self._settle(self._queue.expire(time.monotonic()))
        if self._queue.open:
            self._expire_later(self._queue.open[0].deadline_s)

    def _look_for_somebody_later(self, at_s: float) -> None:
        if not self._looks_for_somebody and at_s < math.inf:
            self._looks_for_somebody = True
            self._loop.call_at(at_s, self._look_for_somebody)

    def _look_for_somebody(self) -> None:
        """Who has come may have left since: it is looked again."""
        self._looks_for_somebody = False
        now_s = time.monotonic()
        why = f"no answer within {self._unattended_timeout_s:g} s, and no approver was watching"
        unseen = [
            each
            for each in self._queue.open
            if each.asked_at_s + self._unattended_timeout_s <= now_s
            and not self._is_seen(each, now_s)
        ]
        self._settle(self._queue.expire_unseen(each.id, why, now_s) for each in unseen)
        if self._queue.open:
            at_s = self._queue.open[0].asked_at_s + self._unattended_timeout_s
            again_s = now_s + min(self._unattended_timeout_s, _LOOKS_FOR_SOMEBODY_EVERY_S)
            self._look_for_somebody_later(max(at_s, again_s))

    def _withdraw(self, approval_id: str, why: str) -> None:
        settled = self._queue.withdraw(approval_id, why, time.monotonic())
        if settled is not None:
            self._settle([settled])

    def _settle(self, all_settled: Iterable[Settled]) -> tuple[Settled, ...]:
        done = tuple(self._recorded(settled) for settled in all_settled)
        if self._prompt is not None:
            for settled in done:
                self._prompt.withdraw(settled.id)
        for settled in done:
            self._waiting.pop(settled.id)(settled.answer)
        return done

    def _recorded(self, settled: Settled) -> Settled:
        event = _EVENT_OF_REASON.get(settled.answer.reason, "approval_denied")
        if self._recorder.record(event, settled.question.pid, answered_payload(settled)):
            return settled
        if not settled.answer.granted:
            return settled
        self._queue.forget_always(settled.question)
        why = "granted, but it can't be recorded"
        denied = Answer(granted=False, by=US, message=why, reason="denied")
        return Settled(
            id=settled.id,
            question=settled.question,
            answer=denied,
            always=False,
            waited_s=settled.waited_s,
        )

    # The control socket

    def _open_control(self) -> ControlSocket | None:
        try:
            return ControlSocket(
                self._store,
                self._recorder.log.session_id,
                self._loop,
                on_request=self._on_request,
                on_refused=self.refused,
            )
        except StoreError:
            return None  # each request says who can be asked

    def refused(self, peer: Peer) -> None:
        payload: Payload = {
            "reason": peer.objection,
            "peer_pid": peer.pid,
            "peer_uid": peer.uid,
            "peer_cmd": peer.command,
            "inside_session": peer.inside_session,
        }
        self._recorder.record("control_refused", peer.pid, payload)

    def _on_request(self, request: ControlRequest, peer: Peer) -> ControlReply:
        ours = self._recorder.log.session_id
        if request.get("session_id", ours) != ours:  # somebody has given our socket another name
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
                return self._on_signal(request, peer, lambda: self._is_typed(peer))
            case _:
                return refusal(
                    "bad-request", "unknown request: use list, show, approve, deny or signal"
                )

    def _list(self, peer: Peer, *, is_a_look: bool) -> ControlReply:
        now_s = time.monotonic()
        if is_a_look:
            self._attendance.note_look(now_s)
        return {
            "ok": True,
            "session_id": self._recorder.log.session_id,
            "requests": [self._listed(each, now_s) for each in self._queue.open[:LISTED]],
            "more": max(0, len(self._queue.open) - LISTED),
            "typed": bool(self._queue.open) and _is_on_a_terminal_of(self._typist, peer),
            **self._how_it_stands(),
        }

    def _refused_elsewhere(self, pid: int, where: str) -> ControlReply:
        """Somebody of ours, by who watches all sessions."""
        is_ours = 0 < pid < _MOST_PID and self._is_inside(pid)
        if is_ours:
            why = f"it is in a supervised session, and connected to {where[:_LONGEST_PLACE]}"
            self.refused(Peer(pid, os.geteuid(), procfs.command_line(pid), why, True))
        return {"ok": True, "recorded": is_ours}

    def _show(self, approval_id: str) -> ControlReply:
        """One request, uncut."""
        now_s = time.monotonic()
        if (found := self._queue.find(approval_id)) is None:
            return self._no_such(approval_id)
        self._attendance.note_look(now_s)
        request = self._listed(found, now_s, full=True)
        return {"ok": True, "request": request, **self._how_it_stands()}

    def _listed(self, request: Open, now_s: float, *, full: bool = False) -> Payload:
        deadline_s = self._deadline_s(request, now_s)
        return listed(request, self._session.policy, now_s, deadline_s, full=full)

    def _no_such(self, approval_id: str) -> ControlReply:
        ids = [request.id for request in self._queue.open[:LISTED]]
        return refusal("unknown-id", f"there is no request {approval_id}", open=ids)

    def _is_typed(self, peer: Peer) -> bool:
        """Whether the session may have; then that is an attempt, and recorded."""
        is_typed = _is_on_a_terminal_of(self._look_again_for_typist(), peer)
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
        if verdict is not Verdict.NO and self._is_typed(peer):
            why = "the session may have typed this itself: approve it on another terminal"
            return refusal("typed", why)
        self._attendance.note_answer()
        by = f"uid {peer.uid}, pid {peer.pid}"
        found = self._answer(approval_id, verdict, by=by, message=message)
        match found:
            case Unknown():
                return self._no_such(approval_id)
            case TooLate(how=how):
                return refusal("late", f"too late: {approval_id} was {how}")
            case _:
                first = found[0]
                return {
                    "ok": True,
                    "granted": first.answer.granted,
                    "always": first.always,
                    "message": first.answer.message,
                    "what": beginning(first.question.what, LISTED_CHARACTERS),
                    "settled": [settled.id for settled in found],
                }


def _is_on_a_terminal_of(typist: Typist | None, peer: Peer) -> bool:
    if typist is None or not typist.pid:
        return False
    return types_for(peer.pid, typist.pid)
