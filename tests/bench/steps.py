"""Where the time of an exec and of a signal goes: the supervisor's steps, timed in a real run.

Hot is the run as it comes, with events back to back. Cold is the same with a walk through more
memory than the caches hold before each request and each end, as other programs would do it.
A step's time is without that of the steps inside of it.
"""

from __future__ import annotations

import importlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

from tests.bench.measuring import Figure
from tests.bench.peers import PROGRAMS
from tests.bench.results import US, Result
from tests.bench.setting import ROOT, Setting
from tests.bench.workloads import PYTHON, exec_line

# In the order in which they happen: what is done, and by which function.
_OF_AN_EXEC = (
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
    ("exit row and the rest of an end", "sigwrap.session.processes", "Processes.on_end"),
)
_OF_A_SIGNAL = (
    ("receive", "sigwrap.kernel.seccomp", "Listener.receive"),
    ("gather facts", "sigwrap.signal.handler", "Signals.facts"),
    ("judge", "sigwrap.policy.judge.engine", "Engine.decide_signal"),
    ("record", "sigwrap.session.recorder", "Recorder.record"),
    ("answer", "sigwrap.kernel.seccomp", "Listener.resume"),
    ("rest of the request", "sigwrap.session.mediation", "Mediation.answer"),
)
STEPS = {"exec": _OF_AN_EXEC, "signal": _OF_A_SIGNAL}
HEATS = ("hot", "cold")
TIMES = "times"  # of a step in one exec or signal
_COLD_BEFORE = ("rest of the request", "exit row and the rest of an end")
_AT_THE_END = ("sigwrap.log.writer", "SessionLog.close")
_RUN = ("sigwrap.session.session", "Session.run")
_FLUSHED = 64 << 20
_USED = "the supervisor's processor time"
# Isolated, or sigwrap would start Python anew, without the clocks.
_START = (
    "import sys; sys.path.append(sys.argv[1]); from tests.bench.steps import supervise; supervise()"
)


def measure_execs(setting: Setting) -> Result:
    """Of the long way, which Python alone goes; of the shorter one, the sums."""
    count = setting.amount(500, 50)
    line = exec_line(count)
    figures = _steps(setting, "exec", line, count, pure=True)
    helped = _measured(setting.folder, "exec", line, pure=False)
    figures[f"{_USED}, with the extension"] = _used(helped, count)
    return Result(key="steps", name="the steps of one exec", figures=figures)


def measure_signals(setting: Setting) -> Result:
    count = setting.amount(2_000, 200)
    line = (*PYTHON, str(PROGRAMS / "signals.py"), str(count), str(int(signal.SIGUSR1)))
    figures = _steps(setting, "signal", line, count, pure=False)
    return Result(key="signal_steps", name="the steps of one signal", figures=figures)


def _steps(
    setting: Setting, kind: str, line: tuple[str, ...], count: int, *, pure: bool
) -> dict[str, Figure]:
    found = _measured(setting.folder, kind, line, pure=pure)
    figures: dict[str, Figure] = {}
    for name, _, _ in STEPS[kind]:
        hot_ns, cold_ns = (found[heat]["steps"].get(name, []) for heat in HEATS)
        if not hot_ns or not cold_ns:
            setting.say(f"{name}: not seen: is it another function now?")
            continue
        medians = (statistics.median(each) / 1e3 for each in (hot_ns, cold_ns))
        figures[name] = {TIMES: len(hot_ns) / count, **dict(zip(HEATS, medians, strict=True))}
    figures[_USED] = _used(found, count)
    return figures


def _used(found: dict[str, Any], count: int) -> Figure:
    return {TIMES: 1.0, **{heat: found[heat]["used_s"] * US / count for heat in HEATS}}


def _measured(folder: Path, kind: str, line: tuple[str, ...], *, pure: bool) -> dict[str, Any]:
    output = folder / "steps.json"
    environment = {**os.environ, **({"SIGWRAP_PURE_PYTHON": "1"} if pure else {})}
    found = {}
    for heat in HEATS:
        words = [str(ROOT), str(output), kind, heat, *line]
        start = [sys.executable, "-I", "-c", _START, *words]
        subprocess.run(start, stdout=subprocess.DEVNULL, env=environment, check=True)
        found[heat] = json.loads(output.read_text())
    return found


class Clock:
    def __init__(self, kind: str, *, is_cold: bool) -> None:
        self.flushing_s = self.used_s = 0.0
        self.took_ns: dict[str, list[int]] = {name: [] for name, _, _ in STEPS[kind]}
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
    _, _, output, kind, heat, *line = sys.argv
    clock = Clock(kind, is_cold=heat == "cold")
    for name, module, path in STEPS[kind]:
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
