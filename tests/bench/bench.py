"""What sigwrap costs on this machine: make bench. Prints tables, writes bench.json.

`make bench ARGS='--only exec,signal --rounds 5'`; --quick does less of everything, to see that it
works. --busy keeps one processor busy meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from tests.bench import (
    file_audit,
    floor,
    growth,
    peers,
    policy_decision,
    reading,
    redirects,
    sessions,
    starts,
    steps,
    streams,
    table,
    under_supervision,
    waits,
)
from tests.bench.results import Result
from tests.bench.setting import ROOT, Setting
from tests.bench.workloads import ALL

_ROUNDS, _QUICK_ROUNDS = 9, 2

Measure = Callable[[Setting], Result | None]

MEASURES: dict[str, Measure] = {
    "floor": floor.measure,
    "steps": steps.measure_execs,
    "signal_steps": steps.measure_signals,
    **{key: partial(under_supervision.measure, key=key) for key in ALL},
    "redirect": redirects.measure,
    "brokered": streams.measure_brokered,
    "recorded": streams.measure_recorded,
    "audited_opens": file_audit.measure_writes,
    "unaudited_opens": file_audit.measure_reads,
    "audited_unpacking": file_audit.measure_unpacking,
    "start": starts.measure,
    "hook": waits.measure_hook,
    "joined": waits.measure_joined,
    "memory": sessions.measure_memory,
    "sessions": sessions.measure_at_once,
    "decision": lambda _: policy_decision.measure(),
    "growth": growth.measure,
    "reading": reading.measure,
}


def main() -> None:
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="sigwrap-bench-") as folder, busy(chosen.busy):
        prepare_environment(folder)
        rounds = chosen.rounds or (_QUICK_ROUNDS if chosen.quick else _ROUNDS)
        setting = Setting(
            folder=Path(folder),
            rounds=rounds,
            is_quick=chosen.quick,
            say=say,
            loggers=peers.loggers(Path(folder), install=chosen.peers, others=chosen.peer, say=say),
            inits=peers.inits(say),
        )
        other = ", one of them kept busy" if chosen.busy else ""
        say(f"Linux {linux()}, {os.cpu_count()} processors{other}, {rounds} rounds, medians")
        before = json.loads(chosen.output.read_text()) if chosen.add else None
        results = table.results_of(before) if before else {}
        loads = before["machine"]["loads"] if before else []
        for key in chosen.only:
            loads.append(round(os.getloadavg()[0], 2))
            result = MEASURES[key](setting)
            if result is not None:
                results[key] = result
                show(result)
            write(chosen.output, results, setting, loads, is_busy=chosen.busy)
    rows = table.of_ceilings(results, all_=False)
    if rows:
        say("\n" + table.as_text(table.HEADER, rows))


@contextmanager
def busy(is_wanted: bool) -> Iterator[None]:
    """Keep one processor busy."""
    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if is_wanted else None
    try:
        yield
    finally:
        if loop is not None:
            loop.kill()
            loop.wait()


def write(
    output: Path, results: dict[str, Result], setting: Setting, loads: list[float], *, is_busy: bool
) -> None:
    """Write what there is, after each measurement: all of them take a while."""
    document = {
        "machine": {
            "is_busy": is_busy,
            "loads": loads,
            "linux": linux(),
            "processors": os.cpu_count(),
            "python": platform.python_version(),
        },
        "is_quick": setting.is_quick,
        "results": [results[key].as_document() for key in MEASURES if key in results],
    }
    output.write_text(json.dumps(document, indent=2) + "\n")


def _arguments() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", type=_keys, default=list(MEASURES), help=", ".join(MEASURES))
    options.add_argument("--rounds", type=int, default=0)
    options.add_argument("--quick", action="store_true")
    options.add_argument("--busy", action="store_true", help="keep one processor busy meanwhile")
    options.add_argument("--peers", action="store_true", help="install peers from PyPI into .work")
    options.add_argument(
        "--peer", type=peers.given, action="append", default=[], metavar="NAME=WORDS"
    )
    options.add_argument("--add", action="store_true", help="to what the output file has")
    options.add_argument("--output", type=Path, default=ROOT / "bench.json")
    return options.parse_args()


def _keys(text: str) -> list[str]:
    keys = text.split(",")
    unknown = [key for key in keys if key not in MEASURES]
    if unknown:
        raise argparse.ArgumentTypeError(f"no measurement is called {', '.join(unknown)}")
    return keys


def prepare_environment(folder: str) -> None:
    os.environ["SIGWRAP_STORE"] = f"{folder}/store"
    os.environ.pop("CI", None)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode


def linux() -> str:
    """6.18: not which build of it."""
    return ".".join(os.uname().release.split("-")[0].split(".")[:2])


def show(result: Result) -> None:
    per = f"   (for one {result.unit})" if result.unit else ""
    noise = f"   noise {result.noise:.0%}" if result.noise > table.MOST_NOISE else ""
    say(f"\n{result.name}{per}{noise}")
    say(table.as_text(*table.of(result)))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
