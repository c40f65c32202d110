"""Suites of languages and of what deals with processes: what becomes of each of their tests."""

from __future__ import annotations

import re
from pathlib import Path

from tests.programs.program import Program

_RESULTS = Path(__file__).parents[1] / "programs" / "results.py"

# CPython

_PYTHON = "/usr/bin/python3"
# Debian's Python has its own tests in a package of their own, without the folder's other files.
_PYTHON_SETUP = f"""\
cp {_RESULTS} .
there=$({_PYTHON} -c 'import sysconfig; print(sysconfig.get_path("stdlib"))')
mkdir lib; cp -r $there/test lib
[ -e lib/test/test_signal.py ] || {{
    name=$({_PYTHON} -c 'import sys; print("libpython3.%d-testsuite" % sys.version_info[1])')
    apt-get download -qq $name; dpkg -x $name*.deb package
    cp -rn package$there/test lib; rm -r package *.deb
}}
"""


def _cpython(name: str, *words: str, differs: dict[str, str] | None = None) -> Program:
    line = f"PYTHONPATH=$CACHE/lib {_PYTHON} -m test --junit-xml r.xml --timeout 120"
    return Program(
        name=f"CPython: {name}",
        setup=_PYTHON_SETUP,
        steps=(f"{line} {' '.join(words)} >said 2>&1 || true; {_PYTHON} $CACHE/results.py r.xml",),
        must_say="^passed ",
        ignore_files="r.xml|said",
        within_s=400,
        processes=600,
        differs=differs or {},
    )


_IN_A_STORM = "test_stress_delivery_simultaneous"
_MULTIPROCESSING = ("WithProcessesTestProcess", "WithProcessesTestPool", "WithProcessesTestQueue")

# Go

_GO_PACKAGES = ("os/exec", "os/signal", "syscall")
_GO_RESULT = re.compile(r"^ *(--- (?:PASS|FAIL|SKIP): \S+|panic: .*)", re.MULTILINE)


def _go_results(said: str) -> str:
    return "\n".join(sorted(_GO_RESULT.findall(said)))


def _go(package: str) -> str:
    binary = package.replace("/", "_")
    return f"cd $(go env GOROOT)/src/{package} && $CACHE/{binary}.test -test.v -test.timeout 120s"


_GO_ENV = "export GOCACHE=$PWD/cache GOTOOLCHAIN=local GOFLAGS=;"

# psutil

_PSUTIL = "connections contracts linux misc posix process system testutils unicode"
_PSUTIL_SETUP = f"""\
cp {_RESULTS} .
{_PYTHON} -m venv venv
venv/bin/pip install -q --disable-pip-version-check psutil==5.9.8 pytest==8.3.4
"""

PROGRAMS = [
    _cpython("subprocess", "test_subprocess"),
    _cpython(
        "signal and threadsignals",
        "test_signal test_threadsignals",
        f"-i {_IN_A_STORM}",
    ),
    _cpython(
        "kill in a storm of signals",
        f"test_signal -m {_IN_A_STORM}",
        differs={"*": "a signal handler without SA_RESTART can make `os.kill` fail with EINTR"},
    ),
    _cpython(
        "os, posix, pty, wait", "test_os test_posix test_pty test_fork1 test_wait3 test_wait4"
    ),
    _cpython(
        "asyncio",
        "test_asyncio",
        *(
            f"-m 'test.test_asyncio.test_{part}.*'"
            for part in ("subprocess", "unix_events", "runners", "events", "streams")
        ),
    ),
    *(
        _cpython(
            f"multiprocessing, {way}",
            f"test_multiprocessing_{way}",
            *(f"-m '*.{case}.*'" for case in _MULTIPROCESSING),
        )
        for way in ("fork", "spawn", "forkserver")
    ),
    Program(
        name="Go: os/exec, os/signal, syscall",
        needs=("go",),
        setup="\n".join(
            (
                _GO_ENV,
                *(f"go test -c -o {p.replace('/', '_')}.test {p}" for p in _GO_PACKAGES),
                "rm -r cache",
            )
        ),
        steps=tuple(f"{_GO_ENV} {_go(package)}" for package in _GO_PACKAGES),
        must_say="^--- PASS: TestSignal$",
        ignore_files="^cache/",
        keep=_go_results,
        within_s=200,
        differs={
            "agent-default": "file rules forbid mounts, which TestUnshareUidGidMapping and others "
            "need"
        },
    ),
    Program(
        name="psutil",
        setup=_PSUTIL_SETUP,
        steps=(
            f"for t in {_PSUTIL}; do $CACHE/venv/bin/python -B -m pytest -q -p no:cacheprovider"
            " --junit-xml $t.xml --junit-prefix $t --pyargs psutil.tests.test_$t"
            f" >$t.said 2>&1; done; {_PYTHON} $CACHE/results.py *.xml",
        ),
        must_say="^passed process",
        ignore_files=r"\.xml|\.said",
        within_s=300,
    ),
]
