"""A request as the control socket lists it."""

from __future__ import annotations

from sigwrap.escape import beginning
from sigwrap.events import Payload
from sigwrap.mediate.questions import Open

LISTED = 200
LISTED_CHARACTERS = 4_000
MASKED_CHARACTERS = 500


def listed(
    request: Open, policy: str, now_s: float, deadline_s: float, *, full: bool = False
) -> Payload:
    """`deadline_s`: when it is a no, on the same clock as `now_s`."""
    question = request.question
    texts = {"what": question.what, "runs": question.runs, "loads": question.loads}
    return {
        "id": request.id,
        "kind": question.kind,
        "pid": question.pid,
        "process": question.process,
        "depth": question.depth,
        **(
            texts
            if full
            else {name: beginning(text, LISTED_CHARACTERS) for name, text in texts.items()}
        ),
        "masked": beginning(question.masked or question.what, MASKED_CHARACTERS),
        "is_cut": not full and any(len(each) > LISTED_CHARACTERS for each in texts.values()),
        "files": question.files,
        "folder": question.folder,
        "note": question.note,
        "rule": question.rule,
        "policy": policy,
        "message": question.message,
        "may_always": bool(question.key),
        "waited_s": round(now_s - request.asked_at_s, 1),
        "expires_in_s": max(0.0, round(deadline_s - now_s, 1)),
    }
