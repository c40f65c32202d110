"""Modules that are imported late come from memory, whatever their files hold by then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from sigwrap.start import own_code

ROOT = Path(__file__).parents[2]
LOOK = """
import sys
sys.path[:0] = [{root!r}]
from sigwrap.start import own_code
import os
{before}
own_code.read_what_is_used_later()
own_code.read_patterns_engine(at_once=False)
print("re2" in sys.modules, "re" in sys.modules)
own_code.import_nothing_more()
here = os.getcwd()
import json, re2, shlex
print(json.loads("[1]"), re2.match("b", "b") is None, shlex.split("a 'b c'"), os.getcwd() == here)
maps = open("/proc/self/maps").read()
file = os.path.basename(sys.modules["re2._re2"].__file__)
print("memfd:re2._re2" in maps, "/_re2." in maps, file)
try:
    import tarfile
except ImportError:
    print("nothing else")
"""


def looked(before: str) -> list[str]:
    """Run the program without the modules that a site imports."""
    packages = next(path for path in map(Path, sys.path) if (path / "re2").is_dir())
    look = LOOK.format(root=str(ROOT), before=f"sys.path.append({str(packages)!r}); {before}")
    words = [sys.executable, "-I", "-S", "-c", look]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_late_modules_are_loaded_from_memory_and_no_others_are_found() -> None:
    loaded, used, mapped, no_other = looked("")
    assert (loaded, used) == ("False False", "[1] False ['a', 'b c'] True")
    assert mapped.startswith("True False _re2.")
    assert no_other == "nothing else"


def test_without_memory_files_a_library_is_loaded_at_once() -> None:
    """A container may forbid them."""
    refuse = "os.memfd_create = lambda *_: os.stat('/nowhere')"
    loaded, used, mapped, no_other = looked(refuse)
    assert (loaded, used) == ("True False", "[1] False ['a', 'b c'] True")
    assert mapped.startswith("False True _re2.")
    assert no_other == "nothing else"


def test_a_memory_file_cannot_be_changed() -> None:
    fd = own_code.sealed("a/library.so", b"as it was")
    try:
        with pytest.raises(PermissionError):
            os.pwrite(fd, b"x", 0)
        with pytest.raises(PermissionError):
            os.ftruncate(fd, 0)
        assert os.pread(fd, 100, 0) == b"as it was"
    finally:
        os.close(fd)
