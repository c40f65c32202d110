"""sigwrap that finds no memory to look at an exec of a file named `too-much`. The arguments of this
program are those of sigwrap."""

from __future__ import annotations

import os
import sys
from typing import Any

from sigwrap.cli.main import main
from sigwrap.linux.execs import look
from sigwrap.run.execs import execs


def look_if_there_is_memory(*facts: Any) -> object:
    seen = look.look(*facts)
    if isinstance(seen, look.Seen) and os.path.basename(seen.asked.path) == b"too-much":
        seen.executable.close()
        raise MemoryError
    return seen


execs.look = look_if_there_is_memory  # type: ignore[assignment]
sys.exit(main(sys.argv[1:]))
