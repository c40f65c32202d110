"""A command that joins waits for a bounded time, and then prints why it failed."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from sigwrap.errors import SessionError
from sigwrap.join import joining
from sigwrap.join.fork_server import KIND, address
from sigwrap.start.command import Inherited


@pytest.fixture
def held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[socket.socket]:
    """Another process has the address, and does not listen."""
    monkeypatch.setattr(joining, "_LISTENS_WITHIN_S", 0.1)
    monkeypatch.setattr(joining, "_ACCEPTS_WITHIN_S", 1)
    with socket.socket(socket.AF_UNIX, KIND) as end:
        end.bind(address(str(tmp_path), "held", os.geteuid()))
        yield end


def _connect(store: Path) -> None:
    inherited = Inherited.capture()
    joining.connect_or_start(inherited, store=str(store), name="held", settings={})


def test_an_address_without_a_listener(held: socket.socket, tmp_path: Path) -> None:
    with pytest.raises(SessionError, match="session held is still starting"):
        _connect(tmp_path)


def test_a_listener_that_accepts_no_connection(held: socket.socket, tmp_path: Path) -> None:
    held.listen(0)
    with socket.socket(socket.AF_UNIX, KIND) as first:
        first.connect(held.getsockname())
        with pytest.raises(SessionError, match="too many commands wait to join session held"):
            _connect(tmp_path)


_NEVER_ANSWERS = """
import os, socket, sys
from sigwrap.errors import SessionError
from sigwrap.join import joining
from sigwrap.join.fork_server import KIND, address
from sigwrap.start.command import Inherited

joining._ANSWERS_WITHIN_S = 0.1
with socket.socket(socket.AF_UNIX, KIND) as end:
    end.bind(address(sys.argv[1], "silent", os.geteuid()))
    end.listen()
    where = {"store": sys.argv[1], "name": "silent", "settings": {}}
    try:
        joining.join(("true",), Inherited.capture(), print, **where)
    except SessionError as refusal:
        print(refusal)
"""


def test_a_listener_that_does_not_answer(tmp_path: Path) -> None:
    line = [sys.executable, "-c", _NEVER_ANSWERS, str(tmp_path)]
    found = subprocess.run(line, capture_output=True, text=True, timeout=30, check=True)
    assert found.stdout.startswith("the session has not answered for 0 s (")
