"""What is forgotten is gone from /proc, and what our own libraries read stays."""

from __future__ import annotations

import os
import subprocess
import sys

from sigwrap.kernel import memory, procfs
from tests.support.waiting import await_that

ENVIRONMENT = {"PATH": os.environ["PATH"], "TZ": "JST-9", "A": "", "SECRET": "x" * 9000}
FORGETS = """
import ctypes, os, time
from sigwrap.kernel import memory
getenv = ctypes.CDLL(None).getenv
getenv.restype = ctypes.c_char_p
assert memory.forget({names})
time.tzset()
print(open("/proc/self/environ", "rb").read().strip(b"\\0").split(b"\\0"))
print(time.strftime("%z"), os.environ["SECRET"] == getenv(b"SECRET").decode() == "x" * 9000)
"""


def forgets(names: str) -> list[str]:
    line = [sys.executable, "-c", FORGETS.format(names=names)]
    done = subprocess.run(line, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_a_variable_of_our_own() -> None:
    shown, kept = forgets("[b'SECRET', b'TZ', b'NONE', b'A']")
    assert shown == str([f"PATH={os.environ['PATH']}".encode()])
    assert kept == "+0900 True"


def test_what_only_begins_like_it_stays() -> None:
    shown, _ = forgets("[b'SECRE', b'T', b'x']")
    assert b"SECRET=xx" in shown.encode() and "TZ=JST-9" in shown


def test_a_variable_of_another_process() -> None:
    with subprocess.Popen(["sleep", "1000"], env=ENVIRONMENT) as process:
        try:
            await_that(lambda: b"SECRET" in procfs.environment(process.pid))  # its exec is done
            assert memory.forget_in(process.pid, [b"SECRET", b"NONE"])
            expected = {k.encode(): v.encode() for k, v in ENVIRONMENT.items() if k != "SECRET"}
            assert procfs.environment(process.pid) == expected
            block = procfs.contents(f"/proc/{process.pid}/environ") or b""
            assert b"xx" not in block
        finally:
            process.kill()


def test_of_one_that_has_ended_nothing_is_shown() -> None:
    process = subprocess.Popen(["true"], env=ENVIRONMENT)
    process.wait()
    assert memory.forget_in(process.pid, [b"SECRET"])
