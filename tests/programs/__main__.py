"""Run `make test-programs`, all or a part; `--write` writes the results to docs/reliability.md."""

from __future__ import annotations

import argparse
import signal
import sys
import time

from tests.programs import selected, table
from tests.programs.checking import Result, Verdict, subject
from tests.programs.program import POLICIES, Program, User

USERS = {"root": User.US, "us": User.US, "ordinary": User.ORDINARY}


def main() -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # and so leave nobody behind
    _ignore_nothing()
    chosen = _arguments()
    programs = selected.programs(chosen.programs)
    if not programs:
        raise SystemExit(f"no program is called {chosen.programs}")
    if chosen.write:
        page = table.PAGE.read_text()
        table.PAGE.write_text(table.page_with(selected.programs(), table.load(), page))
        return 0
    fine = True
    for program in programs:
        for user in dict.fromkeys(USERS[name] for name in words(chosen.user)):
            fine &= _check(program, user, chosen)
    return 0 if fine else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make test-programs", description=__doc__)
    parser.add_argument(
        "--programs", default="*", help="names or patterns of names, with ? for a space"
    )
    parser.add_argument("--policy", default=" ".join(POLICIES))
    parser.add_argument("--form", default="package", help="package, binary, or both")
    parser.add_argument("--user", default="root ordinary")
    parser.add_argument("--write", action="store_true", help="only write docs/reliability.md")
    return parser.parse_args()


def _ignore_nothing() -> None:
    """What a background job ignores its programs would inherit, and suites go another way then."""
    for ignored in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
        if signal.getsignal(ignored) is signal.SIG_IGN:
            signal.signal(ignored, signal.SIG_DFL)


def words(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _check(program: Program, user: User, chosen: argparse.Namespace) -> bool:
    policies = words(chosen.policy)[: 1 if program.forwarded else None]
    fine = True
    with subject(program, user) as checked:
        for form in words(chosen.form):
            for policy in policies:
                started = time.monotonic()
                result = checked.check(form, policy)
                table.keep(table.load(), result)
                _report(result, time.monotonic() - started)
                fine &= result.is_fine
    return fine


def _report(result: Result, took_s: float) -> None:
    say(
        f"{result.program:24} {result.user:8} {result.form:7} {result.policy:13} "
        f"{took_s:5.1f} s  {result.verdict.value}" + (f": {result.detail}" if result.detail else "")
    )
    if result.verdict is Verdict.DIFFERS and result.log:
        say("    " + result.log.replace("\n", "\n    "))


def say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
