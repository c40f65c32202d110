"""What is loaded later is what was read, whatever its file holds by then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
sys.path[:0] = [{root!r}]
from sigwrap.linux import kept_library, proc_files
from sigwrap.policy.judge.globs import Glob
from sigwrap.start import own_code
proc_files.hold()
{before}
own_code.keep_what_is_loaded()
print("re2" in sys.modules, "re" in sys.modules)
own_code.import_nothing_more()
import os
here = os.getcwd()
import json, re2, shlex
print(Glob("a*c").matches("abc"), json.loads("[1]"), shlex.split("a 'b c'"), os.getcwd() == here)
print(sys.modules["re2._re2"].__spec__.origin.startswith("./self/fd/"))
try:
    import tarfile
except ImportError:
    print("nothing else")
"""


def looked(before: str) -> list[str]:
    """Without what a site imports."""
    packages = next(path for path in map(Path, sys.path) if (path / "re2").is_dir())
    look = LOOK.format(root=str(ROOT), before=f"sys.path.append({str(packages)!r}); {before}")
    words = [sys.executable, "-I", "-S", "-c", look]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_it_is_loaded_from_memory_and_nothing_else_is_found() -> None:
    assert looked("") == [
        "False False",
        "True [1] ['a', 'b c'] True",
        "True",
        "nothing else",
    ]


def test_where_it_can_t_be_kept_it_is_loaded_at_once() -> None:
    """A container may forbid unshare."""
    said = looked("kept_library.libc = type('Refusing', (), {'unshare': lambda _, __: -1})()")
    assert said == ["True False", "True [1] ['a', 'b c'] True", "False", "nothing else"]


def test_nobody_can_write_to_it(tmp_path: Path) -> None:
    from sigwrap.linux import kept_library

    file = tmp_path / "library.so"
    file.write_bytes(b"as it was")
    fd = kept_library.written("library.so", file.read_bytes())
    try:
        file.write_bytes(b"changed")
        assert os.pread(fd, 100, 0) == b"as it was"
        for change in (lambda: os.pwrite(fd, b"x", 0), lambda: os.ftruncate(fd, 0)):
            try:
                change()
            except PermissionError:
                continue
            raise AssertionError("it was changed")
    finally:
        os.close(fd)
