"""`docs/calls.md` from the table of calls: `python -m tests.docs.calls_page --write` writes it."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from errno import errorcode
from pathlib import Path

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
    Under,
    WithBits,
    WithoutBits,
)
from sigwrap.machine import WITHOUT

PAGE = Path(__file__).parents[2] / "docs" / "calls.md"

_HEAD = """# Mediated calls

A seccomp filter hands these system calls to sigwrap, and the caller waits until sigwrap has logged
and answered the call. All other calls run at full speed. This page is generated from
`sigwrap/calls.py`.

- The filter sees registers only, and the low 32 bits of each argument.
- *EPERM* and other errno names: the filter itself refuses the call, without an event.
- Every call of the x32 ABI, and every call that is handed over but not listed, is refused with an
  event. Calls of 32-bit ARM programs fail with ENOSYS.
- *Judged as SIGKILL* or SIGSTOP: the policy decides as if the caller sent that signal. A rule that
  redirects or absorbs it denies the call. *Judged as tracing*: as SIGKILL, and always denied
  outside this session.
- On the caller itself these calls are free. For a shell that is the caller's parent
  (`builtin:parent`), free are priority, affinity, and scheduling and I/O classes
  other than realtime.
- What another thread could change (a pidfd, memory), sigwrap copies first. It makes the call
  itself, with no more rights than the caller.

Numbers after a call: x86_64/i386/aarch64.
[Security](security.md#other-system-calls) lists the calls that are not mediated.
"""
_TABLE = """
## %s

| calls | when | what they do |
| --- | --- | --- |
"""
_TITLES = {
    Under.EVERY_POLICY: "Under every policy",
    Under.NO_TRACING: f"Under {Under.NO_TRACING.value}",
    Under.AT_FORK: f"Under {Under.AT_FORK.value}",
    Under.FILE_AUDIT: f"Under {Under.FILE_AUDIT.value}",
    Under.NETWORK_RULES: f"Under {Under.NETWORK_RULES.value}",
    Under.DATAGRAM_RULES: f"Under {Under.DATAGRAM_RULES.value}",
}
_CAPABILITIES = """
## Capabilities

The log names the capabilities of a run (`session_started`, `capabilities`).

| capability | without it |
| --- | --- |
"""


def calls_reference() -> str:
    capabilities = "".join(f"| `{each.value}` | {why} |\n" for each, why in WITHOUT.items())
    return _HEAD + "".join(map(_section, Under)) + _CAPABILITIES + capabilities


def _section(under: Under) -> str:
    return _TABLE % _TITLES[under] + "".join(_rows(call for call in TABLE if call.under is under))


def _rows(calls: Iterable[Call]) -> Iterator[str]:
    """Yield one row for all calls that differ in their numbers only."""
    rows: dict[tuple[str, str], list[str]] = {}
    for call in calls:
        rows.setdefault((_condition(call), call.meaning), []).append(_name(call))
    for (condition, meaning), names in rows.items():
        yield f"| {', '.join(names)} | {condition} | {meaning} |\n"


def _name(call: Call) -> str:
    numbers = (call.x86_64, call.i386, call.aarch64)
    return f"`{call.name}` " + "/".join("-" if each is None else str(each) for each in numbers)


def _condition(call: Call) -> str:
    match call.handed_over:
        case Always():
            return "always"
        case OfSignal():
            return "if the policy logs the signal; signal 0 with Landlock"
        case OneOf(values=values, refused=refused, narrowed=narrowed):
            handed_over = [*values, *narrowed]
            parts = [_names(handed_over)] if handed_over else []
            parts += [f"EPERM for {_names(refused)}"] if refused else []
            return "; ".join(parts)
        case WithoutBits():
            return "unless it makes a thread"
        case NonZero(numbers=()):
            return "with an address"
        case OfOtherSockets():
            return "unless IP, unix, netlink or AF_ALG"
        case NonZero(pointers=()) if call.name == "setpgid":
            return "if the group is another process"
        case WithBits(bits=bits) if bits == O_CHANGES:
            return "`O_WRONLY`, `O_RDWR`, `O_CREAT`, `O_TRUNC` or `O_TMPFILE`"
        case NonZero(pointers=()) | AnyOf() | WithBits():
            return "unless pid 0 (the caller)"
        case NonZero():
            return "another process, new limits"
        case Refused(errno=error):
            return f"{errorcode[error]} {_WHERE_REFUSED[call.name]}"
        case Never(errno=error):
            return errorcode[error]


_WHERE_REFUSED = {
    "perf_event_open": "unless pid 0 (the caller)",
    "process_madvise": "unless negative (the caller)",
    "fanotify_init": "for `FAN_CLASS_CONTENT` and `FAN_CLASS_PRE_CONTENT`",
    "userfaultfd": "without `UFFD_USER_MODE_ONLY`",
    "sendmsg": "with `MSG_FASTOPEN`",
    "sendmmsg": "with `MSG_FASTOPEN`",
    "setsockopt": "for `IP_OPTIONS`, `IPV6_RTHDR` and its older names",
    "setns": "for 0, `CLONE_NEWPID` and `CLONE_NEWUSER`",
}


def _names(values: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in values)


if __name__ == "__main__" and sys.argv[1:] == ["--write"]:
    PAGE.write_text(calls_reference(), encoding="utf-8")
