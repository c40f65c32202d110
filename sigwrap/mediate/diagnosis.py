"""The state of a session, as an event and as lines for a person, cut to what fits."""

from __future__ import annotations

from sigwrap.bare import NamedTuple, json
from sigwrap.escape import printable, shell_words, shortened
from sigwrap.events import Payload
from sigwrap.mediate.masking import masked, masked_text

_WORDS_KEPT, _WORD_CHARACTERS = 16, 200
_LONGEST_COMMAND, _LONGEST_REQUEST = 100, 100
_PROCESSES_CHARACTERS, _REQUESTS_CHARACTERS = 4_000, 800  # of JSON: an event has 8 KiB
_LINES_OF_PROCESSES, _LINES_OF_REQUESTS = 24, 6
_DEEPEST_INDENT = 12


class TreeProcess(NamedTuple):
    """A process of the tree."""

    pid: int
    ppid: int
    depth: int
    comm: str
    argv: tuple[str, ...]  # of its last exec, from cut_words; empty if unknown
    state: str  # the letter in /proc/PID/stat
    age_s: float


class OpenRequest(NamedTuple):
    """A request for approval."""

    id: str
    what: str


class LimitUse(NamedTuple):
    name: str
    used: float
    maximum: float


class Standstill(NamedTuple):
    """A stop of the whole session."""

    by: str
    for_s: float
    held: int  # execs that wait


class Diagnosis(NamedTuple):
    stopped: Standstill | None
    processes: list[TreeProcess]  # parents before their children
    requests: list[OpenRequest]
    limits: list[LimitUse]
    counts: dict[str, int]  # of the events so far
    unrecorded: int
    log_bytes: int
    head: str


def cut_words(argv: tuple[str, ...]) -> tuple[str, ...]:
    """Return what is kept of a process's arguments while it lives.

    A secret in a long word is masked before the cut, because half of it would not be found.
    """
    return tuple(
        word if len(word) <= _WORD_CHARACTERS else f"{masked_text(word)[:_WORD_CHARACTERS]}…"
        for word in argv[:_WORDS_KEPT]
    )


def payload_of(found: Diagnosis) -> Payload:
    processes = _fitting([_process(each) for each in found.processes], _PROCESSES_CHARACTERS)
    requests = _fitting(
        [{"id": each.id, "what": _what(each)} for each in found.requests], _REQUESTS_CHARACTERS
    )
    return {
        "stopped": None if found.stopped is None else _stopped(found.stopped),
        "processes": processes,
        "processes_left_out": len(found.processes) - len(processes),
        "approvals": requests,
        "approvals_left_out": len(found.requests) - len(requests),
        "limits": {each.name: [each.used, each.maximum] for each in found.limits},
        "counts": found.counts,
        "unrecorded": found.unrecorded,
        "log_bytes": found.log_bytes,
        "head": found.head,
    }


def lines_of(found: Diagnosis) -> list[str]:
    number = len(found.processes)
    lines = [f"diagnostic: {number} process{'es' * (number != 1)}, head {found.head}"]
    if found.stopped is not None:
        by, for_s, held = found.stopped
        waits = f"{held} exec{'s' * (held != 1)} wait{'s' * (held == 1)}"
        lines.append(f"stopped for {_age(for_s)} by {by}; {waits}")
    shown = found.processes[:_LINES_OF_PROCESSES]
    if shown:
        lines.append(f"{'pid':>9} {'ppid':>9} {'depth':>5} {'state':5} {'age':>8}  command")
    for each in shown:
        indent = "  " * min(each.depth, _DEEPEST_INDENT)
        age, pids = _age(each.age_s), f"{each.pid:>9} {each.ppid:>9}"
        lines.append(f"{pids} {each.depth:>5} {each.state:5} {age:>8}  {indent}{_command(each)}")
    lines += _more(number - len(shown), "processes")
    waiting = found.requests[:_LINES_OF_REQUESTS]
    lines += [f"approval request {each.id}  {_what(each)}" for each in waiting]
    lines += _more(len(found.requests) - len(waiting), "approval requests")
    for limit in found.limits:
        lines.append(f"limit {limit.name}: {limit.used} of {limit.maximum}")
    counted = ", ".join(f"{name} {count}" for name, count in sorted(found.counts.items()))
    lines.append(f"events: {counted}")
    unrecorded = f"{found.unrecorded} event{'s' * (found.unrecorded != 1)}"
    lost = f", {unrecorded} could not be recorded" if found.unrecorded else ""
    lines.append(f"log: {found.log_bytes} bytes{lost}")
    return lines


def _fitting(items: list[Payload], characters: int) -> list[Payload]:
    for position, item in enumerate(items):
        characters -= len(json.dumps(item)) + 1
        if characters < 0:
            return items[:position]
    return items


def _stopped(stopped: Standstill) -> Payload:
    return {"by": stopped.by, "for_s": round(stopped.for_s, 1), "held": stopped.held}


def _process(process: TreeProcess) -> Payload:
    return {
        "pid": process.pid,
        "ppid": process.ppid,
        "depth": process.depth,
        "command": _command(process),
        "state": process.state,
        "age_s": round(process.age_s, 1),
    }


def _command(process: TreeProcess) -> str:
    """Return the command, or the name in brackets, as ps does, if the exec is unknown."""
    text = shell_words(masked(process.argv)) if process.argv else f"[{printable(process.comm)}]"
    return shortened(text, _LONGEST_COMMAND)


def _what(request: OpenRequest) -> str:
    return shortened(printable(request.what), _LONGEST_REQUEST)


def _more(left: int, what: str) -> list[str]:
    return [f"… and {left} more {what}"] if left > 0 else []


def _age(seconds: float) -> str:
    whole = int(seconds)
    if whole < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(whole, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes:02} m" if hours else f"{minutes} m {rest:02} s"
