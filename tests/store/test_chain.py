from __future__ import annotations

from hashlib import blake2b

from sigwrap.log.chain import ChainWalk
from sigwrap.log.codec import (
    Row,
    canonical_row,
    chain_key,
    genesis,
    hasher,
    key_from_environment,
    next_hash,
)
from tests.support.harness import Sigwrap


def test_the_chain_is_what_the_docs_say() -> None:
    first = blake2b(b"s1", digest_size=32).digest()
    assert genesis("s1", b"") == first
    row = canonical_row(1, 2, "t", 3, '{"v":1}')
    assert row == b'1\t2\tt\t3\t{"v":1}'
    assert next_hash(first, row, hasher(b"")) == blake2b(first + row, digest_size=32).digest()
    keyed = blake2b(first + row, digest_size=32, key=b"key")
    assert next_hash(first, row, hasher(b"key")) == keyed.digest()


def test_a_long_key_is_hashed_like_in_hmac() -> None:
    assert chain_key(b"k" * 64) == b"k" * 64
    assert chain_key(b"k" * 65) == blake2b(b"k" * 65).digest()


def test_an_empty_key_is_no_key() -> None:
    assert key_from_environment({b"SIGWRAP_KEY": b""}) is None
    assert key_from_environment({b"SIGWRAP_KEY": b"\xff"}) == b"\xff"
    assert key_from_environment({}) is None


def test_a_walk_keeps_the_head_of_the_last_row_that_followed() -> None:
    digest = next_hash(genesis("s1", b""), canonical_row(1, 2, "t", 3, "{}"), hasher(b"")).hex()
    row = Row(1, 2, "t", 3, "{}", digest)
    assert "hash" in ChainWalk("s2", None).follow(row)  # of another session
    assert "hash" in ChainWalk("s1", b"key").follow(row)
    walk = ChainWalk("s1", None)
    assert walk.head == genesis("s1", b"").hex()
    assert walk.follow(row) == ""
    assert (walk.seq, walk.head) == (1, digest)
    missing = "it follows row 1: the rows in between are missing"
    assert walk.follow(row._replace(seq=3)) == missing
    assert (walk.seq, walk.head) == (1, digest)


def test_a_log_whose_file_has_a_name_that_is_no_utf_8_can_be_checked(
    sigwrap: Sigwrap,
) -> None:
    assert sigwrap.run("--", "true").returncode == 0
    (made,) = sigwrap.store.glob("sessions/*.db")
    made.rename(made.with_name("\udcff.db"))
    done = sigwrap.run("verify", forks=False)
    assert done.returncode == 1 and b"hash does not match" in done.stdout
    assert b"internal error" not in done.stderr
