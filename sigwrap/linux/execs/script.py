"""A script's first line, and the arguments of its interpreter, as the kernel works them out."""

from __future__ import annotations

from collections.abc import Sequence

from sigwrap.tuples import NamedTuple

HEADER_BYTES = 256  # BINPRM_BUF_SIZE
MAX_INTERPRETERS = 5  # the kernel says ELOOP to a sixth
_BLANKS = b" \t"


class NotExecutableFormat(Exception):
    """The kernel would say ENOEXEC: a script that names no interpreter."""


class Shebang(NamedTuple):
    interpreter: bytes
    argument: bytes | None


def shebang(header: bytes) -> Shebang | None:
    """As fs/binfmt_script.c reads the first line; None where the file is no script."""
    if not header.startswith(b"#!"):
        return None
    header = header[:HEADER_BYTES].ljust(HEADER_BYTES, b"\0")
    line, newline, _ = header[2:].partition(b"\n")
    if not newline:
        words = line.lstrip(_BLANKS)
        if not any(blank in words for blank in (b" ", b"\t", b"\0")):
            raise NotExecutableFormat  # the interpreter's name is cut off
        line = line[:-1]
    line = line.rstrip(_BLANKS).lstrip(_BLANKS)
    end = next((at for at, byte in enumerate(line) if byte in b" \t\0"), len(line))
    interpreter, rest = line[:end], line[end:]
    if not interpreter:
        raise NotExecutableFormat
    argument = None if rest.startswith(b"\0") else rest.lstrip(_BLANKS).partition(b"\0")[0]
    return Shebang(interpreter=interpreter, argument=argument or None)


def interpreter_argv(script: Shebang, called: bytes, argv: Sequence[bytes]) -> list[bytes]:
    """`called`: the script's name as the kernel hands it on."""
    inserted = [script.interpreter]
    if script.argument is not None:
        inserted.append(script.argument)
    return [*inserted, called, *argv[1:]]


def command_line(argv: Sequence[bytes]) -> bytes:
    """What /proc/PID/cmdline shows of a fresh image; Linux makes an empty argv `[""]`."""
    return b"\0".join(argv) + b"\0"
