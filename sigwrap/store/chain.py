"""The hash chain: each row's hash covers the row and, through its predecessor, all before it.

Without a key, any process that can write the file can compute the chain anew. Then only the head
proves the log, printed at the end of a run and kept elsewhere. With $SIGWRAP_KEY the hash is keyed
BLAKE2b, which is a MAC by construction (RFC 7693, 2.9), so it needs no HMAC.
"""

from __future__ import annotations

from collections.abc import Mapping

from sigwrap.bare.digests import blake2b
from sigwrap.store.codec import Row, canonical_row

DIGEST_SIZE = 32
KEY_VARIABLE = "SIGWRAP_KEY"


def key_from_environment(env: Mapping[bytes, bytes]) -> bytes | None:
    """Return the key from os.environb: a key is bytes."""
    return env.get(KEY_VARIABLE.encode()) or None


def chain_key(key: bytes | None) -> bytes:
    if key is None:
        return b""
    # BLAKE2b takes at most 64 bytes; a longer key is hashed, as in HMAC.
    return blake2b(key).digest() if len(key) > blake2b.MAX_KEY_SIZE else key


def genesis(session_id: str, key: bytes) -> bytes:
    """Return the hash before the first row; it ties the log to its session."""
    return blake2b(session_id.encode(), digest_size=DIGEST_SIZE, key=key).digest()


def hasher(key: bytes) -> blake2b:
    """Return an empty hasher; copying it takes a third less time than making another."""
    return blake2b(digest_size=DIGEST_SIZE, key=key)


def next_hash(previous: bytes, canonical: bytes, empty: blake2b) -> bytes:
    """Return the hash of the next row; `empty` is a hasher of the log's key."""
    digest = empty.copy()
    digest.update(previous)
    digest.update(canonical)
    return digest.digest()


class ChainWalk:
    """Follows a log row by row, as the writer built it."""

    def __init__(self, session_id: str, key: bytes | None) -> None:
        self.seq = 0
        prepared = chain_key(key)
        self._empty = hasher(prepared)
        self._head = genesis(session_id, prepared)

    @property
    def head(self) -> str:
        return self._head.hex()

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
