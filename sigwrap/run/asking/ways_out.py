"""What a user can do who is told that nobody could be asked."""

from __future__ import annotations

from sigwrap.mediate.questions import Question
from sigwrap.run.settings import ApprovalMode

_WAY_OUT = "--approvals control waits for sigwrap approve"
_WAY_OUT_OF_AUTO = "sigwrap watch is asked while it is open, "
_WAY_OUT_OF_INSTALLS = ", and -p ci allows package installs"
_WAY_OUT_BY_RULE = ", and a rule of your own can allow it"
# What agent-default asks about by these, ci allows (tests/policy/test_decisions.py).
ALLOWED_BY_CI = frozenset(
    {
        "pkg-install",
        "pkg-install-npx",
        "pkg-install-python-m",
        "pkg-install-yarn",
        "pkg-run",
        "pkg-run-by-pipx",
        "pkg-run-by-uv",
        "pkg-run-with",
    }
)


def way_out_of(question: Question, policy: str, mode: ApprovalMode) -> str:
    way_out = (_WAY_OUT_OF_AUTO if mode is ApprovalMode.AUTO else "") + _WAY_OUT
    if question.kind != "exec":
        return way_out
    # Of another policy, ci would take all the rules away, and the rule may be its own.
    is_for_ci = policy == "agent-default" and question.rule in ALLOWED_BY_CI
    return way_out + (_WAY_OUT_OF_INSTALLS if is_for_ci else _WAY_OUT_BY_RULE)
