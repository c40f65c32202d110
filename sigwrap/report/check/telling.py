"""Does an event tell what was judged?

A reader is shown some fields, and a decision is made again of others: whoever edits a log could
leave the one as it was and change the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import takewhile

from sigwrap.escape import beginning, shell_words
from sigwrap.events import QUESTION_CHARACTERS, Payload, number, text, texts
from sigwrap.policy.judge.recorded import signal_request
from sigwrap.policy.judge.request import CommandRedirect, Program, most_specific
from sigwrap.policy.judge.signals import ALL, signal_name
from sigwrap.store.bounds import CUT, MARK

MASK = "***"  # mediate/masking.py

_OF_A_REPLACEMENT = frozenset(
    {"replacement", "replacement_argv", "replacement_env", "via", "record"}
)


def is_named_as_its_path(payload: Payload) -> bool:
    """A program goes by the last part of the path that was asked for, links not resolved: of
    another name in its place nobody knows where it comes from."""
    name = text((_judged(payload) or {}).get("name"))
    path = text(payload.get("path"))
    return not name or not path or path.rpartition("/")[2] == name


def exec_told_otherwise(payload: Payload, *, is_replaced: bool, is_approved: bool) -> str:
    """Empty where its line is that of the program that was judged. What was cut may have been cut
    in two ways, and then nobody knows."""
    if not is_replaced and not payload.keys().isdisjoint(_OF_A_REPLACEMENT):
        return "it has a replacement, but nothing was replaced"
    if not is_approved and "approval_id" in payload:
        return "it has an approval, but there was no approval request"
    judged = _judged(payload)
    if judged is None:
        return ""
    if texts(payload.get("argv")) == texts(judged.get("argv")):
        return ""
    return "its argv differs from the program that was decided on"


def _judged(payload: Payload) -> Payload | None:
    listed = payload.get("programs")
    programs = listed if isinstance(listed, list) else []
    return next((each for each in programs if isinstance(each, dict)), None)


def replaced_otherwise(
    payload: Payload, redirect: CommandRedirect | None, programs: Iterable[Program]
) -> str:
    """Empty where the replacement is the one that the rule names."""
    if redirect is None:
        return "the policy's rule has no replacement"
    told_how = payload.get("via"), payload.get("record"), texts(payload.get("replacement_env"))
    if told_how != (redirect.via.value, redirect.record, [name for name, _ in redirect.env]):
        return "its via, record or replacement_env differs from the policy's rule"
    told = texts(payload.get("replacement_argv"))
    name = redirect.command.rpartition("/")[2]
    for program in programs:
        wanted = [name, *redirect.arguments(program.argv)]
        if _is_one_line(told, wanted, is_cut=CUT in payload):
            return ""
    return f"its replacement_argv differs from the policy's replacement, {name}"


def signal_told_otherwise(payload: Payload, *, is_redirected: bool) -> str:
    sent, asked_for = number(payload.get("signal")), number(payload.get("original_signal"))
    if asked_for and asked_for != sent and not is_redirected:
        return f"it records signal {sent}, but signal {asked_for} was requested"
    name = text(payload.get("signal_name"))
    if name != (signal_name(sent) if sent in ALL else str(sent)):
        return f"its signal_name does not match signal {sent}"
    types = signal_request(payload).target_types
    told = text(payload.get("target_type"))
    if types and told and told != most_specific(types).value:
        return "its target_type is not the first of its target_types"
    return ""


def asked_about_otherwise(payload: Payload, what: str, *, is_cut: bool) -> str:
    """Empty where its line is what somebody was asked about."""
    argv = texts(payload.get("argv"))
    asked = shell_words(_whole(argv) if is_cut else argv or [""])
    if is_told_as(beginning(asked, QUESTION_CHARACTERS), what, is_cut=is_cut):
        return ""
    return "the approval was for another command"


def signal_asked_about_otherwise(payload: Payload, what: str, *, is_cut: bool) -> str:
    """Empty where the question names its target and its signal."""
    name, call = text(payload.get("signal_name")), text(payload.get("syscall"))
    if not what.startswith((f"{name} to ", f"{call} aimed at ")):
        return "the approval was for another signal"
    target = (
        f"{number(payload.get('target_pid'))} ({shell_words([text(payload.get('target_cmd'))])})"
    )
    if is_cut or len(what) > QUESTION_CHARACTERS or target in what:
        return ""
    return "the approval was for another target"


def is_told_as(one: str, another: str, *, is_cut: bool) -> bool:
    """Of what was cut, its beginning is."""
    if not is_cut:
        return one == another
    one, another = one.removesuffix(MARK), another.removesuffix(MARK)
    least = min(len(one), len(another), QUESTION_CHARACTERS)
    return one[:least] == another[:least]


def lines_of(payload: Payload) -> list[list[str]]:
    """Of all that an exec would run."""
    return [texts(payload.get("argv")), *(words for _, words in _programs(payload))]


def programs_of(payload: Payload) -> list[tuple[str, list[str]]]:
    """Path and words of all that an exec would run, its file first."""
    return _programs(payload) or [(text(payload.get("path")), texts(payload.get("argv")))]


def _programs(payload: Payload) -> list[tuple[str, list[str]]]:
    listed = payload.get("programs")
    programs = listed if isinstance(listed, list) else []
    return [
        (text(each.get("path")), texts(each.get("argv")))
        for each in programs
        if isinstance(each, dict)
    ]


def message_told_otherwise(payload: Payload, message: str) -> str:
    """`message`: of the rule. It is left out where the reason says as much."""
    if payload.get("message", message) == message or CUT in payload:
        return ""
    return "its message differs from the policy's rule"


def exit_told_otherwise(payload: Payload) -> str:
    died_of, name = number(payload.get("signal")), text(payload.get("signal_name"))
    if died_of and payload.get("exit_code") is not None:
        return "it has both an exit code and a signal"
    if name != ("" if not died_of else signal_name(died_of) if died_of in ALL else str(died_of)):
        return f"its signal_name does not match signal {died_of}"
    return ""


def stub_told_otherwise(payload: Payload, replacement_argv: list[str]) -> str:
    """`replacement_argv`: of the stub, which may have been cut."""
    is_cut = CUT in payload or any(each.endswith(MARK) for each in replacement_argv)
    if _is_one_line(texts(payload.get("argv")), replacement_argv, is_cut=is_cut):
        return ""
    return "its argv differs from the replacement_argv of its stub"


def _is_one_line(told: list[str], other: list[str], *, is_cut: bool) -> bool:
    """Of what was masked or cut, nobody can tell more."""
    if is_cut:
        told, other = _whole(told), _whole(other)
        least = min(len(told), len(other))
        told, other = told[:least], other[:least]
    return len(told) == len(other) and all(
        MASK in one or MASK in another or one == another
        for one, another in zip(told, other, strict=True)
    )


def _whole(words: list[str]) -> list[str]:
    return list(takewhile(lambda word: not word.endswith(MARK), words))
