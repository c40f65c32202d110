"""What is run natively, under sigwrap and under its peers. Each says its own wall time in seconds.

A workload that this machine can't run raises Missing; it is left out, and named.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tests.bench.peers import EXECS_AND_SIGNALS, PROGRAMS

# Without a virtual environment's start-up, and the same for every subject.
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
TIMED = ("dash", str(PROGRAMS / "timed.sh"))

_TINY_FILES = 200
_PACKAGES = 40


class Missing(Exception):
    """What isn't installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    name: str
    line: tuple[str, ...]
    units: int
    """How many of what is counted it does."""
    unit: str
    folder: Path
    options: tuple[str, ...] = ()
    """sigwrap's."""
    calls: str = EXECS_AND_SIGNALS
    """What a peer that logs calls by name has to log."""
    is_of_execs: bool = True
    """False: a peer that logs only execs is no comparison."""


def execs(folder: Path, count: int) -> Workload:
    return Workload(
        name=f"{count} x /bin/true from dash",
        line=exec_line(count),
        units=count,
        unit="exec",
        folder=folder,
    )


def exec_line(count: int, program: str = "/bin/true") -> tuple[str, ...]:
    _demand("dash")
    return (*TIMED, "dash", str(PROGRAMS / "execs.sh"), str(count), program)


def signals(name: str, number: int, folder: Path, count: int) -> Workload:
    line = (*PYTHON, str(PROGRAMS / "signals.py"), str(count), str(number))
    return Workload(
        name=name, line=line, units=count, unit="signal", folder=folder, is_of_execs=False
    )


def connects(name: str, way: str, folder: Path, count: int) -> Workload:
    line = (*PYTHON, str(PROGRAMS / "connects.py"), str(count), way)
    calls = f"{EXECS_AND_SIGNALS},{'sendto' if way == 'datagram' else 'connect'}"
    return Workload(
        name=name,
        line=line,
        units=count,
        unit="call",
        folder=folder,
        calls=calls,
        is_of_execs=False,
    )


def probes(folder: Path, count: int) -> Workload:
    return Workload(
        name="failed probes along PATH",
        line=(*PYTHON, str(PROGRAMS / "probes.py"), str(count), "/usr/local/bin"),
        units=count,
        unit="probe",
        folder=folder,
    )


def build(folder: Path, count: int) -> Workload:
    _demand("gcc", "make")
    tree = folder / "build"
    tree.mkdir()
    names = [f"f{number}" for number in range(count)]
    for name in names:
        (tree / f"{name}.c").write_text(f"int {name}(int x) {{ return x + 1; }}\n")
    objects = " ".join(f"{name}.o" for name in names)
    (tree / "Makefile").write_text(f"all: {objects}\n%.o: %.c\n\tgcc -c -o $@ $<\n")
    return Workload(
        name=f"make -j2, {count} tiny files",
        line=(*TIMED, "make", "-s", "-B", "-j2"),
        units=1,
        unit="build",
        folder=tree,
    )


def configure(folder: Path, count: int) -> Workload:
    _demand("dash")
    return Workload(
        name="./configure",
        line=(*TIMED, "dash", str(PROGRAMS / "configure.sh"), str(count)),
        units=1,
        unit="run",
        folder=folder,
    )


def npm(folder: Path, count: int) -> Workload:
    _demand("npm", "node")
    tree = folder / "npm"
    tree.mkdir()
    for number in range(count):
        _pack(tree / f"part{number}-1.0.0.tgz", f"part{number}")
    dependencies = {f"part{number}": f"file:part{number}-1.0.0.tgz" for number in range(count)}
    package = {"name": "whole", "version": "1.0.0", "dependencies": dependencies}
    (tree / "package.json").write_text(json.dumps(package))
    options = ("--offline", "--no-audit", "--no-fund", "--loglevel=error")
    cache = f"--cache={folder / 'npm-cache'}"
    lock = ["npm", "install", "--package-lock-only", cache, *options]
    subprocess.run(lock, cwd=tree, check=True, stdout=subprocess.DEVNULL, timeout=120)
    return Workload(
        name=f"npm ci, {count} packages with install scripts",
        line=(*TIMED, "npm", "ci", cache, *options),
        units=1,
        unit="install",
        options=("-p", "ci"),
        folder=tree,
    )


def _pack(path: Path, name: str) -> None:
    scripts = {"postinstall": "node -e 'process.exit(0)'"}
    package = {"name": name, "version": "1.0.0", "scripts": scripts}
    files = {"package.json": json.dumps(package), "index.js": "module.exports = 1;\n"}
    with tarfile.open(path, "w:gz") as archive:
        for file, text in files.items():
            member = tarfile.TarInfo(f"package/{file}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))


def pytest(folder: Path, count: int) -> Workload:
    """Tests as projects have them: one in five runs a program."""
    tree = folder / "pytest"
    tree.mkdir()
    for number in range(count):
        body = (
            "subprocess.run(['true'], check=True)" if number % 5 == 0 else "assert sorted([2, 1])"
        )
        tests = "".join(f"def test_{each}():\n    {body}\n\n\n" for each in range(5))
        (tree / f"test_{number}.py").write_text(f"import subprocess\n\n\n{tests}")
    words = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull, "--rootdir", ".")
    return Workload(
        name=f"pytest, {5 * count} tests, {count} run a program",
        line=(*TIMED, sys.executable, *words, "."),
        units=1,
        unit="test run",
        folder=tree,
    )


def crowd(folder: Path, count: int) -> Workload:
    _demand("dash", "mkfifo")
    return Workload(
        name=f"{count} programs at once",
        line=(*TIMED, "dash", str(PROGRAMS / "crowd.sh"), str(count)),
        units=1,
        unit="crowd",
        folder=folder,
    )


Make = Callable[[Path, int], Workload]

# With how many of each, and how many where it has to be quick.
ALL: dict[str, tuple[Make, int, int]] = {
    "exec": (execs, 1_000, 200),
    "signal": (partial(signals, "kill(child, SIGUSR1), logged", signal.SIGUSR1), 5_000, 1_000),
    "question": (partial(signals, "kill(child, 0)", 0), 20_000, 5_000),
    "noise": (
        partial(signals, "kill(child, SIGWINCH), log: false", signal.SIGWINCH),
        20_000,
        5_000,
    ),
    "connect": (partial(connects, "connect(127.0.0.1), logged", "tcp"), 3_000, 500),
    "unix": (partial(connects, "connect(a socket file), logged", "unix"), 3_000, 500),
    "datagram": (partial(connects, "sendto(127.0.0.1), logged", "datagram"), 5_000, 1_000),
    "probes": (probes, 5_000, 1_000),
    "configure": (configure, 100, 20),
    "build": (build, _TINY_FILES, 20),
    "npm": (npm, _PACKAGES, 5),
    "pytest": (pytest, 60, 5),
    "crowd": (crowd, 2_000, 200),
}


def _demand(*programs: str) -> None:
    missing = [each for each in programs if shutil.which(each) is None]
    if missing:
        raise Missing(", ".join(missing))
