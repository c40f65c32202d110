"""Import SQLite without datetime, and without functools, of which its module needs one name."""

from __future__ import annotations

import sys

import sigwrap.bare as functools
from sigwrap.bare import TYPE_CHECKING

if TYPE_CHECKING:
    from sqlite3 import *  # noqa: F403
else:
    is_substituted = sys.modules.setdefault("functools", functools) is functools
    try:
        from _sqlite3 import *  # noqa: F403
    finally:
        if is_substituted:
            del sys.modules["functools"]
