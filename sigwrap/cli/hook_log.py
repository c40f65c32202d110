"""Records a judged tool call: in the log of the run around it, or in one log for each conversation
with an agent."""

from __future__ import annotations

import os
import re

import sigwrap
from sigwrap.approve.control_socket import send_tool_call
from sigwrap.approve.requests import DENIED, TO_AN_AGENT
from sigwrap.bare import blake2b
from sigwrap.events import HOOK_KIND, HOOK_LOG, Payload
from sigwrap.hooks.calls import Call, FileCall, ShellCall, WebCall
from sigwrap.hooks.verdict import Answer, Finding, Verdict
from sigwrap.log.codec import cut_payload, key_from_environment
from sigwrap.log.journal import append_in_turn
from sigwrap.text import masked, masked_text, printable

EVENT = "tool_call_judged"
_MOST_FINDINGS = 20


def record(
    store: str,
    agent: str,
    policy: str,
    call: Call,
    verdict: Verdict,
    reason: str,
    took_us: int,
    *,
    inside: bool,
) -> None:
    """Raise StoreError outside a session if it cannot be recorded."""
    payload = _payload(agent, call, verdict, reason, took_us)
    if inside:
        session = os.environ.get("SIGWRAP_SESSION", "")
        send_tool_call(store, session, cut_payload({"pid": os.getpid(), **payload}))
        return
    key = key_from_environment(os.environb)
    digest = blake2b(f"{agent}\n{call.conversation}".encode(), digest_size=6).hexdigest()
    start = _start(agent, policy, call, keyed=key is not None)
    append_in_turn(store, f"{HOOK_LOG}{digest}", key, start, (EVENT, payload))


def _payload(agent: str, call: Call, verdict: Verdict, reason: str, took_us: int) -> Payload:
    notable = [each for each in verdict.findings if each.answer is not Answer.NO_OPINION]
    strictest = [each for each in notable if each.answer is verdict.answer] or notable
    rules = [each.decision.rule for each in strictest if each.decision is not None]
    return {
        "agent": agent,
        "conversation": call.conversation,
        "call_id": call.id,
        "tool": call.tool,
        "what": _masked("\n".join(map(_what, call.doings))),
        "cwd": call.folder,
        "answer": verdict.answer.value,
        "rule_name": rules[0] if rules else "",
        "reason": "" if verdict.answer is Answer.NO_OPINION else _masked(_why(reason)),
        "findings": [_finding(each) for each in notable[:_MOST_FINDINGS]],
        "evaluation_us": took_us,
    }


def _finding(each: Finding) -> Payload:
    return {
        "what": _masked(printable(each.what)),
        "answer": each.answer.value,
        "why": each.why,
        "rule_name": each.decision.rule if each.decision is not None else "",
    }


def _why(reason: str) -> str:
    """Return the reason without what each answer to an agent has around it."""
    told = reason.removeprefix(DENIED).removeprefix("sigwrap: ")
    return told.removesuffix(TO_AN_AGENT)


def _masked(text: str) -> str:
    """Mask secrets in a shell line: by their look, and as values of each command's options."""
    pieces = re.split(r"([;&|\n]+)", masked_text(text))
    for at in range(0, len(pieces), 2):
        words = re.split(r"(\s+)", pieces[at].lstrip())
        words[::2] = masked(words[::2])
        pieces[at] = pieces[at][: len(pieces[at]) - len(pieces[at].lstrip())] + "".join(words)
    return "".join(pieces)


def _what(doing: ShellCall | FileCall | WebCall) -> str:
    match doing:
        case ShellCall():
            return doing.line
        case FileCall():
            return f"{doing.operation.value if doing.operation else 'write'} {doing.path}"
        case WebCall():
            return f"connect to {doing.host}:{doing.port}"


def _start(agent: str, policy: str, call: Call, *, keyed: bool) -> Payload:
    system = os.uname()
    return {
        "kind": HOOK_KIND,
        "name": "",
        "command": ["sigwrap", "hook", agent],
        "cwd": call.folder,
        "user": os.environ.get("USER") or os.environ.get("LOGNAME") or "",
        "uid": os.getuid(),
        "host": system.nodename,
        "sigwrap": sigwrap.__version__,
        "kernel": system.release,
        "machine": system.machine,
        "policy": policy,
        "keyed": keyed,
    }
