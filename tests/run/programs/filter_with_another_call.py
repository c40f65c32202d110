"""sigwrap with a filter that hands over one call more than the table of calls has. The arguments of
this program are those of sigwrap."""

from __future__ import annotations

import sys

from sigwrap import calls
from sigwrap.cli.main import main
from sigwrap.linux import seccomp
from sigwrap.linux.bpf import mediation_filter

UNKNOWN = (
    calls.Call("personality", 135, 136, 92, calls.Family.SIGNAL, calls.Always(), ""),
    # F_GETSIG: a use of a known call that no mediator knows.
    calls.Call("fcntl", 72, 55, 25, calls.Family.SIGNAL, calls.OneOf(1, {"F_GETSIG": 11}, {}), ""),
)
KNOWN = tuple(call for call in calls.TABLE if call.name != "fcntl")


def with_unknown_calls(unlogged: frozenset[int], **asked: bool) -> object:
    return mediation_filter(unlogged, **asked, table=(*KNOWN, *UNKNOWN))


seccomp.mediation_filter = with_unknown_calls  # type: ignore[assignment]
sys.exit(main(sys.argv[1:]))
