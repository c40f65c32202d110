"""What an exec's environment loads, and that it is still the one that was judged."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

from sigwrap.exec.asked import Environment


class Entries:
    """What an exec asks for, as far as its variables go."""

    def __init__(self, read: Callable[[], Sequence[bytes] | None]) -> None:
        self._read = read

    def environment(self, *, may_wait: bool) -> Any:
        return self._read()


def environment_of(
    read: Callable[[], Sequence[bytes] | None], own: dict[str, bytes]
) -> Environment:
    return Environment(Entries(read), own)  # type: ignore[arg-type]


def test_what_can_not_be_read_may_load_anything() -> None:
    assert environment_of(lambda: None, {}).loads_code(["cat"], ())


def test_it_is_read_once_and_only_when_asked() -> None:
    read: list[int] = []

    def entries() -> list[bytes]:
        read.append(1)
        return [b"LD_PRELOAD=x", b"A", b""]

    environment = environment_of(entries, {})
    assert not read
    assert environment.loads_code(["cat"], ()) and environment.loads_code(["ls"], ())
    assert read == [1]
    assert not environment_of(entries, {"LD_PRELOAD": b"x"}).loads_code(["cat"], ())
    assert environment_of(list, {}).loads_code(["cat"], ("LD_AUDIT",))


def test_one_that_matters_is_compared_entry_by_entry() -> None:
    """As the kernel shows the entries of a call: one that is empty, or has no name, is one."""
    given = {"A": "b", "LANG": ""}
    entries = [b"A=b", b"LANG="]
    line = [sys.executable, "-I", "-c", "print(flush=True); input()"]
    with subprocess.Popen(line, env=given, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        assert child.stdout and child.stdout.readline()
        for read, differs in ((entries, False), (entries[:1], True), ([*entries, b""], True)):
            judged = environment_of(list(read).copy, {})
            judged.digest(matters=False)
            assert not judged.differs(child.pid)
            judged.digest(matters=True)
            assert judged.differs(child.pid) is differs
        child.communicate(b"\n")


def test_its_digest_tells_entries_apart() -> None:
    def digest(*entries: bytes) -> str:
        return environment_of(lambda: entries, {}).digest(matters=False)

    assert (
        len({digest(), digest(b""), digest(b"A=b"), digest(b"A", b"b"), digest(b"A=b", b"")}) == 5
    )
    assert digest(b"A=b") == digest(b"A=b")
    assert environment_of(lambda: None, {}).digest(matters=True) == ""


def test_an_environment_that_was_swapped_is_noticed() -> None:
    judged = environment_of(list, {})
    assert not judged.differs(os.getpid())  # nobody asked, so nothing was promised
    assert not judged.loads_code(["python3"], ())
    line = [sys.executable, "-I", "-c", "print(flush=True); input()"]
    for variables, differs in (({"PYTHONSTARTUP": "x"}, True), ({"A": "b"}, True), ({}, False)):
        with subprocess.Popen(
            line, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as child:
            assert child.stdout and child.stdout.readline()
            assert judged.differs(child.pid) is differs
            child.communicate(b"\n")
