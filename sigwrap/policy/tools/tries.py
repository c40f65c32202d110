"""One refusal, however many tries it takes: a shell that is refused /usr/bin/X goes on along PATH,
and is refused /bin/X."""

from __future__ import annotations

from collections import OrderedDict

from sigwrap.events import Event, text

_PROCESSES_KEPT = 1_000
_FOLDERS_KEPT = 64


class _Refused:
    """A process's last exec that was."""

    def __init__(self, argv: object, rule: object, folder: str, name: str, is_told: bool) -> None:
        self.what = argv, rule, name
        self.folders = {folder}
        self.is_told = is_told


class Tries:
    def __init__(self) -> None:
        self._refused: OrderedDict[int, _Refused] = OrderedDict()

    def is_another(self, event: Event, *, is_told: bool = True) -> bool:
        """Of an exec that was refused before, under the same name in another folder. `is_told`: it
        would be told, if it were the first one."""
        payload = event.payload
        folder, _, name = text(payload.get("path")).rpartition("/")
        argv, rule = payload.get("argv"), payload.get("rule_name")
        before = self._refused.get(event.pid)
        if (
            before is not None
            and before.what == (argv, rule, name)
            and folder not in before.folders
            and len(before.folders) < _FOLDERS_KEPT
        ):
            before.folders.add(folder)
            was_told, before.is_told = before.is_told, before.is_told or is_told
            return was_told or not is_told
        self._refused[event.pid] = _Refused(argv, rule, folder, name, is_told)
        if len(self._refused) > _PROCESSES_KEPT:
            self._refused.popitem(last=False)
        return False

    def ended(self, pid: int) -> None:
        if pid in self._refused:
            del self._refused[pid]
