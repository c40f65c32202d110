"""Looks at all sessions of a store: their logs as they grow, and what they say themselves. Two
threads, so that a session that doesn't answer holds up nothing else.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from sigwrap.bare import socket
from sigwrap.errors import SigwrapError, StoreError
from sigwrap.escape import printable
from sigwrap.events import number, text
from sigwrap.protocols.control import ControlReply
from sigwrap.protocols.control_client import Answered, Unreachable, ask_everybody
from sigwrap.status import COMMAND_ENDED
from sigwrap.store import killswitch
from sigwrap.store.catalog import SessionFile, inspected, session_ids
from sigwrap.store.journal import writer_lives
from sigwrap.store.killswitch import State
from sigwrap.store.location import JOURNAL_SUFFIX, database_path, journal_path, sessions_folder
from sigwrap.store.reader import Session
from sigwrap.watch.attendance import Attendance
from sigwrap.watch.board import (
    ENDED,
    RUNNING,
    STOPPED,
    ApprovalRequest,
    Board,
    EventLine,
    SessionView,
)
from sigwrap.watch.followed import Followed
from sigwrap.watch.requests import request_of, requests_in

_LOOKS_EVERY_S = 0.2
_LISTS_EVERY_S = 1.0
_ASKS_EVERY_S = 1.0
_LIST = {"do": "list", "look": False}  # nobody need be looking
_ASKS_AGAIN_AFTER_S = 0.1
_OLD_S = 6  # more than one round takes
_SILENT_FOR_S = 2.0  # a session puts a socket that was removed there again
_FIRST_ANSWERS_S = 1.0  # so long who has just come request for them
_FIRST_SIGHT_S = 2.0
_INSPECTS_FOR_S = 0.3
_INSPECTS_AGAIN_S = 1.0  # what couldn't be read; ever more seldom
_WORDS, _WORD_CHARACTERS = 100, 500  # kept of a command
_RUNNING_SHOWN = 100
_ENDED_SHOWN = 20
_PROBLEMS_SHOWN = 5
_ANOTHERS = "another session answered on its socket"
_SAME_NS = 1_500_000_000  # moments that differ by less are one, told twice


class Source:
    def __init__(self, store: str) -> None:
        self._store = os.path.abspath(store)
        self._is_closed = threading.Event()
        self._has_asked, self._seen_first = threading.Event(), threading.Event()
        self._look_now, self._ask_now = threading.Event(), threading.Event()
        self._attendance = Attendance(self._store)
        self._files: dict[str, SessionFile] = {}
        self._followed: dict[str, Followed] = {}
        self._counts: dict[str, _Counts] = {}
        self._replies: dict[str, ControlReply] = {}
        self._replied_ns = 0
        self._unreachable: tuple[str, ...] = ()
        self._silent_since_s: dict[str, float] = {}
        self._store_problem = self._attendance_problem = ""
        self._is_looked_through = True
        self._ended_elsewhere = 0
        self._again_s: dict[str, float] = {}
        self._unread_since_s: dict[str, float] = {}
        self._killswitch: State | None = None
        self._known_requests: dict[tuple[str, str], ApprovalRequest] = {}
        self._board = Board(time.time_ns(), (), 0, (), None, ())
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self.wakes = self._reader.fileno()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._follow, self._ask)
        ]

    def start(self) -> None:
        """StoreError where the store can't be read."""
        session_ids(self._store)
        for each in self._threads:
            each.start()
        self._seen_first.wait(_FIRST_SIGHT_S)

    def close(self) -> None:
        self._is_closed.set()
        self._look_now.set()
        self._ask_now.set()
        for each in self._threads:
            if each.ident is not None:
                each.join(_LISTS_EVERY_S)
        for followed in self._followed.values():
            followed.close()
        self._attendance.close()
        self._reader.close()
        self._writer.close()

    def calm(self) -> None:
        with suppress(BlockingIOError):
            while self._reader.recv(1 << 12):
                continue

    def board(self) -> Board:
        return self._board._replace(now_ns=time.time_ns())

    def lines(self, session_id: str, after_seq: int, most: int) -> tuple[list[EventLine], int]:
        """The latest after that one, and how many of those before them are left out."""
        followed = self._followed.get(session_id)
        newer = [] if followed is None else followed.lines(after_seq)
        shown = newer[-most:]
        left_out = shown[0].seq - after_seq - 1 if shown and after_seq else 0
        return shown, left_out

    def attend(self, somebody_looks: bool) -> None:
        """Sessions are told that somebody would see what they ask."""
        try:
            self._attendance.attend(somebody_looks)
        except StoreError as failure:
            self._attendance_problem = str(failure)
        else:
            self._attendance_problem = ""

    def look_again(self) -> None:
        """Something was done."""
        self._ask_now.set()

    # The logs

    def _follow(self) -> None:
        self._has_asked.wait(_FIRST_ANSWERS_S)
        self._publish()  # what request, however long it takes to look at the logs
        listed_s = -_LISTS_EVERY_S
        while not self._is_closed.is_set():
            if time.monotonic() - listed_s >= _LISTS_EVERY_S:
                self._list()
                listed_s = time.monotonic()
            self._look()
            self._seen_first.set()
            self._look_now.wait(_LOOKS_EVERY_S)
            self._look_now.clear()

    def _list(self) -> None:
        """Which sessions there are: those that answer before whatever else lies there."""
        try:
            ids = session_ids(self._store)
            names = set(os.listdir(sessions_folder(self._store))) if ids else set()
        except (StoreError, OSError) as failure:
            self._store_problem = str(failure)
            return
        self._store_problem, self._is_looked_through = "", True
        latest_first = sorted(ids, key=lambda each: (each in self._replies, each), reverse=True)
        with_journal = (each for each in latest_first if each + JOURNAL_SUFFIX in names)
        shown = self._running(with_journal)
        running = set(shown)
        shown += list(islice((each for each in latest_first if each not in running), _ENDED_SHOWN))
        self._ended_elsewhere = len(ids) - len(shown)
        until_s = time.monotonic() + _INSPECTS_FOR_S
        for session_id in sorted(shown, key=self._files.__contains__):  # new ones first
            self._inspect(session_id, session_id in running)
            if time.monotonic() > until_s:  # what lies there may be long: the rest comes later
                break
        for session_id in set(self._files) - set(shown):
            del self._files[session_id], self._again_s[session_id]
            self._unread_since_s.pop(session_id, None)
            self._counts.pop(session_id, None)
            gone = self._followed.pop(session_id, None)
            if gone is not None:
                gone.close()

    def _running(self, session_ids: Iterable[str]) -> list[str]:
        """As far as there is time: there may be a million that don't run."""
        until_s = time.monotonic() + _INSPECTS_FOR_S
        found: list[str] = []
        for session_id in session_ids:
            if len(found) == _RUNNING_SHOWN or time.monotonic() > until_s:
                self._is_looked_through = False
                break
            if self._runs(session_id):
                found.append(session_id)
        return found

    def _inspect(self, session_id: str, runs: bool) -> None:
        known = self._files.get(session_id)
        now_s = time.monotonic()
        if known is not None and known.running == runs and now_s < self._again_s[session_id]:
            return
        found = inspected(session_id, self._store)
        if found.problem:
            since_s = self._unread_since_s.setdefault(session_id, now_s)
            self._again_s[session_id] = now_s + max(_INSPECTS_AGAIN_S, now_s - since_s)
        else:
            self._unread_since_s.pop(session_id, None)
            self._again_s[session_id] = math.inf
        self._files[session_id] = replace(
            found,
            command=tuple(each[:_WORD_CHARACTERS] for each in found.command[:_WORDS]),
            name=found.name[:_WORD_CHARACTERS],
            reason=found.reason[:_WORD_CHARACTERS],
            problem=found.problem[:_WORD_CHARACTERS],
        )

    def _runs(self, session_id: str) -> bool:
        return writer_lives(journal_path(database_path(self._store, session_id)))

    def _look(self) -> None:
        is_asked_about = False
        for session_id, file in self._files.items():
            followed = self._followed.get(session_id)
            if followed is None and file.running:
                followed = self._followed[session_id] = Followed(Session(file.id, file.path))
            if followed is not None:
                is_asked_about |= followed.read_on()
        if is_asked_about:
            self._ask_now.set()
        self._publish()

    # The sessions

    def _ask(self) -> None:
        while not self._is_closed.is_set():
            self._ask_now.clear()
            self._attendance.look()
            try:
                with ask_everybody(self._store, _LIST, self._replies) as (answered, failures):
                    self._take(answered, failures)
            except (SigwrapError, OSError) as failure:
                self._replies, self._unreachable = {}, (str(failure),)
            self._replied_ns = time.time_ns()
            self._look_at_killswitch()
            self._has_asked.set()
            self._look_now.set()
            self._is_closed.wait(_ASKS_AGAIN_AFTER_S)
            self._ask_now.wait(_ASKS_EVERY_S)

    def _take(self, answered: list[Answered], failures: list[Unreachable]) -> None:
        good = [each for each in answered if _is_its_own(each)]
        self._replies = {each.client.session_id: each.reply for each in good}
        said = [
            f"session {each.client.session_id}: {text(each.reply.get('message')) or _ANOTHERS}"
            for each in answered
            if each not in good
        ]
        self._unreachable = tuple(dict.fromkeys([*map(str, failures), *said]))
        self._note_silent({each.session_id for each in failures})

    def _note_silent(self, already_said: set[str]) -> None:
        """Whoever is inside can take the socket of a session away, again and again."""
        now_s = time.monotonic()
        running = {each.id for each in tuple(self._files.values()) if each.running}
        silent = running - set(self._replies) - already_said
        self._silent_since_s = {each: self._silent_since_s.get(each, now_s) for each in silent}
        self._unreachable += tuple(
            f"session {each} is running but does not answer: its requests are not shown"
            for each, since_s in sorted(self._silent_since_s.items(), reverse=True)
            if now_s - since_s > _SILENT_FOR_S
        )

    def _look_at_killswitch(self) -> None:
        try:
            self._killswitch = killswitch.known(killswitch.stores(self._store, os.environ))
        except StoreError as failure:
            self._unreachable = (*self._unreachable, str(failure))

    # What is seen

    def _publish(self) -> None:
        board = Board(
            now_ns=self._board.now_ns,
            sessions=self._sessions(),
            more=self._ended_elsewhere,
            waiting=self._waiting(),
            killswitch=self._killswitch,
            problems=self._problems(),
        )
        if board == self._board:
            return
        self._board = board._replace(now_ns=time.time_ns())
        with suppress(OSError):  # it is full of that, or closed
            self._writer.send(b".")

    def _sessions(self) -> tuple[SessionView, ...]:
        files = sorted(self._files.values(), key=lambda file: file.id, reverse=True)
        asking = {each.session_id for each in self._known_requests.values()}
        files.sort(key=lambda file: (not file.running, file.id not in asking))
        return tuple(self._seen(file) for file in files)

    def _seen(self, file: SessionFile) -> SessionView:
        followed = self._followed.get(file.id)
        reply = self._replies.get(file.id, {}) if file.running else {}
        last = None if followed is None else followed.last
        counts = self._counts.setdefault(file.id, _Counts())
        counts.take(reply, followed)
        processes = reply.get("processes")
        return SessionView(
            id=file.id,
            name=file.name,
            command=file.command,
            state=_state(file, reply),
            started_ns=file.started_ns,
            processes=processes if isinstance(processes, int) else None,
            denied=counts.denied,
            asked=counts.asked,
            last_ns=file.last_event_ns if last is None else last.time_ns,
            last="" if last is None else last.text,
            ended="" if file.running else _ending(file),
            exit_status=file.exit_status,
        )

    def _waiting(self) -> tuple[ApprovalRequest, ...]:
        found = [
            self._known(request_of(session_id, reply, each, self._replied_ns))
            for session_id, reply in self._replies.items()
            for each in requests_in(reply)
        ]
        self._known_requests = {(each.session_id, each.id): each for each in found}
        return tuple(sorted(found, key=lambda each: (each.asked_ns, each.session_id, each.id)))

    def _known(self, request: ApprovalRequest) -> ApprovalRequest:
        known = self._known_requests.get((request.session_id, request.id))
        if known is None:
            return request
        return request._replace(
            asked_ns=_settled(known.asked_ns, request.asked_ns),
            deadline_ns=_settled(known.deadline_ns, request.deadline_ns),
        )

    def _problems(self) -> tuple[str, ...]:
        found = [each for each in (self._store_problem, self._attendance_problem) if each]
        if not self._is_looked_through:
            found.append("too many sessions: some running ones may not be shown")
        old_s = (time.time_ns() - self._replied_ns) // 1_000_000_000 if self._replied_ns else 0
        if old_s > _OLD_S:
            found.append(f"the store is slow: this view is {old_s} s old")
        found += [each.problem for each in self._followed.values() if each.problem]
        found += self._unreachable
        shown = [printable(each) for each in found[:_PROBLEMS_SHOWN]]
        more = len(found) - len(shown)
        return (*shown, f"and {more} more") if more else tuple(shown)


