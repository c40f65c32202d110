"""The journal as a reader sees it. Apart from journal.py: a run needn't pay for these imports."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from typing import IO

from sigwrap.errors import StoreError
from sigwrap.store.codec import Row, parse_journal_line

COPY_IN_MEMORY_BYTES = 8 << 20
_COPY_ATTEMPTS = 10


def copy_journal(path: str) -> IO[bytes]:
    """A copy, since the writer appends meanwhile, or empties the journal after a fold."""
    copy: IO[bytes] = tempfile.SpooledTemporaryFile(max_size=COPY_IN_MEMORY_BYTES)  # noqa: SIM115
    try:
        source = open(path, "rb")  # noqa: SIM115
    except FileNotFoundError:
        return copy  # Closed cleanly: everything is in the database.
    with source:
        for _ in range(_COPY_ATTEMPTS):
            first_line = source.readline()
            copy.write(first_line)
            shutil.copyfileobj(source, copy)
            source.seek(0)
            # The first line has a seq: as long as it is the same, the writer has only appended.
            if source.readline() == first_line or not first_line.endswith(b"\n"):
                break
            source.seek(0)
            copy.seek(0)
            copy.truncate()
        else:
            copy.close()
            raise StoreError(f"{path} changes too fast to be read", "try again")
    copy.seek(0)
    return copy


def journal_rows(copy: IO[bytes]) -> Iterator[Row]:
    """The journal's rows, without a torn last line: append never returned for that event."""
    for number, line in enumerate(copy, start=1):
        if not line.endswith(b"\n"):
            return
        try:
            row = parse_journal_line(line)
        except ValueError as error:
            raise StoreError(f"line {number} of the journal can't be read") from error
        yield row
