"""Signal names, numbers and groups of Linux on x86-64 and arm64.

The signal module has the names of the machine; logs and policies are read on other systems too.
"""

from __future__ import annotations

_IN_ORDER = (
    "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP "
    "TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS"
)
_ALIASES = {"SIGIOT": "SIGABRT", "SIGCLD": "SIGCHLD", "SIGPOLL": "SIGIO"}

LAST = 64
# The kernel's realtime signals begin at 32; glibc keeps 32 and 33 for pthread_cancel and setuid,
# so the SIGRTMIN that programs and people mean is 34.
RTMIN = 34

_NAME_BY_NUMBER: dict[int, str] = {
    number: "SIG" + name for number, name in enumerate(_IN_ORDER.split(), start=1)
}
NUMBER_BY_NAME: dict[str, int] = {name: number for number, name in _NAME_BY_NUMBER.items()}
NUMBER_BY_NAME.update({alias: NUMBER_BY_NAME[name] for alias, name in _ALIASES.items()})

ALL: frozenset[int] = frozenset(range(1, LAST + 1))


def _numbers(*names: str) -> frozenset[int]:
    return frozenset(NUMBER_BY_NAME["SIG" + name] for name in names)


GROUPS: dict[str, frozenset[int]] = {
    "@fatal": _numbers("KILL", "TERM", "QUIT", "ABRT"),
    "@job": _numbers("STOP", "CONT", "TSTP", "TTIN", "TTOU"),
    "@reload": _numbers("HUP", "USR1", "USR2"),
    "@ignore": _numbers("CHLD", "URG", "WINCH"),
    "@halt": _numbers("KILL", "STOP", "TERM", "INT", "HUP", "QUIT"),
    # A process that handles one of these usually reports a crash and ends.
    "@crash": _numbers(*"ABRT BUS FPE ILL PWR SEGV STKFLT SYS TRAP XCPU XFSZ".split()),
    # These end or stop a process that does not handle them.
    "@lethal": ALL - _numbers("CHLD", "CONT", "URG", "WINCH"),
    "@all": ALL,
}


def signal_name(number: int) -> str:
    if number in _NAME_BY_NUMBER:
        return _NAME_BY_NUMBER[number]
    if number == RTMIN:
        return "SIGRTMIN"
    if number == LAST:
        return "SIGRTMAX"
    if RTMIN < number < LAST:
        return f"SIGRTMIN+{number - RTMIN}"
    return f"SIG{number}"


def signal_number(word: str) -> int | None:
    """Parse `SIGTERM`, `TERM`, `15`, `SIGRTMIN+3`, `SIGRTMAX-1` or `SIG33`, or return None."""
    name = word if word.startswith("SIG") else "SIG" + word
    if name in NUMBER_BY_NAME:
        return NUMBER_BY_NAME[name]
    number = _realtime_number(name)
    return number if number in ALL else None


def signal_numbers(word: str) -> frozenset[int] | None:
    if word in GROUPS:
        return GROUPS[word]
    number = signal_number(word)
    return None if number is None else frozenset({number})


def words() -> tuple[str, ...]:
    return (*GROUPS, *NUMBER_BY_NAME, "SIGRTMIN", "SIGRTMAX")


def _realtime_number(name: str) -> int | None:
    for base_name, base, sign in (
        ("SIGRTMIN", RTMIN, "+"),
        ("SIGRTMAX", LAST, "-"),
        ("SIG", 0, ""),
    ):
        if not name.startswith(base_name):
            continue
        rest = name[len(base_name) :]
        if base and not rest:
            return base
        digits = rest.removeprefix(sign)
        if rest.startswith(sign) and digits.isascii() and digits.isdigit() and len(digits) <= 2:
            number = base - int(digits) if sign == "-" else base + int(digits)
            # SIGRTMIN+n and SIGRTMAX-n stay among the realtime signals.
            return number if not base or RTMIN <= number <= LAST else None
    return None
