"""docs/calls.md, from the table of mediated calls."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from errno import errorcode

from sigwrap.calls import (
    O_CHANGES,
    TABLE,
    Always,
    AnyOf,
    Call,
    Never,
    NonZero,
    OfOtherSockets,
    OfSignal,
    OneOf,
    Refused,
    WithBits,
    WithoutBits,
)
from sigwrap.platform import WITHOUT

_HEAD = """# Mediated calls

Generated from `sigwrap/calls.py` by `python -m sigwrap.linux.reference > docs/calls.md`.

The filter sees registers, and of an argument the low 32 bits. A call that it hands over waits until
sigwrap has recorded and answered it. A call of the x32 ABI, and one that is handed over but isn't
in this table, is refused with an event. On aarch64, which was tried in an emulator alone, a call of
a 32-bit ARM program fails with ENOSYS, without one.

| call | x86_64 | i386 | aarch64 | mediator | what the filter does | what the call does |
| --- | --- | --- | --- | --- | --- | --- |
"""


_CAPABILITIES = """
## Capabilities

What a run may rest on is in its log (`session_started`, `capabilities`), and what each effect of a
mediator needs is in `sigwrap/platform.py`.

| capability | without it |
| --- | --- |
"""


def calls_reference() -> str:
    capabilities = "".join(f"| `{each.value}` | {why} |\n" for each, why in WITHOUT.items())
    return _HEAD + "".join(map(_row, TABLE)) + _CAPABILITIES + capabilities


def _row(call: Call) -> str:
    numbers = " | ".join(
        "-" if n is None else str(n) for n in (call.x86_64, call.i386, call.aarch64)
    )
    family = "-" if isinstance(call.handed_over, Never) else call.family.value
    condition = _condition(call) + (f", under {call.under.value}" if call.under.value else "")
    return f"| `{call.name}` | {numbers} | {family} | {condition} | {call.meaning} |\n"


def _condition(call: Call) -> str:
    match call.handed_over:
        case Always():
            return "hands it over"
        case OfSignal():
            return "hands it over, unless the signal is unlogged; 0 only under a Landlock domain"
        case OneOf(values=values, refused=refused, narrowed=narrowed):
            handed_over = [*values, *narrowed]
            parts = [f"hands it over for {_names(handed_over)}"] if handed_over else []
            parts += [f"EPERM for {_names(refused)}"] if refused else []
            return "; ".join(parts)
        case WithoutBits() if call.name == "process_madvise":
            return "hands it over, unless it names the caller by a number below 0"
        case WithoutBits():
            return "hands it over, unless it makes a thread"
        case NonZero(numbers=()):
            return "hands it over where it names an address"
        case OfOtherSockets():
            return (
                "hands it over, unless it is a socket of IP, unix, netlink or the kernel's crypto"
            )
        case NonZero(pointers=()) if call.name == "setpgid":
            return "hands it over, unless the group is the process's own"
        case WithBits(bits=bits) if bits == O_CHANGES:
            return "hands it over with `O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC` or `O_TMPFILE`"
        case NonZero(pointers=()) | AnyOf() | WithBits():
            return "hands it over, unless it names the caller by 0"
        case NonZero():
            return "hands it over where it names a process and sets limits"
        case Refused(errno=error):
            return f"{errorcode[error]} {_WHERE_REFUSED[call.name]}"
        case Never(errno=error):
            return errorcode[error]


_WHERE_REFUSED = {
    "fanotify_init": "for `FAN_CLASS_CONTENT` and `FAN_CLASS_PRE_CONTENT`",
    "userfaultfd": "without `UFFD_USER_MODE_ONLY`",
    "sendmsg": "with `MSG_FASTOPEN`",
    "sendmmsg": "with `MSG_FASTOPEN`",
    "setsockopt": "for `IP_OPTIONS`, `IPV6_RTHDR` and its older names",
    "setns": "for 0, `CLONE_NEWPID` and `CLONE_NEWUSER`",
}


def _names(values: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in values)


if __name__ == "__main__":
    sys.stdout.write(calls_reference())