class _Counts:
    """What a session has said of itself, and what of its log was read: whichever is more. None of
    one that had ended before anybody looked."""

    def __init__(self) -> None:
        self.denied: int | None = None
        self.asked: int | None = None

    def take(self, reply: ControlReply, followed: Followed | None) -> None:
        if followed is not None:
            self.denied = max(self.denied or 0, followed.denied, number(reply.get("denied")))
            self.asked = max(self.asked or 0, followed.asked, number(reply.get("asked")))


def _is_its_own(answered: Answered) -> bool:
    """Whoever is inside can give a socket the name of another session's."""
    reply = answered.reply
    return reply.get("ok") is True and reply.get("session_id") == answered.client.session_id


def _settled(known_ns: int, told_ns: int) -> int:
    return known_ns if abs(told_ns - known_ns) < _SAME_NS else told_ns


def _state(file: SessionFile, reply: ControlReply) -> str:
    if not file.running:
        return ENDED
    return STOPPED if reply.get("stopped") is True else RUNNING


def _ending(file: SessionFile) -> str:
    if file.problem:
        return file.problem
    if file.is_of_hooks:
        return "hook log"
    if not file.ended_cleanly:
        return "did not end cleanly"
    said = "" if file.reason == COMMAND_ENDED else f"{file.reason}, "
    return f"{said}exit {file.exit_status}"
