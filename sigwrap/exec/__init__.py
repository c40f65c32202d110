"""Execs: what would run, whether it may, and whether the kernel loaded what was judged.

facts         pure: what an exec is judged by, how its events show that, and retries
judge         pure: the mediator of an exec, from the request to its outcome
question      pure: the approval request for an exec, and what an approval covers
handler       gathers the facts for the mediator, and carries its effects out
asked         decodes the call: arguments, environment, root and folder, as they are now
executable    the file, its interpreters, and what a wrapper wraps
content       how a file begins: a script's interpreter, an ELF file's loader; its digest
commands      files that words name along PATH; the system's programs; files that rules name
verify        follows an exec to its exec stop, and compares the loaded image
traced        the same for a caller that another process traces
tracing       who traces a caller, and how far its exec has got
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
