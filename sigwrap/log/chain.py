"""The hash chain of a log, checked row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sigwrap.errors import StoreError
from sigwrap.log.codec import Row, canonical_row, chain_key, genesis, hasher, next_hash


class ChainWalk:
    """Follows a log row by row, as the writer built it.

    `seq` and `head`: the last row that was followed, and its hash.
    """

    def __init__(self, session_id: str, key: bytes | None, seq: int = 0, head: str = "") -> None:
        self.seq = seq
        prepared = chain_key(key)
        self._empty = hasher(prepared)
        self._head = bytes.fromhex(head) or genesis(session_id, prepared)

    @property
    def head(self) -> str:
        return self._head.hex()

    def followed(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows. Raise StoreError for the first one that is wrong."""
        for row in rows:
            if problem := self.follow(row):
                raise StoreError(f"row {row.seq}: {problem}")
            yield row

    def follow(self, row: Row) -> str:
        """Return what is wrong with this row, or an empty string."""
        seq, time_ns, type_name, pid, payload, hash_hex = row
        if seq != self.seq + 1:
            return f"it follows row {self.seq}: the rows in between are missing"
        canonical = canonical_row(seq, time_ns, type_name, pid, payload)
        head = next_hash(self._head, canonical, self._empty)
        if head.hex() != hash_hex:
            return "its hash does not match its content and the rows before it"
        self.seq = seq
        self._head = head
        return ""
