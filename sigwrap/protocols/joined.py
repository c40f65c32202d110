"""Messages between a command that joins a session and that session, one in a packet.

The session listens on an abstract address. No process can remove or replace it as a file, and the
kernel frees it when its last holder ends, so a name has one session. The first message carries what
the command inherits: its descriptors, and in a file its arguments and environment. Later ones are
signals; the replies report the command's progress.
"""

from __future__ import annotations

import os

from sigwrap.bare import Any, NamedTuple, json, socket
from sigwrap.bare.digests import blake2b
from sigwrap.linux import proc_files

VERSION = 1
MAX_BYTES = 64 * 1024  # in a message
MOST_DESCRIPTORS = 253  # in a message; the kernel takes no more
MAX_WORDS_BYTES = 8 << 20
_LARGEST = 1 << 64  # a number may be a resource limit
KIND = socket.SOCK_SEQPACKET
_PREFIX = "sigwrap-joined"
_WHERE = ("/proc/self/ns/mnt", "/proc/self/root")  # paths depend on these


class BadMessage(ValueError):
    pass


class Call(NamedTuple):
    """A command that joins."""

    program: bytes
    words: tuple[bytes, ...]
    environment: dict[bytes, bytes]
    descriptors: tuple[int, ...]  # their numbers in the command
    terminal: int  # the number of its controlling terminal, or -1
    umask: int
    niceness: int
    ignored_signals: tuple[int, ...]
    signal_mask: tuple[int, ...]
    limits: tuple[tuple[int, int, int], ...]


def address(store: str, name: str, uid: int) -> bytes:
    """Return the address for an absolute store path.

    It does not depend on the file system at that path, which the session could change.
    """
    where = [(found.st_dev, found.st_ino) for found in map(proc_files.file_status, _WHERE)]
    digest = blake2b(os.fsencode(f"{where} {name} {store}"), digest_size=16)
    return f"\0{_PREFIX}/{uid}/{digest.hexdigest()}".encode()


def encode(message: dict[str, Any]) -> bytes:
    return json.dumps({"v": VERSION, **message}).encode()


def decode(packet: bytes) -> dict[str, Any]:
    try:
        message = json.loads(packet)
    except (ValueError, RecursionError) as error:
        raise BadMessage("not JSON") from error
    if not isinstance(message, dict) or message.get("v") != VERSION:
        raise BadMessage(f"protocol version {VERSION} expected")
    return message


def file_of_words(call: Call) -> bytes:
    """Join program, arguments and variables with NUL, which none of them contains."""
    variables = (name + b"=" + value for name, value in call.environment.items())
    return b"\0".join((call.program, *call.words, *variables))


def header(call: Call) -> dict[str, Any]:
    return {
        "words": len(call.words),
        "descriptors": call.descriptors,
        "terminal": call.terminal,
        "umask": call.umask,
        "niceness": call.niceness,
        "ignored_signals": call.ignored_signals,
        "signal_mask": call.signal_mask,
        "limits": call.limits,
    }


def read_call(message: dict[str, Any], words: bytes) -> Call:
    """Return the command of a message, or raise BadMessage."""
    try:
        parts = words.split(b"\0")
        count = int(message["words"])
        variables = (part.partition(b"=") for part in parts[1 + count :])
        call = Call(
            program=parts[0],
            words=tuple(parts[1 : 1 + count]),
            environment={name: value for name, _, value in variables},
            descriptors=tuple(map(int, message["descriptors"])),
            terminal=int(message["terminal"]),
            umask=int(message["umask"]),
            niceness=int(message["niceness"]),
            ignored_signals=tuple(map(int, message["ignored_signals"])),
            signal_mask=tuple(map(int, message["signal_mask"])),
            limits=tuple((int(r), int(s), int(h)) for r, s, h in message["limits"]),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise BadMessage(f"incomplete message: {error}") from error
    numbers = (
        *(call.descriptors, call.ignored_signals, call.signal_mask, *call.limits),
        (call.terminal, call.umask, call.niceness),
    )
    if any(abs(each) > _LARGEST for group in numbers for each in group):
        raise BadMessage("a number is too large")
    if not call.words or len(call.words) != count or len(parts) < 1 + count:
        raise BadMessage("no command in the message")
    return call
