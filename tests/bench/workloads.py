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
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
# Without a virtual environment's start-up, and the same for every subject.
PYTHON = (os.path.realpath(sys.executable), "-I", "-S")
TIMED = ("dash", str(PROGRAMS / "timed.sh"))

_TINY_FILES = 200
_PACKAGES = 40


class Missing(Exception):
    """What isn't installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    key: str
    name: str
    line: tuple[str, ...]
    units: int
    """How many of what is counted it does."""
    unit: str
    options: tuple[str, ...] = ()
    """sigwrap's."""
    folder: Path | None = None


def execs(folder: Path, count: int) -> Workload:
    return Workload(
        key="exec",
        name=f"{count} x /bin/true from dash",
        line=exec_line(count),
        units=count,
        unit="exec",
        folder=folder,
    )


def exec_line(count: int, program: str = "/bin/true") -> tuple[str, ...]:
    _demand("dash")
    return (*TIMED, "dash", str(PROGRAMS / "execs.sh"), str(count), program)


def signals(folder: Path, count: int) -> Workload:
    return _signals("signal", "kill(child, SIGUSR1), logged", count, signal.SIGUSR1, folder)


def questions(folder: Path, count: int) -> Workload:
    return _signals("question", "kill(child, 0)", count, 0, folder)


def noise(folder: Path, count: int) -> Workload:
    return _signals("noise", "kill(child, SIGWINCH), noise", count, signal.SIGWINCH, folder)


def _signals(key: str, name: str, count: int, number: int, folder: Path) -> Workload:
    line = (*PYTHON, str(PROGRAMS / "signals.py"), str(count), str(int(number)))
    return Workload(key=key, name=name, line=line, units=count, unit="signal", folder=folder)


def connects(folder: Path, count: int) -> Workload:
    return _connects("connect", "connect(127.0.0.1), logged", count, "tcp", folder)


def connects_to_files(folder: Path, count: int) -> Workload:
    return _connects("unix", "connect(a socket file), logged", count, "unix", folder)


def datagrams(folder: Path, count: int) -> Workload:
    return _connects("datagram", "sendto(127.0.0.1), logged", count, "datagram", folder)


def _connects(key: str, name: str, count: int, way: str, folder: Path) -> Workload:
    line = (*PYTHON, str(PROGRAMS / "connects.py"), str(count), way)
    return Workload(key=key, name=name, line=line, units=count, unit="call", folder=folder)


def probes(folder: Path, count: int) -> Workload:
    return Workload(
        key="probes",
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
        key="build",
        name=f"{count} tiny C files, make -j2",
        line=(*TIMED, "make", "-s", "-B", "-j2"),
        units=1,
        unit="build",
        folder=tree,
    )


def configure(folder: Path, count: int) -> Workload:
    _demand("dash")
    return Workload(
        key="configure",
        name="many small programs, as ./configure",
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
        key="npm",
        name=f"npm ci of {count} local packages, each with an install script",
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


def crowd(folder: Path, count: int) -> Workload:
    _demand("dash", "mkfifo")
    return Workload(
        key="crowd",
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
    "signal": (signals, 5_000, 1_000),
    "question": (questions, 20_000, 5_000),
    "noise": (noise, 20_000, 5_000),
    "connect": (connects, 3_000, 500),
    "unix": (connects_to_files, 3_000, 500),
    "datagram": (datagrams, 5_000, 1_000),
    "probes": (probes, 5_000, 1_000),
    "configure": (configure, 100, 20),
    "build": (build, _TINY_FILES, 20),
    "npm": (npm, _PACKAGES, 5),
    "crowd": (crowd, 2_000, 200),
}


def _demand(*programs: str) -> None:
    missing = [each for each in programs if shutil.which(each) is None]
    if missing:
        raise Missing(", ".join(missing))
