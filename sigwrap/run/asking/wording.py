"""A question as its reader sees it: nothing in it can move the cursor, and what is left out is
marked."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence

from sigwrap.errors import StoreError
from sigwrap.escape import beginning, note_on_order, printable, rows, shell_words
from sigwrap.mediate.questions import Open, Question, wants
from sigwrap.mediate.wording import named_rule
from sigwrap.protocols.front import Notice
from sigwrap.store.location import default_store
from sigwrap.tuples import NamedTuple

_START_SHOWN = 1_500
_END_SHOWN = 200
_FILES_SHOWN = 6
_LONGEST_NOTICE = 500
_PATH_SHOWN = 150  # either end of a longer one


class Session(NamedTuple):
    """What a question says of the session that asks it."""

    policy: str
    store: str = ""  # `--store DIR`, where the bare commands look elsewhere

    def command(self, *words: str) -> str:
        return " ".join(("sigwrap", *words, *([self.store] if self.store else [])))


def store_option(store: str, env: Mapping[str, str]) -> str:
    """`--store DIR` for who looks for this store elsewhere; empty where that is not needed. A
    variable that is set here need not be set on another terminal."""
    elsewhere = {name: value for name, value in env.items() if name != "SIGWRAP_STORE"}
    try:
        if store == os.path.abspath(default_store(elsewhere)):
            return ""
    except StoreError:
        pass
    return f"--store {shell_words([store])}"


def _shortened(text: str) -> str:
    if not _is_cut(text):
        return text
    return f"{text[:_START_SHOWN]} ... and {len(text) - _START_SHOWN} more characters"


def _is_cut(text: str) -> bool:
    return len(text) - _START_SHOWN > _END_SHOWN


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


def _is_any_cut(question: Question) -> bool:
    texts = question.what, question.runs, question.loads, question.note
    return (
        any(_is_cut(printable(text)) for text in texts)
        or any(_is_long(path) for path in (*question.files, question.folder))
        or len(question.files) > _FILES_SHOWN
    )


def until(deadline_s: float, now_s: float) -> str:
    left_s = max(0.0, deadline_s - now_s)
    return time.strftime("%H:%M:%S", time.localtime(time.time() + left_s))


def notice_of(request: Open, store: str) -> Notice:
    """For whoever is told of it: others may read what is told, so no secret is in it."""
    question = request.question
    what = f"{question.process} {wants(question.kind)}: {question.masked or question.what}"
    return Notice(
        id=request.id,
        question=printable(beginning(what, _LONGEST_NOTICE)),
        rule=printable(question.rule[:_LONGEST_NOTICE]),
        store=store,
    )


def lines_of(request: Open, session: Session, now_s: float, columns: int = 0) -> list[str]:
    """`columns`: as the terminal says."""
    question = request.question
    what = printable(question.what)
    rest = len(what) - _START_SHOWN
    is_cut = _is_cut(what)
    lines = [
        f"sigwrap: request {request.id}: {shell_words([question.process])} ({question.pid}) "
        f"{wants(question.kind)}",
        f"    {what[:_START_SHOWN] if is_cut else what}",
    ]
    if is_cut:
        lines[-1] += f" ... and {rest} more characters"
        lines.append(f"    its last characters: {what[-_END_SHOWN:]}")
    if question.files:
        lines.append(f"  file {_file_names(question.files)}")
    more = {"runs": question.runs, "loads": question.loads}
    lines += [f"  {name} {_shortened(printable(text))}" for name, text in more.items() if text]
    if question.folder:
        lines.append(f"  directory {_path(question.folder)}")
    if question.note:
        lines.append(f"  note {_shortened(printable(question.note))}")
    if order := note_on_order(lines):
        lines.append(f"  note {order}")
    lines = [row for line in lines for row in rows(line, columns)]
    if _is_any_cut(question):
        lines.append(f"  in full: {session.command('watch', '--full', request.id)}")
    because = f": {printable(question.message)}" if question.message else ""
    rule = printable(named_rule(question.rule, session.policy))
    lines.append(f"  {rule}{because}")
    left_s = max(0.0, request.deadline_s - now_s)
    lines.append(
        f"  expires at {until(request.deadline_s, now_s)}, in {left_s:.0f} s; then it is denied"
    )
    return lines
