"""An approval request in its forms: on the terminal, in a list, in a notification, in the log.

Text for a terminal cannot move the cursor, and says where it was cut.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from sigwrap.approve.requests import (
    ApprovalRequest,
    OpenRequest,
    Settled,
    Verdict,
    named_rule,
    wants,
)
from sigwrap.bare import TYPE_CHECKING, NamedTuple
from sigwrap.errors import StoreError
from sigwrap.events import QUESTION_CHARACTERS, Payload
from sigwrap.log.codec import json_size
from sigwrap.log.folder import default_store
from sigwrap.text import beginning, note_on_order, printable, rows, shell_words

if TYPE_CHECKING:
    from sigwrap.watch.board import ListedRequest

LISTED_CHARACTERS = 4_000
_MASKED_CHARACTERS = 500
_START_SHOWN = 1_500
_END_SHOWN = 200
_FILES_SHOWN = 6
_LONGEST_NOTICE = 500
_LONGEST_VARIABLE = 4096
_PATH_SHOWN = 150  # either end of a longer one
_LONGEST_EXEC = 2_048  # of JSON
MOST_WRONG = 10  # lines in a row: a guess succeeds once in 6,500 times
_LETTERS = "bcdfghjkmnpqrstvwxz"  # they make no words, and none looks like another
_CODE_LENGTH = 4
_YES = frozenset({b"y", b"yes", b"a", b"always"})
# Neither concealed nor in colours, not cut at the terminal's edge, and no line drawings.
_VISIBLE = "\x1b[0m\x1b[?7h\x1b(B\x0f"


class SessionHints(NamedTuple):
    """What a request says of its session: the policy, and commands that reach it."""

    policy: str
    store: str = ""  # `--store DIR`, if the bare commands would look elsewhere

    def command(self, *words: str) -> str:
        return " ".join(("sigwrap", *words, *([self.store] if self.store else [])))


def store_option(store: str, env: Mapping[str, str]) -> str:
    """Return `--store DIR`, or nothing if another terminal would find this store without it.

    $SIGWRAP_STORE may not be set there.
    """
    elsewhere = {name: value for name, value in env.items() if name != "SIGWRAP_STORE"}
    try:
        if store == os.path.abspath(default_store(elsewhere)):
            return ""
    except StoreError:
        pass
    return f"--store {shell_words([store])}"


def until(deadline_s: float, now_s: float) -> str:
    """Return the time of day of a deadline."""
    left_s = max(0.0, deadline_s - now_s)
    return time.strftime("%H:%M:%S", time.localtime(time.time() + left_s))


def lines_of(
    opened: OpenRequest, session: SessionHints, now_s: float, columns: int = 0
) -> list[str]:
    """Return the request for a terminal of so many columns; 0 if it does not say."""
    request = opened.request
    what = printable(request.what)
    lines = [
        f"sigwrap: request {opened.id}: {shell_words([request.process])} ({request.pid}) "
        f"{wants(request.kind)}",
        f"    {beginning(what, _START_SHOWN)}",
    ]
    if len(what) > _START_SHOWN:
        lines.append(f"    its last characters: {what[-_END_SHOWN:]}")
    details = detail_lines(
        lines,
        files=_file_names(request.files),
        folder=_path(request.folder) if request.folder else "",
        **{
            name: beginning(printable(text), _START_SHOWN)
            for name, text in _texts_of(request).items()
        },
    )
    lines += [f"  {line}" for line in details]
    lines = [row for line in lines for row in rows(line, columns)]
    if _is_cut(request):
        lines.append(f"  in full: {session.command('watch', '--full', opened.id)}")
    left_s = max(0.0, opened.deadline_s - now_s)
    return [
        *lines,
        f"  {rule_line(request.rule, session.policy, request.message)}",
        f"  expires at {until(opened.deadline_s, now_s)}, in {left_s:.0f} s; then it is denied",
    ]


def detail_lines(
    above: Sequence[str], *, files: str, runs: str, loads: str, folder: str, note: str
) -> list[str]:
    """Return the printable lines below the command; the last may warn of the order of its letters
    and of those `above`."""
    details = {"file": files, "runs": runs, "loads": loads, "directory": folder, "note": note}
    lines = [f"{name} {text}" for name, text in details.items() if text]
    if order := note_on_order((*above, *lines)):
        lines.append(f"note {order}")
    return lines


def rule_line(rule: str, policy: str, message: str) -> str:
    because = f": {printable(message)}" if message else ""
    return f"{printable(named_rule(rule, policy))}{because}"


def _texts_of(request: ApprovalRequest) -> dict[str, str]:
    return {"runs": request.runs, "loads": request.loads, "note": request.note}


def _file_names(files: Sequence[str]) -> str:
    shown = [_path(file) for file in files[:_FILES_SHOWN]]
    rest = len(files) - len(shown)
    return ", then ".join([*shown, f"{rest} more"] if rest else shown)


def _path(path: str) -> str:
    if not _is_long(path):
        return shell_words([path])
    start, end = shell_words([path[:_PATH_SHOWN]]), shell_words([path[-_PATH_SHOWN:]])
    return f"{start} ... {len(path) - 2 * _PATH_SHOWN} more characters ... {end}"


def _is_long(path: str) -> bool:
    return len(path) > 3 * _PATH_SHOWN


def _is_cut(request: ApprovalRequest) -> bool:
    texts = (request.what, *_texts_of(request).values())
    return (
        any(len(printable(text)) > _START_SHOWN for text in texts)
        or any(_is_long(path) for path in (*request.files, request.folder))
        or len(request.files) > _FILES_SHOWN
    )


def notice_of(
    approval_id: str, request: ApprovalRequest | ListedRequest, store: str
) -> dict[bytes, bytes]:
    """Return the variables of the program that notifies the user, without secrets: other users can
    read a process's variables."""
    what = f"{request.process} {wants(request.kind)}: {request.masked or request.what}"
    variables = {
        b"SIGWRAP_APPROVAL_ID": approval_id,
        b"SIGWRAP_QUESTION": printable(beginning(what, _LONGEST_NOTICE)),
        b"SIGWRAP_RULE": printable(request.rule[:_LONGEST_NOTICE]),
        b"SIGWRAP_STORE": store,
    }
    return {name: os.fsencode(value[:_LONGEST_VARIABLE]) for name, value in variables.items()}


