"""The lines on a caller's standard error: its action is denied, or needs approval."""

from __future__ import annotations

from sigwrap.escape import printable, shell_words, shortened
from sigwrap.mediate.questions import Answer

DENIED = "sigwrap: denied: "
# Appended to a denial that goes to an agent, not to a person's terminal.
TO_AN_AGENT = ". Do not work around this; tell the user."

_LONGEST = 120
_LONGEST_PATH = 70
_LONGEST_NAME = 40


def command_line(path: str, arguments: str, name: str) -> str:
    """Return the command in one line. `name` is the file that the path leads to, added if the path
    ends otherwise. The name and the path's end are never cut."""
    end = path.rpartition("/")[2]
    told = "" if end == name else f" ({shortened(shell_words([name]), _LONGEST_NAME)})"
    path = _shortened_path(path)
    return shortened(f"{path} {arguments}".rstrip(), _LONGEST - len(told)) + told


def _shortened_path(path: str) -> str:
    path, half = shell_words([path]), _LONGEST_PATH // 2
    return path if len(path) <= _LONGEST_PATH else f"{path[: half - 1]}…{path[-half:]}"


def denial(what: str, rule: str, policy: str, message: str) -> str:
    """Return the line of a denial. `what`: a command line, or a signal and its target."""
    because = f": {printable(message)}" if message else ""
    return f"{DENIED}{_shown(what)}{because} ({named_rule(rule, policy)})"


def refused_file(operation: str, path: str, rule: str, policy: str) -> str:
    what = f"{operation} {_shortened_path(path)}"
    return f"sigwrap: probably refused: {what} ({named_rule(rule, policy)})"


def denied_by(rule: str, policy: str) -> str:
    return f"denied ({named_rule(rule, policy)})"


def killed(what: str, why: str) -> str:
    return f"sigwrap: killed: {_shown(what)}: {printable(why)}"


def waiting(what: str, rule: str, policy: str) -> str:
    """Return the middle of the line: the request's id goes before it, how to answer behind it."""
    return f"{_shown(what)} needs approval ({named_rule(rule, policy)})"


def refusal(answer: Answer) -> str:
    """Return why an action that needs approval is denied."""
    match answer.reason:
        case "denied":
            text = "request denied"
        case "expired":
            text = "request expired"
        case "at once":
            text = "approval is pending"
        case "nobody":
            text = "no approver can be reached"
        case _:
            text = f"request {answer.reason}"
    return f"{text}: {answer.message}" if answer.message else text


def with_rules_message(refused: str, message: str) -> str:
    """Join both texts. `message` is from the rule that needs the approval."""
    return f"{message}; {refused}" if message else refused


def named_rule(rule: str, policy: str) -> str:
    """Return the words for a rule; a built-in rule belongs to no policy."""
    has_policy = policy and not rule.startswith("builtin:")
    return f"rule {rule}, policy {policy}" if has_policy else f"rule {rule}"


def _shown(what: str) -> str:
    return shortened(printable(what), _LONGEST)
