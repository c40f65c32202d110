"""The lines that a caller reads on its standard error: what it asked for is denied, or waits."""

from __future__ import annotations

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.mediate.questions import Answer

_LONGEST = 120
_LONGEST_PATH = 70
_LONGEST_NAME = 40


def command_line(path: str, arguments: str, name: str) -> str:
    """`name`: of the file that the path leads to, told where the path ends otherwise. It stays, as
    the path's end does, however long the rest is."""
    end = path.rpartition("/")[2]
    told = "" if end == name else f" ({shortened(shell_words([name]), _LONGEST_NAME)})"
    path = shell_words([path])
    if len(path) > _LONGEST_PATH:
        half = _LONGEST_PATH // 2
        path = f"{path[: half - 1]}…{path[-half:]}"
    return shortened(f"{path} {arguments}".rstrip(), _LONGEST - len(told)) + told


def denial(what: str, rule: str, policy: str, message: str) -> str:
    """`what`: a command line, or a signal and its target."""
    because = denied_by(rule, policy, message)
    return f"sigwrap: {_shown(what)}: {because} (sigwrap report tells more)"


def denied_by(rule: str, policy: str, message: str = "") -> str:
    because = f": {printable(message)}" if message else ""
    return f"denied by {named_rule(rule, policy)}{because}"


def killed(what: str, why: str) -> str:
    return f"sigwrap: {_shown(what)}: killed: {printable(why)} (sigwrap report tells more)"


def waiting(what: str, rule: str, policy: str) -> str:
    """Until when, and how to answer, is added by whoever asks."""
    return f"sigwrap: {_shown(what)}: waits for approval ({named_rule(rule, policy)})"


def refusal(answer: Answer) -> str:
    """Why what needs approval is denied."""
    match answer.reason:
        case "denied":
            text = "not approved"
        case "expired":
            text = "not approved in time"
        case "nobody":
            text = "needs approval, and nobody can be asked"
        case _:
            text = f"needs approval: {answer.reason}"
    return f"{text}: {answer.message}" if answer.message else text


def with_rules_message(refused: str, message: str) -> str:
    """`message`: of the rule that asks. Whoever wrote it meant it for who reads the refusal."""
    return f"{refused} (the rule says: {message})" if message else refused


def named_rule(rule: str, policy: str) -> str:
    """A built-in rule belongs to no policy."""
    return f"rule {rule}" if rule.startswith("builtin:") else f"rule {rule} of {policy}"


def _shown(what: str) -> str:
    return shortened(printable(what), _LONGEST)
