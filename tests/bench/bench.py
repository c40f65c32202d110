"""What sigwrap costs on this machine: make bench. Prints a table, writes bench.json.

Machines are noisy, so every round runs all subjects in turn (A B A B …), and what counts are the
medians and their ratios within one run. A peer that isn't installed is left out, and named.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from sigwrap.linux.seccomp import Listener, install_listener
from tests.bench.policy_decision import measure as measure_decisions
from tests.bench.reading import EVENTS, Reading
from tests.bench.reading import measure as measure_reading

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / ".venv" / "bin" / "sigwrap"
BINARY = ROOT / "dist" / "sigwrap"
ZIPAPP = ROOT / "dist" / "sigwrap.pyz"
# Without a virtual environment's start-up, and the same for every subject.
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")

SIGNALS = 5_000
EXECS = 1_000

PROGRAMS = Path(__file__).parent / "programs"

Measure = Callable[[], float]


@dataclass(slots=True)
class Row:
    """One line of the table: the first subject is what the others are compared with."""

    name: str
    subjects: dict[str, Measure]
    budget: str = ""
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def median_us(self, subject: str) -> float:
        return statistics.median(self.seconds[subject]) * 1e6

    @property
    def base(self) -> str:
        return next(iter(self.subjects))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--output", type=Path, default=ROOT / "bench.json")
    chosen = options.parse_args()
    say(f"{os.uname().release}, {os.cpu_count()} processors, {chosen.rounds} rounds, medians")
    with tempfile.TemporaryDirectory() as folder:
        prepare_environment(folder)
        rows = list(all_rows(Path(folder)))
        for row in rows:
            measure(row, chosen.rounds)
            show(row)
        readings = list(reading(Path(folder)))
    extra = policy_decision()
    document = as_document(rows, readings, extra)
    chosen.output.write_text(json.dumps(document, indent=2) + "\n")


def prepare_environment(folder: str) -> None:
    os.environ["SIGWRAP_STORE"] = f"{folder}/store"
    os.environ.pop("CI", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode


def all_rows(folder: Path) -> Iterator[Row]:
    strace = shutil.which("strace")
    traced = () if strace is None else strace_line(strace, folder)
    if strace is None:
        say("strace: not installed, left out")
    if importlib.util.find_spec("sandlock") is None:
        say("sandlock: not installed, left out")
    yield Row(
        "notification, bare loop",
        {"native": loop_natively, "answered": loop_answered},
    )
    signals = [*PYTHON, str(PROGRAMS / "signals.py"), str(SIGNALS)]
    execs = ["sh", str(PROGRAMS / "execs.sh"), str(EXECS)]
    yield from (
        Row(f"kill(child, {name})", wrapped([*signals, str(int(number))], traced), budget)
        for name, number, budget in (
            ("SIGUSR1", signal.SIGUSR1, "+30 µs, and strace's / 1.5"),
            ("0", 0, "nothing added"),
        )
    )
    yield Row("exec of /bin/true", wrapped(execs, traced), "1.20 x, less than strace")
    starts: dict[str, Measure] = {"native": lambda: whole(["true"])}
    for name, line in (
        ("package", [str(PACKAGE)]),
        ("binary", [str(BINARY)]),
        ("zipapp", [*PYTHON, str(ZIPAPP)]),
        ("forwarder", [str(BINARY.with_name("sigwrap-forward"))]),
    ):
        if Path(line[-1]).exists():
            starts[name] = lambda line=line: whole([*line, "--", "true"])  # type: ignore[misc]
        else:
            say(f"{name}: not built, left out")
    yield Row("start of true", starts, "package 100 ms, binary 150 ms")


def strace_line(strace: str, folder: Path) -> tuple[str, ...]:
    calls = "trace=execve,execveat,kill,tkill,tgkill"
    return (strace, "-f", "--seccomp-bpf", "-o", str(folder / "trace"), "-e", calls)


def wrapped(line: list[str], traced: tuple[str, ...]) -> dict[str, Measure]:
    subjects = {
        "native": lambda: own_figure(line),
        "sigwrap": lambda: own_figure([str(PACKAGE), "--", *line]),
    }
    if traced:
        subjects["strace"] = lambda: own_figure([*traced, *line])
    return subjects


def own_figure(line: list[str]) -> float:
    done = subprocess.run(line, stdout=subprocess.PIPE, check=True)
    return float(done.stdout)


def whole(line: list[str]) -> float:
    started = time.perf_counter()
    subprocess.run(line, check=True)
    return time.perf_counter() - started


def loop_natively() -> float:
    with timing_child(lambda: None) as reading:
        return float(os.read(reading, 64))


def loop_answered() -> float:
    """The floor under every mediated call: nothing is read, judged or recorded."""
    ours, theirs = socket.socketpair()
    with ours, theirs:

        def hand_over() -> None:
            fd, _ = install_listener()
            socket.send_fds(theirs, [b"L"], [fd])
            os.close(fd)

        with timing_child(hand_over) as reading:
            _, (fd,), _, _ = socket.recv_fds(ours, 1, 1)
            listener = Listener(fd)
            for _ in range(SIGNALS):
                request = listener.receive()
                assert request is not None
                listener.resume(request.id)
            figure = float(os.read(reading, 64))
            listener.close()
            return figure


@contextmanager
def timing_child(prepare: Callable[[], None]) -> Iterator[int]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            prepare()
            own = os.getpid()
            started = time.perf_counter()
            for _ in range(SIGNALS):
                os.kill(own, 18)  # SIGCONT, to who runs: delivered, and of no effect
            os.write(writing, b"%.9f" % ((time.perf_counter() - started) / SIGNALS))
        finally:
            os._exit(0)
    os.close(writing)
    try:
        yield reading
    finally:
        os.close(reading)
        os.waitpid(child, 0)


def measure(row: Row, rounds: int) -> None:
    for subject in row.subjects.values():
        subject()  # not counted: caches, bytecode
    for _ in range(rounds):
        for name, subject in row.subjects.items():
            row.seconds.setdefault(name, []).append(subject())


def show(row: Row) -> None:
    say(f"\n{row.name}" + (f"   (budget: {row.budget})" if row.budget else ""))
    base = row.median_us(row.base)
    for name in row.subjects:
        median = row.median_us(name)
        compared = (
            "" if name == row.base else f"  {median / base:6.2f} x  {median - base:+12.1f} µs"
        )
        say(f"    {name:<12}{median:12.1f} µs{compared}")


def reading(folder: Path) -> Iterator[Reading]:
    say(f"\nreading {EVENTS:,} events: wall, processor, peak memory   (each once)")
    for each in measure_reading(folder, PACKAGE):
        figures = f"{each.wall_s:9.2f} s{each.processor_s:9.2f} s{each.peak_mb:9.0f} MB"
        say(
            f"    {each.name:<20}{figures}" + (f"   (budget: {each.budget})" if each.budget else "")
        )
        yield each


def policy_decision() -> dict[str, float]:
    figures = measure_decisions()
    for name, value in figures.items():
        say(f"\n{name}: {value:.1f}   (budget: 10)")
    return figures


def as_document(
    rows: list[Row], readings: list[Reading], extra: dict[str, float]
) -> dict[str, object]:
    return {
        "kernel": os.uname().release,
        "processors": os.cpu_count(),
        "rows": [
            {
                "name": row.name,
                "budget": row.budget,
                "median_us": {name: round(row.median_us(name), 2) for name in row.subjects},
                "ratio": {
                    name: round(row.median_us(name) / row.median_us(row.base), 3)
                    for name in row.subjects
                },
            }
            for row in rows
        ],
        "reading": [asdict(each) for each in readings],
        "figures": extra,
    }


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
