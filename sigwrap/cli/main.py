"""`sigwrap`: starts a hook, and a run with a plain line or an agent's name, at once; typer reads
every other line."""

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
        if words[1:2] and words[1] not in ("run", "install", "uninstall", "--help", "-h"):
            words = ["hook", "run", *words[1:]]  # as older versions wrote it into settings
    if words[:1] in (["install"], ["uninstall"]):
        words = ["hook", *words]
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
    # To an agent, no other status of a hook means a denial.
    is_call = words[:1] == ["hook"] and words[1:2] not in (["install"], ["uninstall"])
    return BLOCKED if is_call and (status or len(words) == 1) else status


def _by_preset(words: list[str]) -> RunSettings | None:
    from sigwrap.cli.presets import read_preset_line

    return read_preset_line(words)
