"""Why a process ended: the cause, and the sentence that says it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from sigwrap.events import Payload, number
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.text import printable, shell_words

_LINE_CHARACTERS = 100

DELIVERED = {
    "signal_sent": "allowed",
    "signal_redirected": "redirected",
    "signal_approved": "approved",
}
_BY_THE_KERNEL = {
    "SIGSEGV": "an invalid memory access",
    "SIGBUS": "a memory access that failed (bus error)",
    "SIGFPE": "an arithmetic error",
    "SIGILL": "an illegal instruction",
    "SIGTRAP": "a breakpoint without a debugger",
    "SIGSYS": "a system call that a seccomp filter forbids",
    "SIGPIPE": "it wrote to a closed pipe",
    "SIGXCPU": "its CPU time limit",
    "SIGXFSZ": "its file size limit",
    "SIGALRM": "an alarm that it set itself",
    "SIGVTALRM": "a timer that it set itself",
    "SIGPROF": "a timer that it set itself",
}
_KEYS = {"SIGINT": "Ctrl+C", "SIGQUIT": "Ctrl+\\"}
ENDED_BY_ITSELF = "it ended by itself"
_AFTER = f"{ENDED_BY_ITSELF}, after "
_PASSED_ON = "it passed on the exit status of its "
_NOT_INSIDE = "no process in the session sent it"


class Cause(Enum):
    RECORDED = "recorded"  # a process of the session sent it
    SIGWRAP = "sigwrap"
    TERMINAL = "terminal"
    KERNEL = "kernel"
    OUTSIDE = "outside"  # or the kernel, if the log cannot tell them apart
    ITSELF = "itself"
    DENIED = "denied"  # by itself, after its exec was denied
    RUNNING = "running"
    SUPERVISOR_DIED = "supervisor-died"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sender:
    pid: int
    command: str
    parent_pid: int
    parent_command: str
    signal_name: str
    asked_for: str  # the signal that was asked for, if another was sent
    decision: str
    rule: str
    event_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """Why a process ended. A cause comes first; the process is filled in by `replace`."""

    pid: int = 0
    command: str = ""
    seq: int = 0  # of its process_exited; 0 if there is none
    status: int | None = None  # as a shell shows it
    signal_name: str = ""
    cause: Cause
    text: str
    sender: Sender | None = None

    @property
    def sentence(self) -> str:
        return self.text if self.status is None else f"exit {self.status}: {self.text}"


def because(cause: Cause, text: str, sender: Sender | None = None) -> Why:
    return Why(cause=cause, text=text, sender=sender)


def shown_command(argv: list[str]) -> str:
    return shortened(shell_words(argv[:64]))


def shortened(text: object) -> str:
    line = printable(str(text or "?"))
    return line if len(line) <= _LINE_CHARACTERS else f"{line[:_LINE_CHARACTERS]}…"


def sent_by(sender: Sender, *, to_itself: bool) -> str:
    name = sender.signal_name
    if sender.asked_for:
        name += f" in place of {sender.asked_for}"
    if to_itself:
        return f"it sent itself {name}"
    parts = [f'{name} from {sender.pid} "{sender.command}"']
    if sender.parent_command:
        parts.append(f'started by {sender.parent_pid} "{sender.parent_command}"')
    how = "audited" if sender.decision == "audit" else DELIVERED[sender.event_type]
    parts.append(f"{how} by rule {sender.rule}")
    return ", ".join(parts)


def sent_to_sigwrap(signal: Payload) -> str:
    """Return the signal of an interrupt, or one that sigwrap passed on, and its sender."""
    name = printable(str(signal.get("signal_name") or "a signal"))
    if signal.get("origin") == "terminal":
        return f"{name} from the terminal{terminal_key(name)}"
    pid, command = number(signal.get("sender_pid")), shortened(signal.get("sender_cmd"))
    if (place := signal.get("sender_place")) == "agent-signal":
        return f"agent signal {name} from {command}"
    uid = number(signal.get("sender_uid"))
    said = {
        "inside": f'from {pid} "{command}", inside the session',
        "outside": f'from {pid} "{command}", outside the session',
        "outer-process": "through sigwrap's outer process, sender unknown",
        "timer": "from a timer that sigwrap's caller set",
        "caller-ended": f'when its caller ended, {pid} "{command}"',
        "elsewhere": "from a process of another pid namespace",
        "ended": f"from {pid}, of user {uid}, which ended before sigwrap could identify it",
    }
    by_default = f'from {pid} "{command}"'
    return f"{name} {said.get(str(place), by_default)}"


def unsent(name: str, exited: Payload) -> Why:
    """Explain a signal without a recorded sender, by its number and what the kernel says."""
    shown = printable(name)
    if name in _BY_THE_KERNEL:
        return because(Cause.KERNEL, f"{shown} from the kernel: {_BY_THE_KERNEL[name]}")
    if name == "SIGKILL":
        return _killed_from_outside(exited)
    if name in _KEYS or name == "SIGHUP":
        return because(
            Cause.OUTSIDE,
            f"{shown} from the terminal{terminal_key(name)} or from outside the session: "
            f"{_NOT_INSIDE}",
        )
    return because(Cause.UNKNOWN, f"{shown} from an unknown sender: {_NOT_INSIDE}")


def _killed_from_outside(exited: Payload) -> Why:
    seconds = exited.get("cpu_limit_s")
    if isinstance(seconds, int) and seconds > 0:
        said = f"its hard CPU time limit, {seconds} s (ulimit -t)"
        return because(Cause.KERNEL, f"SIGKILL from the kernel: {said}")
    senders, known = ["a process outside the session"], _NOT_INSIDE
    if seconds != 0 and "oom_kills" in exited:
        senders.insert(0, "the kernel (a hard ulimit -t)")
    if exited.get("oom_kills") == 0:
        known += ", and the kernel's OOM killer killed no process"
    else:
        senders.insert(0, "the kernel's OOM killer")
    said = " or ".join(senders) if len(senders) < 3 else f"{senders[0]}, {' or '.join(senders[1:])}"
    return because(Cause.OUTSIDE, f"SIGKILL from {said}: {known}")


def denied(what: str) -> Why:
    return because(Cause.DENIED, f"{_AFTER}{what}")


def like_its_child(child: Why) -> Why:
    passed_on, of_child = child.text.removeprefix(_PASSED_ON), f'{child.pid} "{child.command}"'
    if passed_on != child.text:
        text = f"{_PASSED_ON}descendant {passed_on.partition(' ')[2]}"
    else:
        text = f"{_PASSED_ON}child {of_child}: {child.text.removeprefix(_AFTER)}"
    cause = Cause.DENIED if child.cause is Cause.DENIED else Cause.ITSELF
    return because(cause, text, child.sender)


def terminal_key(name: str) -> str:
    return f" ({_KEYS[name]})" if name in _KEYS else ""


def name_of_signal(value: object) -> str:
    return signal_name(value) if isinstance(value, int) and value in ALL else str(value)
