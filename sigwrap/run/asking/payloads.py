"""A request and its answer, as the log has them."""

from __future__ import annotations

from sigwrap.escape import beginning
from sigwrap.events import QUESTION_CHARACTERS, Payload
from sigwrap.mediate.questions import Open, Question, Settled
from sigwrap.store.codec import json_size

_LONGEST_EXEC = 2_048  # of JSON


def asked_payload(request: Open, *, timeout_s: float, asked: list[str]) -> Payload:
    question = request.question
    is_told = question.request is not None and json_size(question.request) <= _LONGEST_EXEC
    return {
        **_about(request.id, question),
        "comm": question.process,
        "depth": question.depth,
        "runs": beginning(question.masked_runs, QUESTION_CHARACTERS),
        "loads": beginning(question.masked_loads, QUESTION_CHARACTERS),
        "files": question.files,
        "cwd": question.folder,
        "note": question.note,
        "timeout_s": timeout_s,
        "asked": asked,
        # What is long would have the words cut that an answer is compared with (verify).
        **({"exec": question.request} if is_told else {}),
    }


def answered_payload(settled: Settled) -> Payload:
    return {
        **_about(settled.id, settled.question),
        **({"remembered": True} if settled.remembered else {}),
        "reason": settled.answer.reason,
        "by": settled.answer.by,
        "always": settled.always,
        "answer": settled.answer.message,
        "waited_ms": round(settled.waited_s * 1000),
    }


def _about(approval_id: str, question: Question) -> Payload:
    return {
        "approval_id": approval_id,
        "kind": question.kind,
        "what": beginning(question.masked or question.what, QUESTION_CHARACTERS),
        "rule_name": question.rule,
        "message": question.message,
    }
