"""A command that is an agent with a preset (policies/presets), also where it is run without that.

Imported only where COMMAND is one.
"""

from __future__ import annotations

import os

from sigwrap import status
from sigwrap.mediate.masking import masked
from sigwrap.policy.presets import PRESETS, Preset
from sigwrap.run.daemons import running_daemons, warning
from sigwrap.run.lacking import Tell
from sigwrap.start.command import CommandError, Inherited, find_program


class Agent:
    def __init__(self, name: str, *, by_preset: bool) -> None:
        self._preset = PRESETS[name]
        self._by_preset = by_preset

    def find(self, command: str, inherited: Inherited) -> tuple[bytes, Inherited]:
        """Its program, and what that inherits."""
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
        """Where rules on files are held."""
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
        """As the log has them."""
        found = running_daemons(self._preset)
        for each in found:
            tell(warning(each, self._preset, is_kept_from_it=self._by_preset))
        return [f"{each.pid} {' '.join(masked(each.argv))}" for each in found]


def _with_variables(inherited: Inherited, preset: Preset) -> Inherited:
    added = {os.fsencode(name): os.fsencode(value) for name, value in preset.environment}
    return inherited._replace(environment={**added, **inherited.environment})
