"""A program under sigwrap, compared with the program alone."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import Enum

from tests.programs.compare import difference
from tests.programs.place import Missing, Place
from tests.programs.program import Program, User
from tests.programs.running import Outcome, Run
from tests.programs.selected import forwarder, wrapper


class Verdict(Enum):
    SAME = "same"
    SKIPPED = "skipped"
    DIFFERS_AS_IT_MUST = "differs as it must"
    DIFFERS = "differs"
    FAILS_NATIVELY = "fails natively"
    SAME_BUT_SHOULD_DIFFER = "same, though its entry says that it differs"


@dataclass(frozen=True, slots=True)
class Result:
    program: str
    user: str
    form: str
    policy: str
    verdict: Verdict
    detail: str = ""
    log: str = ""

    @property
    def is_fine(self) -> bool:
        return self.verdict in (Verdict.SAME, Verdict.SKIPPED, Verdict.DIFFERS_AS_IT_MUST)


@dataclass(slots=True)
class Subject:
    """One program as one user: natively once, and again only if something seems to differ."""

    program: Program
    user: User
    place: Place
    natives: list[Outcome] = field(default_factory=list)

    def __enter__(self) -> Subject:
        return self

    def __exit__(self, *exc: object) -> None:
        self.place.remove()

    def check(self, form: str, policy: str) -> Result:
        try:
            return self._check(form, policy)
        except Missing as reason:
            return self._result(form, policy, Verdict.SKIPPED, str(reason))

    def _check(self, form: str, policy: str) -> Result:
        program = self.program
        if self.user not in program.users:
            raise Missing("not for this user")
        if not self.natives:
            self.place.require(program)
            self._run_natively()
        if "late" in self.natives[0]:
            return self._result(form, policy, Verdict.FAILS_NATIVELY, self.natives[0]["late"][0])
        said = "\n".join(self.natives[0].get("stdout", ()))
        if not re.search(program.must_say, said, re.MULTILINE):
            detail = f"it doesn't say {program.must_say!r}"
            return self._result(form, policy, Verdict.FAILS_NATIVELY, detail)
        run = self._wrapped(form, policy)
        wrapped = run.go()
        found = difference(self.natives, wrapped)
        if found and len(self.natives) == 1:
            self._run_natively()
            found = difference(self.natives, wrapped)
        expected = program.why_it_differs(policy, self.user)
        if found:
            verdict = Verdict.DIFFERS_AS_IT_MUST if expected else Verdict.DIFFERS
        else:
            verdict = Verdict.SAME_BUT_SHOULD_DIFFER if expected else Verdict.SAME
        return self._result(form, policy, verdict, str(found or self._unstable()), run.log)

    def _unstable(self) -> str:
        if len(self.natives) == 1:
            return ""
        found = difference(self.natives[:1], self.natives[1])
        return f"two native runs differ, {found}" if found else ""

    def _run_natively(self) -> None:
        env = {"FORWARD": ""} if self.program.forwarded else {}
        self.natives.append(Run(self.program, self.place, [], env=env).go())

    def _wrapped(self, form: str, policy: str) -> Run:
        expected = self.natives[0]
        if self.program.forwarded:
            env = {"FORWARD": str(forwarder(form))}
            return Run(self.program, self.place, [], expected, env)
        return Run(self.program, self.place, wrapper(form, policy), expected)

    def _result(
        self, form: str, policy: str, verdict: Verdict, detail: str = "", log: str = ""
    ) -> Result:
        return Result(self.program.name, self.user.value, form, policy, verdict, detail, log)


def subject(program: Program, user: User) -> Subject:
    return Subject(program, user, Place.make(user, program.name))
