"""Follows all sessions of a store: their logs as they grow, and their replies on their control
sockets. Two threads, so that a session that does not answer holds up nothing else.

A process in a session can put anything into the store. So each step has a limit of time and number,
and sessions that answer come first.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from itertools import islice

from sigwrap.approve.control_client import Answered, Unreachable, ask_all
from sigwrap.approve.control_socket import ControlReply
from sigwrap.bare import socket
from sigwrap.control import killswitch
from sigwrap.control.killswitch import State
from sigwrap.errors import COMMAND_ENDED, SigwrapError, StoreError
from sigwrap.events import text
from sigwrap.log.catalog import SessionFile, inspected, session_ids
from sigwrap.log.folder import JOURNAL_SUFFIX, database_path, journal_path, sessions_folder
from sigwrap.log.journal import writer_lives
from sigwrap.log.reader import Session
from sigwrap.text import printable
from sigwrap.watch.attendance import Attendance
from sigwrap.watch.board import (
    ENDED,
    RUNNING,
    STOPPED,
    Board,
    EventLine,
    ListedRequest,
    SessionView,
)
from sigwrap.watch.followed import Followed
from sigwrap.watch.requests import request_of, requests_in

_LOOKS_EVERY_S = 0.2
_LISTS_EVERY_S = 1.0
_ASKS_EVERY_S = 1.0
_ASKS_AGAIN_AFTER_S = 0.1
_LIST = {"do": "list", "look": False}  # this request does not count as an approver's
_OLD_S = 6  # more than one round takes
_SILENT_FOR_S = 2.0  # a session replaces a socket that was removed
_FIRST_ANSWERS_S = 1.0
_FIRST_SIGHT_S = 2.0
_INSPECTS_FOR_S = 0.3
_WORDS, _WORD_CHARACTERS = 100, 500  # kept of a command
_RUNNING_SHOWN = 100
_ENDED_SHOWN = 20
_PROBLEMS_SHOWN = 5
_ANOTHERS = "another session answered on its socket"
_SAME_NS = 1_500_000_000  # times that differ by less are one time, computed twice


class Source:
    def __init__(self, store: str) -> None:
        self._store = os.path.abspath(store)
        self._is_closed = threading.Event()
        self._has_asked, self._seen_first = threading.Event(), threading.Event()
        self._look_now, self._ask_now = threading.Event(), threading.Event()
        self._attendance = Attendance(self._store)
        self._files: dict[str, SessionFile] = {}
        self._followed: dict[str, Followed] = {}
        self._replies: dict[str, ControlReply] = {}
        self._replied_ns = 0
        self._unreachable: tuple[str, ...] = ()
        self._silent_since_s: dict[str, float] = {}
        self._store_problem = ""
        self._is_complete = True
        self._more = 0
        self._killswitch: State | None = None
        self._requests: dict[tuple[str, str], ListedRequest] = {}
        self._board = Board(time.time_ns(), (), 0, (), None, ())
        self._reader, self._writer = socket.socketpair()
        for end in (self._reader, self._writer):
            end.setblocking(False)
        self.wakes = self._reader.fileno()
        self._threads = [
            threading.Thread(target=each, daemon=True) for each in (self._follow, self._ask)
        ]

    def start(self) -> None:
        """Start to follow; StoreError if the store can't be read."""
        session_ids(self._store)
        for each in self._threads:
            each.start()
        self._seen_first.wait(_FIRST_SIGHT_S)

    def close(self) -> None:
        for event in (self._is_closed, self._look_now, self._ask_now):
            event.set()
        for each in self._threads:
            if each.ident is not None:
                each.join(_LISTS_EVERY_S)
        for followed in self._followed.values():
            followed.close()
        self.attend(False)
        self._reader.close()
        self._writer.close()

    def calm(self) -> None:
        with suppress(BlockingIOError):
            while self._reader.recv(1 << 12):
                continue

    def board(self) -> Board:
        return self._board._replace(now_ns=time.time_ns())

    def lines(self, session_id: str, after_seq: int, most: int) -> tuple[list[EventLine], int]:
        """Return the latest events after that one, and how many before them are left out."""
        followed = self._followed.get(session_id)
        newer = [] if followed is None else followed.lines(after_seq)
        shown = newer[-most:]
        left_out = shown[0].seq - after_seq - 1 if shown and after_seq else 0
        return shown, left_out

    def attend(self, is_watched: bool) -> None:
        """Tell the sessions whether an approver is watching."""
        self._attendance.attend(is_watched)

    def look_again(self) -> None:
        """Ask the sessions now: an order was carried out."""
        self._ask_now.set()

    # The logs

    def _follow(self) -> None:
        self._has_asked.wait(_FIRST_ANSWERS_S)
        self._publish()  # the requests first: the logs may take long
        listed_s = -_LISTS_EVERY_S
        while not self._is_closed.is_set():
            if time.monotonic() - listed_s >= _LISTS_EVERY_S:
                self._list()
                listed_s = time.monotonic()
            self._read()
            self._publish()
            self._seen_first.set()
            self._look_now.wait(_LOOKS_EVERY_S)
            self._look_now.clear()

    def _list(self) -> None:
        try:
            ids = session_ids(self._store)
            names = set(os.listdir(sessions_folder(self._store))) if ids else set()
        except (StoreError, OSError) as failure:
            self._store_problem = str(failure)
            return
        self._store_problem = ""
        latest_first = sorted(ids, key=lambda each: (each in self._replies, each), reverse=True)
        running = self._running(each for each in latest_first if each + JOURNAL_SUFFIX in names)
        shown = dict.fromkeys(running, True)
        ended = (each for each in latest_first if each not in shown)
        shown |= dict.fromkeys(list(islice(ended, _ENDED_SHOWN)), False)
        self._more = len(ids) - len(shown)
        self._inspect(shown)
        for session_id in set(self._files) - set(shown):
            del self._files[session_id]
            if gone := self._followed.pop(session_id, None):
                gone.close()

    def _running(self, session_ids: Iterable[str]) -> list[str]:
        until_s = time.monotonic() + _INSPECTS_FOR_S
        found: list[str] = []
        for session_id in session_ids:
            if len(found) == _RUNNING_SHOWN or time.monotonic() > until_s:
                self._is_complete = False
                return found
            if writer_lives(journal_path(database_path(self._store, session_id))):
                found.append(session_id)
        self._is_complete = True
        return found

    def _inspect(self, shown: dict[str, bool]) -> None:
        """Read the ends of logs: of new sessions, those that ended, then what was unreadable."""

        def was_unreadable(session_id: str) -> bool:
            return session_id in self._files and bool(self._files[session_id].problem)

        until_s = time.monotonic() + _INSPECTS_FOR_S
        for session_id in sorted(shown, key=was_unreadable):
            known = self._files.get(session_id)
            if known is not None and known.running == shown[session_id] and not known.problem:
                continue
            found = inspected(session_id, self._store)
            self._files[session_id] = replace(
                found,
                command=tuple(each[:_WORD_CHARACTERS] for each in found.command[:_WORDS]),
                name=found.name[:_WORD_CHARACTERS],
                reason=found.reason[:_WORD_CHARACTERS],
                problem=found.problem[:_WORD_CHARACTERS],
            )
            if time.monotonic() > until_s:  # logs may be long: the rest comes next time
                return

    def _read(self) -> None:
        for session_id, file in self._files.items():
            followed = self._followed.get(session_id)
            if followed is None and file.running:
                followed = self._followed[session_id] = Followed(Session(file.id, file.path))
            if followed is not None and followed.read_on():
                self._ask_now.set()

    # The control sockets

    def _ask(self) -> None:
        while not self._is_closed.is_set():
            self._ask_now.clear()
            self._attendance.look()
            try:
                self._take(*ask_all(self._store, _LIST, self._replies))
            except (SigwrapError, OSError) as failure:
                self._replies, self._unreachable = {}, (str(failure),)
            self._replied_ns = time.time_ns()
            try:
                self._killswitch = killswitch.known(killswitch.stores(self._store, os.environ))
            except StoreError as failure:
                self._unreachable = (*self._unreachable, str(failure))
            self._has_asked.set()
            self._look_now.set()
            self._is_closed.wait(_ASKS_AGAIN_AFTER_S)
            self._ask_now.wait(_ASKS_EVERY_S)

    def _take(self, answered: list[Answered], failures: list[Unreachable]) -> None:
        replies, problems = {}, [str(each) for each in failures]
        for session_id, reply in answered:
            # A process in a session can give its socket another session's name.
            if reply.get("ok") is True and reply.get("session_id") == session_id:
                replies[session_id] = reply
            else:
                why = text(reply.get("message")) or _ANOTHERS
                problems.append(f"session {session_id}: {why}")
        self._replies = replies
        known = set(replies) | {each.session_id for each in failures}
        self._unreachable = tuple(dict.fromkeys([*problems, *self._silent(known)]))

    def _silent(self, known: set[str]) -> list[str]:
        """Name the running sessions that do not answer: a process in one can remove its socket."""
        now_s = time.monotonic()
        silent = {each.id for each in tuple(self._files.values()) if each.running} - known
        self._silent_since_s = {each: self._silent_since_s.get(each, now_s) for each in silent}
        return [
            f"session {each} is running but does not answer: its requests are not shown"
            for each, since_s in sorted(self._silent_since_s.items(), reverse=True)
            if now_s - since_s > _SILENT_FOR_S
        ]

    # The board

    def _publish(self) -> None:
        board = Board(
            now_ns=self._board.now_ns,
            sessions=self._sessions(),
            more=self._more,
            waiting=self._waiting(),
            killswitch=self._killswitch,
            problems=self._problems(),
        )
        if board == self._board:
            return
        self._board = board._replace(now_ns=time.time_ns())
        with suppress(OSError):  # full of wake-ups, or closed
            self._writer.send(b".")

    def _sessions(self) -> tuple[SessionView, ...]:
        files = sorted(self._files.values(), key=lambda file: file.id, reverse=True)
        asking = {session_id for session_id, _ in self._requests}
        files.sort(key=lambda file: (not file.running, file.id not in asking))
        return tuple(self._session(file) for file in files)

    def _session(self, file: SessionFile) -> SessionView:
        followed = self._followed.get(file.id)
        reply = self._replies.get(file.id, {}) if file.running else {}
        if followed is not None:
            followed.take_counts(reply)
        last = None if followed is None else followed.last
        processes = reply.get("processes")
        running = STOPPED if reply.get("stopped") is True else RUNNING
        return SessionView(
            id=file.id,
            name=file.name,
            command=file.command,
            state=running if file.running else ENDED,
            started_ns=file.started_ns,
            processes=processes if isinstance(processes, int) else None,
            denied=None if followed is None else followed.denied,
            asked=None if followed is None else followed.asked,
            last_ns=file.last_event_ns if last is None else last.time_ns,
            last="" if last is None else last.text,
            ended="" if file.running else _ending(file),
            exit_status=file.exit_status,
        )

    def _waiting(self) -> tuple[ListedRequest, ...]:
        found = [
            self._steady(request_of(session_id, reply, each, self._replied_ns))
            for session_id, reply in self._replies.items()
            for each in requests_in(reply)
        ]
        self._requests = {(each.session_id, each.id): each for each in found}
        return tuple(sorted(found, key=lambda each: (each.asked_ns, each.session_id, each.id)))

    def _steady(self, request: ListedRequest) -> ListedRequest:
        """Keep the times of a known request, which are computed anew in each round."""
        known = self._requests.get((request.session_id, request.id))
        if known is None:
            return request
        if abs(known.asked_ns - request.asked_ns) < _SAME_NS:
            request = request._replace(asked_ns=known.asked_ns)
        if abs(known.deadline_ns - request.deadline_ns) < _SAME_NS:
            request = request._replace(deadline_ns=known.deadline_ns)
        return request

    def _problems(self) -> tuple[str, ...]:
        found = [each for each in (self._store_problem, self._attendance.problem) if each]
        if not self._is_complete:
            found.append("too many sessions: some running ones may not be shown")
        old_s = (time.time_ns() - self._replied_ns) // 1_000_000_000 if self._replied_ns else 0
        if old_s > _OLD_S:
            found.append(f"the store is slow: this view is {old_s} s old")
        found += [each.problem for each in self._followed.values() if each.problem]
        found += self._unreachable
        shown = [printable(each) for each in found[:_PROBLEMS_SHOWN]]
        more = len(found) - len(shown)
        return (*shown, f"and {more} more") if more else tuple(shown)


def _ending(file: SessionFile) -> str:
    if file.problem:
        return file.problem
    if file.is_of_hooks:
        return "hook log"
    if not file.ended_cleanly:
        return "did not end cleanly"
    reason = "" if file.reason == COMMAND_ENDED else f"{file.reason}, "
    return f"{reason}exit {file.exit_status}"
