"""Where the time of one exec goes: the supervisor's own steps, timed inside a real run.

Hot is the run as it comes, with events back to back. Cold is the same with a walk through more
memory than the caches hold before each request and each end, as other programs would do it.
A step's time is without that of the steps inside of it.
"""

from __future__ import annotations

import importlib
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.bench import table
from tests.bench.setting import ROOT
from tests.bench.workloads import exec_line

# In the order in which they happen: what is done, and by which function.
STEPS = (
    ("receive", "sigwrap.linux.seccomp", "Listener.receive"),
    ("adopt", "sigwrap.run.processes", "Processes._adopt"),
    ("look", "sigwrap.run.execs.execs", "look"),
    ("gather facts", "sigwrap.run.execs.execs", "Execs._facts"),
    ("judge", "sigwrap.policy.judge.engine", "Engine.decide_command"),
    ("record", "sigwrap.run.recorder", "Recorder.record"),
    ("hold", "sigwrap.run.execs.tracer", "Tracer.hold"),
    ("answer", "sigwrap.linux.seccomp", "Listener.resume"),
    ("rest of the request", "sigwrap.run.mediation", "Mediation.answer"),
    ("wait for the exec stop", "sigwrap.run.children", "Children.await_exec_stop"),
    ("verify", "sigwrap.linux.execs.image", "difference"),
    ("note the image", "sigwrap.run.processes", "Processes.loaded"),
    ("let go", "sigwrap.linux.ptrace", "detach"),
    ("exit row and the rest of an end", "sigwrap.run.processes", "Processes._ended"),
    ("fold", "sigwrap.store.writer", "SessionLog.fold"),
)
_COLD_BEFORE = ("rest of the request", "exit row and the rest of an end")
_AT_THE_END = ("sigwrap.store.writer", "SessionLog.close")
_FLUSHED = 64 << 20
# Isolated, or sigwrap would start Python anew, without the clocks.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from tests.bench.steps import supervise; supervise()"
)


def show(folder: Path, say: Callable[[str], None], execs: int) -> None:
    hot, cold = (_measured(folder, execs, is_cold=is_cold) for is_cold in (False, True))
    rows = []
    for name, _, _ in STEPS:
        took = hot.get(name, [])
        if not took:
            say(f"{name}: not seen: is it another function now?")
            continue
        rows.append((name, f"{len(took) / execs:.2f}", _us(took), _us(cold.get(name, []))))
    for what, found in (("hot", hot), ("cold", cold)):
        total_ns = sum(map(sum, found.values())) / execs
        say(f"all steps of one exec, {what}: {total_ns / 1e3:.0f} µs")
    say(table.as_text(("step", "times an exec", "hot", "cold"), rows))


def _us(took_ns: list[int]) -> str:
    return f"{statistics.median(took_ns) / 1e3:.1f} µs" if took_ns else "-"


def _measured(folder: Path, execs: int, *, is_cold: bool) -> dict[str, list[int]]:
    output = folder / f"steps-{'cold' if is_cold else 'hot'}.json"
    words = [str(ROOT), str(output), "cold" if is_cold else "hot", *exec_line(execs)]
    line = [sys.executable, "-I", "-c", _START, *words]
    subprocess.run(line, stdout=subprocess.DEVNULL, check=True)
    found: dict[str, list[int]] = json.loads(output.read_text())
    return found


class Clock:
    def __init__(self, *, is_cold: bool) -> None:
        self.took_ns: dict[str, list[int]] = {name: [] for name, _, _ in STEPS}
        self._inner_ns: list[int] = []
        self._memory = bytearray(_FLUSHED if is_cold else 0)
        self._zeros = bytes(self._memory)

    def timed(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        took_ns, inner_ns, now_ns = self.took_ns[name], self._inner_ns, time.perf_counter_ns
        is_flushed_before = bool(self._memory) and name in _COLD_BEFORE

        @wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            if is_flushed_before:
                self._memory[:] = self._zeros
            inner_ns.append(0)
            started_ns = now_ns()
            try:
                return function(*args, **options)
            finally:
                whole_ns = now_ns() - started_ns
                took_ns.append(whole_ns - inner_ns.pop())
                if inner_ns:
                    inner_ns[-1] += whole_ns

        return run


def supervise() -> None:
    """Runs sigwrap here, with a clock around each step."""
    _, _, output, heat, *line = sys.argv
    clock = Clock(is_cold=heat == "cold")
    for name, module, path in STEPS:
        owner, attribute = _place_of(module, path)
        if hasattr(owner, attribute):
            setattr(owner, attribute, clock.timed(name, getattr(owner, attribute)))
    owner, attribute = _place_of(*_AT_THE_END)
    close = getattr(owner, attribute)

    def write_and_close(log: Any) -> None:
        Path(output).write_text(json.dumps(clock.took_ns))
        close(log)

    setattr(owner, attribute, write_and_close)
    sys.argv = ["sigwrap", "--", *line]
    sigwrap = importlib.import_module("sigwrap.__main__")
    sigwrap.main()


def _place_of(module: str, path: str) -> tuple[Any, str]:
    owner: Any = importlib.import_module(module)
    *classes, attribute = path.split(".")
    for name in classes:
        owner = getattr(owner, name, None)
    return owner, attribute
