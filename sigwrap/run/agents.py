"""Handle agents that have a preset (policies/presets), started with or without it.

Also warn of their daemons outside the session: sigwrap does not judge work handed to those.
Imported only for such a command.
"""

from __future__ import annotations

import os

from sigwrap import status
from sigwrap.bare import NamedTuple
from sigwrap.escape import printable, shell_words, shortened
from sigwrap.linux import proc_files, procfs
from sigwrap.mediate.masking import masked
from sigwrap.policy.presets import PRESETS, Preset
from sigwrap.run.lacking import Tell
from sigwrap.start.command import CommandError, Inherited, find_program

_CHARACTERS_SHOWN = 60


class _Daemon(NamedTuple):
    pid: int
    argv: tuple[str, ...]

    def __str__(self) -> str:
        return printable(shortened(shell_words(self.argv), _CHARACTERS_SHOWN))


class Agent:
    def __init__(self, name: str, *, by_preset: bool) -> None:
        self._preset = PRESETS[name]
        self._by_preset = by_preset

    def find(self, command: str, inherited: Inherited) -> tuple[bytes, Inherited]:
        """Return the program and what it inherits."""
        if self._by_preset:
            inherited = _with_variables(inherited, self._preset)
        try:
            return find_program(command, inherited.environment), inherited
        except CommandError as missing:
            if missing.status != status.NOT_FOUND:
                raise
            hint = f"to install it: {self._preset.install}"
            raise CommandError(missing.message, missing.status, hint) from missing

    def warn_of_sandbox(self, command: tuple[str, ...], policy: str, tell: Tell) -> None:
        """Tell about the agent's own sandbox, under a policy with file rules."""
        preset = self._preset
        without = " ".join(preset.without_sandbox[:1])
        if self._by_preset and without and without in " ".join(command):
            tell(f"{preset.name}'s own sandbox is off: the file rules of {policy} protect files")
        elif preset.makes_sandbox(command):
            tell(
                f"the file_rules of {policy} forbid mounts, so {preset.program} cannot make its "
                f"own sandbox, and commands in it fail (start without it: sigwrap {preset.name})"
            )

    def daemons_outside(self, tell: Tell) -> list[str]:
        """Warn of each daemon, and return them for the log."""
        found = _running_daemons(self._preset)
        for each in found:
            tell(_warning(each, self._preset, is_kept_from_it=self._by_preset))
        return [f"{each.pid} {' '.join(masked(each.argv))}" for each in found]


def _with_variables(inherited: Inherited, preset: Preset) -> Inherited:
    added = {os.fsencode(name): os.fsencode(value) for name, value in preset.environment}
    return inherited._replace(environment={**added, **inherited.environment})


def _running_daemons(preset: Preset) -> list[_Daemon]:
    """Find the agent's daemons that run as the same user."""
    found = []
    for pid in proc_files.all_pids() if preset.daemons else ():
        try:
            if proc_files.file_status(f"/proc/{pid}").st_uid != os.geteuid():
                continue
        except OSError:
            continue  # it has ended
        if argv := preset.as_daemon(procfs.arguments(pid)):
            found.append(_Daemon(pid, argv))
    return sorted(found)


def _warning(daemon: _Daemon, preset: Preset, *, is_kept_from_it: bool) -> str:
    """Return the warning. `is_kept_from_it`: the preset keeps the agent from using the daemon."""
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
