"""Writes the zipapp: sigwrap and what it needs, for a machine's own Python. make zipapp

Sources and bytecode are both inside: the bytecode makes the start twice as quick on the Python
minor version of the build, any other takes the sources. Extension modules are in folders named
after their ABI; build/zipapp_main.py loads them from there. pip downloads those for other versions.
"""

from __future__ import annotations

import importlib.util
import marshal
import os
import platform
import py_compile
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from importlib.metadata import version
from pathlib import Path

from run_modules import code_of_a_run

ROOT = Path(__file__).parents[1]
PURE = ("sigwrap", "typer", "annotated_doc", "shellingham", "typing_extensions", "yaml")
NATIVE_PACKAGES = ("re2",)
NATIVE_MODULES = {  # and the packages that pip knows
    "re2._re2": "google-re2",
    "yaml._yaml": "PyYAML",
}
REPEATED = "sigwrap.exec._repeated"  # the same; there where it could be compiled
ABI = EXTENSION_SUFFIXES[0].split(".")[1]
VERSIONS = ("311", "312", "313", "314")
SHARED, OF_A_RUN = code_of_a_run(ROOT / "sigwrap")
SHEBANG = b"#!/usr/bin/env -S python3 -I\n"
# Any Python can read it, 2.7 too.
FIRST = """\
import sys

if sys.version_info < (3, 11):
    found = sys.version_info[:2]
    sys.stderr.write("sigwrap: needs Python 3.11 or newer; this is %d.%d\\n" % found)
    sys.exit(125)

import zipapp_main
"""

Files = Iterator[tuple[str, bytes]]


def main(target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    unfinished = target.with_suffix(".unfinished")
    with unfinished.open("wb") as file:
        file.write(SHEBANG)
        with zipfile.ZipFile(file, "w") as archive:  # stored: inflating would cost start-up time
            for name, data in contents():
                archive.writestr(zipfile.ZipInfo(name), data)
            for name, data in of_other_versions():
                archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)
            docs = ROOT / "docs"
            others = (docs / "policy.schema.json", docs / "sigwrap.1")
            for page in (*sorted(docs.glob("*.md")), *others):
                name = f"sigwrap/docs/{page.name}"
                archive.writestr(zipfile.ZipInfo(name), page.read_bytes(), zipfile.ZIP_DEFLATED)
    unfinished.chmod(0o755)
    unfinished.replace(target)


def contents() -> Files:
    yield "__main__.py", FIRST.encode()
    for name in ("zipapp_main.py", "run_importer.py"):
        yield from python_file(name, ROOT / "build" / name)
    for name in PURE:
        yield from package(name, prefix="")
    for policy in sorted(ROOT.joinpath("policies").glob("*.yaml")):
        yield f"sigwrap/policies/{policy.name}", policy.read_bytes()
    for name in NATIVE_PACKAGES:
        yield from package(name, prefix="extensions/")
    for name in NATIVE_MODULES:
        yield f"{ABI}/{name}.so", stripped(found(name))
    if importlib.util.find_spec(REPEATED) is not None:
        yield f"abi3/{REPEATED}.so", stripped(found(REPEATED))
    yield f"{ABI}/shared.code", marshal.dumps(SHARED)
    yield f"{ABI}/run.code", marshal.dumps(OF_A_RUN)


def of_other_versions() -> Files:
    own = f"cpython-{sys.version_info[0]}{sys.version_info[1]}-"
    for number in VERSIONS:
        abi = ABI.replace(own, f"cpython-{number}-")
        if abi == ABI:
            continue
        with tempfile.TemporaryDirectory() as folder:
            download(number, folder)
            for wheel in Path(folder).glob("*.whl"):
                with zipfile.ZipFile(wheel) as archive:
                    for name in NATIVE_MODULES:
                        path = f"{name.replace('.', '/')}.{abi}.so"
                        if path in archive.namelist():
                            yield f"{abi}/{name}.so", stripped(Path(archive.extract(path, folder)))


def download(number: str, folder: str) -> None:
    wanted = [f"{each}=={version(each)}" for each in NATIVE_MODULES.values()]
    platforms = [f"--platform=manylinux{each}_{platform.machine()}" for each in ("_2_28", "2014")]
    pip = (sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check")
    only = ("--no-deps", "--only-binary=:all:", f"--python-version={number}", f"--dest={folder}")
    subprocess.run([*pip, *only, *platforms, *wanted], check=True)


def package(name: str, prefix: str) -> Files:
    origin = found(name)
    if origin.name != "__init__.py":
        yield from python_file(prefix + origin.name, origin)
        return
    folder = origin.parent
    for parent, _, files in sorted(os.walk(folder)):
        for file in sorted(Path(parent, file) for file in files):
            inside = prefix + str(file.relative_to(folder.parent))
            if file.suffix == ".py":
                yield from python_file(inside, file)
            elif file.suffix in (".typed", ".html", ".css", ".js"):
                yield inside, file.read_bytes()


def python_file(inside: str, source: Path) -> Files:
    yield inside, source.read_bytes()
    name = inside.removesuffix(".py").replace("/", ".")
    names = {name, name.replace("__init__", "")}
    if names & (SHARED.keys() | OF_A_RUN.keys()):
        return
    with tempfile.NamedTemporaryFile(suffix=".pyc") as compiled:
        py_compile.compile(
            str(source),
            compiled.name,
            dfile=inside,
            doraise=True,
            # Times inside a zip are of no use to tell a stale file.
            invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH,
        )
        yield f"{inside}c", Path(compiled.name).read_bytes()


def found(name: str) -> Path:
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise SystemExit(f"{name} isn't installed: make setup")
    return Path(spec.origin)


def stripped(library: Path) -> bytes:
    strip = shutil.which("strip")
    if strip is None:
        return library.read_bytes()
    with tempfile.NamedTemporaryFile() as smaller:
        subprocess.run([strip, "-o", smaller.name, library], check=True)
        return Path(smaller.name).read_bytes()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
