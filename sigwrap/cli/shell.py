"""`sigwrap-shell`, and `sigwrap -c STRING`: a shell's command line under supervision.

It takes what bash takes, and hands it on to a real shell. Inside a session it is that shell at
once: what it runs is judged there already. What a run is to be like stands in a variable, since
whoever calls a shell gives it no options of ours.
"""

from __future__ import annotations

import os

from sigwrap.cli.run_options import read_options
from sigwrap.errors import UsageError
from sigwrap.linux.listening import somebody_listens
from sigwrap.run.settings import Nested, Report, RunSettings
from sigwrap.start.command import CommandError, Inherited, become, find_program

OPTIONS_VARIABLE = "SIGWRAP_OPTIONS"
SHELL_VARIABLE = "SIGWRAP_SHELL"
_OURS = "sigwrap-shell"
_SHELLS = ("bash", "sh")


def main(words: list[str]) -> int:
    return _run(words, {})


def run_string(words: list[str]) -> int | None:
    """`[OPTIONS] -c STRING [NAME ARGS…]`; None where the line is another, or its options are not
    plain."""
    if "-c" not in words or not words[0].startswith("-"):
        return None
    end = words.index("-c")
    fields = read_options(words[:end])
    if fields is None:
        return None
    if len(words) == end + 1:
        raise UsageError("-c needs a value", "sigwrap -c 'npm test'")
    return _run(words[end:], fields)


def _run(words: list[str], fields: dict[str, object]) -> int:
    given = os.environ.get(OPTIONS_VARIABLE, "").split()
    by_variable = read_options(given)
    if by_variable is None:
        raise UsageError(
            f"${OPTIONS_VARIABLE}: not options of sigwrap run: {' '.join(given)}",
            "see sigwrap run --help",
        )
    shell = _shell()
    variables = {}
    if os.path.basename(os.environ.get("SHELL", "")) == _OURS:
        variables[b"SHELL"] = shell
    command = (os.fsdecode(shell), *words)
    if somebody_listens():
        become(shell, command, Inherited.capture(), variables)
    from sigwrap.cli.run import start

    defaults = {"nested": Nested.JOIN, "report": Report.NEVER}
    settings = RunSettings(command=command, **{**defaults, **by_variable, **fields})  # type: ignore[arg-type]
    return start(settings, variables)


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
