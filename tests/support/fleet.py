"""Sessions to ship, what their logs have, and what arrived."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

from sigwrap.fleet.duck import Lake
from sigwrap.log.catalog import session_ids
from sigwrap.log.folder import database_path
from sigwrap.log.reader import Session
from tests.support.harness import Sigwrap

Identity = tuple[str, int, str]  # session, seq, hash


def make_sessions(subject: Sigwrap, count: int = 1) -> None:
    for number in range(count):
        done = subject.run("--name", f"s{number}", "--", "sh", "-c", "/bin/true; /bin/echo made")
        assert done.returncode == 0, done.stderr


def all_sessions(store: Path) -> list[Session]:
    return [Session(each, database_path(str(store), each)) for each in session_ids(str(store))]


def recorded(store: Path) -> list[Identity]:
    """Return what the logs have."""
    sessions = all_sessions(store)
    return sorted((each.id, row.seq, row.hash) for each in sessions for row in each.rows())


class Landed:
    """A bucket as DuckDB reads it."""

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self._lake, self._url = Lake(url, environment), url

    def keys(self, prefix: str) -> list[str]:
        found = self._lake.rows(f"SELECT file FROM glob('{self._url}/{prefix}**') ORDER BY file")
        return [file.removeprefix(f"{self._url}/") for (file,) in found]

    def get(self, key: str) -> bytes:
        ((content,),) = self._lake.rows(f"SELECT content FROM read_blob('{self._url}/{key}')")
        assert isinstance(content, bytes)
        return content


def arrived(objects: Landed | Path) -> list[Identity]:
    """Return the events that are there, as often as they are."""
    if isinstance(objects, Path):
        return _identities(each.read_bytes() for each in objects.glob("rows/v1/**/*.gz"))
    return _identities(objects.get(key) for key in objects.keys("rows/v1/"))


def _identities(bodies: Iterable[bytes]) -> list[Identity]:
    lines = (line for body in bodies for line in gzip.decompress(body).splitlines())
    rows = (row for row in map(json.loads, lines) if row.get("hash"))
    return sorted((row["session"], row["seq"], row["hash"]) for row in rows)


def killed_at(subject: Sigwrap, call: str, number: int, *words: str, **env: str) -> bool:
    """Run sigwrap, and kill it at a thread's nth call of this name; return whether it was."""
    if shutil.which("strace") is None:
        pytest.skip("needs strace")
    at = ("-e", f"trace={call}", "-e", f"inject={call}:signal=KILL:when={number}")
    line = ["strace", "-f", "-qq", "-o", "/dev/null", *at, "--"]
    process = subject.start_line([*subject.as_user(), *line, *subject.line(*words)], env=env)
    _, said = process.communicate(timeout=60)
    assert process.returncode in (-9, 137, 0), said
    return process.returncode != 0
