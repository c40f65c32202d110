"""The approval requests of a session: open, settled, and remembered for the session; and the lines
that a waiting or denied caller reads.

Pure: the caller passes the time and the ids. Named tuples, since a dataclass would cost every run
time to define.
"""

from __future__ import annotations

from sigwrap.bare import Enum, NamedTuple
from sigwrap.events import Payload
from sigwrap.text import printable, shell_words, shortened

_SETTLED_KEPT = 1_000
_MOST_FOR_NEXT = 8

US = "sigwrap"


class ApprovalRequest(NamedTuple):
    kind: str  # "exec", "signal" or "connection"
    pid: int
    process: str
    depth: int
    what: str  # a command line or "SIGTERM to 4711 (node)": whole, may be unprintable
    rule: str
    message: str
    key: tuple[str, ...]  # an approval for the session covers equal keys; none if it is empty
    runs: str = ""  # the arguments of a script's interpreter
    loads: str = ""  # variables that make it load code, if the rule is about them
    files: tuple[str, ...] = ()  # what would run: the file, its interpreters, what it wraps
    folder: str = ""
    note: str = ""  # what else the approver should know
    masked: str = ""  # `what` as the log has it, if that differs
    masked_runs: str = ""
    masked_loads: str = ""
    execs: int = 0  # number of execs by the process so far
    exec_payload: Payload | None = None  # an exec as its event describes it, without secrets


def wants(kind: object) -> str:
    """Return the words between the process and `what`."""
    return _WANTS.get(kind, "asks for") if isinstance(kind, str) else "asks for"


_WANTS = {"exec": "wants to run", "signal": "wants to send"}


class Answer(NamedTuple):
    granted: bool
    by: str
    message: str
    reason: str  # granted, denied, expired, nobody, at once, withdrawn
    id: str = ""  # the request's


class Verdict(Enum):
    ONCE = "once"
    ALWAYS = "always"
    NO = "no"


class OpenRequest(NamedTuple):
    id: str
    request: ApprovalRequest
    asked_at_s: float
    deadline_s: float


class Settled(NamedTuple):
    id: str
    request: ApprovalRequest
    answer: Answer
    always: bool
    waited_s: float
    remembered: bool = False  # an earlier approval decided


_Attempt = tuple[int, int, tuple[str, ...]]  # pid, number of execs so far, key


def _attempt(request: ApprovalRequest) -> _Attempt:
    return request.pid, request.execs, request.key


