"""`sigwrap-shell`, `sigwrap -c STRING`, and the session that such commands join.

`sigwrap-shell` takes what bash takes, and hands it on to a real shell. Inside a session it becomes
that shell at once. The options of the run are in a variable: the caller of a shell gives it none
of ours.
"""

from __future__ import annotations

import os

from sigwrap.bare import json
from sigwrap.cli.run_options import read_options
from sigwrap.errors import BLOCKED, SessionError, UsageError
from sigwrap.kernel.seccomp import has_listener
from sigwrap.session.settings import Nested, Report, RunSettings, from_json
from sigwrap.start.command import CommandError, Inherited, become, find_program

OPTIONS_VARIABLE = "SIGWRAP_OPTIONS"
SHELL_VARIABLE = "SIGWRAP_SHELL"
_OURS = "sigwrap-shell"
_SHELLS = ("bash", "sh")


def main(words: list[str]) -> int:
    prefix = os.path.basename(os.environ.get("CLAUDE_CODE_SHELL_PREFIX", ""))
    if prefix != _OURS or len(words) != 1 or words[0].startswith("-"):
        return _run(words, {})
    # Claude Code gives its prefix one word: a line to run. Its hooks come this way as well.
    line = words[0]
    if " hook " in line and line.endswith(f" || exit {BLOCKED}"):
        from sigwrap.cli.hook_call import answer, hook_in_line

        hook = hook_in_line(line)
        if hook is not None:
            return answer(hook)
    return _run(["-c", line], {})


def run_string(words: list[str]) -> int | None:
    """Run `[run] [OPTIONS] -c STRING [NAME ARGS…]`; return None if the line has another form."""
    words = words[words[:1] == ["run"] :]
    end = words.index("-c")
    fields = read_options(words[:end])
    if fields is None:
        return None
    if len(words) == end + 1:
        raise UsageError("-c needs a value", "sigwrap -c 'npm test'")
    return _run(words[end:], fields)


def _run(words: list[str], fields: dict[str, object]) -> int:
    by_variable = _options()
    shell = _shell()
    variables = {}
    if os.path.basename(os.environ.get("SHELL", "")) == _OURS:
        variables[b"SHELL"] = shell
    command = (os.fsdecode(shell), *words)
    if has_listener():
        become(shell, command, Inherited.capture(), variables)
    from sigwrap.cli.run import start

    defaults = {"nested": Nested.JOIN, "report": Report.NEVER}
    settings = RunSettings(command=command, **{**defaults, **by_variable, **fields})  # type: ignore[arg-type]
    return start(settings, variables)


def _options() -> dict[str, object]:
    text = os.environ.get(OPTIONS_VARIABLE, "")
    given = text.split()
    if "$" in text or "'" in text:
        import shlex

        try:
            given = [os.path.expandvars(word) for word in shlex.split(text)]
        except ValueError:
            given = [text]
    found = read_options(given)
    if found is None:
        raise UsageError(
            f"${OPTIONS_VARIABLE}: not options of sigwrap run: {text}", "see sigwrap run --help"
        )
    return found


def _shell() -> bytes:
    environment = os.environb
    wanted = os.environ.get(SHELL_VARIABLE, "")
    if os.path.basename(wanted) == _OURS:
        raise UsageError(f"${SHELL_VARIABLE} is {_OURS} itself", "name a real shell, such as bash")
    for name in (wanted,) if wanted else _SHELLS:
        try:
            return find_program(name, dict(environment))
        except CommandError as failure:
            last = failure
    raise last


def start_session(words: list[str]) -> int:
    """Start the session that commands join. `words`: the descriptor of a file with its settings."""
    if len(words) != 1 or not words[0].isdigit():
        raise SessionError("only sigwrap can start this program")
    from sigwrap.cli.run import start

    given = int(words[0])
    settings = from_json(json.loads(os.pread(given, os.fstat(given).st_size, 0)))
    os.close(given)
    os.set_inheritable(settings.door_fd, False)
    return start(settings)
