"""Commands whose input and output are recorded: a stub takes the command's place.

stand_in    the stub: it runs the command, and copies between its own streams and pipes
recordings  the supervisor's side: it starts stubs, and records what the pipes carry

At the command's exec, the supervisor gives the stub its ends of three pipes over a socket, with the
message READY. The last message is EXIT, or ERROR with a reason. The stub sends none.
"""

from __future__ import annotations

import struct

STUB_VARIABLE = "SIGWRAP_STUB"
"""The signals that a stub's caller ignored; the supervisor sets it for stubs only."""

PIECE_BYTES = 128 * 1024  # with half as much, each byte takes a tenth more time
READY, EXIT, ERROR = b"R", b"X", b"E"
# After EXIT: the command's exit status, -N for signal N, and how many bytes of input it has read.
EXIT_STATUS = struct.Struct(">iQ")
