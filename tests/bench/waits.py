"""What an agent waits for at each of its tool calls: the hook before the call, and the session that
its shell command joins."""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sigwrap.log.journal import append_in_turn
from tests.bench.measuring import Cost, Failed, Subject, cost_of, interleaved, run, start
from tests.bench.results import Result, compared
from tests.bench.setting import BINARY, INTERPRETER, PACKAGE, Setting

_FORMS = {"package": PACKAGE, "binary": BINARY}
_BASE = "python3 -c pass"
_MS = 1e3
_TOO_LONG_S = 30.0

_CONVERSATION = "5a3c1e0e-bench"
# What the hook answers is in its standard output; a denial is an answer, not a failure.
CALLS: dict[str, tuple[str, Mapping[str, str], str]] = {
    "allowed": ("Bash", {"command": "npm test -- --watch=false 2>&1 | tail -20"}, ""),
    "denied": ("Bash", {"command": "cd src && git push --force origin main"}, "deny"),
    "long": ("Bash", {"command": "; ".join(f"grep -n {n} a.py | head" for n in range(25))}, ""),
    "read": ("Read", {"file_path": "src/a.py"}, ""),
    "edited": ("Edit", {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}, ""),
}


def measure_hook(setting: Setting) -> Result:
    """Figures are ms: of the package by the name of the call, and of the binary after `binary_`."""
    project = setting.make_folder("hook")
    (project / "src").mkdir()
    (project / "src" / "a.py").write_text("a = 1\n")
    subjects: dict[str, Subject] = {_BASE: lambda: run((INTERPRETER, "-c", "pass"))}
    figures = {}
    for form, path in _built(setting):
        for number, (name, (tool, given, answer)) in enumerate(CALLS.items()):
            call = _call(project, tool, given)
            subjects[_subject(form, name)] = _hook(path, project, call, answer)
            figures[_figure(form, name)] = _subject(form, name)
            if not number:  # its log is that of a conversation of many calls
                subjects[_subject(form, "first")] = _first_hook(path, project, tool, given)
                figures[_figure(form, "first")] = _subject(form, "first")
    _fill_log(project, setting.amount(20_000, 500))
    rounds = interleaved(subjects, 2 * setting.rounds)
    return _result("hook", "a hook's answer to a tool call", rounds, figures)


def measure_joined(setting: Setting) -> Result:
    """Figures are ms, as above: of a command that joins, and the same through sigwrap-shell, and as
    the prefix of Claude Code's shell commands."""
    folder = setting.make_folder("joined")
    subjects: dict[str, Subject] = {_BASE: lambda: run((INTERPRETER, "-c", "pass"))}
    figures = {}
    with ExitStack() as sessions:
        for form, path in _built(setting):
            name = f"bench-{form}"
            sessions.enter_context(_session(path, folder, name))
            shell = str(path.with_name("sigwrap-shell"))
            options = {"SIGWRAP_OPTIONS": f"--join-name {name}"}
            prefix = {**options, "CLAUDE_CODE_SHELL_PREFIX": shell}
            ways: dict[str, tuple[tuple[str, ...], Mapping[str, str]]] = {
                "joined": ((str(path), "--join-name", name, "--", "true"), {}),
                "shell": ((shell, "-c", "true"), options),
                "prefix": ((shell, "true"), prefix),
            }
            for way, (line, variables) in ways.items():
                subjects[_subject(form, way)] = _line(line, folder, variables)
                figures[_figure(form, way)] = _subject(form, way)
        rounds = interleaved(subjects, 2 * setting.rounds)
    return _result("joined", "`true` in a session that is there", rounds, figures)


def _built(setting: Setting) -> Iterator[tuple[str, Path]]:
    for form, path in _FORMS.items():
        if path.exists():
            yield form, path
        else:
            setting.say(f"{form}: not built, left out")


def _subject(form: str, name: str) -> str:
    return f"{name}, {form}"


def _figure(form: str, name: str) -> str:
    return name if form == "package" else f"{form}_{name}"


def _result(
    key: str, name: str, rounds: dict[str, list[Cost]], figures: Mapping[str, str]
) -> Result:
    result = compared(key, name, rounds, unit=key)
    times = {each.name: each.time_us for each in result.subjects}
    for figure, subject in figures.items():
        result.figures[figure] = {kind: us / _MS for kind, us in times[subject].items()}
    return result


def _call(project: Path, tool: str, given: Mapping[str, str], conversation: str = "") -> bytes:
    whole: dict[str, Any] = {
        "hook_event_name": "PreToolUse",
        "session_id": conversation or _CONVERSATION,
        "cwd": str(project),
        "permission_mode": "default",
        "tool_name": tool,
        "tool_input": given,
        "tool_use_id": "toolu_01",
    }
    return json.dumps(whole).encode()


def _hook(path: Path, project: Path, call: bytes, answer: str) -> Callable[[], Cost]:
    line = (str(path), "hook", "claude-code")

    def ask() -> Cost:
        cost, said = _cost_of(line, project, {"CLAUDE_PROJECT_DIR": str(project)}, call)
        given = json.loads(said)["hookSpecificOutput"]["permissionDecision"] if said else ""
        if given != answer:
            raise Failed(f"the hook answered {given or 'nothing'}, not {answer or 'nothing'}")
        return cost

    return ask


def _first_hook(
    path: Path, project: Path, tool: str, given: Mapping[str, str]
) -> Callable[[], Cost]:
    """Ask about the first call of a conversation: its log is not there yet."""

    def ask() -> Cost:
        call = _call(project, tool, given, f"{time.time_ns()}")
        return _hook(path, project, call, "")()

    return ask


def _line(line: tuple[str, ...], folder: Path, variables: Mapping[str, str]) -> Callable[[], Cost]:
    return lambda: _cost_of(line, folder, variables)[0]


def _cost_of(
    line: tuple[str, ...], folder: Path, variables: Mapping[str, str], given: bytes = b""
) -> tuple[Cost, bytes]:
    def begin() -> subprocess.Popen[bytes]:
        return start(line, folder, variables=variables, is_given=True)

    return cost_of(begin, _TOO_LONG_S, given)


@contextmanager
def _session(path: Path, folder: Path, name: str) -> Iterator[None]:
    """Start the session, by its first command, and end it."""
    _cost_of((str(path), "--join-name", name, "--", "true"), folder, {})
    try:
        yield
    finally:
        subprocess.run([str(path), "stop", name], capture_output=True, timeout=_TOO_LONG_S)


def _fill_log(project: Path, events: int) -> None:
    """Write the log of a long conversation, under the name that the hook itself chose for it."""
    sessions = Path(os.environ["SIGWRAP_STORE"]) / "sessions"
    _cost_of((str(PACKAGE), "hook", "claude-code"), project, {}, _call(project, *CALLS["read"][:2]))
    (journal,) = sessions.glob("hook-*.journal")
    event = ("tool_call_judged", {"what": "npm test", "answer": "no opinion"})
    for _ in range(events):
        append_in_turn(str(sessions.parent), journal.stem, None, {}, event)
