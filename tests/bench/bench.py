"""What sigwrap costs on this machine: make bench. Prints tables, writes bench.json.

`make bench ARGS='--only exec,signal --rounds 5'`; --quick does less of everything, to see that it
works.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
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
)
from tests.bench.results import Result
from tests.bench.setting import ROOT, Setting
from tests.bench.workloads import ALL

_ROUNDS, _QUICK_ROUNDS = 9, 2

Measure = Callable[[Setting], Result | None]

MEASURES: dict[str, Measure] = {
    "floor": floor.measure,
    "steps": steps.measure,
    **{key: partial(under_supervision.measure, key=key) for key in ALL},
    "redirect": redirects.measure,
    "brokered": streams.measure_brokered,
    "recorded": streams.measure_recorded,
    "audited_opens": file_audit.measure_writes,
    "unaudited_opens": file_audit.measure_reads,
    "audited_unpacking": file_audit.measure_unpacking,
    "start": starts.measure,
    "memory": sessions.measure_memory,
    "sessions": sessions.measure_at_once,
    "decision": lambda _: policy_decision.measure(),
    "growth": growth.measure,
    "reading": reading.measure,
}


def main() -> None:
    chosen = _arguments()
    with tempfile.TemporaryDirectory(prefix="sigwrap-bench-") as folder:
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
        say(f"Linux {linux()}, {os.cpu_count()} processors, {rounds} rounds, medians")
        results = table.results_of(json.loads(chosen.output.read_text())) if chosen.add else {}
        for key in chosen.only:
            result = MEASURES[key](setting)
            if result is not None:
                results[key] = result
                show(result)
            write(chosen.output, results, setting)
    rows = table.of_ceilings(results, all_=False)
    if rows:
        say("\n" + table.as_text(table.HEADER, rows))


def write(output: Path, results: dict[str, Result], setting: Setting) -> None:
    """After each measurement: all of them take a while."""
    document = {
        "machine": {
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
    say(f"\n{result.name}{per}")
    say(table.as_text(*table.of(result)))


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
