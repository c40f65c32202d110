"""Daemons of agents that run outside: what they are handed there is not judged, so who starts that
agent is told of them beforehand.

Imported only where COMMAND is such an agent.
"""

from __future__ import annotations

import os

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.linux import proc_files, procfs
from sigwrap.policy.presets import Preset
from sigwrap.tuples import NamedTuple

_CHARACTERS_SHOWN = 60


class Daemon(NamedTuple):
    pid: int
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return printable(shortened(shell_words(self.argv), _CHARACTERS_SHOWN))


def running_daemons(preset: Preset) -> list[Daemon]:
    """Of the same user."""
    found = []
    for pid in proc_files.all_pids() if preset.daemons else ():
        try:
            if proc_files.file_status(f"/proc/{pid}").st_uid != os.geteuid():
                continue
        except OSError:
            continue  # it has ended
        if argv := preset.as_daemon(procfs.arguments(pid)):
            found.append(Daemon(pid, argv))
    return sorted(found)


def warning(daemon: Daemon, preset: Preset, *, is_kept_from_it: bool) -> str:
    """`is_kept_from_it`: the agent, by its preset."""
    said = f"{daemon} (PID {daemon.pid}) runs outside this session"
    if is_kept_from_it:
        return (
            f"{said}: sigwrap keeps {preset.program} from using it, but does not judge other work "
            f"handed to it (stop it: {preset.stop})"
        )
    return (
        f"{said}; sigwrap does not judge work handed to it (stop it: {preset.stop}; or run "
        f"sigwrap {preset.name}, which does not use it)"
    )
