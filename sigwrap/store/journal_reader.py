"""The journal as a reader sees it. Apart from journal.py: a run needn't pay for these imports."""

from __future__ import annotations

import os
from collections.abc import Iterator

from sigwrap.errors import StoreError
from sigwrap.hints import IO
from sigwrap.linux.descriptors import open_plain_file
from sigwrap.store.codec import MAX_PAYLOAD_CHARACTERS, Row, parse_journal_line

_LONGEST_LINE = MAX_PAYLOAD_CHARACTERS + (1 << 10)
_TAIL_BYTES = 1 << 16


class JournalFile:
    """Held open, so it stays as long as it is read. Its writer only ever appends to it."""

    def __init__(self, path: str, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._read_to = 0
        self._lines = 0

    @classmethod
    def open(cls, path: str) -> JournalFile | None:
        try:
            return cls(path, open_plain_file(path))
        except FileNotFoundError:
            return None  # closed cleanly: everything is in the database
        except OSError as error:
            raise StoreError(f"can't read {path}: {error.strerror}") from error

    def close(self) -> None:
        self._file.close()

    @property
    def is_empty(self) -> bool:
        """Of an event that was recorded."""
        return next(self.rows(), None) is None

    @property
    def is_in_place(self) -> bool:
        """No other file has come in its place, nor was it taken away."""
        try:
            return os.path.samestat(os.lstat(self._path), os.fstat(self._file.fileno()))
        except OSError:
            return False

    def rows(self) -> Iterator[Row]:
        """Without a torn last line: append never returned for that event."""
        self._read_to = self._lines = 0
        return self.new_rows()

    def new_rows(self) -> Iterator[Row]:
        """What was appended since the rows were read last."""
        self._file.seek(self._read_to)
        while line := self._file.readline(_LONGEST_LINE):
            if not line.endswith(b"\n"):
                if len(line) == _LONGEST_LINE:
                    raise self._unreadable(self._lines + 1)
                return
            self._lines += 1
            self._read_to += len(line)
            try:
                row = parse_journal_line(line)
            except ValueError as error:
                raise self._unreadable(self._lines) from error
            yield row

    def skip_to(self, last_bytes: int) -> None:
        """The rows that are new from here on begin among these."""
        start = max(os.fstat(self._file.fileno()).st_size - last_bytes, 0)
        if start <= self._read_to:
            return
        self._file.seek(start)
        rest = self._file.readline(_LONGEST_LINE)
        self._read_to = start + len(rest) if rest.endswith(b"\n") else start

    @property
    def unread_bytes(self) -> int:
        return os.fstat(self._file.fileno()).st_size - self._read_to

    def last(self) -> Row | None:
        """Without reading what lies before it."""
        size = os.fstat(self._file.fileno()).st_size
        wanted = _TAIL_BYTES
        while True:
            self._file.seek(max(size - wanted, 0))
            tail = self._file.read(min(size, wanted))
            lines = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)
            if len(lines) > 1 or (lines and wanted >= size):
                try:
                    return parse_journal_line(lines[-1])
                except ValueError as error:
                    raise StoreError(f"the last line of {self._path} can't be read") from error
            if wanted >= size:
                return None
            if wanted >= 2 * _LONGEST_LINE:
                raise StoreError(f"the last line of {self._path} can't be read")
            wanted = min(4 * wanted, 2 * _LONGEST_LINE)

    def latest(self) -> list[Row]:
        """Of its last bytes, however many rows these hold; none where one can't be read."""
        size = os.fstat(self._file.fileno()).st_size
        start = max(size - _TAIL_BYTES, 0)
        self._file.seek(start)
        tail = self._file.read(_TAIL_BYTES)
        lines = tail[: tail.rfind(b"\n") + 1].splitlines(keepends=True)
        try:
            return [parse_journal_line(line) for line in lines[start > 0 :]]
        except ValueError:
            return []

    def _unreadable(self, line_number: int) -> StoreError:
        return StoreError(f"line {line_number} of the journal {self._path} can't be read")
