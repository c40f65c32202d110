"""Let an interrupt end sigwrap at once, as any program, until it handles signals. Imported first
(in the binary, before all else), because Python would print a traceback. With too little memory,
sigwrap also ends here: Python would fail later, in one of many ways, or retry forever."""

import _signal  # type: ignore[import-not-found]  # signal itself would first make its enums
import posix
import sys

HINT = " (is the memory limited? ulimit -v 65536 and -d 32768 are enough)"
_LEAST = 2_500_000  # never written to
_SUPERVISOR_DATA, _SUPERVISOR_ROOM = 8_000_000, 21_500_000


def claim_data(size: int) -> None:
    try:
        bytes(size)
    except MemoryError:
        end_without_memory()


def claim_supervisor_memory() -> None:
    claim_data(_SUPERVISOR_DATA)
    if getattr(sys, "frozen", False):
        return  # PyInstaller's start has allocated most of it already
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

if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:  # or it is ignored
    _signal.signal(_signal.SIGINT, _signal.SIG_DFL)
