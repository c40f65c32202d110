"""A run's part of the standard library is what its namesakes are, in all that is used of it."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import socket
import sqlite3
import subprocess
import sys
from copy import deepcopy
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from sigwrap.bare import Counter, Enum, IntEnum, blake2b, lru_cache, sha256, suppress
from sigwrap.bare import json as bare_json
from sigwrap.bare import re as bare_re
from sigwrap.bare import socket as bare_socket
from sigwrap.bare import sqlite3 as bare_sqlite3

ROOT = Path(__file__).parents[1]


class Colour(Enum):
    """What it is."""

    RED = "red"
    GREEN = "green"

    @property
    def shown(self) -> str:
        return self.value.upper()


class Level(IntEnum):
    LOW = 1
    HIGH = 2


def test_an_enumeration_has_its_members() -> None:
    strange: Any = []
    assert list(Colour) == [Colour.RED, Colour.GREEN] and len(Colour) == 2
    assert Colour("red") is Colour.RED is Colour(Colour.RED)
    assert (Colour.RED.name, Colour.RED.value, Colour.RED.shown) == ("RED", "red", "RED")
    assert len({Colour.RED, Colour.GREEN}) == 2 and Colour.RED in Colour
    assert deepcopy({Colour.RED: 1}) == {Colour.RED: 1}
    assert repr(Colour.RED) == "<Colour.RED: 'red'>" and str(Colour.RED) == "Colour.RED"
    for unknown in ("blue", strange):
        with pytest.raises(ValueError):
            Colour(unknown)


def test_a_numbered_one_is_a_number() -> None:
    assert (
        Level.LOW < Level.HIGH
        and int(Level.HIGH) == 2
        and {1: "x"}[Level.LOW] == "x"
        and Level(2) is Level.HIGH
    )
    assert f"{Level.HIGH}" == "2" and json.dumps(Level.HIGH) == "2" == bare_json.dumps(Level.HIGH)


@pytest.mark.parametrize("value", [{}, {"b": [1, None, True], "a": "é\udc80\n"}, [1.5, "x"], "x"])
def test_json_is_written_as_json_writes_it(value: Any) -> None:
    assert bare_json.dumps(value) == json.dumps(value)
    assert bare_json.dumps_sorted(value) == json.dumps(value, sort_keys=True)
    compact = bare_json.encoder(separators=(",", ":"), allow_nan=False)
    assert compact(value) == json.dumps(value, separators=(",", ":"))
    assert bare_json.loads(bare_json.dumps(value)) == value


def test_json_refuses_what_json_refuses() -> None:
    with pytest.raises(TypeError):
        bare_json.dumps(object())
    with pytest.raises(ValueError):
        bare_json.encoder(allow_nan=False)(float("nan"))


def test_every_character_is_escaped_as_re_escapes_it() -> None:
    characters = "".join(map(chr, range(0x250)))
    assert [bare_re.escape(each) for each in characters] == [*map(re.escape, characters)]


def test_descriptors_go_through_a_socket() -> None:
    ours, theirs = bare_socket.socketpair()
    with ours, theirs:
        read, write = os.pipe()
        bare_socket.send_fds(ours, [b"x"], [write])
        data, fds, _, _ = bare_socket.recv_fds(theirs, 16, 1)
        os.write(fds[0], b"y")
        assert data == b"x" and os.read(read, 1) == b"y"
    for fd in (read, write, *fds):
        os.close(fd)
    assert ours.fileno() == -1 and bare_socket.AF_UNIX == socket.AF_UNIX


def test_digests_are_the_same_without_openssl() -> None:
    assert sha256(b"x").hexdigest() == hashlib.sha256(b"x").hexdigest()
    assert blake2b(b"x").digest() == hashlib.blake2b(b"x").digest()


def test_sqlite_borrows_nothing_for_good() -> None:
    look = (
        "import sys; from sigwrap.bare import sqlite3;"
        "found = sqlite3.connect(':memory:').execute('select 1').fetchall();"
        "print(found, 'functools' in sys.modules); import functools; functools.reduce"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.append({os.getcwd()!r}); {look}"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[(1,)] False\n"
    assert bare_sqlite3.Error is sqlite3.Error


def test_all_that_is_used_of_them_is_there() -> None:
    """To a type checker they are the whole modules."""
    for file in sorted((ROOT / "sigwrap").rglob("*.py")):
        tree = ast.parse(file.read_text())
        modules = {
            each.asname or each.name: import_module(f"sigwrap.bare.{each.name}")
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module == "sigwrap.bare"
            for each in node.names
            if each.name[0].islower() and find_spec(f"sigwrap.bare.{each.name}")
        }
        for node in ast.walk(_at_run_time(tree)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                module = modules.get(node.value.id)
                assert module is None or hasattr(module, node.attr), (file, node.lineno, node.attr)


def _at_run_time(tree: ast.Module) -> ast.Module:
    """Without annotations, which nothing evaluates."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.returns = None
        elif isinstance(node, ast.arg):
            node.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
    return tree


def test_what_else_there_is() -> None:
    counts: Counter[str] = Counter()
    counts["a"] += 1
    assert counts == {"a": 1} and counts["b"] == 0

    @lru_cache(maxsize=None)
    def fresh(_: int) -> object:
        return object()

    assert fresh(1) is fresh(1) is not fresh(2)
    with suppress(OSError, ValueError):
        raise FileNotFoundError
    with pytest.raises(TypeError), suppress(OSError):
        raise TypeError
