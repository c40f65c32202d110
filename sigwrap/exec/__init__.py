"""Execs: what would run, whether it may, and whether the kernel loaded what was judged.

facts         pure: what an exec is judged by, how its events and approval requests show that
judge         pure: the mediator of an exec, from the request to its outcome
handler       gathers the facts for the mediator, and carries its effects out
asked         decodes the call: its arguments and variables, and the files of words along PATH
executable    the file, its interpreters, and what a wrapper wraps
content       how a file begins: a script's interpreter, an ELF file's loader; its digest
host          what sigwrap itself sees: the system's commands, files that rules name
verify        follows an exec to its exec stop, and compares the loaded image
traced        the same for a caller that another process traces
replacements  prepares a program that runs in place of the command, or waits in its place
repeated      plain files that have run before, without a new judgement; with _repeated.c
"""

from __future__ import annotations

import os

from sigwrap.bare import Any

# The extension exists if the build had a compiler. Without it, sigwrap judges every exec anew, with
# the same result.
native: Any
try:
    from sigwrap.exec import _repeated as native  # type: ignore[attr-defined, no-redef]
except ImportError:
    native = None

PURE_VARIABLE = "SIGWRAP_PURE_PYTHON"


def is_wanted() -> bool:
    return native is not None and not os.environb.get(PURE_VARIABLE.encode())
