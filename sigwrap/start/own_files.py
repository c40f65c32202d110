"""The files that sigwrap runs from, and whether they are still what they were when COMMAND began.

What runs is loaded by then. But a stub, and the next start of sigwrap, run what these files hold
later. A change shows by its time of change, which no user can set, and the folder that was put in
the place of another by its number.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator

from sigwrap.linux.own_pages import mapped_files
from sigwrap.start import onefile
from sigwrap.tuples import NamedTuple

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_ABOVE_THE_PACKAGE = os.path.dirname(_PACKAGE)
_INSTALLED = os.path.basename(_ABOVE_THE_PACKAGE) in ("site-packages", "dist-packages")
_IS_ZIPAPP = not os.path.isdir(_PACKAGE)
_CLOCK_OF_FILES = 5  # CLOCK_REALTIME_COARSE
_RUN_AT_EVERY_START = ("sitecustomize.py", "usercustomize.py")


class _Noted(NamedTuple):
    time_ns: int
    identities: dict[str, tuple[int, int]]


_noted = _Noted(0, {})


def note_own_files() -> None:
    """COMMAND is about to run."""
    global _noted
    _noted = _Noted(
        time.clock_gettime_ns(_CLOCK_OF_FILES), {path: _identity(path) for path in _roots()}
    )


def changed_own_files() -> list[str]:
    """Since then; what is gone as well."""
    return sorted({*_moved(), *_changed(_files()), *_changed(_files_of_the_start())})


def changed_stub_files() -> list[str]:
    """Those that a stub is loaded from."""
    folder = onefile.unpacked_folder()
    unpacked = _below(folder) if folder else ()
    return sorted({*_moved(), *_changed(_files()), *_changed(unpacked)})


def _moved() -> Iterator[str]:
    for path, identity in _noted.identities.items():
        if _identity(path) != identity:
            yield path


def _identity(path: str) -> tuple[int, int]:
    try:
        found = os.stat(path)
    except OSError:
        return 0, 0
    return found.st_dev, found.st_ino


def _changed(paths: Iterable[str]) -> Iterator[str]:
    for path in paths:
        try:
            if os.stat(path).st_ctime_ns > _noted.time_ns:
                yield path
        except OSError:
            yield path


def _roots() -> list[str]:
    if onefile.unpacked_folder():
        return [sys.executable]
    beside = {os.path.dirname(path) for path in _module_files()}
    folders = {*beside, *(parent for parent, _, _ in os.walk(_PACKAGE))}
    return [sys.executable, *(path for path in folders if not _is_written_by_others(path))]


def _files() -> Iterator[str]:
    yield sys.executable
    if onefile.unpacked_folder():
        return
    yield from _module_files()
    yield from mapped_files()
    yield from [_ABOVE_THE_PACKAGE] if _IS_ZIPAPP else _below(_PACKAGE)


def _files_of_the_start() -> Iterator[str]:
    """What a start reads besides."""
    if onefile.unpacked_folder():
        return
    for path in (sys.argv[0], os.path.join(sys.prefix, "pyvenv.cfg")):
        if os.path.isfile(path):
            yield path
    if _INSTALLED:
        for name in os.listdir(_ABOVE_THE_PACKAGE):
            if name.endswith(".pth") or name in _RUN_AT_EVERY_START:
                yield os.path.join(_ABOVE_THE_PACKAGE, name)
    elif not _IS_ZIPAPP:
        yield from _below(os.path.join(_ABOVE_THE_PACKAGE, "policies"))


def _module_files() -> Iterator[str]:
    """Of others, with their bytecode. A zipapp carries its own, and the package has all of its
    files looked at."""
    inside = ("/proc/", _ABOVE_THE_PACKAGE) if _IS_ZIPAPP else (_PACKAGE,)
    for module in list(sys.modules.values()):
        file, cached = getattr(module, "__file__", None), getattr(module, "__cached__", None)
        if not file or file.startswith(inside):
            continue
        yield file
        if cached and os.path.exists(cached):
            yield cached


def _below(folder: str) -> Iterator[str]:
    for parent, _, files in os.walk(folder):
        if not _is_written_by_others(parent):
            yield from (os.path.join(parent, file) for file in files)


def _is_written_by_others(folder: str) -> bool:
    """In a checkout, whoever imports a module first writes its bytecode."""
    return not _INSTALLED and os.path.basename(folder) == "__pycache__"
