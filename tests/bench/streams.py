"""Bytes through a replacement: brokered, and recorded."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from tests.bench.beside import Line, beside
from tests.bench.measuring import VALUE, WALL
from tests.bench.results import US, Result
from tests.bench.setting import Setting, policy, sigwrap
from tests.bench.workloads import TIMED

_CAT = shutil.which("cat") or "/bin/cat"
_MB = 1_000_000
_TEXT = b"".join(b"%08d a line of what a program says about its work\n" % n for n in range(20_000))


def measure_brokered(setting: Setting) -> Result:
    folder, size = setting.make_folder("brokered"), setting.amount(1 << 30, 1 << 27)
    data = folder / "data"
    with data.open("wb") as file:
        file.truncate(size)
    words = (*TIMED, "sh", "-c", f"cat '{data}' | cat")
    wrapped = sigwrap("-p", policy(folder, "brokered", _rule("via: stub")))
    result = beside(
        "brokered",
        f"{size >> 20} MiB through a brokered cat and a pipe",
        {"native": Line(words=words), "brokered": Line(prefix=wrapped, words=words)},
        rounds=setting.rounds,
        unit="run",
    )
    slower = result.subjects[1].ratio
    result.figures["speed"] = {kind: 1 / value for kind, value in slower.items()}
    return result


def measure_recorded(setting: Setting) -> Result:
    folder, size = setting.make_folder("recorded"), setting.amount(256 * _MB, 32 * _MB)
    text, binary = folder / "text", folder / "binary"
    _write(text, _TEXT, size)
    _write(binary, os.urandom(_MB), size)
    wrapped = sigwrap(
        *("-p", policy(folder, "recorded", _rule("via: stub, record: true"))),
        *("--log-size", "4G"),
    )
    read_text, read_binary = (*TIMED, "cat", str(text)), (*TIMED, "cat", str(binary))
    result = beside(
        "recorded",
        f"{size // _MB} MB of output of a recorded cat",
        {
            "native, text": Line(words=read_text),
            "recorded, text": Line(prefix=wrapped, words=read_text),
            "recorded, binary": Line(prefix=wrapped, words=read_binary),
        },
        rounds=max(1, setting.rounds // 2),
        unit="MB",
        units=size // _MB,
    )
    for subject, kind in zip(result.subjects[1:], ("text", "binary"), strict=True):
        result.figures[f"{kind}_mb_per_s"] = {VALUE: US / subject.time_us[WALL]}
    return result


def _rule(how: str) -> str:
    to = f"{{command: {_CAT}, append_args: true, {how}}}"
    return f"  - {{name: broker, commands: [cat], decision: redirect, redirect_to: {to}}}\n"


def _write(path: Path, piece: bytes, size: int) -> None:
    with path.open("wb") as file:
        for _ in range(size // len(piece)):
            file.write(piece)
        file.write(piece[: size % len(piece)])
