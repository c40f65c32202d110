"""The line of a run: `[run] [OPTIONS] -- COMMAND`, or `[OPTIONS] claude …` for an agent's preset.

Everything after an agent's name is the agent's own.
"""

from __future__ import annotations

from sigwrap.cli.run_options import RunLine, misplaced, split_line
from sigwrap.errors import UsageError
from sigwrap.escape import shell_words
from sigwrap.run.settings import AGENTS, RunSettings

# Options of sigwrap itself. A line that begins with any other is a run.
_GLOBAL = ("--help", "-h", "--help-all", "--version", "--utc", "--no-pager")


def is_run(words: list[str]) -> bool:
    first = words[0] if words else ""
    return first in ("run", *AGENTS) or (first.startswith("-") and first not in _GLOBAL)


def read_run_line(words: list[str]) -> RunSettings | None:
    """Return the settings of a run; None for a line that asks for help or is no run.

    UsageError says what is wrong with the line.
    """
    line = split_line(words[words[:1] == ["run"] :]) if is_run(words) else None
    if line is None:
        return None
    if line.rest and (line.has_dashes or words[0] == "run"):
        return RunSettings(command=tuple(line.rest), **line.fields)
    if line.rest and line.rest[0] in AGENTS:
        return _by_preset(line)
    missing = "-- is missing before the command" if line.rest else "no command given"
    raise misplaced(line.rest) or UsageError(missing, _with_dashes(line))


def _by_preset(line: RunLine) -> RunSettings:
    from sigwrap.policy.presets import PRESETS

    name, *words = line.rest
    preset = PRESETS[name]
    if "join_name" in line.fields:
        raise UsageError(
            f"--join-name can't be combined with the preset {name}",
            f"to run without the preset: {_with_dashes(line)}",
        )
    names_policy = "policy" in line.fields
    command = preset.line(words, has_file_rules=not names_policy)
    fields = {"policy": preset.policy, "preset": name, **line.fields}
    return RunSettings(command=command, **fields)


def _with_dashes(line: RunLine) -> str:
    return f"sigwrap {shell_words([*line.options, '--', *(line.rest or ['npm', 'start'])])}"