class RequestQueue:
    """The requests of one session."""

    def __init__(self, timeout_s: float) -> None:
        self._timeout_s = timeout_s
        self._open: dict[str, OpenRequest] = {}
        self._settled: dict[str, str] = {}
        self._always: dict[tuple[str, ...], str] = {}
        self._for_next: dict[str, _Attempt] = {}  # requests whose caller did not wait
        self._next: dict[_Attempt, tuple[str, float]] = {}  # its approver, and until when it holds

    @property
    def open(self) -> tuple[OpenRequest, ...]:
        """Return the open requests, the oldest first."""
        return tuple(self._open.values())

    def find(self, approval_id: str) -> OpenRequest | None:
        return self._open.get(approval_id)

    def is_known(self, approval_id: str) -> bool:
        return approval_id in self._open or approval_id in self._settled

    def ask(
        self, approval_id: str, request: ApprovalRequest, now_s: float, *, for_next: bool = False
    ) -> OpenRequest:
        """Open a request. `for_next`: an approval covers the next attempt of the same process."""
        opened = OpenRequest(approval_id, request, now_s, now_s + self._timeout_s)
        self._open[approval_id] = opened
        if for_next:
            self._for_next[approval_id] = _attempt(request)
        return opened

    def kept_for_next(self, request: ApprovalRequest) -> OpenRequest | None:
        kept = (id_ for id_, each in self._for_next.items() if each == _attempt(request))
        return next((self._open[each] for each in kept), None)

    def keeps_more(self) -> bool:
        return len(self._for_next) < _MOST_FOR_NEXT

    def kept_of(self, pid: int) -> list[str]:
        """Forget a process's approvals for next attempts when it ends. Returns the ids of its
        requests for them."""
        self._next = {each: by for each, by in self._next.items() if each[0] != pid}
        return [id_ for id_, each in self._for_next.items() if each[0] == pid]

    def is_remembered(self, request: ApprovalRequest) -> bool:
        is_known = request.key in self._always or _attempt(request) in self._next
        return bool(request.key) and is_known

    def settle_from_memory(self, approval_id: str, now_s: float) -> Settled | None:
        """Approve the request if an earlier approval covers it."""
        opened = self._open[approval_id]
        key = opened.request.key
        if not key:
            return None
        by_next, until_s = self._next.pop(_attempt(opened.request), ("", 0.0))
        if now_s < until_s:
            granted = self._grant(opened, by_next, always=False, now_s=now_s)
        elif (by := self._always.get(key)) is not None:
            granted = self._grant(opened, by, always=True, now_s=now_s)
        else:
            return None
        return granted._replace(remembered=True)

    def refuse(
        self, approval_id: str, why: str, now_s: float, reason: str = "nobody"
    ) -> tuple[Settled, ...]:
        """Deny a request without an approver. Returns nothing if it was settled before."""
        opened = self._open.get(approval_id)
        return () if opened is None else (self._refuse(opened, US, why, reason, now_s),)

    def answer(
        self, approval_id: str, verdict: Verdict, *, by: str, message: str, now_s: float
    ) -> tuple[Settled, ...]:
        """Settle a request; ALWAYS settles all with the same key. Returns nothing if the request is
        not open."""
        opened = self._open.get(approval_id)
        if opened is None:
            return ()
        match verdict:
            case Verdict.NO:
                return (self._refuse(opened, by, message, "denied", now_s),)
            case Verdict.ONCE:
                return (self._grant(opened, by, always=False, now_s=now_s),)
            case Verdict.ALWAYS:
                key = opened.request.key
                if not key:
                    return (self._grant(opened, by, always=False, now_s=now_s),)
                self._always[key] = by
                same = [each for each in self.open if each.request.key == key]
                same.sort(key=lambda each: each is not opened)  # the named one first
                granted = (self._grant(each, by, always=True, now_s=now_s) for each in same)
                return tuple(each._replace(remembered=each.id != approval_id) for each in granted)

    def how_settled(self, approval_id: str) -> str:
        """Return the answer to a settled request, and its author; empty if there is none."""
        return self._settled.get(approval_id, "")

    def forget_always(self, request: ApprovalRequest) -> None:
        self._always.pop(request.key, None)

    def expire(self, now_s: float) -> tuple[Settled, ...]:
        due = [opened for opened in self.open if opened.deadline_s <= now_s]
        why = f"no answer within {self._timeout_s:g} s"
        return tuple(self._refuse(opened, US, why, "expired", now_s) for opened in due)

    def _grant(self, opened: OpenRequest, by: str, *, always: bool, now_s: float) -> Settled:
        answer = Answer(granted=True, by=by, message="", reason="granted", id=opened.id)
        return self._settle(opened, answer, always=always, now_s=now_s)

    def _refuse(
        self, opened: OpenRequest, by: str, message: str, reason: str, now_s: float
    ) -> Settled:
        answer = Answer(granted=False, by=by, message=message, reason=reason)
        return self._settle(opened, answer, always=False, now_s=now_s)

    def _settle(
        self, opened: OpenRequest, answer: Answer, *, always: bool, now_s: float
    ) -> Settled:
        del self._open[opened.id]
        attempt = self._for_next.pop(opened.id, None)
        if attempt is not None and answer.granted and not always:
            self._next[attempt] = answer.by, opened.deadline_s
        self._settled[opened.id] = f"{answer.reason} by {answer.by}"
        if len(self._settled) > _SETTLED_KEPT:
            del self._settled[next(iter(self._settled))]
        return Settled(
            id=opened.id,
            request=opened.request,
            answer=answer,
            always=always,
            waited_s=now_s - opened.asked_at_s,
        )


# The lines on a caller's standard error: its action is denied, or needs approval.

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
