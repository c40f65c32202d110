"""docs/events.md from the registry: python -m sigwrap.report.reference > docs/events.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sigwrap.events import EVENT_TYPES

_INTRODUCTION = """\
# Events

Generated from `sigwrap/events.py` by `python -m sigwrap.report.reference > docs/events.md`;
a test holds it equal.

A session's log is one SQLite file, `<store>/sessions/<session id>.db`, with one append-only table,
`events`:

    seq INTEGER PRIMARY KEY, time_ns INTEGER, type TEXT, pid INTEGER, payload TEXT, hash TEXT

`payload` is JSON; its member `v` is the version of the type. Text that was no UTF-8 holds its bytes
as `\\udc80` to `\\udcff`. While a session runs, and after a crash, all of it is in
`<session id>.journal` beside it, one line an event: the columns, separated by tabs. The database
there is a copy as of when the log last doubled, or had 16 MiB, and gets the rest at the end.
sigwrap's own commands read whichever has everything.

An event with more than 8 KiB of JSON has its longest fields cut, and then a field `cut`: for each
of these, how long its JSON was and the BLAKE2b of it (16 bytes, in hex).

`hash` is BLAKE2b with 32 bytes, in hex, of the previous row's hash (32 bytes) followed by
`seq TAB time_ns TAB type TAB pid TAB payload`. The first row follows the BLAKE2b of the session id.
With `$SIGWRAP_KEY` set, each of these is keyed (a MAC as RFC 7693 defines it; a key longer than 64
bytes is first hashed to 64). The head, the last row's hash, is printed at the end of a run:
`sigwrap verify --head HEAD` proves that nothing was cut off or written anew since. Without a key
and without the head, a log that was rewritten as a whole can't be told from a true one.

What a decision rested on is in the log: the texts of the policy (`policy_sources`) and the values
of its variables in `session_started`; in each event of an exec or a signal what was asked, with
what rules asked about it (in `programs`: `system_file`, `loads_code`, `sha256`, `elsewhere`,
`shadows` and `found`, `counts_by_name`, `missing`). So `sigwrap verify` decides all of it again,
and names the first row of which the policy says otherwise: a decision that was edited is found even
where the whole chain was made anew. It counts the decisions of which it can't say that, with the
reason and their first rows: they rest on words that were masked or cut, or were made by another
version of sigwrap (`sigwrap`, `judgement`). What no masked or cut word could have changed is held
against the policy all the same. With `--strict` its status is 1 where there is any such decision.

When a payload's format changes, its type gets a new version. sigwrap reads rows of older versions
as if they had been written in the newest one, and never rewrites them; `sigwrap export` writes the
newest version. An SQLite client sees what was written: look at `v`.
"""


def reference() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    yield "| type | version | meaning | payload |"
    yield "| --- | --- | --- | --- |"
    for kind in EVENT_TYPES.values():
        fields = ", ".join(f"`{name}`" for name in kind.fields)
        yield f"| `{kind.name}` | {kind.version} | {kind.meaning} | {fields} |"


if __name__ == "__main__":
    sys.stdout.write(reference())
