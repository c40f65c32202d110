"""Before sigwrap takes signals, it is like any program: an interrupt ends it at once. Imported
first of all, for Python would say where it was; in the binary, before anything can be imported.
Where there is too little memory, it ends then too: Python would fail later, in one of many ways,
or try for ever."""

import _signal  # type: ignore[import-not-found]  # signal itself would first make its enums
import posix
import sys

HINT = " (is the memory limited? ulimit -v 65536 and -d 32768 are enough)"
_LEAST = 2_500_000  # none of it is touched
_SUPERVISOR_DATA, _SUPERVISOR_ROOM = 8_000_000, 21_500_000


def claim_data(size: int) -> None:
    try:
        bytes(size)
    except MemoryError:
        end_without_memory()


def claim_supervisor_memory() -> None:
    claim_data(_SUPERVISOR_DATA)
    if getattr(sys, "frozen", False):
        return  # PyInstaller's start has taken most of it already
    import mmap  # there is memory for it now

    try:
        mmap.mmap(-1, _SUPERVISOR_ROOM, mmap.MAP_PRIVATE, 0).close()
    except OSError:
        end_without_memory()


def end_without_memory() -> None:
    try:
        posix.write(2, f"sigwrap: can't load: no memory{HINT}\n".encode())
    finally:  # standard error may be closed
        posix._exit(125)


claim_data(_LEAST)

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # or the caller ignores it
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
