"""A supervisor that only asks: the real Approvals on a real loop, log and socket. Driven by lines
of JSON on a named pipe, and answering with lines of JSON on another:

    {"ask": {...}, "options": {...}}      -> {"asked": ID}, later {"answer": ID, ...}
    {"ping": N} -> {"pong": N}, {"quit": true}

As in a run, it is the child of a front process and leads no process group, and all its signals are
blocked. "command" is started by the front as the child of this one, in the same group.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import signal
from types import SimpleNamespace

from sigwrap.approve import control_socket
from sigwrap.approve.approvals import Answer, ApprovalRequest, Approvals
from sigwrap.kernel import libc, terminals
from sigwrap.log.writer import SessionLog
from sigwrap.session.loop import Loop
from sigwrap.session.recorder import Recorder
from sigwrap.session.settings import ApprovalMode as Mode
from tests.support.stand_in import session_of


def main() -> None:
    parser = argparse.ArgumentParser()
    for option in ("--store", "--session", "--mode"):
        parser.add_argument(option, required=True)
    parser.add_argument("--timeout", type=float, default=60.0)
    parser.add_argument("--pipes", required=True)
    parser.add_argument("--patience", type=float, default=control_socket.PATIENCE_S)
    parser.add_argument("command", nargs="*")
    options = parser.parse_args()
    terminals.hold()
    child = os.fork()
    if child:
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel reaps
    if options.command and os.fork() == 0:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.execvp(options.command[0], options.command)
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    libc.set_process_name(b"sigwrap-super")
    serve(options)


def serve(options: argparse.Namespace) -> None:
    control_socket.PATIENCE_S = options.patience
    log = SessionLog.create(options.store, options.session)
    recorder = Recorder(log, lambda text: None)
    recorder.record("session_started", os.getpid(), {"session_id": options.session})
    loop = Loop()
    settings = SimpleNamespace(
        approvals=Mode(options.mode),
        approval_timeout_s=options.timeout,
        unattended_timeout_s=math.inf,
        notify="",
    )
    session = session_of(
        loop=loop,
        recorder=recorder,
        settings=settings,
        policy=SimpleNamespace(name="mine"),
        is_unattended=False,
        is_inside=lambda _pid: False,
        keeps_from=lambda _socket: False,
        how_it_stands=dict,
    )
    approvals = Approvals(session)
    orders = os.open(f"{options.pipes}/orders", os.O_RDWR)
    answers = os.open(f"{options.pipes}/answers", os.O_RDWR)
    running = True
    buffered = b""

    def say(**words: object) -> None:
        os.write(answers, json.dumps(words).encode() + b"\n")

    def ask(fields: dict[str, object]) -> None:
        answered: list[Answer] = []
        ids: list[str] = []

        def on_answer(answer: Answer) -> None:
            answered.append(answer)
            assert len(answered) == 1
            if ids:
                say(answer=ids[0], **answer._asdict())

        fields["key"] = tuple(fields.get("key", ("k",)))  # type: ignore[arg-type]
        approval_id = approvals.ask(ApprovalRequest(**fields), on_answer)  # type: ignore[arg-type]
        ids.append(approval_id)
        say(asked=approval_id)
        if answered:
            say(answer=approval_id, **answered[0]._asdict())

    def obey(_happened: int) -> None:
        nonlocal running, buffered
        data = os.read(orders, 1 << 16)
        running = running and bool(data)
        *lines, buffered = (buffered + data).split(b"\n")
        for line in lines:
            match json.loads(line):
                case {"ask": fields}:
                    ask(fields)
                case {"ping": number}:
                    say(pong=number, holds=approvals.holds_terminal)
                case {"quit": _}:
                    running = False

    loop.watch(orders, obey)
    say(ready=os.getpid())
    while running:
        loop.turn(None)
    approvals.close()
    recorder.record("session_ended", os.getpid(), {"head": log.head, "exit_status": 0})
    log.close()
    os._exit(0)


if __name__ == "__main__":
    main()
