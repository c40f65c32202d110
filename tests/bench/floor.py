"""The floor under every mediated call: a loop that answers, and reads, judges, records nothing."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from sigwrap.kernel.seccomp import Listener, encode, install_listener, mediation_filter
from tests.bench.measuring import Cost, Subject, interleaved, processor_time_s
from tests.bench.results import Result, compared
from tests.bench.setting import Setting


def measure(setting: Setting) -> Result:
    count = setting.amount(5_000, 1_000)
    subjects: dict[str, Subject] = {
        "native": lambda: _natively(count),
        "answered": lambda: _answered(count),
    }
    rounds = interleaved(subjects, setting.rounds)
    return compared("floor", "notification, bare loop", rounds, unit="call", units=count)


def _natively(count: int) -> Cost:
    started_s = processor_time_s()
    with _timed_child(lambda: None, count) as reading:
        wall_s = float(os.read(reading, 64))
    return Cost(wall_s, processor_time_s() - started_s)


def _answered(count: int) -> Cost:
    ours, theirs = socket.socketpair()
    childrens_s, own_s = processor_time_s(), time.process_time()
    with ours, theirs:

        def hand_over() -> None:
            fd, _ = install_listener(encode(mediation_filter()))
            socket.send_fds(theirs, [b"L"], [fd])
            os.close(fd)

        with _timed_child(hand_over, count) as reading:
            _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
            listener = Listener(fd)
            for _ in range(count):
                request = listener.receive()
                assert request is not None
                listener.resume(request.id)
            wall_s = float(os.read(reading, 64))
            listener.close()
    processor_s = processor_time_s() - childrens_s + time.process_time() - own_s
    return Cost(wall_s, processor_s)


@contextmanager
def _timed_child(prepare: Callable[[], None], count: int) -> Iterator[int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare()
            own = os.getpid()
            started = time.perf_counter()
            for _ in range(count):
                os.kill(own, signal.SIGCONT)  # to who runs: delivered, and of no effect
            os.write(writing, b"%.9f" % (time.perf_counter() - started))
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)
        os.waitpid(child, 0)
