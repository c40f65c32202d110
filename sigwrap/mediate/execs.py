"""What an exec comes down to, as the kernel would work it out: scripts, arguments, events."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from sigwrap.events import Payload
from sigwrap.mediate.masking import masked
from sigwrap.policy.judge.request import CommandRedirect, CommandRequest, Decision

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


def replacement_argv(redirect: CommandRedirect, argv: Sequence[str]) -> list[bytes]:
    name = redirect.command.rpartition("/")[2]
    rest = argv[1:] if redirect.append_args else ()
    return [os.fsencode(word) for word in (name, *redirect.args, *rest)]


def exec_payload(
    request: CommandRequest,
    decision: Decision,
    *,
    asked_path: str,
    syscall: str,
    cwd: str,
    comm: str,
    ppid: int,
    verified: bool,
) -> Payload:
    """`verified`: that it will be; the event comes first. If that fails, another one says so."""
    main = request.programs[0]
    argv = masked(main.argv)
    payload: Payload = {
        "path": asked_path,
        "argv": argv,
        "cwd": cwd,
        "comm": comm,
        "ppid": ppid,
        "depth": request.depth,
        "decision": decision.action.value,
        "rule_name": decision.rule,
        "reason": decision.reason,
        "syscall": syscall,
        "truncated": request.truncated,
        "traced": request.traced,
        "verified": verified,
    }
    if len(request.programs) > 1 or main.path != asked_path:
        payload["programs"] = [
            {
                "path": each.path,
                "name": each.name,
                "argv": argv if each.argv is main.argv else masked(each.argv),
            }
            for each in request.programs
        ]
    return payload
