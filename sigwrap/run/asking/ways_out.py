"""What a user can do where no approver can be reached."""

from __future__ import annotations

from sigwrap.mediate.questions import Question
from sigwrap.run.settings import ApprovalMode

_WAY_OUT = "run with --approvals control"
_WAY_OUT_OF_AUTO = "keep sigwrap watch open, "
_WAY_OUT_OF_INSTALLS = ", or use -p ci, which allows package installs"
_WAY_OUT_BY_RULE = ", or allow it by a rule of your own"
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
