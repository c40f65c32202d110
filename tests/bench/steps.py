"""Where the time of one exec goes: the supervisor's own steps, timed inside a real run.

Hot is the run as it comes, with events back to back. Cold is the same with a walk through more
memory than the caches hold before each request and each end, as other programs would do it.
A step's time is without that of the steps inside of it.
"""

from __future__ import annotations

import importlib
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.bench.measuring import Figure
from tests.bench.results import US, Result
from tests.bench.setting import ROOT, Setting
from tests.bench.workloads import exec_line

# In the order in which they happen: what is done, and by which function.
STEPS = (
    ("receive", "sigwrap.kernel.seccomp", "Listener.receive"),
    ("look at what it names", "sigwrap.exec.handler", "Execs.look"),
    ("adopt", "sigwrap.session.processes", "Processes._adopt"),
    ("gather facts", "sigwrap.exec.handler", "Execs.facts"),
    ("judge", "sigwrap.policy.judge.engine", "Engine.decide_command"),
    ("record", "sigwrap.session.recorder", "Recorder.record"),
    ("hold", "sigwrap.exec.verify", "Tracer.hold"),
    ("answer", "sigwrap.kernel.seccomp", "Listener.resume"),
    ("rest of the request", "sigwrap.session.mediation", "Mediation.answer"),
    ("wait for the exec stop", "sigwrap.session.ending", "Ending.await_exec_stop"),
    ("verify", "sigwrap.exec.verify", "difference"),
    ("note the image", "sigwrap.session.processes", "Processes.loaded"),
    ("let go", "sigwrap.kernel.ptrace", "detach"),
    ("exit row and the rest of an end", "sigwrap.session.processes", "Processes._ended"),
    ("fold", "sigwrap.log.writer", "SessionLog.fold"),
)
HEATS = ("hot", "cold")
TIMES = "times"  # of a step in one exec
_COLD_BEFORE = ("rest of the request", "exit row and the rest of an end")
_AT_THE_END = ("sigwrap.log.writer", "SessionLog.close")
_RUN = ("sigwrap.session.session", "Session.run")
_FLUSHED = 64 << 20
# Isolated, or sigwrap would start Python anew, without the clocks.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from tests.bench.steps import supervise; supervise()"
)


def measure(setting: Setting) -> Result:
    """Of the long way, which Python alone goes; of the shorter one, the sums."""
    execs = 50 if setting.is_quick else 500
    alone, helped = (
        {heat: _measured(setting.folder, execs, heat, pure=pure) for heat in HEATS}
        for pure in (True, False)
    )
    figures: dict[str, Figure] = {}
    for name, _, _ in STEPS:
        hot_ns, cold_ns = (alone[heat]["steps"].get(name, []) for heat in HEATS)
        if not hot_ns or not cold_ns:
            setting.say(f"{name}: not seen: is it another function now?")
            continue
        medians = (statistics.median(each) / 1e3 for each in (hot_ns, cold_ns))
        figures[name] = {TIMES: len(hot_ns) / execs, **dict(zip(HEATS, medians, strict=True))}
    for way, found in (("in Python alone", alone), ("with the extension", helped)):
        used = {heat: found[heat]["used_s"] * US / execs for heat in HEATS}
        figures[f"the supervisor's processor time, {way}"] = {TIMES: 1.0, **used}
    return Result(key="steps", name="the steps of one exec", figures=figures)


def _measured(folder: Path, execs: int, heat: str, *, pure: bool) -> dict[str, Any]:
    output = folder / "steps.json"
    words = [str(ROOT), str(output), heat, *exec_line(execs)]
    line = [sys.executable, "-I", "-c", _START, *words]
    environment = {**os.environ, **({"SIGWRAP_PURE_PYTHON": "1"} if pure else {})}
    subprocess.run(line, stdout=subprocess.DEVNULL, env=environment, check=True)
    found: dict[str, Any] = json.loads(output.read_text())
    return found


class Clock:
    def __init__(self, *, is_cold: bool) -> None:
        self.flushing_s = self.used_s = 0.0
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
                before_s = time.process_time()
                self._memory[:] = self._zeros
                self.flushing_s += time.process_time() - before_s
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
    owner, attribute = _place_of(*_RUN)
    run = getattr(owner, attribute)

    def run_and_count(supervisor: Any) -> Any:
        before_s = time.process_time()
        try:
            return run(supervisor)
        finally:
            clock.used_s = time.process_time() - before_s - clock.flushing_s

    setattr(owner, attribute, run_and_count)
    owner, attribute = _place_of(*_AT_THE_END)
    close = getattr(owner, attribute)

    def write_and_close(log: Any) -> None:
        Path(output).write_text(json.dumps({"steps": clock.took_ns, "used_s": clock.used_s}))
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
