"""The page over a source that does what it is told on standard input, a JSON object a line, and
says on standard output what is asked of the sessions."""

import json
import os
import signal
import sys
import threading
import time
from collections import deque

from sigwrap.errors import SessionError
from sigwrap.store.killswitch import State
from sigwrap.watch.board import Board, Line, Seen, Waits
from sigwrap.watch.orders import Approve, Deny, Interrupt, KillAll, Lift
from sigwrap.watch.page import peers
from sigwrap.watch.page.bounds import Bounds
from sigwrap.watch.page.listening import SocketFile, at_port
from sigwrap.watch.page.running import serve

peers._SEARCH_AT_MOST_S = 30.0  # however slow the machine is
looked_for = peers.looked_for


def slowly_looked_for(owners, pids):
    time.sleep(float(os.environ.get("SEARCH_TAKES_S", "0")))
    return looked_for(owners, pids)


peers.looked_for = slowly_looked_for
store, bounds, socket_path = sys.argv[1], json.loads(sys.argv[2]), sys.argv[3]
S = 1_000_000_000
_NAMES = {
    Approve: "approve",
    Deny: "deny",
    Interrupt: "interrupt",
    KillAll: "kill_all",
    Lift: "lift",
}


def say(**words):
    os.write(1, json.dumps(words).encode() + b"\n")


class Told:
    def __init__(self):
        self.wakes = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        self.kept = {}
        self.next = {}
        self.now = Board(time.time_ns(), (), 0, (), None, ())

    def calm(self):
        os.eventfd_read(self.wakes)

    def board(self):
        return self.now._replace(now_ns=time.time_ns())

    def lines(self, session_id, after_seq, most):
        kept = self.kept.get(session_id, ())
        later = [each for each in list(kept) if each.seq > after_seq]
        last = later[-1].seq if later else after_seq
        return later[-most:], max(0, last - after_seq - len(later[-most:]))

    def attend(self, somebody_looks):
        say(attended=somebody_looks)

    def wake(self):
        os.eventfd_write(self.wakes, 1)

    def add(self, session_id, lines):
        kept = self.kept.setdefault(session_id, deque(maxlen=5000))
        for outcome, text in lines:
            seq = self.next[session_id] = self.next.get(session_id, 0) + 1
            kept.append(Line(seq, time.time_ns(), 4000 + seq % 7, "exec_allowed", outcome, text))

    def show(self, order):
        now = time.time_ns()
        sessions = tuple(
            Seen(
                each["id"], each.get("name", ""), tuple(each["command"]),
                each.get("state", "running"), now - 754 * S, each.get("processes", 4),
                each.get("denied", 0), each.get("asked", 0), now - 2 * S, each.get("last", ""),
                each.get("ended", ""), each.get("exit_status"),
            )
            for each in order.get("sessions", ())
        )  # fmt: skip
        waiting = tuple(
            Waits(
                each.get("session", "s1"), "", each["id"], "exec", 4711,
                each.get("process", "bash"), 2, each["what"], each["what"], False,
                each.get("runs", "/usr/bin/git"),
                each.get("loads", ""), (), each.get("folder", "/home/me/project"),
                each.get("note", ""), "ask-push", "agent-strict",
                each.get("message", "pushes are looked at"),
                each.get("may_always", True), now,
                now + each.get("left_s", 290) * S,
            )
            for each in order.get("waiting", ())
        )  # fmt: skip
        switch = order.get("killswitch")
        state = State(now, switch["reason"], switch["by"]) if switch else None
        problems = tuple(order.get("problems", ()))
        self.now = Board(now, sessions, order.get("more", 0), waiting, state, problems)


def carry_out(order):
    """A refusal where the id says so."""
    what = [_NAMES[type(order)], *order]
    say(did=what)
    if "slow" in what:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.3)
    if "refused" in what:
        raise SessionError("nothing of that id waits", "it may be over")
    return f"{what[0]}: done"


def flood(session_id, per_second, seconds):
    def run():
        for _ in range(int(seconds * 50)):
            numbers = range(per_second // 50)
            source.add(session_id, [("allowed", f"run cc -c file-{n}.c") for n in numbers])
            source.wake()
            time.sleep(0.02)
        say(flooded=True)

    threading.Thread(target=run, daemon=True).start()


def obey():
    for line in sys.stdin:
        order = json.loads(line)
        match order:
            case {"lines": [session_id, lines]}:
                source.add(session_id, lines)
            case {"flood": [session_id, per_second, seconds]}:
                flood(session_id, per_second, seconds)
            case _:
                source.show(order)
        source.wake()
        say(obeyed=True)


source = Told()
file = SocketFile(socket_path) if socket_path else None
listener = file.end if file else at_port(0)
threading.Thread(target=obey, daemon=True).start()
serve(
    listener,
    store,
    source,
    carry_out,
    report_line=[sys.executable, "-c", os.environ.get("REPORT", "print('none')")],
    tell=lambda line: os.write(2, line.encode() + b"\n"),
    ready=lambda path: say(path=path, port=0 if file else listener.getsockname()[1]),
    bounds=Bounds(**bounds),
)
if file:
    file.close()
say(ended=True)
os._exit(0)  # Python's own end would take the modules from the threads that still run
