"""What sigwrap runs is loaded before COMMAND may run, and its own from then on: whoever can write
the files that it was loaded from changes nothing in the processes that watch him."""

from __future__ import annotations

import codecs
import sys
from _frozen_importlib import BuiltinImporter, FrozenImporter  # importlib would import warnings

from sigwrap.linux.own_pages import own_file_pages

# Python imports a codec when it is first used.
_CODECS = ("ascii", "latin-1", "utf-8", "utf-16")

_not_kept: set[str] = set()  # a process that forks hands it on: the other's word is for both


def keep_what_is_loaded() -> list[str]:
    """Returns the files that can't be kept; once more, where more was loaded since."""
    for name in _CODECS:
        codecs.lookup(name)
    _not_kept.update(own_file_pages())
    return sorted(_not_kept)


def import_nothing_more() -> None:
    """But what is part of the interpreter. An import that was forgotten fails, and does not run
    what COMMAND has put in its place."""
    sys.meta_path[:] = [BuiltinImporter, FrozenImporter]
