"""sigwrap that finds no memory to look at an exec of a file named `too-much`, nor for the facts of
one named `too-crowded`, nor to look at what was loaded from one named `too-late`. The arguments of
this program are those of sigwrap."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

from sigwrap.cli.main import main
from sigwrap.exec import handler, verify
from sigwrap.exec.executable import Executable
from sigwrap.exec.facts import ExecFacts
from sigwrap.exec.handler import ExecLookup
from sigwrap.session.lineage import Process


def if_there_is_memory(look: Callable[..., object]) -> Any:
    def looks(*facts: Any, **options: Any) -> object:
        seen = look(*facts, **options)
        if isinstance(seen, ExecLookup) and os.path.basename(seen.asked.path) == b"too-much":
            seen.executable.close()
            raise MemoryError
        return seen

    return looks


def facts_if_there_is_memory(process: Process, syscall: str, path: str, *others: Any) -> ExecFacts:
    if os.path.basename(path) == "too-crowded":
        raise MemoryError(f"{len(os.listdir('/proc/self/fd'))} descriptors")
    return ExecFacts(process, syscall, path, *others)


def difference_if_there_is_memory(pid: int, judged: Executable, **options: bool) -> str:
    if judged.programs[0].name == "too-late":
        raise MemoryError
    return difference(pid, judged, **options)


difference = verify.difference
verify.difference = difference_if_there_is_memory
handler.Execs.look = if_there_is_memory(handler.Execs.look)  # type: ignore[method-assign]
handler.ExecFacts = facts_if_there_is_memory  # type: ignore[assignment, misc]
sys.exit(main(sys.argv[1:]))
