"""From nothing to the end of `true`: every form of sigwrap, and of what else starts a command."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.bench.measuring import VALUE, Cost, Subject, interleaved, run
from tests.bench.peers import EXECS_AND_SIGNALS
from tests.bench.results import Result, compared
from tests.bench.setting import BINARY, INTERPRETER, PACKAGE, ZIPAPP, Setting

_MB = 1e6
_FORWARD = "sigwrap-forward"
FORMS: dict[str, tuple[Path, tuple[str, ...]]] = {
    "package": (PACKAGE, ()),
    "binary": (BINARY, ()),
    "zipapp": (ZIPAPP, (INTERPRETER,)),
    "forwarder, package": (PACKAGE.with_name(_FORWARD), ()),
    "forwarder, binary": (BINARY.with_name(_FORWARD), ()),
}


def measure(setting: Setting) -> Result:
    subjects: dict[str, Subject] = {"python3 -c pass": lambda: run((INTERPRETER, "-c", "pass"))}
    for name, (path, interpreter) in FORMS.items():
        if path.exists():
            subjects[name] = _start((*interpreter, str(path), "--"))
        else:
            setting.say(f"{name}: not built, left out")
    for peer in (*setting.inits, *setting.loggers):
        subjects[peer.name] = _start(peer.before(EXECS_AND_SIGNALS))
    rounds = interleaved(subjects, 2 * setting.rounds)
    result = compared("start", "start and end of `true`", rounds, unit="start")
    for subject in result.subjects:
        if subject.name in FORMS:
            result.figures[subject.name] = subject.ratio
    if BINARY.exists():
        result.figures["size_mb"] = {VALUE: BINARY.stat().st_size / _MB}
    return result


def _start(prefix: tuple[str, ...]) -> Callable[[], Cost]:
    return lambda: run((*prefix, "true"))
