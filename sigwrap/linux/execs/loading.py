"""What an exec's environment makes a program load, read where a rule asks; and whether it is still
the one that an approved script was given."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence

from sigwrap.bare.digests import blake2b
from sigwrap.linux import proc_files
from sigwrap.policy.judge.loading import loading_variables

Entries = tuple[tuple[str, bytes], ...]


class Environment:
    """An exec's variables. They can be rewritten after they are read, so what was found is held
    against the new image's own (`differs`)."""

    __slots__ = ("_clean", "_entries", "_loaded", "_own", "_raw", "_read", "_stays", "_was_read")

    def __init__(
        self, read: Callable[[], Sequence[bytes] | None], own: Mapping[str, bytes]
    ) -> None:
        """`read`: None where it can't be; `own`: sigwrap's, whose values are the user's."""
        self._read = read
        self._own = own
        self._entries: Entries | None = None
        self._raw: Sequence[bytes] | None = None
        self._stays = False
        self._was_read = False
        self._clean: list[Sequence[str]] = []  # names of programs that nothing is loaded into
        self._loaded: tuple[Sequence[str], tuple[str, ...]] | None = None  # by names of programs

    def read(self) -> None:
        """Once: it may be read aside, and what fails there must not be tried in the loop."""
        if not self._was_read:
            self._was_read = True
            raw = self._raw = self._read()
            self._entries = None if raw is None else _entries(raw)

    def loads_code(self, names: Sequence[str], added: Sequence[str]) -> bool:
        """`added`: variables that a wrapper sets. What can't be read may hold anything."""
        self.read()
        if self._entries is None:
            return True
        set_by_wrapper = tuple((name, b"set") for name in added)
        if loading_variables(names, self._entries + set_by_wrapper, self._own):
            return True
        self._clean.append(names)
        return False

    def loaded(self, names: Sequence[str]) -> tuple[str, ...] | None:
        """The variables that load code, with their values; None where they can't be read."""
        self.read()
        if self._entries is None:
            return None
        found = _loaded(names, self._entries, self._own)
        self._loaded = names, found
        return found

    def digest(self, *, stays: bool) -> str:
        """Empty where it can't be read. `stays`: every entry is compared at the exec stop."""
        self.read()
        if self._raw is None:
            return ""
        self._stays = stays
        return blake2b(_joined(self._raw)).hexdigest()

    def differs(self, pid: int) -> bool:
        """At the exec stop. OSError where it can't be read."""
        if not self._clean and not self._stays and self._loaded is None:
            return False
        with os.fdopen(proc_files.open_file(f"/proc/{pid}/environ"), "rb") as file:
            found = file.read()
        if self._stays and self._raw is not None and found != _joined(self._raw):
            return True
        entries = _entries(found.split(b"\0"))
        if self._loaded is not None:
            names, loaded = self._loaded
            if _loaded(names, entries, self._own) != loaded:
                return True
        return any(loading_variables(names, entries, self._own) for names in self._clean)


def _loaded(names: Sequence[str], entries: Entries, own: Mapping[str, bytes]) -> tuple[str, ...]:
    found = set(loading_variables(names, entries, own))
    return tuple(f"{name}={os.fsdecode(value)}" for name, value in entries if name in found)


def _joined(raw: Sequence[bytes]) -> bytes:
    """As /proc/PID/environ has it."""
    return b"".join(entry + b"\0" for entry in raw)


def _entries(raw: Sequence[bytes]) -> Entries:
    split = (entry.partition(b"=") for entry in raw)
    return tuple((os.fsdecode(name), value) for name, _, value in split)
