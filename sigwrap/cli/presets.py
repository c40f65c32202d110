"""`sigwrap [OPTIONS] claude …`: an agent by its name, run as its preset says. Everything behind the
name is the agent's own."""

from __future__ import annotations

from sigwrap.cli.run_options import leading_options, read_plain_line
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.policy.presets import PRESETS
from sigwrap.run.settings import RunSettings


def read_preset_line(words: list[str]) -> RunSettings | None:
    """None where no such name stands first, or the options before it are not those of a run."""
    given, behind = leading_options(words)
    preset = PRESETS.get(behind[0]) if behind else None
    if preset is None:
        return None
    options = [word for each in given for word in each.words]
    names_policy = any(each.name in ("-p", "--policy") for each in given)
    line = preset.line(behind[1:], has_file_rules=not names_policy)
    settings = read_plain_line([*options, "--", *line])
    if settings is None:
        return None
    if settings.join_name:
        raise UsageError(
            f"--join-name can't be combined with the preset {preset.name}",
            f"to run without the preset: sigwrap {shell_words([*options, '--', *behind])}",
        )
    return settings._replace(
        preset=preset.name, policy=settings.policy if names_policy else preset.policy
    )
