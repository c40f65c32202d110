"""Files that are written and made where a rule audits that: natively, under rules that the kernel
alone holds, and audited."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.bench.beside import Line, beside
from tests.bench.peers import PROGRAMS
from tests.bench.results import Result
from tests.bench.setting import Setting, sigwrap
from tests.bench.workloads import PYTHON, TIMED

_FILES_A_FOLDER = 10


def measure_writes(setting: Setting) -> Result:
    return _opens(setting, "audited_opens", "write", setting.amount(20_000, 2_000))


def measure_reads(setting: Setting) -> Result:
    """What is read isn't audited, but the filter looks at it."""
    return _opens(setting, "unaudited_opens", "read", setting.amount(100_000, 10_000))


def _opens(setting: Setting, key: str, how: str, count: int) -> Result:
    name = f"{count} opens of a file for {how.removesuffix('e')}ing"
    words = (*PYTHON, str(PROGRAMS / "opens_files.py"), str(count), how)
    return _measure(setting, key, name, words, unit="open", units=count)


def measure_unpacking(setting: Setting) -> Result:
    folder, files = setting.make_folder("unpacked"), setting.amount(10_000, 1_000)
    tree = folder / "tree"
    for at in range(files):
        inside = tree / f"package-{at // _FILES_A_FOLDER}"
        if at % _FILES_A_FOLDER == 0:
            inside.mkdir(parents=True)
        (inside / f"file-{at}.js").write_text("module.exports = {}\n" * 20)
    subprocess.run(["tar", "-cf", "files.tar", "tree"], cwd=folder, check=True)
    unpack = "d=$(mktemp -d); tar -xf files.tar -C $d && rm -r $d"
    return _measure(
        setting,
        "audited_unpacking",
        f"{files} files unpacked and deleted",
        (*TIMED, "sh", "-c", unpack),
        unit="file",
        units=files,
        folder=folder,
    )


def _measure(
    setting: Setting,
    key: str,
    name: str,
    words: tuple[str, ...],
    *,
    unit: str,
    units: int,
    folder: Path | None = None,
) -> Result:
    where = folder or setting.make_folder(key)
    lines = {"native": Line(words=words, folder=where)}
    for decision, said in (("allow", "allowed"), ("audit", "audited")):
        prefix = sigwrap("-p", _policy(where, decision), "--log-size", "4G")
        lines[said] = Line(prefix=prefix, words=words, folder=where)
    return beside(key, name, lines, rounds=setting.rounds, unit=unit, units=units)


def _policy(folder: Path, decision: str) -> str:
    path = folder / f"{decision}.yaml"
    operations = "operations: [write, create, delete]"
    path.write_text(
        f"version: 1\nname: {decision}\ndefaults: {{command: allow, signal: allow}}\nfile_rules:\n"
        "  - {name: devices, paths: [/dev], operations: [write], decision: allow}\n"
        f"  - {{name: kept, paths: [/usr], {operations}, decision: deny}}\n"
        f"  - {{name: all, paths: [/], {operations}, decision: {decision}}}\n"
    )
    return str(path)
