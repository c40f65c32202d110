"""`sigwrap [OPTIONS] claude …`: runs an agent as its preset says.

Everything after the name is the agent's own.
"""

from __future__ import annotations

from sigwrap.cli.run_options import leading_options, read_plain_line
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.policy.presets import PRESETS
from sigwrap.run.settings import RunSettings


def read_preset_line(words: list[str]) -> RunSettings | None:
    """Return None for a line without an agent's name, or with options that a run doesn't have."""
    given, rest = leading_options(words)
    preset = PRESETS.get(rest[0]) if rest else None
    if preset is None:
        return None
    options = [word for each in given for word in each]
    names_policy = any(each[0].partition("=")[0] in ("-p", "--policy") for each in given)
    line = preset.line(rest[1:], has_file_rules=not names_policy)
    settings = read_plain_line([*options, "--", *line])
    if settings is None:
        return None
    if settings.join_name:
        raise UsageError(
            f"--join-name can't be combined with the preset {preset.name}",
            f"to run without the preset: sigwrap {shell_words([*options, '--', *rest])}",
        )
    return settings._replace(
        preset=preset.name, policy=settings.policy if names_policy else preset.policy
    )
