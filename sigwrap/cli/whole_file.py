"""Writes a file completely or not at all: under another name first, which it then renames.

It writes directly to what is not a regular file: /dev/stdout, a FIFO.
"""

from __future__ import annotations

import errno
import os
import signal
import stat
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from sigwrap.bare import Any
from sigwrap.errors import UsageError
from sigwrap.log.folder import CHECKPOINTS_FOLDER, DATABASE_SUFFIX, JOURNAL_SUFFIX, SESSIONS_FOLDER

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_NAME_KEPT = 100
_NO_LINKS = (errno.EPERM, errno.EOPNOTSUPP)  # as of FAT


@contextmanager
def whole_file(
    path: str, *, reads: Iterable[str] = (), only_new: bool = False, mode_of: str = ""
) -> Iterator[str]:
    """Return where to write. `reads`: files that must stay. `only_new`: refuse if it exists.

    `mode_of`: another file, whose mode it gets.
    """
    with _as_complaint(path):
        target = os.path.realpath(path)
        _refuse_logs(path, target, reads)
        mode = _mode(mode_of or target)
        if only_new and os.path.lexists(path):
            raise there_already(path)
    if mode is not None and not stat.S_ISREG(mode):
        yield path
        return
    folder, name = os.path.split(target)
    unfinished = os.path.join(folder, f".{name[:_NAME_KEPT]}.{os.getpid()}.unfinished")
    with _as_complaint(path):
        fd = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666)
    with _removed_by_signals(unfinished):
        try:
            if mode is not None:
                os.fchmod(fd, stat.S_IMODE(mode))
            yield unfinished
            with _as_complaint(path):
                os.fsync(fd)
                _put(unfinished, target, only_new=only_new)
        except BaseException:
            _remove(unfinished)
            raise
        finally:
            os.close(fd)


def write_lines(
    path: str, lines: Iterable[str], *, reads: Iterable[str] = (), only_new: bool = False
) -> None:
    try:
        with (
            whole_file(path, reads=reads, only_new=only_new) as place,
            _as_complaint(path),
            open(place, "w", encoding="utf-8", errors="backslashreplace", newline="") as file,
        ):
            file.writelines(f"{line}\n" for line in _read(lines))
    except _ReadingFailed as failed:
        raise failed.why from None


class _ReadingFailed(Exception):
    """Reading what is to be written failed, not writing it."""

    def __init__(self, why: OSError) -> None:
        self.why = why


def _read(lines: Iterable[str]) -> Iterator[str]:
    try:
        yield from lines
    except OSError as error:
        raise _ReadingFailed(error) from error


@contextmanager
def _as_complaint(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UsageError(f"can't write {path}: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"can't write {path!r}: not a valid file name") from error


def there_already(path: str) -> UsageError:
    return UsageError(f"{path} already exists", "choose another name or remove it")


def _put(unfinished: str, target: str, *, only_new: bool) -> None:
    if only_new:
        try:
            os.link(unfinished, target)  # replaces nothing, unlike a rename
        except FileExistsError as error:
            raise there_already(target) from error
        except OSError as error:
            if error.errno not in _NO_LINKS or os.path.lexists(target):
                raise
        else:
            _remove(unfinished)
            return
    os.rename(unfinished, target)


def _refuse_logs(path: str, target: str, reads: Iterable[str]) -> None:
    is_read = any(target == os.path.realpath(each) or _is_same(target, each) for each in reads)
    folder = os.path.basename(os.path.dirname(target))
    is_log = folder in (SESSIONS_FOLDER, CHECKPOINTS_FOLDER) and target.endswith(
        (DATABASE_SUFFIX, JOURNAL_SUFFIX)
    )
    if is_read or is_log:
        raise UsageError(f"can't write {path}: it is the log of a session")


def _is_same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False  # one of them is missing


def _mode(path: str) -> int | None:
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        return None


@contextmanager
def _removed_by_signals(path: str) -> Iterator[None]:
    def end(number: int, _frame: Any) -> None:
        _remove(path)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    taken = [each for each in _ENDING if signal.getsignal(each) is signal.SIG_DFL]
    for each in taken:
        signal.signal(each, end)
    try:
        yield
    finally:
        for each in taken:
            signal.signal(each, signal.SIG_DFL)


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass  # it was renamed or removed
