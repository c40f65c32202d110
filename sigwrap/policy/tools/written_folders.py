"""Rules that allow writing in the folders in which a session has written, and nowhere else: from
what an `audit` of files has recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.events import Event, text
from sigwrap.policy.tools.literal import glob_of, yaml_word

_MOST = 50
_OPERATIONS = "[write, create, delete]"
_TEMPORARY = "/tmp"


class WrittenFolders:
    def __init__(self) -> None:
        self._places: set[str] = set()

    def watching(self, events: Iterable[Event]) -> Iterator[Event]:
        """The events as they are."""
        for event in events:
            if event.type == "file_audited":
                for path in self._changed(event):
                    self._places.add(_place_of(path))
            yield event

    def _changed(self, event: Event) -> Iterator[str]:
        path, to = text(event.payload.get("path")), text(event.payload.get("to"))
        is_link = to and event.payload.get("operation") != "rename"
        return (each for each in ("" if is_link else path, to) if each.startswith("/"))

    def policy_text(self) -> str:
        if not self._places:
            return ""
        lines = ["", "file_rules:", "  - name: written", "    paths:"]
        lines += [f"      - {yaml_word(glob_of(each))}" for each in _drawn_together(self._places)]
        lines += [f"    operations: {_OPERATIONS}", "    decision: allow"]
        lines += ["  - name: devices-and-processes", "    paths: [/dev, /proc]"]
        lines += [f"    operations: {_OPERATIONS}", "    decision: allow"]
        lines += ["  - name: nowhere-else", "    paths: [/]"]
        lines += [f"    operations: {_OPERATIONS}", "    decision: deny"]
        return "\n".join(lines) + "\n"


def _place_of(path: str) -> str:
    """The folder it is in; the file alone, where too much else is in that."""
    folder = path.rpartition("/")[0]
    return path if _is_wide(folder) else folder


def _is_wide(folder: str) -> bool:
    names = folder.split("/")[1:]
    is_a_home = len(names) == 2 and names[0] == "home"
    return is_a_home or (len(names) < 2 and folder != _TEMPORARY)


def _drawn_together(places: set[str]) -> list[str]:
    found = _outermost(places)
    while len(found) > _MOST:
        deepest = max(each.count("/") for each in found)
        drawn = _outermost({_further_up(each, deepest) for each in found})
        if drawn == found:
            break
        found = drawn
    return found


def _further_up(place: str, deepest: int) -> str:
    return _place_of(place) if place.count("/") == deepest else place


def _outermost(places: Iterable[str]) -> list[str]:
    found: list[str] = []
    for each in sorted(places, key=lambda place: place.split("/")):
        if not found or not f"{each}/".startswith(f"{found[-1]}/"):
            found.append(each)
    return found
