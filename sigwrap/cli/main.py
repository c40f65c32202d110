"""`sigwrap`: a hook, and a run whose line is plain or begins with an agent's name, start at once;
every other line is typer's."""

from __future__ import annotations

from sigwrap.cli.run_options import read_plain_line
from sigwrap.run.settings import RunSettings
from sigwrap.status import BLOCKED


def main(words: list[str]) -> int:
    if words[:1] == ["hook"]:
        from sigwrap.cli.hook_call import answer, read_hook_line

        line = read_hook_line(words)
        if line is not None:
            return answer(line)
    settings = read_plain_line(words) or _by_preset(words)
    if settings is not None:
        from sigwrap.cli.run import start

        return start(settings)
    if "-c" in words:
        from sigwrap.cli.shell import run_string

        status = run_string(words)
        if status is not None:
            return status
    from sigwrap.cli.app import run_app

    status = run_app(words)
    # Whatever keeps a hook from judging: to the agent's program no other status means no.
    return BLOCKED if status and words[:1] == ["hook"] else status


def _by_preset(words: list[str]) -> RunSettings | None:
    from sigwrap.cli.presets import read_preset_line

    return read_preset_line(words)