def listed(
    opened: OpenRequest, policy: str, now_s: float, deadline_s: float, *, full: bool = False
) -> Payload:
    """Return the request as the control socket lists it, uncut if `full`. The request is denied at
    `deadline_s`, on the same clock as `now_s`."""
    request = opened.request
    texts = {"what": request.what, "runs": request.runs, "loads": request.loads}
    cut = {name: beginning(text, LISTED_CHARACTERS) for name, text in texts.items()}
    return {
        "id": opened.id,
        "kind": request.kind,
        "pid": request.pid,
        "process": request.process,
        "depth": request.depth,
        **(texts if full else cut),
        "masked": beginning(request.masked or request.what, _MASKED_CHARACTERS),
        "is_cut": not full and cut != texts,
        "files": request.files,
        "folder": request.folder,
        "note": request.note,
        "rule": request.rule,
        "policy": policy,
        "message": request.message,
        "may_always": bool(request.key),
        "waited_s": round(now_s - opened.asked_at_s, 1),
        "expires_in_s": max(0.0, round(deadline_s - now_s, 1)),
    }


def asked_payload(opened: OpenRequest, *, timeout_s: float, asked: list[str]) -> Payload:
    request = opened.request
    has_room = request.exec_payload is not None and json_size(request.exec_payload) <= _LONGEST_EXEC
    return {
        **_payload(opened.id, request),
        "comm": request.process,
        "depth": request.depth,
        "runs": beginning(request.masked_runs, QUESTION_CHARACTERS),
        "loads": beginning(request.masked_loads, QUESTION_CHARACTERS),
        "files": request.files,
        "cwd": request.folder,
        "note": request.note,
        "timeout_s": timeout_s,
        "asked": asked,
        # A long one would make the log cut `what`, which an answer is compared with.
        **({"exec": request.exec_payload} if has_room else {}),
    }


def answered_payload(settled: Settled) -> Payload:
    return {
        **_payload(settled.id, settled.request),
        **({"remembered": True} if settled.remembered else {}),
        "reason": settled.answer.reason,
        "by": settled.answer.by,
        "always": settled.always,
        "answer": settled.answer.message,
        "waited_ms": round(settled.waited_s * 1000),
    }


def _payload(approval_id: str, request: ApprovalRequest) -> Payload:
    return {
        "approval_id": approval_id,
        "kind": request.kind,
        "what": beginning(request.masked or request.what, QUESTION_CHARACTERS),
        "rule_name": request.rule,
        "message": request.message,
    }


# The answers on the terminal


class TypedAnswers:
    """The lines that answer the request that is shown now.

    A session can have bytes typed: a terminal answers reports, and the line discipline edits those
    as its modes say, which the session may change at any moment. It could make a `y` of them. So an
    approval needs a code. It is new each time a request is shown, and differs for once and for the
    session. The session cannot know it: only the program that shows the terminal can read it, and
    sigwrap does not ask where that program would tell (approve/typists.py).
    """

    def __init__(self, *, or_always: bool) -> None:
        once, always = _code(), _code()
        while always == once:
            always = _code()
        self._verdicts = {
            f"y{once}": Verdict.ONCE,
            f"yes{once}": Verdict.ONCE,
            "n": Verdict.NO,
            "no": Verdict.NO,
        }
        self.shown = f'Allow? Type "y {once}" (once) or "n": '
        if or_always:
            self._verdicts[f"a{always}"] = self._verdicts[f"always{always}"] = Verdict.ALWAYS
            self.shown = f'Allow? Type "y {once}" (once), "a {always}" (this session) or "n": '

    def verdict(self, line: bytes) -> Verdict | None:
        """Return the verdict of a whole line, where spaces and the shown quotes are ignored."""
        words = line.removesuffix(b"\n").replace(b" ", b"").replace(b'"', b"").lower()
        return self._verdicts.get(words.decode("latin-1")) if line.endswith(b"\n") else None


def is_without_code(line: bytes) -> bool:
    return line.strip().lower() in _YES


def _code() -> str:
    rest = int.from_bytes(os.urandom(8), "big")
    letters = []
    for _ in range(_CODE_LENGTH):
        rest, position = divmod(rest, len(_LETTERS))
        letters.append(_LETTERS[position])
    return "".join(letters)


def visible_text(env: Mapping[str, str]) -> str:
    """Return what to write before a text, if the terminal is known to understand it."""
    return "" if env.get("TERM") in (None, "", "dumb") else _VISIBLE
