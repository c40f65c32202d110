"""How many execs of a session went on by an earlier decision about the very same facts.

One program in two thousand gets its stack where it would be without randomization. Of its children
it can't be told what they ran before, so none of their execs is repeated; whoever counts them has
to know where the stack of that program is.
"""

from __future__ import annotations

from sigwrap.session.lineage import is_repeatable
from tests.support.harness import Sigwrap


def noting_its_stack(subject: Sigwrap, text: str) -> str:
    """For a shell."""
    return f'read -r stat </proc/$$/stat; echo "$stat" >{subject.folder}/stat\n{text}'


def repeated(subject: Sigwrap) -> int:
    (ended,) = subject.sealed_events("session_ended")
    count: int = ended.payload["repeated"]
    return count


def assert_repeated(subject: Sigwrap, at_least: int) -> None:
    fields = (subject.folder / "stat").read_text().rpartition(") ")[2].split()
    stack = int(fields[25])
    if is_repeatable((stack, stack, stack)):
        assert repeated(subject) == 0
    else:
        assert repeated(subject) >= at_least
