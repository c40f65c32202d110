"""A question: as a session lists it, and in printable lines as its reader sees it."""

from __future__ import annotations

from typing import Any

from sigwrap.escape import note_on_order, printable, shell_words
from sigwrap.events import number, text, texts
from sigwrap.mediate.questions import wants
from sigwrap.protocols.control import ControlReply
from sigwrap.watch.board import Waits

_LONGEST_S = 1e9
_NOT_FROM_HERE = "cannot be approved on this terminal: processes in the session could type on it"
_NS_PER_S = 1_000_000_000


def waiting_in(reply: ControlReply) -> list[dict[str, Any]]:
    found = reply.get("requests")
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def waits_of(session_id: str, reply: ControlReply, request: dict[str, Any], now_ns: int) -> Waits:
    """`reply`: that of its session, which has the request."""
    note = text(request.get("note"))
    if reply.get("typed") is True:
        note = "; ".join([note, _NOT_FROM_HERE] if note else [_NOT_FROM_HERE])
    return Waits(
        session_id=session_id,
        session_name=text(reply.get("name")),
        id=text(request.get("id")),
        kind=text(request.get("kind")),
        pid=number(request.get("pid")),
        process=text(request.get("process")),
        depth=number(request.get("depth")),
        what=text(request.get("what")),
        masked=text(request.get("masked")),
        is_cut=request.get("is_cut") is True,
        runs=text(request.get("runs")),
        loads=text(request.get("loads")),
        files=tuple(texts(request.get("files"))),
        folder=text(request.get("folder")),
        note=note,
        rule=text(request.get("rule")),
        policy=text(request.get("policy")),
        message=text(request.get("message")),
        may_always=request.get("may_always") is True,
        asked_ns=now_ns - _ns(request.get("waited_s")),
        deadline_ns=now_ns + _ns(request.get("expires_in_s")),
    )


def lines_of(waits: Waits, whole: str) -> list[str]:
    """What it is about; the last line names the rule. `whole`: what shows all that is known, where
    this is not."""
    policy = f", policy {printable(waits.policy)}" if waits.policy else ""
    message = f": {printable(waits.message)}" if waits.message else ""
    lines = [
        f"{printable(waits.id)}  {shell_words([waits.process])} (pid {waits.pid}, depth "
        f"{waits.depth}) {wants(waits.kind)} {printable(waits.what)}"
    ]
    if waits.is_cut:
        lines.append(f"in full: {whole}")
    if waits.files:
        lines.append(f"file {', then '.join(shell_words([file]) for file in waits.files)}")
    more = {"runs": waits.runs, "loads": waits.loads}
    lines += [f"{name} {printable(each)}" for name, each in more.items() if each]
    if waits.folder:
        lines.append(f"directory {shell_words([waits.folder])}")
    if waits.note:
        lines.append(f"note {printable(waits.note)}")
    if order := note_on_order(lines):
        lines.append(f"note {order}")
    return [*lines, f"rule {printable(waits.rule)}{policy}{message}"]


def origin_of(waits: Waits, now_ns: int) -> str:
    left_s = max(0, waits.deadline_ns - now_ns) // _NS_PER_S
    left = f"{left_s} s" if left_s < 60 else f"{left_s // 60}:{left_s % 60:02}"
    name = f"{printable(waits.session_name)} " if waits.session_name else ""
    return f"session {name}{printable(waits.session_id)}; expires in {left}"


def _ns(seconds: object) -> int:
    is_one = isinstance(seconds, int | float) and abs(seconds) < _LONGEST_S
    return int(float(str(seconds)) * 1e9) if is_one else 0
