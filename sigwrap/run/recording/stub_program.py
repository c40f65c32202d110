"""How a stub is started: which program, which words, which environment."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence

import sigwrap
from sigwrap.linux.execs.environment import Variables
from sigwrap.protocols.stub import STUB_VARIABLE
from sigwrap.start import onefile

# From a package or a zipapp: Python's own modules first, then those where we are, and no others.
_OPTIONS = ("-I", "-S", "-B", "-X", "utf8", "-c")
_START = "import sys; sys.path.append(sys.argv.pop(1)); from sigwrap.__main__ import main; main()"


def stub_line(path: bytes, argv: Sequence[bytes]) -> tuple[str, list[bytes]]:
    """The program, and its arguments, of a stub that stands in for `path` with `argv`."""
    if onefile.unpacked_folder():
        return sys.executable, [b"sigwrap-stub", path, *argv]
    above_the_package = os.path.dirname(os.path.dirname(os.path.abspath(sigwrap.__file__)))
    words = (sys.executable, *_OPTIONS, _START, above_the_package, "--as", "stub")
    return sys.executable, [*map(os.fsencode, words), path, *argv]


def stub_variables(ignored_signals: Iterable[int]) -> Variables:
    """All of its environment: nothing of the caller's, and nothing of ours that could be secret."""
    ignored = ",".join(map(str, sorted(ignored_signals)))
    mark = (STUB_VARIABLE.encode(), ignored.encode())
    return (mark, *onefile.variables_of_the_unpacked(os.environb).items())
