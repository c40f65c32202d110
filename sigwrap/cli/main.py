"""`sigwrap`: starts a run or a hook at once, and leaves other lines to typer."""

from __future__ import annotations

from sigwrap.errors import BLOCKED


def main(words: list[str]) -> int:
    if words == ["--version"]:
        from sigwrap.cli.output import out, version

        out(version())
        return 0
    is_call = words[:1] == ["hook"] and words[1:2] not in (["install"], ["uninstall"])
    if is_call:
        from sigwrap.cli.hook_call import answer, read_hook_line

        line = read_hook_line(words)
        if line is not None:
            return answer(line)
        if words[1:2] and words[1] not in ("run", "--help", "-h"):
            words = ["hook", "run", *words[1:]]  # as older versions wrote it into settings
    from sigwrap.cli.run_options import is_run, read_run_line  # a hook needs neither

    if is_run(words):
        if "-c" in words:
            from sigwrap.cli.shell import run_string

            status = run_string(words)
            if status is not None:
                return status
        settings = read_run_line(words)
        if settings is not None:
            from sigwrap.cli.run import start

            return start(settings)
        words = ["run", "--help"]
    from sigwrap.cli.app import run_app

    status = run_app(words)
    # An agent takes only this status for a denial, so a hook that fails must not end with another.
    return BLOCKED if is_call and (status or len(words) == 1) else status
