"""Generate docs/events.md: python -m sigwrap.report.reference > docs/events.md"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from sigwrap.events import (
    APPROVAL_ANSWER_FIELDS,
    CONNECTION_FIELDS,
    EVENT_TYPES,
    EXEC_FIELDS,
    SIGNAL_FIELDS,
)

_INTRODUCTION = """\
# Events

`sigwrap export --format jsonl` prints the events of the latest session, one JSON object per line.
`sigwrap query` answers SQL about them ([query](query.md)). This page describes the log and every
type of event. It is generated from `sigwrap/events.py`.

## The log

The log of a session is one SQLite file, `<store>/sessions/<session id>.db`. It has one append-only
table:

```text
events (seq INTEGER PRIMARY KEY, time_ns INTEGER, type TEXT, pid INTEGER, payload TEXT, hash TEXT)
```

- `payload` is JSON. Bytes that are not UTF-8 are written `\\udc80` to `\\udcff`.
- While a session runs, and after a crash, the complete log is `<session id>.journal` beside the
  database: one line per event, columns separated by tabs. sigwrap's own commands read both. Another
  SQLite client sees a database that lags behind until the session ends. Then it has views over the
  events ([query](query.md)), which are not part of the hash chain.
- An event has at most 8 KiB of JSON. Longer fields are cut, and `cut` has the original length and
  the BLAKE2b digest (16 bytes, hex) of each.
- `v` in the payload is the version of the type, 1 unless the table says otherwise. sigwrap reads
  old versions, converts them as it reads, and never rewrites a row.

## The hash chain

`hash` is BLAKE2b (32 bytes, hex) of the previous row's hash followed by
`seq TAB time_ns TAB type TAB pid TAB payload`. The first row follows the BLAKE2b of the session id.
With `$SIGWRAP_KEY`, every hash is keyed (RFC 7693; a key over 64 bytes is hashed to 64 first).

The last hash is the head. Keep it outside the store: `sigwrap verify --head HEAD` then detects a
truncated or rewritten log. Without head and key, a completely rewritten chain looks intact.
`sigwrap verify` also makes each decision again, from the policy in `session_started` and the facts
in each event. It counts those that it cannot repeat (built-in rules, arguments masked or cut, other
version of sigwrap).

## Types
"""

FAMILIES = {
    "exec": EXEC_FIELDS,
    "signal": SIGNAL_FIELDS,
    "connection": CONNECTION_FIELDS,
    "answer": APPROVAL_ANSWER_FIELDS,
}
NOTES = {
    "count": "repetitions within a second; 1 if missing",
    "masked": "possible secrets in the arguments are masked",
    "truncated": "sigwrap read only the first arguments",
    "verified": "the loaded program is the judged one",
    "programs": "program, interpreters and wrapped commands",
    "here": "how many of `programs` this exec itself runs",
    "elsewhere": "sigwrap sees another file at this path",
    "shadows": "the system command of the same name",
    "siblings": "children of the parent, if a limit counts them",
    "below": "nearest ancestor that ran a program",
    "fallback": "always false, kept for other readers",
    "target_handles": "the target catches or ignores the signal",
    "correlation": "equal for all members of a signalled group",
    "own": "the server belongs to this session",
}


def reference() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield _INTRODUCTION
    for name, fields in FAMILIES.items():
        yield f"- *{name}* fields: {_names(fields)}"
    yield ""
    yield "| type | meaning | payload |"
    yield "| --- | --- | --- |"
    for kind in EVENT_TYPES.values():
        version = f" (v{kind.version})" if kind.version > 1 else ""
        yield f"| `{kind.name}`{version} | {kind.meaning} | {_payload(kind.fields)} |"
    yield "\n## Fields\n"
    for name, meaning in NOTES.items():
        yield f"- `{name}`: {meaning}"


def _payload(fields: tuple[str, ...]) -> str:
    for name, family in FAMILIES.items():
        if fields[: len(family)] == family:
            own = _names(fields[len(family) :])
            return f"*{name}*" + (f", {own}" if own else "")
    return _names(fields)


def _names(fields: tuple[str, ...]) -> str:
    return ", ".join(f"`{name}`" for name in fields)


if __name__ == "__main__":
    sys.stdout.write(reference())
